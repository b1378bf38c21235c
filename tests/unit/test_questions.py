"""What an answer allows, and what an approval is bound to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.questions import EXPIRED, Decision, decide, fingerprint


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        ("once", Decision.ONCE),
        (" Yes. ", Decision.ONCE),
        ("OK!", Decision.ONCE),
        ("session", Decision.SESSION),
        ("For this session", Decision.SESSION),
        ("ALWAYS", Decision.ALWAYS),
        ("deny", Decision.DENY),
        ("no", Decision.DENY),
        ("", Decision.DENY),
        ("yes, but not on Sundays", Decision.DENY),
        ("do not allow", Decision.DENY),
        (EXPIRED, Decision.DENY),
    ],
)
def test_only_a_clear_yes_allows_something(answer: str, decision: Decision) -> None:
    assert decide(answer) is decision


@given(st.text())
def test_whatever_is_said_allows_at_most_what_it_names(answer: str) -> None:
    words = answer.strip().strip(".!").lower()
    if decide(answer) is Decision.ALWAYS:
        assert words in ("always", "forever")
    if decide(answer) is Decision.SESSION:
        assert "session" in words


def test_an_approval_is_bound_to_every_part_of_what_it_is_about() -> None:
    bound = {"tool": "terminal", "command": "rm -r build", "workdir": "/w", "background": False}
    assert fingerprint(**bound) == fingerprint(**dict(reversed(bound.items())))
    for part in bound:
        assert fingerprint(**{**bound, part: "another"}) != fingerprint(**bound)
    assert fingerprint(a="x", b="yz") != fingerprint(a="xy", b="z")
