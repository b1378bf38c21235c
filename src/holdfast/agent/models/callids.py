"""Ids of tool calls that can be told apart: some vendors give none, or the same ones every time."""

from __future__ import annotations

from uuid import uuid4

from holdfast.agent.models.port import AssistantMessage, Request


class CallIds:
    """The ids of one conversation."""

    def __init__(self, request: Request) -> None:
        self._taken = {call.id for each in request.messages if isinstance(each, AssistantMessage) for call in each.calls}

    def unique(self, told: str) -> str:
        """Return the id that a vendor gave, or another where it cannot be used."""
        call_id = told if told and told not in self._taken else f"call_{uuid4().hex}"
        self._taken.add(call_id)
        return call_id
