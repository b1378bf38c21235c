"""What is told of a conversation as it happens: a turn that is over stays over, whatever arrives late of it."""

from __future__ import annotations

import pytest
from rich.text import Text

from holdfast.cli.narration import Narrator
from holdfast.core.events import EntryKind
from tests.unit.test_transcript import entry


class Board:
    """A screen that keeps what it is given.  `hint` is what stands at its prompt."""

    is_live = True

    def __init__(self) -> None:
        self.shown = ""
        self.hint = ""

    def print(self, text: Text) -> None:
        self.shown += f"{text.plain}\n"

    def stream(self, text: str, style: str = "") -> None:
        self.shown += text

    def label(self, hint: str, status: str = "") -> None:
        self.hint = f"{hint}{status}"

    async def line(self) -> str | None:
        return None


def told(*kinds: EntryKind) -> tuple[Board, Narrator]:
    board = Board()
    narrator = Narrator(board)
    for nth, kind in enumerate((EntryKind.TURN_ACCEPTED, EntryKind.TURN_STARTED, EntryKind.TEXT, *kinds)):
        narrator.tell(entry(kind, nth=nth, text="hello", cause="user", call_id="c", name="look", input_tokens=5))
    return board, narrator


def test_what_a_cancelled_turn_spent_is_not_shown_and_does_not_make_it_go_on() -> None:
    """J9: Ctrl-C leaves where nothing runs, and the prompt does not say that something does."""
    before, _ = told(EntryKind.TURN_CANCELLED)
    board, narrator = told(EntryKind.TURN_CANCELLED, EntryKind.USAGE, EntryKind.TURN_RECOVERED)
    assert (board.shown, board.hint, narrator.live) == (before.shown, "", {})


@pytest.mark.parametrize("kind", [EntryKind.TEXT, EntryKind.REASONING, EntryKind.TOOL_FINISHED, EntryKind.USAGE])
def test_what_arrives_late_of_an_interrupted_turn_does_not_make_it_go_on(kind: EntryKind) -> None:
    """J4"""
    board, narrator = told(EntryKind.TURN_INTERRUPTED, kind)
    assert (board.hint, narrator.live) == ("", {})


def test_a_turn_that_is_started_again_goes_on() -> None:
    board, narrator = told(
        EntryKind.TURN_INTERRUPTED, EntryKind.USAGE, EntryKind.TURN_STARTED, EntryKind.USAGE, EntryKind.TURN_COMPLETED
    )
    assert board.shown.endswith("5 in, 0 out\n")
    assert narrator.live == {}
    board, narrator = told(EntryKind.TURN_INTERRUPTED, EntryKind.TURN_STARTED, EntryKind.TEXT)
    assert ("Ctrl-C" in board.hint, len(narrator.live)) == (True, 1)
