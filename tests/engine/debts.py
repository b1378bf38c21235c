"""What tests about memory debts share: an agent that obeys, a provider that is watched, and the ledger at rest."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.agent.scripted import Fail, Line, Pause, Say, ScriptedAgent
from holdfast.core.segments import Segment, SegmentState, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.ids import SessionId
from holdfast.ports import Assignment
from holdfast.store.store import Store
from tests.engine.world import RecordingMemory, until

HOUR_MS = 3_600_000


def script(work: Assignment) -> list[Line]:
    match work.message.split()[-1]:
        case "fail":
            return [Fail("as I was told")]
        case "crash":
            raise RuntimeError("as I was told")
        case "wait":
            return [Say("I wait"), Pause(HOUR_MS)]
        case _:
            return [Say(f"re: {work.message}")]


AGENT = ScriptedAgent(script)


class WatchedMemory(RecordingMemory):
    """Counts how many commits of one session were ever at work at once."""

    def __init__(self, *answers: object, owner: str = "memory:main") -> None:
        super().__init__(*answers, owner=owner)
        self.at_once = 0
        self._at_work: dict[SessionId, int] = {}

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        self._at_work[session.id] = self._at_work.get(session.id, 0) + 1
        self.at_once = max(self.at_once, self._at_work[session.id])
        try:
            return await super().commit(session, segment, messages)
        finally:
            self._at_work[session.id] -= 1


async def segments_in(store: Store, session_id: SessionId, *states: SegmentState) -> list[Segment]:
    """Return the segments of a session once they are in these states, oldest first."""

    async def look() -> list[Segment] | None:
        found = await store.segments.of_session(session_id)
        return found if [each.state for each in found] == list(states) else None

    return await until(look)
