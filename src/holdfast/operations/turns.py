"""Turns: the receipts of messages, and what can be done about a turn."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from holdfast.core.events import ApprovalAsked
from holdfast.core.keys import ADMIN
from holdfast.core.questions import About
from holdfast.core.turns import TurnState
from holdfast.errors import BadParameter, IllegalMove
from holdfast.ids import SessionId, TurnId
from holdfast.operations import pages
from holdfast.operations.approvals import Approvals
from holdfast.operations.caller import Caller
from holdfast.operations.operation import Query, Retry, operation
from holdfast.operations.ownership import own_session, own_turn
from holdfast.operations.pages import Cursor, Limit, Page

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.clock import Clock
    from holdfast.core.intake import Image
    from holdfast.core.journal import Entry
    from holdfast.core.turns import Turn
    from holdfast.engine.engine import Engine
    from holdfast.store.store import Store

# No question has this id: an answer to it is refused, and the refusal says what the turn waits for.
_NO_QUESTION = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """The receipt of a turn: what became of a message, and when.

    A message that joined another turn shares what becomes of that one, which `joined_to` names.
    """

    id: TurnId
    session_id: SessionId
    state: TurnState
    cause: str | None
    attempt: int
    accepted_at: int
    started_at: int | None
    answered_at: int | None
    delivered_at: int | None
    error: str | None
    joined_to: TurnId | None = None
    # When a turn that waits for its model is tried again.
    retry_at: int | None = None

    @classmethod
    def of(cls, turn: Turn, host: Turn, delivered_at: int | None) -> TurnView:
        return cls(
            id=turn.id,
            session_id=turn.session_id,
            state=host.state,
            cause=host.cause,
            attempt=host.attempt,
            accepted_at=turn.accepted_at,
            started_at=host.started_at,
            answered_at=host.answered_at,
            delivered_at=delivered_at,
            error=host.error,
            joined_to=turn.joined_to,
            retry_at=host.retry_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a person says to the question that a turn waits for; without a `question_id`, to the last one."""

    text: str
    question_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """The turns of the caller."""

    store: Store
    caller: Caller
    clock: Clock
    engine: Engine

    @operation("GET /api/turns", "List the turns of a session", offline=True)
    async def list(
        self,
        session_id: Annotated[SessionId, Query("Whose turns.", name="session")],
        *,
        cursor: Cursor = None,
        limit: Limit = 100,
    ) -> Page[TurnView]:
        """Return the turns of a session in the order of their acceptance."""
        if not session_id:
            raise BadParameter("say which session with ?session=")
        await own_session(self.store, self.caller, session_id)
        begin, limit = pages.position(cursor), pages.size(limit)
        found = await self.store.turns.list(session_id, after=begin[0] if begin else 0, limit=limit)
        more = pages.after((found[-1].ordinal, found[-1].id)) if len(found) == limit else None
        return Page(items=[await self._receipt(each) for each in found], next_cursor=more)

    @operation("GET /api/turns/{id}", "Show what became of a message", retry=Retry.UNHEARD, offline=True)
    async def get(self, turn_id: TurnId) -> TurnView:
        return await self._receipt(await own_turn(self.store, self.caller, turn_id))

    @operation("POST /api/turns/{id}/cancel", "Cancel a turn; what it has said stays")
    async def cancel(self, turn_id: TurnId) -> TurnView:
        """Cancel a turn, or the one that it joined; a second call returns the same receipt.

        Raises `IllegalMove` when the turn has come to another end.
        """
        host_id = await self._host(turn_id)
        try:
            await self.engine.cancel(host_id)
        except IllegalMove as error:
            if await self._host(turn_id) != host_id:
                # It joined another turn in this very moment.
                return await self.cancel(turn_id)
            if error.state != TurnState.CANCELLED:
                raise
        return await self.get(turn_id)

    @operation("POST /api/turns/{id}/retry", "Let a turn go on, or ask the same again", status=202)
    async def retry(self, turn_id: TurnId) -> TurnView:
        """Return the turn that runs now: the same one, if it was interrupted, or a new one for the same reader."""
        receipt = await self.engine.inbox.again(await own_turn(self.store, self.caller, turn_id))
        return await self.get(receipt.turn_id)

    @operation("POST /api/turns/{id}/answer", "Answer the question that a turn waits for")
    async def answer(self, turn_id: TurnId, answer: Answer) -> TurnView:
        """Answer the question that a turn waits for, or the turn that it joined."""
        turn = await own_turn(self.store, self.caller, turn_id)
        question_id = answer.question_id if self.caller.is_operator else await self._harmless_question(turn, answer)
        host_id = turn.joined_to or turn.id
        host = await self.engine.answer(host_id, question_id or await self._last_question(host_id), answer.text)
        # As it was answered, though it may have gone on by now.
        return TurnView.of(turn, host, await self.store.turns.delivered_at(host_id))

    async def image(self, turn_id: TurnId, place: int) -> Image:
        """Return a picture that came with the message of a turn, counted from 0.  Raises `NotFound`."""
        await own_turn(self.store, self.caller, turn_id)
        return await self.store.turns.image(turn_id, place)

    async def entries(self, turn_id: TurnId) -> Sequence[Entry]:
        """Return what has happened in a turn so far."""
        await own_turn(self.store, self.caller, turn_id)
        return await self.store.journal.read_turn(turn_id)

    async def is_last(self, turn_id: TurnId) -> bool:
        """Return whether nothing was said in its session after a turn."""
        turn = await own_turn(self.store, self.caller, turn_id)
        last = await self.store.turns.last(turn.session_id)
        return last is not None and last.id == turn.id

    async def resume(self, turn_id: TurnId) -> bool:
        """Let a turn go on that was cut off; returns whether it does."""
        await own_turn(self.store, self.caller, turn_id)
        with contextlib.suppress(IllegalMove):
            await self.store.turns.resume(turn_id, self.clock.now_ms())
            return True
        return False

    async def _harmless_question(self, turn: Turn, answer: Answer) -> str:
        """Return which question a caller who is not the operator answers: the open one, unless it asks for consent.

        A command of the agent's can reach a gateway that needs no key, and would else allow itself what it was asked about.
        """
        waiting = await Approvals(store=self.store, caller=self.caller).list(session_id=turn.session_id)
        for each in waiting.items:
            if each.turn_id == (turn.joined_to or turn.id):
                if each.about != About.ANSWER:
                    self.caller.demand(ADMIN)
                return each.question_id if answer.question_id in (None, each.question_id) else _NO_QUESTION
        # A question that is asked meanwhile is not the one that the caller saw.
        return _NO_QUESTION

    async def _last_question(self, turn_id: TurnId) -> str:
        entries = await self.store.journal.read_turn(turn_id)
        asked = [entry.event.question_id for entry in entries if isinstance(entry.event, ApprovalAsked)]
        return asked[-1] if asked else ""

    async def _receipt(self, turn: Turn) -> TurnView:
        host = await self.store.turns.get(turn.joined_to) if turn.joined_to else turn
        return TurnView.of(turn, host, await self.store.turns.delivered_at(host.id))

    async def _host(self, turn_id: TurnId) -> TurnId:
        """Return the turn in which a message is answered: its own, or the one that it joined."""
        turn = await own_turn(self.store, self.caller, turn_id)
        return turn.joined_to or turn.id
