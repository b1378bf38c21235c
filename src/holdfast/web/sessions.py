"""Sessions, their messages and their events."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from urllib.parse import quote

from starlette.responses import Response

from holdfast.core.images import BYTES_MAX, IMAGES_MAX
from holdfast.core.intake import Busy, Image, Receipt
from holdfast.core.sessions import SessionState
from holdfast.desk.export import Form, file_name, written
from holdfast.desk.plans import Change, Opening, Order
from holdfast.desk.reading import JOURNAL_MAX
from holdfast.desk.views import Deleted, JournalPage, SessionView, Transcript
from holdfast.ids import SessionId, TurnId
from holdfast.operations.pages import Page
from holdfast.web import requests
from holdfast.web.answers import Refused, answer, listing
from holdfast.web.endpoints import Call, Endpoint, Stream
from holdfast.web.events import EventStream, Streams, journal
from holdfast.web.requests import BODY_MAX

SEQ_MAX = 2**53
TURNS_SHOWN = 30
MARKDOWN = "text/markdown"
JSON = "application/json"
# Four thirds, because bytes are written as base64.
MESSAGE_MAX = BODY_MAX + IMAGES_MAX * (BYTES_MAX * 4 // 3 + 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a client sends to a session.  `busy` is what it wants if the session is at another message."""

    text: str
    busy: Busy | None = None
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """How much of a session a fork takes along: all up to and with a turn, or before one; without either, all of it."""

    through: TurnId | None = None
    before: TurnId | None = None


