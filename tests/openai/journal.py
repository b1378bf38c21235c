"""Journals by hand: the entries of one turn, as a worker would have written them."""

from __future__ import annotations

import itertools
from typing import Any

from holdfast.core.events import EntryKind
from holdfast.core.journal import Entry
from holdfast.ids import SessionId, TurnId

TURN = TurnId("trn_1")
AT = 1_700_000_000_000


def journal(*lines: tuple[EntryKind, dict[str, Any]]) -> list[Entry]:
    """Return entries one after the other, each a second later than the one before."""
    seq = itertools.count(1)
    return [
        Entry.read(
            session_id=SessionId("ses_1"),
            seq=(number := next(seq)),
            turn_id=TURN,
            attempt=1,
            nth=number,
            kind=kind,
            at=AT + (number - 1) * 1_000,
            data=data,
        )
        for kind, data in lines
    ]


def accepted(text: str = "hello", **data: Any) -> tuple[EntryKind, dict[str, Any]]:
    return EntryKind.TURN_ACCEPTED, {"text": text, **data}


STARTED = (EntryKind.TURN_STARTED, {})
COMPLETED = (EntryKind.TURN_COMPLETED, {"text": "…"})


def said(text: str) -> tuple[EntryKind, dict[str, Any]]:
    return EntryKind.TEXT, {"text": text}


def thought(text: str) -> tuple[EntryKind, dict[str, Any]]:
    return EntryKind.REASONING, {"text": text}


def used(input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> tuple[EntryKind, dict[str, Any]]:
    return EntryKind.USAGE, {
        "model": "m",
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cached_tokens": cached_tokens,
        "cost_micros": 0,
    }


def asked(text: str = "may I?") -> tuple[EntryKind, dict[str, Any]]:
    return EntryKind.APPROVAL_ASKED, {"question_id": "q1", "text": text, "about": "approval", "choices": ["once", "deny"]}


ANSWERED = (EntryKind.APPROVAL_ANSWERED, {"question_id": "q1", "text": "once"})
TOOL = (
    (EntryKind.TOOL_STARTED, {"call_id": "c1", "name": "lever"}),
    (EntryKind.TOOL_FINISHED, {"call_id": "c1", "outcome": "ok"}),
)


def cut(*, continues: bool = False) -> tuple[EntryKind, dict[str, Any]]:
    return EntryKind.TURN_INTERRUPTED, {"cause": "crash", "continues": continues}
