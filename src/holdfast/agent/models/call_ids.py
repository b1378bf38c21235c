"""Unique ids of tool calls: some vendors give none, or the same ones every time."""

from __future__ import annotations

from uuid import uuid4

from holdfast.agent.models.port import AssistantMessage, Request


class CallIds:
    """The ids that one conversation has used."""

    def __init__(self, request: Request) -> None:
        self._taken = {call.id for each in request.messages if isinstance(each, AssistantMessage) for call in each.calls}

    def unique(self, given: str) -> str:
        """Return the id that a vendor gave, or a new one if it is empty or already used."""
        call_id = given if given and given not in self._taken else f"call_{uuid4().hex}"
        self._taken.add(call_id)
        return call_id
