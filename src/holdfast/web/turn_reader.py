"""Follows a turn for an API client.  It reads the journal alone, so a retry and a client that reconnects read the same."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass

from starlette.responses import Response

from holdfast.channels.openai.binding import ApiCaller
from holdfast.channels.openai.content import Unfit
from holdfast.core import retries
from holdfast.core.events import Event, TurnInterrupted
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.journal import Entry, ends_attempt, settles
from holdfast.core.progress import Progress
from holdfast.core.turns import FINAL, IN_FLIGHT, Cause, TurnState
from holdfast.errors import IllegalMove, Unavailable, Unconfirmed
from holdfast.ids import SessionId, TurnId
from holdfast.operations.services import ServerServices
from holdfast.web.answers import Refused
from holdfast.web.clients import Clients
from holdfast.web.endpoints import EndpointCall
from holdfast.web.protocol import Connection, connection_of

KEY_HEADER = "Idempotency-Key"
RETRY_HEADER = "X-Stainless-Retry-Count"
SESSION_HEADER = "X-Session-Key"
_UNIQUE_BYTES = 16
_GOES_ON = "send the same request with the same Idempotency-Key, or as a retry of the client, and it goes on"
_PASSED_BY = "it does not go on: read what it has said in its session, or send it again under an Idempotency-Key of its own"


class Told(Refused):
    """A refusal that also tells an API client which turn it is about, and whether to retry."""

    def __init__(self, status: int, code: str, message: str, hint: str, *, retry: bool | None = None, **more: str) -> None:
        super().__init__(status, code, message, hint, more=more)
        self._retry = retry

    def response(self, path: str = "") -> Response:
        found = super().response(path)
        if self._retry is not None:
            # Without this header the official client retries most refusals, and so asks the same question twice.
            found.headers["X-Should-Retry"] = "true" if self._retry else "false"
        return found


@contextmanager
def parsing() -> Generator[None]:
    """Answer with a refusal when the channel rejects the content of a request."""
    try:
        yield
    except Unfit as error:
        raise Told(error.status, error.code, str(error), error.hint) from error


def caller(call: EndpointCall, clients: Clients, endpoint: str, body: str, session: str = "") -> ApiCaller:
    """Return the sender of a request and what identifies a retry of it; `body` is the digest of its bytes."""
    principal, key, count = call.principal, call.header(KEY_HEADER), call.header(RETRY_HEADER)
    number = retries.number(count)
    tried = None
    if key is None:
        who = (principal.owner, principal.how, principal.key_id or "", principal.login)
        tried = clients.trying(retries.digest((endpoint, *who, session, body)), number)
    return ApiCaller(
        endpoint=endpoint,
        owner=principal.owner,
        # A request with a key is identified by that key.
        unique="" if key else secrets.token_hex(_UNIQUE_BYTES),
        key=key,
        user=principal.key_id or "",
        tried=tried,
        repeated=number > 0,
        comes_back=key is not None or count is not None,
    )


async def cancelled(services: ServerServices, turn_id: TurnId) -> None:
    """Cancel a turn.  Raises `Refused` where it has ended in another way."""
    try:
        await services.turns.cancel(turn_id)
    except IllegalMove as error:
        hint = "it is over; what it said stays as it is"
        raise Told(
            409, "illegal_move", f"{turn_id} is {error.state} already", hint, retry=False, state=error.state, turn_id=turn_id
        ) from error


async def accepted(services: ServerServices, message: Inbound, asker: ApiCaller) -> Receipt:
    """Return the receipt of a message.  Raises `Refused` where it is not known whether it was accepted."""
    try:
        return await services.messages.accept(message)
    except Unconfirmed as error:
        hint = _GOES_ON if asker.comes_back else "look in the list of sessions before you send it again"
        problem = "the store was lost while it took the request in, which may have been accepted"
        raise Told(503, "unconfirmed", problem, hint, retry=asker.comes_back) from error


async def taken(services: ServerServices, message: Inbound, asker: ApiCaller) -> Receipt:
    """Return the receipt of a message for which a client waits.

    Raises `Refused` while the same message is being answered; a request marked as a retry waits for the first one's answer.
    """
    before = await services.messages.seen(message.dedupe_key) if message.dedupe_key else None
    receipt = await accepted(services, message, asker)
    if asker.repeated:
        return receipt
    going_on = before is not None and before.state is TurnState.INTERRUPTED
    if receipt.duplicate and receipt.state in IN_FLIGHT - {TurnState.WAITING} and not going_on:
        hint = f"send it again later for its answer, or follow it at /api/turns/{receipt.turn_id}"
        raise Told(
            409,
            "in_flight",
            "the same request is being answered",
            hint,
            turn_id=receipt.turn_id,
            session_id=receipt.session_id,
        )
    return receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One turn, and how far it has been read."""

    services: ServerServices
    session_id: SessionId
    turn_id: TurnId
    known: Sequence[Entry]
    # The connection of the client that waits for the answer; None for one that only reads.
    connection: Connection | None = None

    @classmethod
    async def of(cls, call: EndpointCall, receipt: Receipt, *, fresh: bool) -> Reading:
        """Begin to read.  A `fresh` session has no entries yet, so the journal is not searched."""
        services, connection = call.services, connection_of(call.request.scope)
        known = () if fresh and not receipt.duplicate else await services.turns.entries(receipt.turn_id)
        return cls(
            services=services, session_id=receipt.session_id, turn_id=receipt.turn_id, known=known, connection=connection
        )  # fmt: skip

    async def rests(self, progress: Progress) -> bool:
        """Return whether nothing more will come."""
        if progress.state is TurnState.INTERRUPTED:
            # The client may have come back and resumed the turn.
            return (await self.services.turns.get(self.turn_id)).state is TurnState.INTERRUPTED
        return progress.state in FINAL

    async def live(self) -> AsyncGenerator[Entry]:
        """Yield the entries after the known ones, until the turn ends or waits."""
        after = self.known[-1].seq if self.known else 0
        async with aclosing(self.services.sessions.follow(self.session_id, after)) as entries:
            async for entry in entries:
                if entry.turn_id != self.turn_id:
                    continue
                yield entry
                if settles(entry.event) and (_is_final(entry.event) or await self._was_cut(entry.event)):
                    return

    async def _was_cut(self, event: Event) -> bool:
        if (
            isinstance(event, TurnInterrupted)
            and event.cause == Cause.CRASH
            and self.connection
            and not self.connection.lost
        ):
            # Its client is still here, so it need not come back first.
            await self.services.turns.resume(self.turn_id)
        return (await self.services.turns.get(self.turn_id)).state is TurnState.INTERRUPTED

    async def to_the_end(self, progress: Progress, take: Callable[[Entry], object]) -> None:
        """Read until the turn ends or waits.  Raises `Refused` when the turn needs an answer from a person."""
        for entry in self.known:
            take(entry)
        self._refuse_waiting(progress)
        if await self.rests(progress):
            return
        async with aclosing(self.live()) as entries:
            async for entry in entries:
                take(entry)
                self._refuse_waiting(progress)

    def _refuse_waiting(self, progress: Progress) -> None:
        if progress.question is None:
            return
        hint = (
            f"answer with: holdfast turns answer {self.turn_id} TEXT, or POST /api/turns/{self.turn_id}/answer; what the "
            "agent says then is in the session, and the same request gets it if it has the same Idempotency-Key"
        )
        asked = f"the agent asks first: {progress.question.text}"
        raise Told(403, "approval_needed", asked, hint, turn_id=self.turn_id, session_id=self.session_id)


