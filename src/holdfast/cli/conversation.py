"""`holdfast ask` and `holdfast chat`: talk to the agent, through the running gateway or with one of our own."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import click
import msgspec
from rich.text import Text

from holdfast.cli.frame import (
    EXIT_FAILED,
    Frame,
    console,
    json_option,
    print_json,
    print_text,
    run_async,
    say,
    tilde,
    visible,
)
from holdfast.cli.sessions import print_item
from holdfast.core.intake import Busy, Receipt
from holdfast.core.journal import CLOSING, Entry, Kind
from holdfast.core.transcript import Item, Role, fold
from holdfast.core.turns import State
from holdfast.desk.port import Desk, Opening, looks_like_id
from holdfast.desk.views import SessionView, Transcript, TurnView
from holdfast.errors import HoldfastError, Rejected, Unavailable
from holdfast.ids import SessionId, TurnId

_CLOSING = frozenset(CLOSING.values())
CHANNEL = "terminal"
DEFAULT_KEY = "terminal"
_SHOWN_AT_START = 6


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


@click.command()
@click.argument("text")
@click.option(
    "--session", "key", default=DEFAULT_KEY, show_default=True, help="The conversation to continue: its key or id."
)
@click.option(
    "--busy", type=click.Choice([each.value for each in Busy]), help="What to do while an earlier message is being answered."
)
@json_option
@click.pass_obj
@run_async
async def ask(frame: Frame, text: str, key: str, busy: str | None, as_json: bool) -> None:
    """Ask one question: the answer goes to stdout, and the exit code tells success."""
    async with frame.desk() as desk:
        session = await _session(desk, key)
        receipt = await desk.send(session.id, text, busy=Busy(busy) if busy else None)
        if receipt.reply is not None and not receipt.turn_id:
            print_json(receipt) if as_json else print_text(f"{receipt.reply}\n")
            return
        async with _cancelling(desk, receipt.turn_id):
            said = await _listen(desk, session, receipt, quiet=as_json)
        turn = await desk.turn(receipt.turn_id)
    if as_json:
        print_json({**msgspec.to_builtins(turn), "text": said})
    elif turn.state is not State.COMPLETED:
        click.echo(f"\nholdfast: {visible(outcome(turn, said))}", err=True)
    if turn.state is not State.COMPLETED:
        sys.exit(EXIT_FAILED)


async def _session(desk: Desk, name: str) -> SessionView:
    """Return the session with an id, or the open one of a key, made if need be."""
    if looks_like_id(name):
        return await desk.session(SessionId(name))
    return await desk.open(Opening(key=name, channel=CHANNEL))


@contextlib.asynccontextmanager
async def _cancelling(desk: Desk, turn_id: TurnId) -> AsyncGenerator[None]:
    """Take Ctrl-C as the wish to cancel a turn; else it would look like a crash where the gateway is our own."""
    try:
        yield
    except asyncio.CancelledError:
        with contextlib.suppress(HoldfastError):
            await asyncio.create_task(desk.cancel(turn_id))
        raise


async def _listen(desk: Desk, session: SessionView, receipt: Receipt, *, quiet: bool) -> str:
    """Print an answer as it comes; return it whole, or the question that the turn waits with."""
    async for entry in _entries(desk, _Place.of(session, receipt)):
        if entry.kind is Kind.TEXT and not quiet:
            print_text(str(entry.data["text"]))
        if entry.kind is Kind.TURN_COMPLETED and not quiet:
            click.echo()
        if entry.kind is Kind.APPROVAL_ASKED or _closes(entry):
            return str(entry.data.get("text", ""))
    return ""


def outcome(turn: TurnView, said: str) -> str:
    """Say what became of a turn that has no whole answer, and how to go on."""
    if turn.state is State.WAITING:
        return f"the turn waits for an answer: {said}; answer with `holdfast turns answer {turn.id} TEXT`"
    if turn.state is State.INTERRUPTED:
        return f"the answer was cut off ({turn.cause}); go on with `holdfast turns retry {turn.id}`"
    return f"the turn is {turn.state}: {turn.error or turn.cause}"


@click.command()
@click.option(
    "--session", "key", default=DEFAULT_KEY, show_default=True, help="The conversation to continue: its key or id."
)
@click.pass_obj
@run_async
async def chat(frame: Frame, key: str) -> None:
    """Chat in the terminal.  Ctrl-C stops an answer, Ctrl-D leaves."""
    async with frame.desk() as desk:
        where = visible(f" · session {key} · {tilde(frame.home)} · Ctrl-D leaves")
        console.print(Text.assemble(("Holdfast", "bold"), (where, "dim")))
        session = await _session(desk, key)
        transcript = await desk.transcript(session.id)
        for item in transcript.items[-_SHOWN_AT_START:]:
            print_item(item)
        question = await _unanswered(desk, transcript)
        if question and question is not transcript.items[-1]:
            print_item(question)
        while (text := await _read_line()) is not None:
            if not text.strip():
                continue
            if question:
                session, question = await _catch_up(desk, transcript, question, text), None
            else:
                session = await _converse(desk, session, text)
        console.print()


async def _unanswered(desk: Desk, transcript: Transcript) -> Item | None:
    """Return the question that a turn still waits with."""
    last = next((item for item in reversed(transcript.items) if item.role is Role.QUESTION), None)
    if last is None or last.kind != "asked":
        return None
    return last if (await desk.turn(last.turn_id)).state is State.WAITING else None


async def _catch_up(desk: Desk, transcript: Transcript, question: Item, text: str) -> SessionView:
    """Answer a question of earlier and show what comes of it; returns the session as it is afterwards."""
    session = transcript.session
    try:
        await desk.answer(question.turn_id, text)
        await _show(desk, _Place(session_id=session.id, turn_id=question.turn_id, after=transcript.seq))
        return await desk.session(session.id)
    except (Rejected, Unavailable) as error:
        say(str(error), "yellow")
        return session


async def _converse(desk: Desk, session: SessionView, text: str) -> SessionView:
    """Send one message and show what comes of it; returns the session as it is afterwards."""
    try:
        receipt = await desk.send(session.id, text)
        if receipt.reply is not None:
            say(receipt.reply, "dim")
        if receipt.turn_id:
            await _show(desk, _Place.of(session, receipt))
        return await desk.session(receipt.session_id) if receipt.session_id else session
    except (Rejected, Unavailable) as error:
        say(str(error), "yellow")
        return session


async def _show(desk: Desk, place: _Place) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, stopping.set)
    stopper = asyncio.create_task(_stop_on(stopping, desk, place.turn_id))
    try:
        async for entry in _entries(desk, place):
            _print_live(entry)
            if entry.kind is Kind.APPROVAL_ASKED:
                await _reply(desk, entry.turn_id)
    finally:
        stopper.cancel()
        loop.remove_signal_handler(signal.SIGINT)
    console.print()


async def _reply(desk: Desk, turn_id: TurnId) -> None:
    """Let the person answer the question that a turn waits for; leaving cancels it."""
    text = await _read_line()
    if text is None:
        await desk.cancel(turn_id)
    else:
        await desk.answer(turn_id, text)


async def _stop_on(stopping: asyncio.Event, desk: Desk, turn_id: TurnId) -> None:
    """Cancel a turn, which is the one that it joined where it did, each time that somebody wants to."""
    while await stopping.wait():
        stopping.clear()
        with contextlib.suppress(Rejected, Unavailable):
            await desk.cancel(turn_id)


async def _entries(desk: Desk, place: _Place) -> AsyncGenerator[Entry]:
    """Yield the entries of one turn until it comes to rest."""
    turn_id = place.turn_id
    async with contextlib.aclosing(desk.follow(place.session_id, place.after)) as entries:
        async for entry in entries:
            if entry.turn_id != turn_id:
                continue
            if host := entry.data.get("joined"):
                # The message became part of the turn that was running, and is answered there.
                turn_id = TurnId(str(host))
                continue
            yield entry
            if _closes(entry):
                return


def _closes(entry: Entry) -> bool:
    return entry.kind in _CLOSING and not entry.data.get("continues")


def _print_live(entry: Entry) -> None:
    match entry.kind:
        case Kind.TEXT:
            say(str(entry.data["text"]), end="", soft_wrap=True)
        case Kind.REASONING:
            say(str(entry.data["text"]), "dim italic")
        case Kind.TOOL_FINISHED:
            name, outcome, result = (entry.data.get(key) for key in ("name", "outcome", "result"))
            say(f"⚙ {name}  {outcome}  {result}", "magenta")
        case Kind.APPROVAL_ASKED | Kind.NOTE | Kind.TURN_FAILED | Kind.TURN_CANCELLED | Kind.TURN_INTERRUPTED:
            console.print()
            for item in fold([entry]):
                print_item(item)
        case _:
            pass


async def _read_line() -> str | None:
    """Return what the person types; None when they leave."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str | None] = loop.create_future()

    def read() -> None:
        try:
            line = input("\n› ")
        except (EOFError, OSError):
            line = None
        # Whoever left with Ctrl-C waits for no line any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: typed.done() or typed.set_result(line))

    # A thread that nobody waits for at the end, because nothing but another key could wake it up.
    threading.Thread(target=read, daemon=True).start()
    return await typed
