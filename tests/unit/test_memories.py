"""What is remembered, as it is compared and as it is reported."""

from __future__ import annotations

import pytest

from holdfast.core.memories import Changed, receipt


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (Changed(), "nothing new"),
        (Changed(added=1), "1 fact added"),
        (Changed(added=3, replaced=1, known=2), "3 facts added, 1 changed, 2 known already"),
        (Changed(replaced=1, removed=1), "1 fact changed, 1 removed"),
        (Changed(known=2), "2 facts known already"),
        (Changed(added=1, left_out=4), "1 fact added, 4 left out, as 2,000 are kept at most"),
        (Changed(removed=1_500), "1,500 facts removed"),
    ],
)
def test_a_receipt_says_what_changes_came_to(changed: Changed, said: str) -> None:
    assert receipt(changed) == said
