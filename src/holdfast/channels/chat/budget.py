"""The calls to each chat of an account: one after the other, and none while its platform wants to be left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from holdfast.channels.chat.port import Place
from holdfast.clock import Clock
from holdfast.errors import Unavailable

T = TypeVar("T")

EDIT_MS = 1_000
MINUTE_MS = 60_000
# Each refusal doubles the time between edits, up to this many times.
SLOWER_MAX = 32
# A chat is edited at full speed again when it was not refused for so long.
FORGIVEN_MS = 10 * MINUTE_MS
CHATS_MAX = 10_000


@dataclass(slots=True)
class _Chat:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    held_until: int = 0
    refused_at: int = 0
    slower: int = 1
    edited_at: int | None = None


class Budget:
    """How often the chats of one account may be called, by monotonic time."""

    def __init__(self, clock: Clock, edits_per_minute: int) -> None:
        self._clock = clock
        self._edits_per_minute = edits_per_minute
        self._chats: dict[str, _Chat] = {}

    async def call(self, place: Place, work: Callable[[], Awaitable[T]]) -> T:
        """Make one call.  Raises `Unavailable` with the time that is left where the platform wants no calls now."""
        chat = self._chat(place)
        async with chat.lock:
            if left_ms := self._left_ms(chat):
                raise Unavailable("the platform wants no calls for this chat now", left_ms / 1000)
            try:
                return await work()
            except Unavailable as error:
                if error.retry_after_s:
                    self._refused(chat, error.retry_after_s)
                raise

    def is_held(self, place: Place) -> bool:
        """Return whether the platform wants no calls for a chat now."""
        return self._left_ms(self._chat(place)) > 0

    def may_edit(self, place: Place, *, in_group: bool) -> bool:
        """Return whether it is time for another edit."""
        chat, now = self._chat(place), self._clock.monotonic_ms()
        if chat.slower > 1 and now - chat.refused_at >= FORGIVEN_MS:
            chat.slower = 1
        least_ms = MINUTE_MS // self._edits_per_minute if in_group and self._edits_per_minute else EDIT_MS
        return not self.is_held(place) and (chat.edited_at is None or now - chat.edited_at >= least_ms * chat.slower)

    def edited(self, place: Place) -> None:
        """Count an edit."""
        self._chat(place).edited_at = self._clock.monotonic_ms()

    def _refused(self, chat: _Chat, retry_after_s: float) -> None:
        now = self._clock.monotonic_ms()
        chat.held_until = max(chat.held_until, now + round(retry_after_s * 1000))
        chat.refused_at = now
        chat.slower = min(2 * chat.slower, SLOWER_MAX)

    def _left_ms(self, chat: _Chat) -> int:
        return max(0, chat.held_until - self._clock.monotonic_ms())

    def _chat(self, place: Place) -> _Chat:
        # A platform limits the whole chat, not its threads.
        chat = self._chats.get(place.chat_id)
        if chat is None:
            if len(self._chats) >= CHATS_MAX:
                self._chats = {name: each for name, each in self._chats.items() if self._is_needed(each)}
            chat = self._chats[place.chat_id] = _Chat()
        return chat

    def _is_needed(self, chat: _Chat) -> bool:
        return chat.lock.locked() or self._left_ms(chat) > 0 or chat.slower > 1
