"""Memory at an address: any server that takes `POST /commit` and answers `POST /recall`, in JSON."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.clock import Clock
from holdfast.core.facts import Recollection
from holdfast.core.redaction import Redaction
from holdfast.core.segments import Segment, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.egress import FetchedResponse
from holdfast.errors import Rejected
from holdfast.ids import SessionId
from holdfast.memory.address import Address
from holdfast.memory.exchange import Exchange, read, status
from holdfast.memory.provider import Provider

NAME = "http"
RECEIPT_MAX_CHARS = 200
RECOLLECTION_MAX_CHARS = 4_000
# The query of `holdfast doctor`, for a session that does not exist.
CHECK_SESSION = SessionId("ses_doctor")
CHECK_QUERY = "Is anybody there?"
# A server need not support every operation; these statuses say that it does not.
_MISSING = frozenset({404, 405, 501})


class _Memory(msgspec.Struct):
    text: str
    id: str | int | None = None


class _Recalled(msgspec.Struct):
    memories: list[_Memory]


class _Forgotten(msgspec.Struct):
    forgotten: int


class _Taken(msgspec.Struct):
    receipt: str = ""


class HttpProvider(Provider):
    """Remembers in the configured server, on this machine or elsewhere."""

    def __init__(self, address: Address, *, timeout_s: float, redaction: Redaction, clock: Clock) -> None:
        super().__init__(f"{NAME}:{address.url}")
        self._exchange = Exchange(address, timeout_s=timeout_s, redaction=redaction, clock=clock)
        self._clock = clock

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        body = {
            "session_id": segment.session_id,
            "segment_id": segment.id,
            "owner": self.owner,
            "generations": [segment.first_generation, segment.last_generation],
            "messages": messages,
            "person": session.owner,
            "channel": session.channel,
        }
        answer = await self._exchange.post("/commit", body, {"Idempotency-Key": segment.id})
        self._exchange.refuse(answer)
        taken = read(answer, _Taken)
        return self._exchange.masked(taken.receipt if taken else "", RECEIPT_MAX_CHARS) or f"answered {status(answer)}"

    async def recall(self, session: Session, query: str, limit: int) -> Sequence[Recollection]:
        answer = await self._ask(session.id, query, limit, person=session.owner, channel=session.channel)
        if answer.status in _MISSING:
            return ()
        found = self._recalled(answer)[:limit]
        return [Recollection(text=each.text[:RECOLLECTION_MAX_CHARS], id=_id(each)) for each in found if each.text.strip()]

    async def forget(self, person: str, *, memory_id: str | None = None, session_id: SessionId | None = None) -> int:
        if memory_id is None and not session_id:
            return 0
        which = {"session_id": session_id} if memory_id is None else {"id": memory_id}
        answer = await self._exchange.post("/forget", {**which, "person": person})
        if answer.status in _MISSING:
            raise Rejected(f"{answer.url} answered {status(answer)}: it cannot be told to forget; delete it there")
        return self._exchange.understood(answer, _Forgotten, '{"forgotten": 1}').forgotten

    async def check(self) -> str:
        began_ms = self._clock.monotonic_ms()
        answer = await self._ask(CHECK_SESSION, CHECK_QUERY, 1)
        took = f"in {self._clock.monotonic_ms() - began_ms} ms"
        if answer.status in _MISSING:
            return f"answers {took}, and does not recall: {status(answer)}"
        self._recalled(answer)
        return f"recalls {took}"

    async def close(self) -> None:
        await self._exchange.close()

    async def _ask(
        self, session_id: SessionId, query: str, limit: int, *, person: str = "", channel: str = ""
    ) -> FetchedResponse:
        body = {"session_id": session_id, "query": query, "limit": limit, "person": person, "channel": channel}
        return await self._exchange.post("/recall", body)

    def _recalled(self, answer: FetchedResponse) -> list[_Memory]:
        return self._exchange.understood(answer, _Recalled, '{"memories": [{"text": "…"}]}').memories


def _id(memory: _Memory) -> str | None:
    return None if memory.id is None else str(memory.id)
