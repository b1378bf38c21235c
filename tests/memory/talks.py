"""Talks to extract from, and answers of models about them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from holdfast.agent.models.port import Request, UserMessage
from holdfast.core.segments import SpokenMessage
from holdfast.core.transcript import Role
from holdfast.ids import TurnId

AT = 1_700_000_000_000


def talk(*texts: str | Sequence[str]) -> list[SpokenMessage]:
    """Return a talk: a text is what the person says in a turn, a pair is that and the answer, a list has more of both."""
    said: list[SpokenMessage] = []
    for number, turn in enumerate(texts, 1):
        parts = [turn] if isinstance(turn, str) else list(turn)
        for place, text in enumerate(parts):
            role = Role.ASSISTANT if place % 2 else Role.USER
            said.append(SpokenMessage(role=role, text=text, turn_id=TurnId(f"trn_{number}"), at=AT))
    return said


def answer(**parts: Any) -> str:
    """Return what a model answers."""
    return json.dumps({"add": [], "change": [], "remove": [], "profile": None, **parts})


def noted(text: str, quote: str, turn: object = 1, **more: Any) -> dict[str, Any]:
    return {"text": text, "turn": turn, "quote": quote, **more}


def told(request: Request) -> dict[str, Any]:
    """Return the data that a model was given."""
    first = request.messages[0]
    assert isinstance(first, UserMessage)
    return json.loads(first.text)
