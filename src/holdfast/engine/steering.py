"""Steering: messages that join a turn while it runs, at its next step."""

from __future__ import annotations

from holdfast.clock import Clock
from holdfast.core import notes
from holdfast.core.events import MessageJoined
from holdfast.core.journal import Entry
from holdfast.core.turns import Turn
from holdfast.engine.persistence import persist
from holdfast.errors import Unavailable
from holdfast.ids import SessionId
from holdfast.store.store import Store


class Steering:
    """Looks for messages after a hint, and now and then in case a hint was lost."""

    def __init__(self, store: Store, nudged: set[SessionId], poll_ms: int, clock: Clock) -> None:
        self._store = store
        self._nudged = nudged
        self._poll_ms = poll_ms
        self._clock = clock
        self._looked_ms = clock.monotonic_ms()

    async def is_wanted(self, turn: Turn) -> bool:
        """Return whether a message waits to join a turn; most of the time without asking the store."""
        now = self._clock.monotonic_ms()
        if turn.session_id not in self._nudged and now - self._looked_ms < self._poll_ms:
            return False
        self._looked_ms = now
        self._nudged.discard(turn.session_id)
        try:
            return await self._store.steering.is_wanted(turn)
        except Unavailable:
            # While the store is away no message can have joined, and the agent does not have to wait for that.
            self._nudged.add(turn.session_id)
            return False

    async def join(self, turn: Turn) -> tuple[Turn, list[Entry]]:
        """Let what waits join a turn; returns the turn to write with next."""
        return await persist(self._clock, lambda: self._store.steering.heed(turn, self._clock.now_ms()))

    async def heard(self, joined: Entry) -> str:
        """Return what a message that has joined says, and that pictures came with it, which a running turn cannot see."""
        match joined.event:
            case MessageJoined(text=text, turn_id=turn_id):
                pictures = len(await persist(self._clock, lambda: self._store.turns.images(turn_id)))
                return f"{text}\n\n{notes.pictures_later(pictures)}" if pictures else text
            case _:
                return ""
