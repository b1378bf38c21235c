"""Doing what a command asks; every channel shares these."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import assert_never

from holdfast.clock import Clock
from holdfast.core.commands import HELP, Command, Name
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.journal import Kind
from holdfast.core.sessions import Session
from holdfast.core.turns import SETTLED, State, Turn
from holdfast.errors import IllegalMove
from holdfast.ids import SessionId, TurnId
from holdfast.ports import Store

TITLE_LENGTH_MAX = 200
# The end reason of a conversation that its user left for a new one.
LEFT_FOR_A_NEW_ONE = "new"
_NOTHING_YET = "There is no conversation here yet."
_QUOTED_MAX = 60


class Commands:
    """Commands on the conversation that they are written in.  `take_in` accepts a message as it is."""

    def __init__(self, store: Store, take_in: Callable[[Inbound], Awaitable[Receipt]], clock: Clock) -> None:
        self._store = store
        self._take_in = take_in
        self._clock = clock

    async def run(self, message: Inbound, command: Command) -> Receipt:
        """Do it and return what to tell the user; where a turn follows from it, the receipt names it."""
        session = await self._store.sessions.find(message.owner, message.conversation)
        if command.name is Name.HELP:
            return self._reply(None, "\n".join(f"/{name}: {text}" for name, text in HELP.items()))
        if session is None:
            return self._reply(None, _NOTHING_YET)
        match command.name:
            case Name.NEW:
                await self._store.settlement.end_session(session.id, LEFT_FOR_A_NEW_ONE, self._clock.now_ms())
                return self._reply(session, "A new conversation begins with your next message.")
            case Name.STOP:
                await self._store.settlement.suspend_session(session.id, self._clock.now_ms())
                return self._reply(session, "Stopped. Your next message begins a new conversation.")
            case Name.STATUS:
                return self._reply(session, await self._status(session))
            case Name.TITLE:
                return self._reply(session, await self._title(session, command.argument))
            case Name.RESUME:
                return await self._resume(session)
            case Name.UNDO:
                return await self._undo(session)
            case Name.RETRY:
                return await self._retry(session, message)
            case _:
                assert_never(command.name)

    def _reply(self, session: Session | None, text: str, turn: Turn | None = None) -> Receipt:
        return Receipt(
            turn_id=turn.id if turn else TurnId(""),
            session_id=session.id if session else SessionId(""),
            state=turn.state if turn else State.COMPLETED,
            accepted_at=self._clock.now_ms(),
            reply=text,
        )

    async def _status(self, session: Session) -> str:
        last = await self._store.turns.last(session.id)
        cause = await self._store.sessions.resume_cause(session.id)
        named = f"“{session.title}”" if session.title else session.key
        lines = [f"Conversation {named} ({session.id}), {session.turns} messages."]
        if last and last.state not in SETTLED:
            lines.append(f"The last one is {last.state}.")
        if cause is not None:
            lines.append("An answer was cut off: write on, or send /resume.")
        return " ".join(lines)

    async def _title(self, session: Session, title: str) -> str:
        if not title:
            return f"This conversation is called “{session.title}”." if session.title else "This conversation has no title."
        await self._store.sessions.rename(session.id, title[:TITLE_LENGTH_MAX])
        return f"This conversation is called “{title[:TITLE_LENGTH_MAX]}” now."

    async def _resume(self, session: Session) -> Receipt:
        last = await self._store.turns.last(session.id)
        if last is None or last.state is not State.INTERRUPTED:
            return self._reply(session, "Nothing was cut off here.")
        try:
            turn = await self._store.turns.resume(last.id, self._clock.now_ms())
        except IllegalMove:
            return self._reply(session, "It cannot go on any more; ask again instead.")
        return self._reply(session, "Going on where it was cut off.", turn)

    async def _undo(self, session: Session) -> Receipt:
        try:
            undone = await self._store.settlement.undo(session.id, self._clock.now_ms())
        except IllegalMove:
            return self._reply(session, "It is still being answered; send /stop first.")
        if undone is None:
            return self._reply(session, "There is nothing to undo.")
        return self._reply(session, f"Left out: “{_short(await self._text(undone))}”")

    async def _retry(self, session: Session, message: Inbound) -> Receipt:
        try:
            undone = await self._store.settlement.undo(session.id, self._clock.now_ms())
        except IllegalMove:
            return self._reply(session, "It is still being answered; send /stop first.")
        if undone is None:
            return self._reply(session, "There is nothing to answer anew.")
        text = await self._text(undone)
        accepted = await self._take_in(replace(message, text=text))
        return replace(accepted, reply=f"Once more: “{_short(text)}”")

    async def _text(self, turn: Turn) -> str:
        entries = await self._store.journal.read_turn(turn.id)
        return next((str(entry.data.get("text", "")) for entry in entries if entry.kind is Kind.TURN_ACCEPTED), "")


def _short(text: str) -> str:
    return text if len(text) <= _QUOTED_MAX else text[:_QUOTED_MAX] + "…"
