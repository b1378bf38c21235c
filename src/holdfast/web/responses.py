"""Responses: turns that can be read, followed, gone on from and deleted by their ids."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Literal

from starlette.responses import Response

from holdfast.channels.openai import binding, models, responses
from holdfast.channels.openai.binding import RESPONSES, ApiCaller
from holdfast.channels.openai.content import TurnInput
from holdfast.channels.openai.events import ALL, Events, input_items
from holdfast.channels.openai.responses import ENDPOINT, Fields, ResponseRequest
from holdfast.core.intake import Busy, Inbound, Receipt
from holdfast.core.journal import Entry, acceptance
from holdfast.core.sessions import SessionState
from holdfast.core.turns import IN_FLIGHT, Mode, TurnState
from holdfast.errors import KeyReused, NotFound, SessionBusy
from holdfast.ids import TurnId
from holdfast.operations.conversation import SessionView
from holdfast.operations.pages import SIZE_MAX
from holdfast.operations.services import ServerServices
from holdfast.operations.sessions import MESSAGE_MAX, Fork, Order
from holdfast.web.answers import answer
from holdfast.web.clients import Clients
from holdfast.web.endpoints import Endpoint, EndpointCall
from holdfast.web.events import EventStream, Streams
from holdfast.web.sessions import SEQ_MAX
from holdfast.web.turn_reader import (
    KEY_HEADER,
    RETRY_HEADER,
    Reading,
    Told,
    accepted,
    caller,
    cancelled,
    parsing,
    served,
    taken,
)

ITEMS_MAX = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A response that was deleted."""

    id: str
    object: Literal["response"] = "response"
    deleted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemList:
    """What a response was asked with."""

    data: Sequence[Fields]
    first_id: str | None
    last_id: str | None
    has_more: bool
    object: Literal["list"] = "list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A response that is wanted: who asks for it, for what, and what is kept of that."""

    caller: ApiCaller
    found: TurnInput
    kept: Mapping[str, object]
    background: bool


class Responses:
    """Answers that are kept."""

    def __init__(self, streams: Streams, clients: Clients, names: Sequence[str]) -> None:
        self._streams = streams
        self._clients = clients
        self._names = names

    def endpoints(self) -> list[Endpoint]:
        one = "/v1/responses/{id}"
        return [
            Endpoint(
                method="POST",
                path="/v1/responses",
                handle=self.create,
                summary="Answer, from where another response ended or anew; with stream, as events",
                takes=ResponseRequest,
                body_max=MESSAGE_MAX,
                gives=Fields,
                streams=True,
                headers=(KEY_HEADER, RETRY_HEADER),
            ),
            Endpoint(
                method="GET",
                path=one,
                handle=self.show,
                summary="Read a response; with stream, its events behind any of them",
                gives=Fields,
                streams=True,
                query=("stream", "starting_after"),
            ),
            Endpoint(method="DELETE", path=one, handle=self.delete, summary="Delete a response", gives=Gone),
            Endpoint(
                method="GET",
                path=f"{one}/input_items",
                handle=self.items,
                summary="List what a response was asked with",
                gives=ItemList,
                query=("order", "limit", "after"),
            ),
            Endpoint(
                method="POST",
                path=f"{one}/cancel",
                handle=self.cancel,
                summary="Cancel a response; what it has said stays",
                gives=Fields,
            ),
        ]

    async def create(self, call: EndpointCall) -> Response:
        request, body = await call.hashed_body(ResponseRequest)
        with parsing():
            models.check(request.model, self._names)
            found, kept = responses.wanted(request), responses.kept(request)
        asker = caller(call, self._clients, ENDPOINT, body)
        wish = Wish(caller=asker, found=found, kept=kept, background=bool(request.background))
        with self._clients.accepting(asker.tried):
            receipt = await _accepted(call.services, request, wish)

        async def respond() -> Response:
            # In the background the client does not wait for the end, so it gets the state as it is now.
            fresh = not request.previous_response_id and not wish.background
            reading = await Reading.of(call, receipt, fresh=fresh)
            events = Events()
            if request.stream:
                return EventStream(_frames(reading, events), self._streams, farewell=events.broken)
            if wish.background:
                _take_all(events, reading.known)
            else:
                await reading.to_the_end(events.progress, events.take)
            return answer(events.response())

        return await served(call, self._clients, asker, receipt, respond)

    async def show(self, call: EndpointCall) -> Response:
        known = await _entries(call.services, call.name())
        if not call.flag("stream"):
            return answer(_read(known).response())
        reading = Reading(services=call.services, session_id=known[0].session_id, turn_id=known[0].turn_id, known=known)
        events = Events(call.number("starting_after", -1, most=SEQ_MAX, least=0))
        return EventStream(_frames(reading, events), self._streams, farewell=events.broken)

    async def delete(self, call: EndpointCall) -> Response:
        known = await _entries(call.services, call.name())
        session = await call.services.sessions.get(known[0].session_id)
        if others := await _others(call.services, session, known[0].turn_id):
            hint = f"delete the whole conversation with DELETE /api/sessions/{session.id}"
            message = f"{others} other responses stand in the same conversation, and build upon each other"
            raise Told(409, "in_conversation", message, hint, retry=False, session_id=session.id)
        await call.services.sessions.delete(session.id)
        return answer(Gone(id=call.name()))

    async def items(self, call: EndpointCall) -> Response:
        known = await _entries(call.services, call.name())
        found = input_items(acceptance(known))
        if call.choice("order", Order) is not Order.ASC:
            found.reverse()
        if (after := call.word("after")) is not None:
            found = _items_behind(found, after)
        limit = call.number("limit", 20, most=ITEMS_MAX)
        page = found[:limit]
        ids = [str(item["id"]) for item in page] or [None]
        return answer(ItemList(data=page, first_id=ids[0], last_id=ids[-1], has_more=len(found) > limit))

    async def cancel(self, call: EndpointCall) -> Response:
        known = await _entries(call.services, call.name())
        await cancelled(call.services, known[0].turn_id)
        return answer(_read(await _entries(call.services, call.name())).response())


