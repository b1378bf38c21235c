"""One answer: it is shown as it arrives, and the exit code says how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import click
import msgspec
from rich.text import Text as Styled

from holdfast.cli import cards
from holdfast.cli.frame import EXIT_FAILED, print_json, print_text, visible
from holdfast.cli.narration import Narrator
from holdfast.cli.screen import PipeScreen
from holdfast.core.events import ApprovalAsked, Note, Text, TurnCompleted
from holdfast.core.intake import Receipt
from holdfast.core.journal import Entry, settles
from holdfast.core.turns import SETTLED, TurnState
from holdfast.errors import HoldfastError
from holdfast.ids import SessionId, TurnId
from holdfast.operations.approvals import ApprovalView
from holdfast.operations.conversation import SessionView
from holdfast.operations.services import Services
from holdfast.operations.turns import Answer, TurnView

_LOOK_S = 0.05
_BECAME = {TurnState.FAILED: "the turn failed", TurnState.CANCELLED: "the turn was cancelled"}
_BEHIND = "the message is kept; before it is answered, an earlier one waits for an answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where to read on: a turn, and the cursor behind what has been shown of its session."""

    session_id: SessionId
    turn_id: TurnId
    after: int

    @classmethod
    def of(cls, session: SessionView, receipt: Receipt) -> _Place:
        # A message may have opened another session, whose journal begins with it.
        after = session.seq if receipt.session_id == session.id else 0
        return cls(session_id=receipt.session_id, turn_id=receipt.turn_id, after=after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What came of a question: the whole answer, or what the turn waits for."""

    text: str = ""
    waits_for: ApprovalView | None = None


async def conclude(services: Services, session: SessionView, receipt: Receipt, as_json: bool) -> None:
    """Show the answer to a message, and exit with a code that says whether it was answered."""
    async with _cancelling(services, receipt.turn_id):
        heard = await _listen(services, session, receipt, quiet=as_json)
    turn = await services.turns.get(receipt.turn_id)
    if as_json:
        waiting = {"question": heard.waits_for} if heard.waits_for else {}
        print_json({**msgspec.to_builtins(turn), "text": heard.text, **waiting})
    elif turn.state is not TurnState.COMPLETED:
        click.echo(f"\nholdfast: {visible(outcome(turn, heard.waits_for))}", err=True)
    if turn.state is not TurnState.COMPLETED:
        sys.exit(EXIT_FAILED)


async def rested(services: Services, turn_id: TurnId) -> TurnView:
    """Return a turn.  If this command is the gateway, wait until the turn is at rest first."""
    turn = await services.turns.get(turn_id)
    if (await services.gateway.health()).pid != os.getpid():
        return turn
    while turn.state not in SETTLED and turn.state is not TurnState.WAITING and not await _held_up(services, turn):
        await asyncio.sleep(_LOOK_S)
        turn = await services.turns.get(turn_id)
    return turn


async def _held_up(services: Services, turn: TurnView) -> ApprovalView | None:
    """Return the question of an earlier turn that one has to wait for, or of the one that it joined."""
    if turn.state is not TurnState.QUEUED and not turn.joined_to:
        return None
    asked = (await services.approvals.list(session_id=turn.session_id, limit=1)).items
    return asked[0] if asked and asked[0].turn_id != turn.id else None


@contextlib.asynccontextmanager
async def _cancelling(services: Services, turn_id: TurnId) -> AsyncGenerator[None]:
    """Let Ctrl-C cancel a turn.  If this command is the gateway, the end would otherwise look like a crash."""
    try:
        yield
    except asyncio.CancelledError:
        with contextlib.suppress(HoldfastError):
            await asyncio.create_task(services.turns.cancel(turn_id))
        raise


async def _listen(services: Services, session: SessionView, receipt: Receipt, *, quiet: bool) -> Heard:
    """Show an answer as it comes: with its tools on a terminal, alone in a pipe.

    At a terminal, questions can be answered; without one the first question ends it.
    """
    page = PipeScreen()
    narrator = Narrator(page, is_mine=lambda _: True)
    shown = sys.stdout.isatty() and not quiet
    attended = sys.stdin.isatty() and shown
    if standing := await _held_up(services, await services.turns.get(receipt.turn_id)):
        if shown:
            page.print(Styled(_BEHIND, "dim"))
            narrator.ask(standing)
        if not attended or not await _answered(services, page, standing):
            return Heard(waits_for=standing)
    async for entry in _entries(services, _Place.of(session, receipt)):
        if shown:
            narrator.tell(entry)
        elif isinstance(entry.event, Note):
            click.echo(visible(entry.event.text), err=True)
        elif not quiet:
            _print_answer(entry)
        if settles(entry.event):
            return Heard(text=entry.event.text if isinstance(entry.event, TurnCompleted) else "")
        if isinstance(entry.event, ApprovalAsked):
            asked = cards.asked(entry, entry.event)
            if not attended or not await _answered(services, page, asked):
                return Heard(text=asked.text if asked.turn_id == receipt.turn_id else "", waits_for=asked)
    return Heard()


async def _answered(services: Services, page: PipeScreen, asked: ApprovalView) -> bool:
    """Let the person at the terminal answer; False if they leave the question open."""
    if (typed := await page.line()) is None:
        return False
    await services.turns.answer(asked.turn_id, Answer(text=cards.reply(asked, typed), question_id=asked.question_id))
    return True


def _print_answer(entry: Entry) -> None:
    match entry.event:
        case Text(text=text):
            print_text(text)
        case TurnCompleted():
            click.echo()
        case _:
            pass


def outcome(turn: TurnView, asked: ApprovalView | None) -> str:
    """Return what happened to a turn without a complete answer, and how to continue."""
    if asked:
        waits = "the turn waits for an answer" if asked.turn_id == turn.id else _BEHIND
        return f"{waits}\n{cards.question(asked).plain}\n{cards.how_to_answer(asked)}"
    if turn.state is TurnState.INTERRUPTED:
        return f"the answer was cut off ({turn.cause}); go on with `holdfast turns retry {turn.id}`"
    became = _BECAME.get(turn.state, f"the turn is {turn.state}")
    return f"{became}: {reason}" if (reason := turn.error or turn.cause) else became


async def _entries(services: Services, place: _Place) -> AsyncGenerator[Entry]:
    """Yield the entries of one turn until it comes to rest, and what those before it ask: it has to wait for that."""
    turn_id = place.turn_id
    async with contextlib.aclosing(services.sessions.follow(place.session_id, place.after)) as entries:
        async for entry in entries:
            if entry.turn_id != turn_id:
                if isinstance(entry.event, ApprovalAsked):
                    yield entry
                continue
            if isinstance(entry.event, TurnCompleted) and entry.event.joined:
                # The message became part of the turn that was running, and is answered there.
                turn_id = entry.event.joined
                continue
            yield entry
            if settles(entry.event):
                return
