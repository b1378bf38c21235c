"""The memory ledger: which segment a turn joins, and which segment may be committed."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from holdfast.core.segments import DIRTY, Segment, SegmentState, SegmentStep, next_to_commit, record

OWNERS = ("builtin", "http:one")


@pytest.mark.parametrize(
    ("open_owner", "owner", "decision"),
    [
        (None, "builtin", SegmentStep.OPEN),
        (None, "", SegmentStep.OPEN),
        ("builtin", "builtin", SegmentStep.EXTEND),
        ("builtin", "http:one", SegmentStep.SEAL_AND_OPEN),
        ("http:one", "builtin", SegmentStep.SEAL_AND_OPEN),
        ("http:one", "http:two", SegmentStep.SEAL_AND_OPEN),
        ("", "", SegmentStep.EXTEND),
        ("", "builtin", SegmentStep.SEAL_AND_OPEN),
    ],
)
def test_consecutive_turns_of_one_owner_share_a_segment(open_owner: str | None, owner: str, decision: SegmentStep) -> None:
    """M2: and a turn of another owner begins a new one."""
    assert record(open_owner, owner) is decision


def ledger(rows: tuple[tuple[SegmentState, str], ...]) -> list[Segment]:
    return [
        Segment(
            id=f"seg{number}",
            session_id="s",
            owner=owner,
            first_generation=number * 10,
            last_generation=number * 10 + 9,
            created_at=0,
            due_at=0,
            state=state,
        )
        for number, (state, owner) in enumerate(rows, 1)
    ]


LEDGERS = [rows for length in range(4) for rows in product(product(sorted(DIRTY), OWNERS), repeat=length)]


@pytest.mark.parametrize("owner", OWNERS)
def test_only_the_oldest_segment_is_committed_and_only_by_its_owner(owner: str) -> None:
    """M2, M3: over every ledger of up to three segments, read in any order."""
    assert len(LEDGERS) == 1 + 6 + 36 + 216
    for rows in LEDGERS:
        segments = ledger(rows)
        may = segments[0] if rows and rows[0] == (SegmentState.SEALED, owner) else None
        for order in permutations(segments):
            assert next_to_commit(order, owner) is may, rows


def test_a_replacement_cannot_touch_what_is_owed_to_another() -> None:
    """M3: a new provider waits, even for its own segment, until the older owner's is paid."""
    segments = ledger(((SegmentState.SEALED, "old"), (SegmentState.SEALED, "new")))
    assert next_to_commit(segments, "new") is None
    assert next_to_commit(segments, "old") is segments[0]
    assert next_to_commit(segments[1:], "new") is segments[1]


@pytest.mark.parametrize("state", [SegmentState.OPEN, SegmentState.COMMITTING])
def test_a_segment_that_is_still_open_or_already_being_committed_is_left_alone(state: SegmentState) -> None:
    """M4, M7: nothing is committed before a boundary, and nothing twice at once."""
    assert next_to_commit(ledger(((state, "builtin"),)), "builtin") is None


def test_nothing_owed_is_nothing_to_commit() -> None:
    """M4, M12."""
    assert next_to_commit([], "builtin") is None
    assert next_to_commit([], "") is None
