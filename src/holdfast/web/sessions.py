"""What sessions give that is not JSON: their events, and a whole conversation as a file."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from starlette.responses import Response

from holdfast.ids import SessionId
from holdfast.operations.export import ExportFormat, file_name, written
from holdfast.web import requests
from holdfast.web.endpoints import Endpoint, EndpointCall, Stream
from holdfast.web.events import EventStream, Streams, journal

SEQ_MAX = 2**53
MARKDOWN = "text/markdown"
JSON = "application/json"


class SessionEndpoints:
    """The events of a session, and its export."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def endpoints(self) -> list[Endpoint]:
        one = "/api/sessions/{id}"
        return [
            Endpoint(
                method="GET",
                path=f"{one}/events",
                handle=self.events,
                summary="Follow the journal, from any entry on",
                gives=Stream,
                query=("after",),
                headers=("Last-Event-ID",),
            ),
            Endpoint(
                method="GET",
                path=f"{one}/export",
                handle=self.export,
                summary="Take a whole conversation along, as Markdown or as JSON",
                gives=bytes,
                media=(MARKDOWN, JSON),
                query=("format",),
            ),
        ]

    async def events(self, call: EndpointCall) -> Response:
        session = await call.services.sessions.get(SessionId(call.name()))
        after = cursor(call)
        # A cursor beyond the end belongs to another journal, so its reader begins anew.
        reset = after > session.seq
        entries = call.services.sessions.follow(session.id, 0 if reset else after)
        return EventStream(journal(entries, self._streams, reset=reset), self._streams)

    async def export(self, call: EndpointCall) -> Response:
        form = call.choice("format", ExportFormat) or ExportFormat.MARKDOWN
        transcript = await call.services.sessions.transcript(SessionId(call.name()))
        # What takes this long to write must not keep others waiting.
        text = await asyncio.to_thread(written, transcript, form)
        headers = {"Content-Disposition": _attached(file_name(transcript.session, form)), "Cache-Control": "no-store"}
        return Response(text, headers=headers, media_type=MARKDOWN if form is ExportFormat.MARKDOWN else JSON)


def _attached(name: str) -> str:
    """Return that something is a file of this name; the plain one is for clients that cannot read the other."""
    plain = name.encode("ascii", "replace").decode().replace("?", "_")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def cursor(call: EndpointCall) -> int:
    """Return after which entry a reader wants to go on: what it last saw, or what it asks for."""
    last = call.header("Last-Event-ID")
    if last is None:
        return call.number("after", 0, most=SEQ_MAX, least=0)
    return requests.number(last, "Last-Event-ID", 0, most=SEQ_MAX, least=0)
