"""Doing what a command asks; every channel shares these."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import replace

from holdfast.clock import Clock
from holdfast.core import commands
from holdfast.core.commands import ChatCommand, CommandName
from holdfast.core.delegation import aside
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.redaction import Redaction
from holdfast.core.segments import DIRTY
from holdfast.core.sessions import Session
from holdfast.core.turns import SETTLED, Turn, TurnState
from holdfast.engine.command_models import ModelCommand
from holdfast.engine.command_sessions import SessionCommands, opened
from holdfast.engine.consent import Consent
from holdfast.errors import IllegalMove, KeyReused, Rejected, Repeated
from holdfast.ids import SessionId, TurnId, new_id, new_session_id, new_turn_id
from holdfast.ports import Models
from holdfast.store.store import Store

TITLE_LENGTH_MAX = 200
# The end reason of a conversation that its user left for a new one.
LEFT_FOR_A_NEW_ONE = "new"
_NOTHING_YET = "No conversation is open here; your next message begins one."
_DONE_BEFORE = "That was done when it came first."
_STILL_AT_IT = "It is still being answered: wait for it, or cancel it."
_QUOTED_MAX = 60
_DAY_MS = 86_400_000


class Commands:
    """Commands on the conversation that they are written in, each done once however often it is sent."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        redaction: Redaction,
        models: Models,
        accept: Callable[[Inbound], Awaitable[Receipt]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._accept = accept
        self._models = models
        self._sessions = SessionCommands(store, clock)
        self._model = ModelCommand(store, clock, models)
        self._consent = Consent(store, clock, redaction)

    async def run(self, message: Inbound, command: ChatCommand) -> Receipt:
        """Do it and return what to tell the user; where a turn follows from it, the receipt names it."""
        session = await self._store.sessions.find(message.owner, message.session_key)
        try:
            return await self._do(session, message, command)
        except Repeated:
            return self._reply(session, _DONE_BEFORE)
        except IllegalMove:
            return self._reply(session, _STILL_AT_IT)
        except KeyReused:
            raise
        except Rejected as error:
            await self._remember(message, session)
            return self._reply(session, _sentence(str(error)))

    async def _do(self, session: Session | None, message: Inbound, command: ChatCommand) -> Receipt:
        match command.name:
            case CommandName.HELP | CommandName.QUEUE | CommandName.STEER | CommandName.USAGE | CommandName.SESSIONS:
                await self._remember(message, session)
                return self._reply(session, await self._tell(session, message, command))
            case CommandName.MODEL:
                return self._reply(*await self._model.run(session, message, command.argument))
            case CommandName.APPROVE | CommandName.DENY:
                return self._reply(session, await self._consent.run(session, message, command))
            case CommandName.RESUME if command.argument:
                return self._reply(*await self._sessions.go_on(session, message, command.argument))
            case CommandName.BACKGROUND:
                return await self._background(session, message, command)
            case CommandName.NEW if message.continues:
                return await self._begin_anew(message)
            case _ if session is None:
                await self._remember(message, None)
                return self._reply(None, _NOTHING_YET)
            case _:
                return await self._do_in(session, message, command)

    async def _do_in(self, session: Session, message: Inbound, command: ChatCommand) -> Receipt:
        """Do what concerns the open conversation alone."""
        now, once = self._clock.now_ms(), message.once()
        match command.name:
            case CommandName.NEW:
                handed_on = await self._handed_on(session)
                await self._store.settlement.end_session(session.id, LEFT_FOR_A_NEW_ONE, now, once)
                return self._reply(session, f"A new conversation begins with your next message{handed_on}.")
            case CommandName.STOP:
                await self._stop(session, message)
                return self._reply(session, "Stopped. Your next message begins a new conversation.")
            case CommandName.RESUME:
                return await self._resume(session, message)
            case CommandName.UNDO:
                undone = await self._store.settlement.undo(session.id, now, once)
                return self._reply(session, await self._left_out(undone) if undone else "There is nothing to undo.")
            case CommandName.RETRY:
                return await self._retry(session, message)
            case CommandName.TITLE if command.argument:
                return self._reply(session, await self._name(session, message, command.argument))
            case _:
                await self._remember(message, session)
                is_title = command.name is CommandName.TITLE
                return self._reply(session, _title(session) if is_title else await self._status(session))

    async def _tell(self, session: Session | None, message: Inbound, command: ChatCommand) -> str:
        match command.name:
            case CommandName.SESSIONS:
                return await self._sessions.listed(session, message.owner)
            case CommandName.USAGE:
                return await self._usage(session, message.owner)
            case CommandName.HELP:
                return commands.HELP
            case _:
                return commands.usage(command.name)

    async def _remember(self, message: Inbound, session: Session | None) -> None:
        """Note that a command came which changes nothing; it is answered again if it comes again."""
        with contextlib.suppress(Repeated):
            subject = session.id if session else SessionId("")
            await self._store.intake.remember(message.once(), subject, self._clock.now_ms())

    async def _begin_anew(self, message: Inbound) -> Receipt:
        """Leave the conversation of another channel, which stays as it is."""
        left = LEFT_FOR_A_NEW_ONE
        await self._store.continuations.leave(
            message.owner, message.conversation, left, self._clock.now_ms(), message.once()
        )
        return self._reply(None, "You left that conversation, which stays open. A new one begins with your next message.")

    async def _stop(self, session: Session, message: Inbound) -> None:
        now = self._clock.now_ms()
        await self._store.settlement.suspend_session(session.id, now, message.once())
        if message.continues:
            # So that the next message begins a new conversation here too.
            owner, key = message.owner, message.conversation
            await self._store.continuations.leave(owner, key, LEFT_FOR_A_NEW_ONE, now, None)

    async def _retry(self, session: Session, message: Inbound) -> Receipt:
        now = self._clock.now_ms()
        again = await self._store.intake.redo(message, session.id, new_turn_id(now), new_session_id(now), now)
        if again is None:
            return self._reply(session, "There is nothing to answer anew.")
        return replace(again, reply=f"Once more: “{_short(await self._store.turns.asked(again.turn_id))}”")

    async def _background(self, session: Session | None, message: Inbound, command: ChatCommand) -> Receipt:
        if not command.argument:
            await self._remember(message, session)
            return self._reply(session, commands.usage(CommandName.BACKGROUND))
        now = self._clock.now_ms()
        home = session or await opened(self._store, message, now)
        unique = hashlib.sha256(message.dedupe_key.encode()).hexdigest()[:16] if message.dedupe_key else new_id("side", now)
        begun = await self._accept(aside(message, command.argument, home, unique))
        await self._remember(message, home)
        return self._reply(home, f"At work in the background (session {begun.session_id}). The result comes here.")

    async def _handed_on(self, session: Session) -> str:
        """Say that memory is given what was said, where it is."""
        owes = any(each.state in DIRTY for each in await self._store.segments.of_session(session.id))
        return "; this one is handed to memory" if owes else ""

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
        if model := session.model or self._models.configured:
            lines.append(f"Its model is {model}.")
        if last and last.state not in SETTLED:
            lines.append(f"The last one is {last.state}.")
        if cause is not None:
            lines.append("An answer was cut off: write on, or send /resume.")
        return " ".join(lines)

    async def _usage(self, session: Session | None, owner: str) -> str:
        now = self._clock.now_ms()
        # Days begin where those of the budgets do.
        today = await self._store.spending.of_owner(owner, now - now % _DAY_MS)
        lines = [f"Today: {today.told}."]
        if session:
            used, _ = await self._store.spending.of_session(session.id)
            lines.insert(0, f"This conversation: {used.told}.")
        return "\n".join(lines)

    async def _name(self, session: Session, message: Inbound, title: str) -> str:
        # A title stands in lists, so it is one line of things that can be seen.
        seen = "".join(letter if letter.isprintable() else " " for letter in title)[:TITLE_LENGTH_MAX]
        await self._store.sessions.change(session.id, title=seen, once=message.once(), now_ms=self._clock.now_ms())
        return f"This conversation is called “{seen}” now."

    async def _resume(self, session: Session, message: Inbound) -> Receipt:
        last = await self._store.turns.last(session.id)
        if last is None or last.state is not TurnState.INTERRUPTED:
            await self._store.intake.remember(message.once(), session.id, self._clock.now_ms())
            return self._reply(session, "Nothing was cut off here.")
        try:
            turn = await self._store.turns.resume(last.id, self._clock.now_ms(), message.once())
        except IllegalMove:
            return self._reply(session, "It cannot go on any more; ask again instead.")
        return self._reply(session, "Going on where it was cut off.", turn)

    async def _left_out(self, undone: Turn) -> str:
        return f"Left out: “{_short(await self._store.turns.asked(undone.id))}”"


def _title(session: Session) -> str:
    return f"This conversation is called “{session.title}”." if session.title else "This conversation has no title."


def _sentence(reason: str) -> str:
    ends = "" if "\n" in reason or reason.endswith((".", "?", "…")) else "."
    return f"{reason[:1].upper()}{reason[1:]}{ends}"


def _short(text: str) -> str:
    return text if len(text) <= _QUOTED_MAX else text[:_QUOTED_MAX] + "…"
