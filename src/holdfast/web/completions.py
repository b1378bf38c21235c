"""Chat completions: a turn that answers while its client waits."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from starlette.responses import Response

from holdfast.channels.openai import binding, chat, models
from holdfast.channels.openai.chat import ChatRequest, Chunks, Completion
from holdfast.channels.openai.progress import Progress
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.turns import State
from holdfast.web.answers import answer
from holdfast.web.conversations import conversation
from holdfast.web.events import EventStream, Streams
from holdfast.web.operations import Call, Operation
from holdfast.web.reading import KEY_HEADER, SESSION_HEADER, Reading, caller, failure, named, parsing, taken
from holdfast.web.sessions import MESSAGE_MAX

ENDPOINT = "chat"
_CLOSING = "the gateway closed before the answer had come to its end"
_AGAIN = "send the same request with the same Idempotency-Key, or read the answer in its session"


class Completions:
    """What most programs ask by."""

    def __init__(self, streams: Streams, names: Sequence[str]) -> None:
        self._streams = streams
        self._names = names

    def operations(self) -> list[Operation]:
        return [
            Operation(
                method="POST",
                path="/v1/chat/completions",
                handle=self.create,
                summary="Answer a conversation, or the next message of a session; with stream, as chunks",
                takes=ChatRequest,
                body_max=MESSAGE_MAX,
                gives=Completion,
                streams=True,
                headers=(SESSION_HEADER, KEY_HEADER),
            )
        ]

    async def create(self, call: Call) -> Response:
        request = await call.body(ChatRequest)
        message = await self._message(call, request)
        receipt = await taken(call.desk, message)
        reading = await Reading.of(call.desk, receipt, fresh=message.one_shot)
        # One that was cut off and did not go on by now never does: others have spoken in its conversation since.
        stuck = receipt.duplicate and receipt.state is State.INTERRUPTED
        again = message.dedupe_key is not None and not stuck
        if request.stream:
            chunks = Chunks(receipt.turn_id, request.model, receipt.accepted_at, usage=request.wants_usage)
            farewell = chunks.failure("closing", _CLOSING, _AGAIN, receipt.turn_id)
            return named(EventStream(_frames(reading, chunks, again=again), self._streams, farewell=farewell), receipt)
        return named(await _whole(reading, request, receipt, again=again), receipt)

    async def _message(self, call: Call, request: ChatRequest) -> Inbound:
        session = call.header(SESSION_HEADER)
        with parsing():
            models.check(request.model, self._names)
            found = chat.wanted(request, alone=session is not None)
        kept: dict[str, object] = {"endpoint": ENDPOINT, "model": request.model}
        if request.metadata:
            kept["metadata"] = dict(request.metadata)
        asker = caller(call, ENDPOINT)
        if session is None:
            return binding.alone(asker, found, kept)
        return binding.following(asker, found, kept, await conversation(call.desk, session), session=session)


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
