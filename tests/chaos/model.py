"""The model of all gateways: it answers by script, except while it is out of order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import StrEnum

from tests.models.forms import problems
from tests.models.servers import ModelServer, Seen

STALL_S = 30.0


class Mood(StrEnum):
    """How the model answers."""

    WELL = "answers"
    LIMITED = "429"
    BROKEN = "500"
    STALLED = "stalls"
    CUTTING = "cuts"


_SCRIPTS = {Mood.LIMITED: "status 429 retry-after 1", Mood.BROKEN: "status 500"}


@dataclass
class Model(ModelServer):
    """One scripted model server in this process."""

    mood: Mood = Mood.WELL
    asked: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list[str])

    async def _answer(self, request: Seen, writer: asyncio.StreamWriter) -> None:
        if not request.path.endswith("/models"):
            self.asked += 1
            self.wrong += problems(request.path, request.body)
        self.requests.clear()
        if self.mood is Mood.STALLED:
            self.refused += 1
            await asyncio.sleep(STALL_S)
            raise ConnectionError
        await super()._answer(request, writer)

    def _part(self, request: Seen) -> list[str]:
        actions = super()._part(request)
        if self.mood is Mood.WELL:
            return actions
        self.refused += 1
        if self.mood is Mood.CUTTING:
            # Whatever it would have said first, and then nothing.
            return [_halved(actions[-1]), "cut"]
        return [_SCRIPTS[self.mood]]


def _halved(action: str) -> str:
    """Return an action with half of its words; a call is not made at all."""
    name, _, rest = action.partition(" ")
    count, _, rate = rest.partition(" at ")
    return f"count {int(count) // 2} at {rate}" if name == "count" else "pings 1 every 0"
