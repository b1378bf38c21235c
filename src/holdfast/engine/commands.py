"""Doing what a command asks; every channel shares these."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from holdfast.clock import Clock
from holdfast.core.commands import HELP, ChatCommand, CommandName
from holdfast.core.intake import Inbound, Once, Receipt
from holdfast.core.segments import DIRTY
from holdfast.core.sessions import Session
from holdfast.core.turns import SETTLED, Turn, TurnState
from holdfast.errors import IllegalMove, Repeated
from holdfast.ids import SessionId, TurnId, new_session_id, new_turn_id
from holdfast.store.store import Store

TITLE_LENGTH_MAX = 200
# The end reason of a conversation that its user left for a new one.
LEFT_FOR_A_NEW_ONE = "new"
_NOTHING_YET = "No conversation is open here; your next message begins one."
_DONE_BEFORE = "That was done when it came first."
_STILL_AT_IT = "It is still being answered: wait for it, or cancel it."
_HELP = "\n".join(f"/{name}: {text}" for name, text in HELP.items())
_QUOTED_MAX = 60


class Commands:
    """Commands on the conversation that they are written in, each done once however often it is sent."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def run(self, message: Inbound, command: ChatCommand) -> Receipt:
        """Do it and return what to tell the user; where a turn follows from it, the receipt names it."""
        session = await self._store.sessions.find(message.owner, message.conversation)
        try:
            return await (self._do(session, message, command) if session else self._say(message, command))
        except Repeated:
            return self._reply(session, _DONE_BEFORE)
        except IllegalMove:
            return self._reply(session, _STILL_AT_IT)

    async def _say(self, message: Inbound, command: ChatCommand) -> Receipt:
        """Answer where there is no conversation yet."""
        await self._store.intake.remember(message.once(), SessionId(""), self._clock.now_ms())
        return self._reply(None, _HELP if command.name is CommandName.HELP else _NOTHING_YET)

    async def _do(self, session: Session, message: Inbound, command: ChatCommand) -> Receipt:
        now, once = self._clock.now_ms(), message.once()
        match command.name:
            case CommandName.NEW:
                handed_on = await self._handed_on(session)
                await self._store.settlement.end_session(session.id, LEFT_FOR_A_NEW_ONE, now, once)
                return self._reply(session, f"A new conversation begins with your next message{handed_on}.")
            case CommandName.STOP:
                await self._store.settlement.suspend_session(session.id, now, once)
                return self._reply(session, "Stopped. Your next message begins a new conversation.")
            case CommandName.RESUME:
                return await self._resume(session, once)
            case CommandName.UNDO:
                undone = await self._store.settlement.undo(session.id, now, once)
                return self._reply(session, await self._left_out(undone) if undone else "There is nothing to undo.")
            case CommandName.RETRY:
                again = await self._store.intake.redo(message, session.id, new_turn_id(now), new_session_id(now), now)
                if again is None:
                    return self._reply(session, "There is nothing to answer anew.")
                return replace(again, reply=f"Once more: “{_short(await self._store.turns.asked(again.turn_id))}”")
            case CommandName.STATUS | CommandName.TITLE | CommandName.HELP:
                await self._store.intake.remember(once, session.id, now)
                return self._reply(session, await self._tell(session, command))
            case _:
                assert_never(command.name)

    async def _handed_on(self, session: Session) -> str:
        """Say that memory is given what was said, where it is."""
        owes = any(each.state in DIRTY for each in await self._store.segments.of_session(session.id))
        return "; this one is handed to memory" if owes else ""

    async def _tell(self, session: Session, command: ChatCommand) -> str:
        if command.name is CommandName.STATUS:
            return await self._status(session)
        return await self._title(session, command.argument) if command.name is CommandName.TITLE else _HELP

    def _reply(self, session: Session | None, text: str, turn: Turn | None = None) -> Receipt:
        return Receipt(
            turn_id=turn.id if turn else TurnId(""),
            session_id=session.id if session else SessionId(""),
            state=turn.state if turn else TurnState.COMPLETED,
            accepted_at=self._clock.now_ms(),
            reply=text,
        )

    async def _status(self, session: Session) -> str:
        last = await self._store.turns.last(session.id)
        cause = await self._store.sessions.resume_cause(session.id)
        named = f"“{session.title}”" if session.title else session.key
        messages = "1 message" if session.turns == 1 else f"{session.turns:,} messages"
        lines = [f"Conversation {named} ({session.id}), {messages}."]
        if last and last.state not in SETTLED:
            lines.append(f"The last one is {last.state}.")
        if cause is not None:
            lines.append("An answer was cut off: write on, or send /resume.")
        return " ".join(lines)

    async def _title(self, session: Session, title: str) -> str:
        if not title:
            return f"This conversation is called “{session.title}”." if session.title else "This conversation has no title."
        # A title stands in lists, so it is one line of things that can be seen.
        seen = "".join(letter if letter.isprintable() else " " for letter in title)[:TITLE_LENGTH_MAX]
        await self._store.sessions.change(session.id, title=seen)
        return f"This conversation is called “{seen}” now."

    async def _resume(self, session: Session, once: Once) -> Receipt:
        last = await self._store.turns.last(session.id)
        if last is None or last.state is not TurnState.INTERRUPTED:
            await self._store.intake.remember(once, session.id, self._clock.now_ms())
            return self._reply(session, "Nothing was cut off here.")
        try:
            turn = await self._store.turns.resume(last.id, self._clock.now_ms(), once)
        except IllegalMove:
            return self._reply(session, "It cannot go on any more; ask again instead.")
        return self._reply(session, "Going on where it was cut off.", turn)

    async def _left_out(self, undone: Turn) -> str:
        return f"Left out: “{_short(await self._store.turns.asked(undone.id))}”"


def _short(text: str) -> str:
    return text if len(text) <= _QUOTED_MAX else text[:_QUOTED_MAX] + "…"
