"""The sessions of the caller as they change, all of them in one stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from starlette.responses import Response

from holdfast.core.sessions import SessionDeleted, SessionsMissed
from holdfast.operations.conversation import SessionView
from holdfast.web.endpoints import Endpoint, EndpointCall, Stream
from holdfast.web.events import OPENING, RESET, EventStream, Streams

_encode = msgspec.json.Encoder().encode


class ActivityStream:
    """Sessions as they change."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/events",
                handle=self.events,
                summary="Watch all sessions: those that are opened or changed, and those that are deleted",
                gives=Stream,
            )
        ]

    async def events(self, call: EndpointCall) -> Response:
        return EventStream(_frames(call.services.sessions.watch()), self._streams)


async def _frames(sights: AsyncGenerator[SessionView | SessionDeleted | SessionsMissed]) -> AsyncGenerator[bytes]:
    async with aclosing(sights):
        yield OPENING
        async for sight in sights:
            yield _frame(sight)


def _frame(sight: SessionView | SessionDeleted | SessionsMissed) -> bytes:
    match sight:
        case SessionsMissed():
            return RESET
        case SessionDeleted():
            return b"event: gone\ndata: %b\n\n" % _encode(sight)
        case SessionView():
            return b"event: session\ndata: %b\n\n" % _encode(sight)
