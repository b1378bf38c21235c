"""Reading a turn of the API: from the journal alone, so that it is the same for whoever asked, asks again or comes back."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass

from starlette.responses import Response

from holdfast.channels.openai.binding import Caller
from holdfast.channels.openai.content import Unfit
from holdfast.channels.openai.progress import Progress
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.journal import CLOSING, Entry, Kind
from holdfast.core.turns import FINAL, IN_FLIGHT, State
from holdfast.desk.port import Host
from holdfast.errors import IllegalMove
from holdfast.ids import SessionId, TurnId
from holdfast.web.answers import Refused
from holdfast.web.operations import Call

KEY_HEADER = "Idempotency-Key"
SESSION_HEADER = "X-Session-Key"
_UNIQUE_BYTES = 16
_GOES_ON = "send the same request with the same Idempotency-Key, and it goes on"
_PASSED_BY = "it does not go on: read what it has said in its session, or send it again under an Idempotency-Key of its own"
_FINAL_KINDS = frozenset(CLOSING[state] for state in FINAL)


class Told(Refused):
    """A refusal that tells a client of the API more: which turn it is about, and whether to send the same again."""

    def __init__(self, status: int, code: str, message: str, hint: str, *, retry: bool | None = None, **more: str) -> None:
        super().__init__(status, code, message, hint, more=more)
        self._retry = retry

    def response(self, path: str = "") -> Response:
        found = super().response(path)
        if self._retry is not None:
            # The official client would else repeat most of what it is refused, and so ask the same question anew.
            found.headers["X-Should-Retry"] = "true" if self._retry else "false"
        return found


@contextmanager
def parsing() -> Generator[None]:
    """Refuse what a channel finds unfit."""
    try:
        yield
    except Unfit as error:
        raise Told(error.status, error.code, str(error), error.hint) from error


def caller(call: Call, endpoint: str) -> Caller:
    """Return who asks, and what their request is known by."""
    principal, key = call.principal, call.header(KEY_HEADER)
    # What has a key is known by that.
    unique = "" if key else secrets.token_hex(_UNIQUE_BYTES)
    return Caller(endpoint=endpoint, owner=principal.owner, unique=unique, key=key, user=principal.key_id or "")


async def cancelled(desk: Host, turn_id: TurnId) -> None:
    """Cancel a turn.  Raises `Refused` where it has come to another end."""
    try:
        await desk.cancel(turn_id)
    except IllegalMove as error:
        hint = "it is over; what it said stays as it is"
        raise Told(
            409, "illegal_move", f"{turn_id} is {error.state} already", hint, retry=False, state=error.state, turn_id=turn_id
        ) from error


async def taken(desk: Host, message: Inbound) -> Receipt:
    """Return the receipt of a message for which somebody waits.  Raises `Refused` while the same one is being answered."""
    before = await desk.seen(message.dedupe_key) if message.dedupe_key else None
    receipt = await desk.accept(message)
    going_on = before is not None and before.state is State.INTERRUPTED
    if receipt.duplicate and receipt.state in IN_FLIGHT - {State.WAITING} and not going_on:
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

    desk: Host
    session_id: SessionId
    turn_id: TurnId
    known: list[Entry]

    @classmethod
    async def of(cls, desk: Host, receipt: Receipt, *, fresh: bool) -> Reading:
        """Begin to read; the journal of a `fresh` session has nothing before this turn, so nothing is looked for."""
        known = [] if fresh and not receipt.duplicate else await desk.entries(receipt.turn_id)
        return cls(desk=desk, session_id=receipt.session_id, turn_id=receipt.turn_id, known=known)

    async def rests(self, progress: Progress) -> bool:
        """Return whether nothing more will come."""
        if progress.state is State.INTERRUPTED:
            # Whoever had asked may have come back, and let it go on.
            return (await self.desk.turn(self.turn_id)).state is State.INTERRUPTED
        return progress.state in FINAL

    async def live(self) -> AsyncGenerator[Entry]:
        """Yield what happens behind what is known, until the turn has come to rest."""
        after = self.known[-1].seq if self.known else 0
        async with aclosing(self.desk.follow(self.session_id, after)) as entries:
            async for entry in entries:
                if entry.turn_id != self.turn_id:
                    continue
                yield entry
                if entry.kind in _FINAL_KINDS or (_cut(entry) and await self._was_cut()):
                    return

    async def _was_cut(self) -> bool:
        return (await self.desk.turn(self.turn_id)).state is State.INTERRUPTED

    async def to_the_end(self, progress: Progress, take: Callable[[Entry], object]) -> None:
        """Read until the turn has come to rest.  Raises `Refused` where a person has to be asked first."""
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
            f"decide with: holdfast approvals, or POST /api/turns/{self.turn_id}/answer; then the same request with the "
            "same Idempotency-Key gets the answer, which is in the session too"
        )
        asked = f"the agent asks first: {progress.question.get('text', '')}"
        raise Told(403, "approval_needed", asked, hint, turn_id=self.turn_id, session_id=self.session_id)


def _cut(entry: Entry) -> bool:
    return entry.kind is Kind.TURN_INTERRUPTED and not entry.data.get("continues")


def failure(progress: Progress, turn_id: TurnId, *, again: bool) -> Told | None:
    """Return what to tell a client whose turn came to no answer; None where it did.  `again`: the same request goes on."""
    match progress.state:
        case State.FAILED:
            hint = "the gateway has tried what it could; change the message, or look at its log"
            return Told(502, "turn_failed", progress.error or "the turn failed", hint, retry=False, turn_id=turn_id)
        case State.INTERRUPTED:
            hint = _GOES_ON if again else _PASSED_BY
            return Told(502, "turn_interrupted", progress.error, hint, retry=again, turn_id=turn_id)
        case State.CANCELLED if not progress.pieces:
            hint = "send the message again if it is still wanted"
            return Told(
                409, "turn_cancelled", "the turn was cancelled before it said anything", hint, retry=False, turn_id=turn_id
            )
        case _:
            return None


def named(response: Response, receipt: Receipt) -> Response:
    """Let a client know which turn answers it, and in which session."""
    response.headers["X-Turn-Id"] = receipt.turn_id
    response.headers["X-Session-Id"] = receipt.session_id
    return response