class Sessions:
    """Conversations."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def endpoints(self) -> list[Endpoint]:
        one = "/api/sessions/{id}"
        return [
            Endpoint(
                method="GET",
                path="/api/sessions",
                handle=self.list,
                summary="List sessions, last used first",
                gives=Page[SessionView],
                query=("state", "channel", "archived", "pinned", "key", "cursor", "limit"),
            ),
            Endpoint(
                method="POST",
                path="/api/sessions",
                handle=self.open,
                summary="Open a session",
                takes=Opening,
                gives=SessionView,
                status=201,
            ),
            Endpoint(method="GET", path=one, handle=self.show, summary="Show a session", gives=SessionView),
            Endpoint(
                method="PATCH", path=one, handle=self.change, summary="Change a session", takes=Change, gives=SessionView
            ),
            Endpoint(method="DELETE", path=one, handle=self.delete, summary="Delete a session and all of it", gives=Deleted),
            Endpoint(
                method="GET",
                path=f"{one}/messages",
                handle=self.transcript,
                summary="Read what was said; with a limit, by pages of turns",
                gives=Transcript,
                query=("order", "cursor", "limit"),
            ),
            Endpoint(
                method="GET",
                path=f"{one}/journal",
                handle=self.journal,
                summary="Read what happened, by pages of turns, the newest first",
                gives=JournalPage,
                query=("turns", "cursor"),
            ),
            Endpoint(
                method="POST",
                path=f"{one}/messages",
                handle=self.send,
                summary="Send a message; it is durable when this answers",
                takes=Message,
                body_max=MESSAGE_MAX,
                gives=Receipt,
                status=202,
                headers=("Idempotency-Key",),
            ),
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
            Endpoint(method="POST", path=f"{one}/end", handle=self.end, summary="End a session", gives=SessionView),
            Endpoint(
                method="POST",
                path=f"{one}/suspend",
                handle=self.suspend,
                summary="Stop what runs, and begin anew with the next message",
                gives=SessionView,
            ),
            Endpoint(
                method="POST",
                path=f"{one}/fork",
                handle=self.fork,
                summary="Copy a session, up to and with a turn, or before one",
                takes=Fork,
                gives=SessionView,
                status=201,
            ),
            Endpoint(
                method="POST",
                path=f"{one}/compact",
                handle=self.compact,
                summary="Let a summary stand for the older part in what the model reads",
                gives=Receipt,
                status=202,
            ),
        ]

    async def list(self, call: Call) -> Response:
        page = await call.desk.sessions(
            state=call.choice("state", SessionState),
            channel=call.word("channel"),
            archived=call.flag("archived"),
            pinned=call.flag("pinned"),
            key=call.word("key"),
            cursor=call.word("cursor"),
            limit=call.number("limit", 50),
        )
        return answer(page)

    async def open(self, call: Call) -> Response:
        return answer(await call.desk.open(await call.body(Opening)), 201)

    async def show(self, call: Call) -> Response:
        return answer(await call.desk.session(_session_id(call)))

    async def change(self, call: Call) -> Response:
        return answer(await call.desk.change(_session_id(call), await call.body(Change)))

    async def delete(self, call: Call) -> Response:
        await call.desk.delete(_session_id(call))
        return answer(Deleted())

    async def transcript(self, call: Call) -> Response:
        newest = call.choice("order", Order) is Order.DESC
        # Whoever does not ask for a page gets all of it, and has to be content with its size.
        limit = call.number("limit", 0) or None
        found = await call.desk.transcript(_session_id(call), cursor=call.word("cursor"), limit=limit, newest=newest)
        return await listing(replace(found, items=()), "items", found.items)

    async def journal(self, call: Call) -> Response:
        limit = call.number("turns", TURNS_SHOWN, most=JOURNAL_MAX)
        found = await call.desk.journal(_session_id(call), cursor=call.word("cursor"), limit=limit)
        return await listing(replace(found, entries=()), "entries", found.entries)

    async def send(self, call: Call) -> Response:
        message = await call.body(Message)
        if len(message.text) > BODY_MAX:
            raise Refused(413, "too_large", f"the text is longer than {BODY_MAX} characters")
        key = call.header("Idempotency-Key")
        receipt = await call.desk.send(_session_id(call), message.text, key, message.busy, message.images)
        return answer(receipt, 202)

    async def compact(self, call: Call) -> Response:
        return answer(await call.desk.compact(_session_id(call)), 202)

    async def events(self, call: Call) -> Response:
        session = await call.desk.session(_session_id(call))
        after = cursor(call)
        # A cursor beyond the end belongs to another journal, so its reader begins anew.
        reset = after > session.seq
        entries = call.desk.follow(session.id, 0 if reset else after)
        return EventStream(journal(entries, self._streams, reset=reset), self._streams)

    async def export(self, call: Call) -> Response:
        form = call.choice("format", Form) or Form.MARKDOWN
        transcript = await call.desk.transcript(_session_id(call))
        # What takes this long to write must not keep others waiting.
        text = await asyncio.to_thread(written, transcript, form)
        headers = {"Content-Disposition": _attached(file_name(transcript.session, form)), "Cache-Control": "no-store"}
        return Response(text, headers=headers, media_type=MARKDOWN if form is Form.MARKDOWN else JSON)

    async def end(self, call: Call) -> Response:
        return answer(await call.desk.end(_session_id(call)))

    async def suspend(self, call: Call) -> Response:
        return answer(await call.desk.suspend(_session_id(call)))

    async def fork(self, call: Call) -> Response:
        wish = await call.body(Fork)
        return answer(await call.desk.fork(_session_id(call), wish.through, wish.before), 201)


def _session_id(call: Call) -> SessionId:
    return SessionId(call.name())


def _attached(name: str) -> str:
    """Return that something is a file of this name; the plain one is for whoever cannot read the other."""
    plain = name.encode("ascii", "replace").decode().replace("?", "_")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def cursor(call: Call) -> int:
    """Return after which entry a reader wants to go on: what it last saw, or what it asks for."""
    last = call.header("Last-Event-ID")
    if last is None:
        return call.number("after", 0, most=SEQ_MAX, least=0)
    return requests.number(last, "Last-Event-ID", 0, most=SEQ_MAX, least=0)