async def _accepted(services: ServerServices, request: ResponseRequest, wish: Wish) -> Receipt:
    """Make a wish durable: on its own, as the beginning of a conversation, or as what follows another response."""
    if not request.is_kept:
        return await taken(services, binding.alone(wish.caller, wish.found, wish.kept), wish.caller)
    if request.previous_response_id is None:
        return await _take(services, wish, binding.opening(wish.caller, wish.found, wish.kept, detached=wish.background))
    before = await _entries(services, request.previous_response_id)
    return await _going_on(services, wish, request.previous_response_id, before)


async def _going_on(services: ServerServices, wish: Wish, previous: str, before: Sequence[Entry]) -> Receipt:
    tried = wish.caller.tried
    if tried and tried.joins and (joined := await services.messages.rejoin(tried)):
        return joined
    if _read(before).progress.state in IN_FLIGHT:
        hint = f"wait for it with GET /v1/responses/{previous}?stream=true"
        raise Told(409, "previous_in_flight", f"{previous} is not finished", hint)
    if again := await _again(services, wish, previous):
        return again
    try:
        return await _behind(services, wish, previous, before[0])
    except KeyReused:
        # The same request may have come a moment ago, and was taken in elsewhere.
        if again := await _again(services, wish, previous):
            return again
        raise


async def _again(services: ServerServices, wish: Wish, previous: str) -> Receipt | None:
    """Take a request in where the same one was taken in before: that may be a branch by now, and is still the same."""
    key = wish.caller.once(previous)
    first = await services.messages.seen(key) if key else None
    if first is None:
        return None
    return await _take(services, wish, _next(wish, previous, (await services.sessions.get(first.session_id)).key))


async def _behind(services: ServerServices, wish: Wish, previous: str, before: Entry) -> Receipt:
    """Go on where a response ended: in its session if it is the last there, else on a branch."""
    session = await services.sessions.get(before.session_id)
    if session.state is SessionState.OPEN and await services.turns.is_last(before.turn_id):
        with suppress(SessionBusy):
            # Another request that continues from the same response at this moment must not come in between.
            return await _take(services, wish, _next(wish, previous, session.key, Busy.REJECT))
    branch = await services.sessions.fork(session.id, Fork(through=before.turn_id))
    try:
        receipt = await _take(services, wish, _next(wish, previous, branch.key))
    except KeyReused:
        await services.sessions.delete(branch.id)
        raise
    if receipt.session_id != branch.id:
        # The try before this one was accepted a moment ago, elsewhere.
        await services.sessions.delete(branch.id)
    return receipt


def _next(wish: Wish, previous: str, conversation: str, busy: Busy | None = None) -> Inbound:
    return binding.following(
        wish.caller,
        wish.found,
        wish.kept,
        conversation,
        session=previous,
        channel=RESPONSES,
        detached=wish.background,
        busy=busy,
    )


async def _take(services: ServerServices, wish: Wish, message: Inbound) -> Receipt:
    take = accepted if message.mode is Mode.DETACHED else taken
    return await take(services, message, wish.caller)


async def _entries(services: ServerServices, response_id: str) -> Sequence[Entry]:
    """Return the journal of a response that is kept.  Raises `NotFound` for anything else."""
    try:
        entries = await services.turns.entries(responses.turn_id(response_id))
    except NotFound:
        entries = ()
    if not entries or not _read(entries[:1]).is_response:
        raise NotFound(f"there is no response {response_id[:80]}")
    return entries


async def _others(services: ServerServices, session: SessionView, turn_id: TurnId) -> int:
    """Return how many other responses a conversation has."""
    number, cursor = 0, None
    while True:
        page = await services.turns.list(session.id, cursor=cursor, limit=SIZE_MAX)
        # What a fork has copied is older than the fork, and known under its first id only.
        number += sum(1 for turn in page.items if turn.id != turn_id and turn.accepted_at >= session.created_at)
        if (cursor := page.next_cursor) is None:
            return number


def _read(entries: Sequence[Entry]) -> Events:
    events = Events(ALL)
    _take_all(events, entries)
    return events


def _take_all(events: Events, entries: Sequence[Entry]) -> None:
    for entry in entries:
        events.take(entry)


def _items_behind(found: list[Fields], item_id: str) -> list[Fields]:
    places = [number for number, item in enumerate(found) if item["id"] == item_id]
    if not places:
        raise Told(400, "bad_parameter", f"there is no item {item_id[:80]!r}", "use the last_id of the page before")
    return found[places[0] + 1 :]


async def _frames(reading: Reading, events: Events) -> AsyncGenerator[bytes]:
    if frames := b"".join(map(events.take, reading.known)):
        yield frames
    if not await reading.rests(events.progress):
        async with aclosing(reading.live()) as entries:
            async for entry in entries:
                if frame := events.take(entry):
                    yield frame
    if events.progress.state is TurnState.INTERRUPTED:
        yield events.cut
