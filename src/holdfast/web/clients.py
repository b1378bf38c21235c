"""Clients of the API: which of them wait for a turn, which were refused, and which have read their answer.

This tells the retries of one request from other requests with the same words.  A restart loses no more than what was
learnt in the last second.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from starlette.background import BackgroundTask
from starlette.responses import Response

from holdfast.core.retries import Try
from holdfast.errors import HoldfastError, Unconfirmed
from holdfast.ids import TurnId
from holdfast.operations.messages import Messages
from holdfast.web.answers import status_of
from holdfast.web.protocol import Connection

# A client that has given up closes its connection at once; one that is still there after this has read its answer.
HEARD_AFTER_S = 1.0
# So long the next try of a refused request may take: the official clients wait for a minute at most.
REFUSED_S = 120.0
REFUSED_MAX = 1_000
# What the official clients repeat by themselves.
_REPEATED = frozenset({408, 409, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """An answer that was sent, and when it counts as read."""

    messages: Messages
    turn_id: TurnId
    connection: Connection
    due: float


class Clients:
    """There is one of these per application."""

    def __init__(self, closing: asyncio.Event) -> None:
        self._closing = closing
        self._waiting: dict[TurnId, list[Connection]] = {}
        self._refused: deque[tuple[float, str]] = deque(maxlen=REFUSED_MAX)
        self._sent: deque[_Answer] = deque()
        self._telling: asyncio.Task[None] | None = None

    def trying(self, digest: str, number: int) -> Try:
        """Return what a request without a key is known by."""
        if number == 0:
            return Try(digest=digest)
        return Try(digest=digest, number=number, refused=self._was_refused(digest), attended=self._attended())

    def _attended(self) -> frozenset[TurnId]:
        return frozenset(turn_id for turn_id, found in self._waiting.items() if not all(each.lost for each in found))

    def _was_refused(self, digest: str) -> bool:
        """Return whether a try of such a request was refused, so that the next one is new; each refusal counts once."""
        now = asyncio.get_running_loop().time()
        for refusal in self._refused:
            if refusal[1] == digest and now <= refusal[0]:
                self._refused.remove(refusal)
                return True
        return False

    @contextmanager
    def accepting(self, this: Try | None) -> Generator[None]:
        """Remember a try that is refused before anything of it was accepted."""
        try:
            yield
        except HoldfastError as error:
            # Of a later try it is not known whether an earlier one was accepted.
            fresh = this is not None and (this.number == 0 or this.refused)
            if this and fresh and _is_repeated(error):
                self._refused.append((asyncio.get_running_loop().time() + REFUSED_S, this.digest))
            raise

    async def served(
        self, messages: Messages, turn_id: TurnId, connection: Connection, making: Awaitable[Response]
    ) -> Response:
        """Return the response that is being made, and have it known who waits for it until it was read."""
        self._waiting.setdefault(turn_id, []).append(connection)
        try:
            response = await making
        except BaseException:
            self._leave(turn_id, connection)
            raise
        response.background = Sending(self, messages, turn_id, connection)
        return response

    def sent(self, messages: Messages, turn_id: TurnId, connection: Connection, *, whole: bool) -> None:
        """Take note that a response has ended; the client of a `whole` one may have read it."""
        if not whole or connection.lost:
            self._leave(turn_id, connection)
            return
        due = asyncio.get_running_loop().time() + HEARD_AFTER_S
        self._sent.append(_Answer(messages=messages, turn_id=turn_id, connection=connection, due=due))
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell(), name="clients")

    async def _tell(self) -> None:
        try:
            while self._sent:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(self._sent[0].due):
                        await self._closing.wait()
                await self._tell_due()
        finally:
            self._telling = None

    async def _tell_due(self) -> None:
        """Have it stored, for all together, that the clients that are still there have read their answers."""
        now = asyncio.get_running_loop().time()
        due: list[_Answer] = []
        while self._sent and (self._sent[0].due <= now or self._closing.is_set()):
            due.append(self._sent.popleft())
            self._leave(due[-1].turn_id, due[-1].connection)
        if heard := [each.turn_id for each in due if not each.connection.lost]:
            # Without it a later request can be taken for a retry, for a while; it is not worth more than one attempt.
            with suppress(HoldfastError):
                await due[0].messages.heard(heard)

    def _leave(self, turn_id: TurnId, connection: Connection) -> None:
        found = self._waiting.get(turn_id, [])
        if connection in found:
            found.remove(connection)
        if not found:
            self._waiting.pop(turn_id, None)


class Sending(BackgroundTask):
    """What is done when a response has ended, however that was."""

    def __init__(self, clients: Clients, messages: Messages, turn_id: TurnId, connection: Connection) -> None:
        super().__init__(lambda: None)
        self._clients = clients
        self._messages = messages
        self._turn_id = turn_id
        self._connection = connection

    async def __call__(self) -> None:
        self.ended(whole=True)

    def ended(self, *, whole: bool) -> None:
        self._clients.sent(self._messages, self._turn_id, self._connection, whole=whole)


def _is_repeated(error: HoldfastError) -> bool:
    status = status_of(error)
    return (status in _REPEATED or status >= 500) and not isinstance(error, Unconfirmed)
