"""Journals by hand: the entries of one turn, as a worker would have written them."""

from __future__ import annotations

import itertools
from typing import Any

from holdfast.core.journal import Entry, Kind
from holdfast.ids import SessionId, TurnId

TURN = TurnId("trn_1")
AT = 1_700_000_000_000


def journal(*lines: tuple[Kind, dict[str, Any]]) -> list[Entry]:
    """Return entries one after the other, each a second later than the one before."""
    seq = itertools.count(1)
    return [
        Entry(
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


def accepted(text: str = "hello", **data: Any) -> tuple[Kind, dict[str, Any]]:
    return Kind.TURN_ACCEPTED, {"text": text, **data}


STARTED = (Kind.TURN_STARTED, {})
COMPLETED = (Kind.TURN_COMPLETED, {"text": "…"})


def said(text: str) -> tuple[Kind, dict[str, Any]]:
    return Kind.TEXT, {"text": text}


def thought(text: str) -> tuple[Kind, dict[str, Any]]:
    return Kind.REASONING, {"text": text}


def used(input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> tuple[Kind, dict[str, Any]]:
    return Kind.USAGE, {
        "model": "m",
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cached_tokens": cached_tokens,
        "cost_micros": 0,
    }


def asked(text: str = "may I?") -> tuple[Kind, dict[str, Any]]:
    return Kind.APPROVAL_ASKED, {"question_id": "q1", "text": text, "about": "approval", "choices": ["once", "deny"]}


ANSWERED = (Kind.APPROVAL_ANSWERED, {"question_id": "q1", "text": "once"})
TOOL = ((Kind.TOOL_STARTED, {"call_id": "c1", "name": "lever"}), (Kind.TOOL_FINISHED, {"call_id": "c1", "outcome": "ok"}))


def cut(*, continues: bool = False) -> tuple[Kind, dict[str, Any]]:
    return Kind.TURN_INTERRUPTED, {"cause": "crash", "continues": continues}
