"""Chat completions: a turn that answers while its client waits."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

from starlette.responses import Response

from holdfast.channels.openai import binding, chat, models
from holdfast.channels.openai.binding import ApiCaller
from holdfast.channels.openai.chat import ChatRequest, Chunks, Completion
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.progress import Progress
from holdfast.core.turns import TurnState
from holdfast.operations.services import ServerServices
from holdfast.operations.sessions import MESSAGE_MAX
from holdfast.web.answers import answer
from holdfast.web.clients import Clients
from holdfast.web.conversations import conversation
from holdfast.web.endpoints import Endpoint, EndpointCall
from holdfast.web.events import EventStream, Streams
from holdfast.web.turn_reader import (
    KEY_HEADER,
    RETRY_HEADER,
    SESSION_HEADER,
    Reading,
    caller,
    failure,
    parsing,
    served,
    taken,
)

ENDPOINT = "chat"
_CUT_OFF = "the stream ended before the answer did: the gateway closed, or its store was lost"
_AGAIN = "send the same request with the same Idempotency-Key, or read the answer in its session"


class Completions:
    """What most programs ask by."""

    def __init__(self, streams: Streams, clients: Clients, names: Sequence[str]) -> None:
        self._streams = streams
        self._clients = clients
        self._names = names

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="POST",
                path="/v1/chat/completions",
                handle=self.create,
                summary="Answer a conversation, or the next message of a session; with stream, as chunks",
                takes=ChatRequest,
                body_max=MESSAGE_MAX,
                gives=Completion,
                streams=True,
                headers=(SESSION_HEADER, KEY_HEADER, RETRY_HEADER),
            )
        ]

    async def create(self, call: EndpointCall) -> Response:
        request, body = await call.hashed_body(ChatRequest)
        session = call.header(SESSION_HEADER)
        asker = caller(call, self._clients, ENDPOINT, body, session or "")
        with self._clients.accepting(asker.tried):
            message = await self._message(call.services, request, asker, session)
            receipt = await taken(call.services, message, asker)
        # One that was cut off and did not go on by now never does: others have spoken in its conversation since.
        stuck = receipt.duplicate and receipt.state is TurnState.INTERRUPTED
        again = asker.comes_back and not stuck

        async def respond() -> Response:
            reading = await Reading.of(call, receipt, fresh=message.one_shot)
            if request.stream:
                return self._stream(reading, request, receipt, again=again)
            return await _whole(reading, request, receipt, again=again)

        return await served(call, self._clients, asker, receipt, respond)

    def _stream(self, reading: Reading, request: ChatRequest, receipt: Receipt, *, again: bool) -> Response:
        chunks = Chunks(receipt.turn_id, request.model, receipt.accepted_at, usage=request.wants_usage)
        farewell = partial(chunks.failure, "cut_off", _CUT_OFF, _AGAIN, receipt.turn_id)
        return EventStream(_frames(reading, chunks, again=again), self._streams, farewell=farewell)

    async def _message(
        self, services: ServerServices, request: ChatRequest, asker: ApiCaller, session: str | None
    ) -> Inbound:
        with parsing():
            models.check(request.model, self._names)
            found = chat.wanted(request, alone=session is not None)
        kept: dict[str, object] = {"endpoint": ENDPOINT, "model": request.model}
        if request.metadata:
            kept["metadata"] = dict(request.metadata)
        if session is None:
            return binding.alone(asker, found, kept)
        return binding.following(asker, found, kept, await conversation(services.sessions, session), session=session)


async def _whole(reading: Reading, request: ChatRequest, receipt: Receipt, *, again: bool) -> Response:
    progress = Progress()
    await reading.to_the_end(progress, progress.take)
    if problem := failure(progress, reading.turn_id, again=again):
        raise problem
    return answer(chat.completion(receipt.turn_id, request.model, receipt.accepted_at, progress))


async def _frames(reading: Reading, chunks: Chunks, *, again: bool) -> AsyncGenerator[bytes]:
    yield chunks.opening() + b"".join(map(chunks.take, reading.known))
    if not await reading.rests(chunks.progress):
        async with aclosing(reading.live()) as entries:
            async for entry in entries:
                if frame := chunks.take(entry):
                    yield frame
    if problem := failure(chunks.progress, reading.turn_id, again=again):
        yield chunks.failure(problem.code, str(problem), problem.hint or "", reading.turn_id)
    else:
        yield chunks.closing()
