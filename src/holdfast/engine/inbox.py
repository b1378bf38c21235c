"""The inbox: the one way in."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import cast

from holdfast.clock import Clock
from holdfast.config import GatewayConfig, SessionsConfig
from holdfast.core import commands
from holdfast.core.commands import ChatCommand, CommandName
from holdfast.core.intake import Busy, Inbound, Receipt
from holdfast.core.journal import acceptance
from holdfast.core.redaction import Redaction
from holdfast.core.resets import Reset, When
from holdfast.core.turns import SETTLED, Mode, Turn, TurnState
from holdfast.engine.commands import Commands
from holdfast.errors import IllegalMove
from holdfast.ids import new_session_id, new_turn_id
from holdfast.ports import Models, OneModel
from holdfast.store.store import Store


class Inbox:
    """What a channel may ask of the gateway."""

    def __init__(
        self,
        store: Store,
        gateway: GatewayConfig,
        sessions: SessionsConfig,
        redaction: Redaction,
        clock: Clock,
        models: Models | None = None,
    ) -> None:
        self._store = store
        self._busy = Busy(gateway.busy)
        self._sessions = sessions
        self._redaction = redaction
        self._clock = clock
        self._commands = Commands(store, clock, redaction, models or OneModel(), self._take_in)

    async def accept(self, message: Inbound) -> Receipt:
        """Return once durable, or refused for good; a repeated `dedupe_key` returns the first receipt.

        A command to the gateway, such as /new, is done at once and answered in the receipt.
        """
        if message.mode is not Mode.CONVERSATION or message.one_shot:
            return await self._take_in(message)
        if not message.names_session:
            message = replace(message, continues=await self._continued(message))
        if command := commands.parse(message.text):
            if (said := _said(message, command)) is None:
                return await self._commands.run(message, command)
            message = said
        now = self._clock.now_ms()
        return await self._take_in(
            replace(
                message,
                busy=message.busy or self._busy,
                # Where a conversation is continued, its own channel decides when it has rested for long enough.
                reset=message.reset or (None if message.continues else _reset(self._sessions, message.channel, now)),
            )
        )

    async def _continued(self, message: Inbound) -> str | None:
        """Return the key of the conversation that is continued where a message was written; None for that chat's own."""
        return await self._store.continuations.find(message.owner, message.conversation)

    async def again(self, turn: Turn) -> Receipt:
        """Let a turn at rest go on if it was cut off and still may, else ask the same once more, for the same reader."""
        if turn.state is TurnState.INTERRUPTED:
            with contextlib.suppress(IllegalMove):
                resumed = await self._store.turns.resume(turn.id, self._clock.now_ms())
                return Receipt(
                    turn_id=resumed.id,
                    session_id=resumed.session_id,
                    state=resumed.state,
                    accepted_at=resumed.accepted_at,
                )
        if turn.state not in SETTLED:
            raise IllegalMove(turn.id, turn.state, "be asked again; cancel it first")
        session = await self._store.sessions.get(turn.session_id)
        accepted = acceptance(await self._store.journal.read_turn(turn.id))
        return await self._take_in(
            Inbound(
                conversation=session.key,
                text=await self._store.turns.asked(turn.id),
                channel=session.channel,
                owner=session.owner,
                source=session.source,
                mode=turn.mode,
                delivers_later=turn.delivers_later,
                remembers=turn.remembers,
                reply_to=turn.reply_to,
                one_shot=session.one_shot,
                images=tuple(await self._store.turns.images(turn.id)),
                prior=accepted.said_before,
                request=accepted.request or {},
                verbatim=turn.verbatim,
            )
        )

    async def _take_in(self, message: Inbound) -> Receipt:
        now = self._clock.now_ms()
        return await self._store.intake.accept(self._safe(message), new_turn_id(now), new_session_id(now), now)

    def _safe(self, message: Inbound) -> Inbound:
        """Return a message with every secret masked, wherever in it."""
        masked = self._redaction.text
        if not message.prior and not message.request and masked(message.text) == message.text:
            return message
        prior = tuple(replace(each, text=masked(each.text)) for each in message.prior)
        request = cast("Mapping[str, object]", self._redaction.value(message.request))
        return replace(message, text=masked(message.text), prior=prior, request=request)


def _said(message: Inbound, command: ChatCommand) -> Inbound | None:
    """Return what a command says to the agent, and how it wants to be met; None for a command to the gateway."""
    match command.name:
        case CommandName.QUEUE if command.argument:
            return replace(message, text=command.argument, busy=Busy.QUEUE)
        case CommandName.STEER if command.argument:
            return replace(message, text=command.argument, busy=Busy.STEER)
        case CommandName.COMPRESS:
            return message
        case _:
            return None


def _reset(sessions: SessionsConfig, channel: str, now_ms: int) -> Reset | None:
    when = When(sessions.reset_by_channel.get(channel, sessions.reset))
    if when is When.NONE:
        return None
    idle_ms = int(sessions.idle_minutes * 60_000)
    return Reset(when=when, idle_ms=idle_ms, day_began_at=day_began_at(sessions.daily_at, now_ms))


def day_began_at(daily_at: time, now_ms: int) -> int:
    """Return when it was last that time of day, where this machine is."""
    now = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone()
    began = now.replace(hour=daily_at.hour, minute=daily_at.minute, second=0, microsecond=0)
    if began > now:
        began -= timedelta(days=1)
    return int(began.timestamp() * 1000)