def _is_final(event: Event) -> bool:
    return ends_attempt(event) and not isinstance(event, TurnInterrupted)


def failure(progress: Progress, turn_id: TurnId, *, again: bool) -> Told | None:
    """Return what to tell a client whose turn came to no answer; None where it did.  `again`: the same request goes on."""
    match progress.state:
        case TurnState.FAILED if progress.cause == Cause.MODEL_UNAVAILABLE:
            told = progress.error or "the model cannot answer now"
            hint = "send the message again later; with an Idempotency-Key, use a fresh one"
            return Told(503, "model_unavailable", told, hint, retry=False, turn_id=turn_id)
        case TurnState.FAILED:
            hint = "the gateway has tried what it could; change the message, or look at its log"
            return Told(502, "turn_failed", progress.error or "the turn failed", hint, retry=False, turn_id=turn_id)
        case TurnState.INTERRUPTED:
            hint = _GOES_ON if again else _PASSED_BY
            return Told(502, "turn_interrupted", progress.error, hint, retry=again, turn_id=turn_id)
        case TurnState.CANCELLED if not progress.pieces:
            hint = "send the message again if it is still wanted"
            return Told(
                409, "turn_cancelled", "the turn was cancelled before it said anything", hint, retry=False, turn_id=turn_id
            )
        case _:
            return None


async def served(
    call: EndpointCall, clients: Clients, asker: ApiCaller, receipt: Receipt, making: Callable[[], Awaitable[Response]]
) -> Response:
    """Return the response to a request that was accepted.  Raises `Refused` where the store is lost meanwhile."""
    try:
        connection = connection_of(call.request.scope)
        return named(await clients.served(call.services.messages, receipt.turn_id, connection, making()), receipt)
    except Unavailable as error:
        hint = _GOES_ON if asker.comes_back else f"read the answer later: GET /api/turns/{receipt.turn_id}"
        problem = f"the request was accepted, and then the store did not answer: {error}"
        turn = {"turn_id": receipt.turn_id, "session_id": receipt.session_id}
        raise Told(503, "store_away", problem, hint, retry=asker.comes_back, **turn) from error


def named(response: Response, receipt: Receipt) -> Response:
    """Let a client know which turn answers it, and in which session."""
    response.headers["X-Turn-Id"] = receipt.turn_id
    response.headers["X-Session-Id"] = receipt.session_id
    return response
