"""Runs: work that goes on without an open connection of its client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import cast

from starlette.responses import Response

from holdfast.channels.openai import binding, runs
from holdfast.channels.openai.binding import ApiCaller
from holdfast.channels.openai.runs import ENDPOINT, RunReceipt, RunRequest, RunUsage, RunView, Verdict, waiting_for
from holdfast.core.events import TurnAccepted
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.journal import Entry, acceptance
from holdfast.core.progress import Progress
from holdfast.errors import NotFound
from holdfast.ids import TurnId
from holdfast.operations.services import ServerServices
from holdfast.operations.sessions import MESSAGE_MAX
from holdfast.operations.turns import Answer, Turns, TurnView
from holdfast.web.answers import answer
from holdfast.web.clients import Clients
from holdfast.web.conversations import conversation
from holdfast.web.endpoints import Endpoint, EndpointCall, Stream
from holdfast.web.events import EventStream, Streams, journal
from holdfast.web.sessions import cursor
from holdfast.web.turn_reader import KEY_HEADER, RETRY_HEADER, Reading, accepted, caller, cancelled, parsing, served


class Runs:
    """Detached work."""

    def __init__(self, streams: Streams, clients: Clients) -> None:
        self._streams = streams
        self._clients = clients

    def endpoints(self) -> list[Endpoint]:
        one = "/v1/runs/{id}"
        return [
            Endpoint(
                method="POST",
                path="/v1/runs",
                handle=self.start,
                summary="Hand work in; it goes on by itself",
                takes=RunRequest,
                body_max=MESSAGE_MAX,
                gives=RunReceipt,
                status=202,
                headers=(KEY_HEADER, RETRY_HEADER),
            ),
            Endpoint(method="GET", path=one, handle=self.show, summary="Show how far a run has come", gives=RunView),
            Endpoint(
                method="GET",
                path=f"{one}/events",
                handle=self.events,
                summary="Follow the journal of a run until it is over, from any entry on",
                gives=Stream,
                query=("after",),
                headers=("Last-Event-ID",),
            ),
            Endpoint(
                method="POST",
                path=f"{one}/stop",
                handle=self.stop,
                summary="Stop a run; what it has said stays",
                gives=RunView,
            ),
            Endpoint(
                method="POST",
                path=f"{one}/approval",
                handle=self.approve,
                summary="Answer the question that a run waits for",
                takes=Verdict,
                gives=RunView,
            ),
        ]

    async def start(self, call: EndpointCall) -> Response:
        request, body = await call.hashed_body(RunRequest)
        asker = caller(call, self._clients, ENDPOINT, body)
        with self._clients.accepting(asker.tried):
            receipt = await accepted(call.services, await _message(call.services, request, asker), asker)
        return await served(call, self._clients, asker, receipt, partial(_started, receipt))

    async def show(self, call: EndpointCall) -> Response:
        return answer(await shown(call.services.turns, _run_id(call)))

    async def events(self, call: EndpointCall) -> Response:
        known = await _entries(call.services.turns, _run_id(call))
        reading = Reading(services=call.services, session_id=known[0].session_id, turn_id=known[0].turn_id, known=known)
        after = cursor(call)
        # A cursor beyond the end belongs to another run, so its reader begins anew.
        reset = after > (await call.services.sessions.get(reading.session_id)).seq
        return EventStream(
            journal(_behind(reading, 0 if reset else after), self._streams, reset=reset), self._streams
        )  # fmt: skip

    async def stop(self, call: EndpointCall) -> Response:
        await _entries(call.services.turns, _run_id(call))
        await cancelled(call.services, _run_id(call))
        return answer(await shown(call.services.turns, _run_id(call)))

    async def approve(self, call: EndpointCall) -> Response:
        said = await call.body(Verdict)
        with parsing():
            words = said.words
        await _entries(call.services.turns, _run_id(call))
        await call.services.turns.answer(_run_id(call), Answer(text=words, question_id=said.question_id))
        return answer(await shown(call.services.turns, _run_id(call)))


async def _message(services: ServerServices, request: RunRequest, asker: ApiCaller) -> Inbound:
    with parsing():
        found = runs.wanted(request)
    kept = runs.kept(request)
    session = request.session_key or request.session_id
    if not session:
        return binding.alone(asker, found, kept, detached=True)
    key = await conversation(services.sessions, session)
    return binding.following(asker, found, kept, key, session=session, detached=True)


async def _started(receipt: Receipt) -> Response:
    return answer(RunReceipt(run_id=receipt.turn_id, session_id=receipt.session_id, status=receipt.state), 202)


async def _entries(turns: Turns, run_id: TurnId) -> Sequence[Entry]:
    """Return the journal of a run.  Raises `NotFound` for a turn that is none."""
    entries = await turns.entries(run_id)
    if (acceptance(entries).request or {}).get("endpoint") != ENDPOINT:
        raise NotFound(f"there is no run {run_id}")
    return entries


async def shown(turns: Turns, run_id: TurnId) -> RunView:
    """Return how far a run has come.  Raises `NotFound`."""
    # Its state is looked at first: what is over then has its whole journal by now.
    turn = await turns.get(run_id)
    entries = await _entries(turns, run_id)
    return _run(turn, acceptance(entries), Progress.of(entries))


def _run(turn: TurnView, accepted: TurnAccepted, progress: Progress) -> RunView:
    return RunView(
        run_id=turn.id,
        session_id=turn.session_id,
        status=turn.state,
        output=progress.text,
        usage=RunUsage.of(progress.usage),
        error=turn.error,
        question=waiting_for(progress),
        metadata=cast("Mapping[str, object]", (accepted.request or {}).get("metadata") or {}),
        accepted_at=turn.accepted_at,
        started_at=turn.started_at,
        answered_at=turn.answered_at,
    )


async def _behind(reading: Reading, after: int) -> AsyncGenerator[Entry]:
    """Yield the entries of a run behind a cursor until it has come to rest."""
    progress = Progress()
    for entry in reading.known:
        progress.take(entry)
        if entry.seq > after:
            yield entry
    if not await reading.rests(progress):
        async with aclosing(reading.live()) as entries:
            async for entry in entries:
                if entry.seq > after:
                    yield entry


def _run_id(call: EndpointCall) -> TurnId:
    return TurnId(call.name())
