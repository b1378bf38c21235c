"""Memory at an address: any server that takes `POST /commit` and answers `POST /recall`, in JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec

from holdfast.channels.answers import is_good, may_pass, said
from holdfast.clock import Clock
from holdfast.core.memories import Recollection
from holdfast.core.memory import Message, Segment
from holdfast.core.redaction import Redaction
from holdfast.core.sessions import Session
from holdfast.egress import Answer, Egress, retry_after_s
from holdfast.errors import OutcomeUnknown, Rejected, Unavailable
from holdfast.ids import SessionId
from holdfast.memory.address import Address
from holdfast.memory.provider import Provider

NAME = "http"
ANSWER_MAX_BYTES = 1024 * 1024
RECEIPT_MAX_CHARS = 200
RECOLLECTION_MAX_CHARS = 4_000
# What `holdfast doctor` asks: a question like any other, of a session that never was.
CHECK_SESSION = "ses_doctor"
CHECK_QUERY = "Is anybody there?"
_MOVED = range(300, 400)
_KEY_WANTED = frozenset({401, 403})
# A server that can do one thing need not do the other.
_MISSING = frozenset({404, 405, 501})

Shape = TypeVar("Shape")


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
    """Asks a server that the operator chose, on this machine or elsewhere.  Whoever calls decides how long it may take."""

    def __init__(self, address: Address, *, timeout_s: float, redaction: Redaction, clock: Clock) -> None:
        super().__init__(f"{NAME}:{address.url}")
        redaction.learn(address.secrets)
        self._address = address
        self._redaction = redaction
        self._clock = clock
        self._egress = Egress.to(address.url, timeout_s)

    async def commit(self, session: Session, segment: Segment, messages: Sequence[Message]) -> str:
        answer = await self._post(
            "commit",
            {
                "session_id": segment.session_id,
                "segment_id": segment.id,
                "owner": self.owner,
                "generations": [segment.first_generation, segment.last_generation],
                "messages": messages,
                "person": session.owner,
                "channel": session.channel,
            },
            {"Idempotency-Key": segment.id},
        )
        self._refuse(answer)
        taken = _read(answer, _Taken)
        receipt = " ".join(self._redaction.text(taken.receipt).split()) if taken else ""
        return receipt[:RECEIPT_MAX_CHARS] or f"answered {_status(answer)}"

    async def recall(self, session: Session, query: str, limit: int) -> Sequence[Recollection]:
        answer = await self._ask(session.id, query, limit, session)
        if answer.status in _MISSING:
            return ()
        found = self._recalled(answer)[:limit]
        return [Recollection(text=each.text[:RECOLLECTION_MAX_CHARS], id=_id(each)) for each in found if each.text.strip()]

    async def forget(self, person: str, *, memory_id: str | None = None, session_id: SessionId | None = None) -> int:
        which = {"id": memory_id} if memory_id is not None else {"session_id": session_id}
        answer = await self._post("forget", {**which, "person": person})
        if answer.status in _MISSING:
            raise Rejected(f"{answer.url} answered {_status(answer)}: it cannot be told to forget; delete it there")
        self._refuse(answer)
        return self._understood(answer, _Forgotten, '{"forgotten": 1}').forgotten

    async def check(self) -> str:
        began_ms = self._clock.monotonic_ms()
        answer = await self._ask(SessionId(CHECK_SESSION), CHECK_QUERY, 1)
        took = f"in {self._clock.monotonic_ms() - began_ms} ms"
        if answer.status in _MISSING:
            return f"{self._address.url} answers {took}, and does not recall: {_status(answer)}"
        self._recalled(answer)
        return f"{self._address.url} recalls {took}"

    async def close(self) -> None:
        await self._egress.close()

    async def _ask(self, session_id: SessionId, query: str, limit: int, session: Session | None = None) -> Answer:
        about = {"person": session.owner, "channel": session.channel} if session else {"person": "", "channel": ""}
        return await self._post("recall", {"session_id": session_id, "query": query, "limit": limit, **about})

    def _recalled(self, answer: Answer) -> list[_Memory]:
        self._refuse(answer)
        return self._understood(answer, _Recalled, '{"memories": [{"text": "…"}]}').memories

    async def _post(self, what: str, body: Mapping[str, object], headers: Mapping[str, str] | None = None) -> Answer:
        url = f"{self._address.url}/{what}"
        told = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        try:
            return await self._egress.post(
                url,
                msgspec.json.encode(body),
                headers={**told, **self._address.headers, **(headers or {})},
                bytes_max=ANSWER_MAX_BYTES,
            )
        except OutcomeUnknown as error:
            # The segment's id is the key that makes it safe to send it again.
            raise Unavailable(f"{url}: {error}") from error
        except Unavailable as error:
            raise Unavailable(f"{url}: {error}", error.retry_after_s) from error

    def _refuse(self, answer: Answer) -> None:
        """Raise `Unavailable` or `Rejected` for anything but success, with what to do."""
        if is_good(answer.status):
            return
        # Masked before it is cut: half a secret would not be known for one.
        whole = self._redaction.text(answer.body.decode("utf-8", "replace"))
        told = f"{answer.url} answered {_status(answer)}{said(replace(answer, body=whole.encode()))}"
        if may_pass(answer.status):
            raise Unavailable(told, retry_after_s(answer.headers, self._clock.now_ms()))
        if answer.status in _MOVED:
            raise Rejected(f"{told}; redirects are not followed, so put the address that it has now into memory.url")
        if answer.status in _KEY_WANTED:
            raise Rejected(f"{told}; put a key that it takes into memory.api_key or the variable of memory.api_key_env")
        raise Rejected(told)

    def _understood(self, answer: Answer, shape: type[Shape], example: str) -> Shape:
        if (found := _read(answer, shape)) is not None:
            return found
        if answer.cut:
            raise Unavailable(f"{answer.url} answered {_status(answer)} and did not come to an end in time and size")
        raise Unavailable(f"{answer.url} answered {_status(answer)} with something else than {example}")


def _status(answer: Answer) -> str:
    return f"{answer.status} {answer.reason}".strip()


def _id(memory: _Memory) -> str | None:
    return None if memory.id is None else str(memory.id)


def _read(answer: Answer, shape: type[Shape]) -> Shape | None:
    try:
        return msgspec.json.decode(answer.body, type=shape)
    except (msgspec.DecodeError, RecursionError):
        return None
