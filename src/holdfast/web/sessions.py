"""Routes of sessions, their messages and their events."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.core.images import BYTES_MAX, IMAGES_MAX
from holdfast.core.intake import Busy, Image
from holdfast.core.sessions import State
from holdfast.desk.lifecycle import Lifecycle
from holdfast.desk.port import Desk, Opening
from holdfast.ids import SessionId, TurnId
from holdfast.web.answers import Refused, answer
from holdfast.web.events import EventStream
from holdfast.web.requests import BODY_MAX, body, choice, header, name, number

SEQ_MAX = 2**53
# Four thirds, because bytes are written as base64.
MESSAGE_MAX = BODY_MAX + IMAGES_MAX * (BYTES_MAX * 4 // 3 + 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a client sends to a session.  `busy` is what it wants if the session is at another message."""

    text: str
    busy: Busy | None = None
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a client may change about a session."""

    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """How much of a session a fork takes along; without a turn, all of it."""

    through: TurnId | None = None


class SessionRoutes:
    """Conversations."""

    def __init__(self, desk: Desk, lifecycle: Lifecycle) -> None:
        self._desk = desk
        self._lifecycle = lifecycle

    def routes(self) -> list[Route]:
        one = "/api/sessions/{id}"
        return [
            Route("/api/sessions", self.list, methods=["GET"]),
            Route("/api/sessions", self.open, methods=["POST"]),
            Route(one, self.show, methods=["GET"]),
            Route(one, self.change, methods=["PATCH"]),
            Route(one, self.delete, methods=["DELETE"]),
            Route(f"{one}/messages", self.transcript, methods=["GET"]),
            Route(f"{one}/messages", self.send, methods=["POST"]),
            Route(f"{one}/events", self.events, methods=["GET"]),
            Route(f"{one}/end", self.end, methods=["POST"]),
            Route(f"{one}/suspend", self.suspend, methods=["POST"]),
            Route(f"{one}/fork", self.fork, methods=["POST"]),
            Route(f"{one}/compact", self.compact, methods=["POST"]),
        ]

    async def list(self, request: Request) -> Response:
        page = await self._desk.sessions(
            state=choice(request, "state", State),
            key=request.query_params.get("key") or None,
            cursor=request.query_params.get("cursor"),
            limit=number(request, "limit", 50),
        )
        return answer(page)

    async def open(self, request: Request) -> Response:
        return answer(await self._desk.open(await body(request, Opening)), 201)

    async def show(self, request: Request) -> Response:
        return answer(await self._desk.session(_session_id(request)))

    async def change(self, request: Request) -> Response:
        change = await body(request, Change)
        return answer(await self._desk.rename(_session_id(request), change.title))

    async def delete(self, request: Request) -> Response:
        await self._desk.delete(_session_id(request))
        return answer({"deleted": True})

    async def transcript(self, request: Request) -> Response:
        return answer(await self._desk.transcript(_session_id(request)))

    async def send(self, request: Request) -> Response:
        message = await body(request, Message, MESSAGE_MAX)
        if len(message.text) > BODY_MAX:
            raise Refused(413, "too_large", f"the text is longer than {BODY_MAX} characters")
        key = header(request, "Idempotency-Key")
        receipt = await self._desk.send(_session_id(request), message.text, key, message.busy, message.images)
        return answer(receipt, 202)

    async def compact(self, request: Request) -> Response:
        return answer(await self._desk.compact(_session_id(request)), 202)

    async def events(self, request: Request) -> Response:
        session = await self._desk.session(_session_id(request))
        after = _cursor(request)
        # A cursor beyond the end belongs to another journal, so its reader begins anew.
        reset = after > session.seq
        return EventStream(
            self._desk.follow(session.id, 0 if reset else after), self._lifecycle.closing, reset=reset
        )  # fmt: skip

    async def end(self, request: Request) -> Response:
        return answer(await self._desk.end(_session_id(request)))

    async def suspend(self, request: Request) -> Response:
        return answer(await self._desk.suspend(_session_id(request)))

    async def fork(self, request: Request) -> Response:
        wish = await body(request, Fork)
        return answer(await self._desk.fork(_session_id(request), wish.through), 201)


def _session_id(request: Request) -> SessionId:
    return SessionId(name(request))


def _cursor(request: Request) -> int:
    last = request.headers.get("last-event-id")
    if last is None:
        return number(request, "after", 0, most=SEQ_MAX, least=0)
    if not last.isascii() or not last.isdigit() or len(last) > 18:
        raise Refused(400, "bad_parameter", "Last-Event-ID must be the id of an event")
    return int(last)
