"""`holdfast ask` and `holdfast chat`: talk to the agent, with the gateway embedded in this process."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

import click

from holdfast.app import gateway
from holdfast.cli.frame import EXIT_FAILED, Frame, console, json_option, print_json, run_async
from holdfast.cli.sessions import OWNER, print_item
from holdfast.cli.turns import receipt
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.journal import CLOSING, Entry, Kind
from holdfast.core.transcript import fold
from holdfast.core.turns import State
from holdfast.engine.engine import Engine
from holdfast.errors import Rejected
from holdfast.ids import TurnId
from holdfast.store.opening import Store

_CLOSING = frozenset(CLOSING.values())
DEFAULT_KEY = "terminal"
_SHOWN_AT_START = 6


@click.command()
@click.argument("text")
@click.option("--session", "key", default=DEFAULT_KEY, show_default=True, help="The conversation to continue.")
@json_option
@click.pass_obj
@run_async
async def ask(frame: Frame, text: str, key: str, as_json: bool) -> None:
    """Ask one question: the answer goes to stdout, and the exit code tells success."""
    async with gateway(frame.config, frame.home) as (engine, store):
        accepted = await engine.inbox.accept(_message(key, text))
        answer = [entry async for entry in _entries(engine, accepted) if await _print_text(entry, quiet=as_json)]
        turn = await store.turns.get(accepted.turn_id)
        if as_json:
            print_json({**await receipt(store, turn), "text": answer[-1].data.get("text", "")})
        elif turn.state is not State.COMPLETED:
            click.echo(f"holdfast: the turn is {turn.state}: {turn.error or turn.cause}", err=True)
    if turn.state is not State.COMPLETED:
        sys.exit(EXIT_FAILED)


@click.command()
@click.option("--session", "key", default=DEFAULT_KEY, show_default=True, help="The conversation to continue.")
@click.pass_obj
@run_async
async def chat(frame: Frame, key: str) -> None:
    """Chat in the terminal.  Ctrl-C stops an answer, Ctrl-D leaves."""
    async with gateway(frame.config, frame.home) as (engine, store):
        console.print(f"[bold]Holdfast[/bold] [dim]· session {key} · {_short(frame.home)} · Ctrl-D leaves[/dim]")
        await _show_tail(store, key)
        while (text := await _read_line()) is not None:
            if text.strip():
                await _converse(engine, await _accept(engine, key, text))
        console.print()


async def _accept(engine: Engine, key: str, text: str) -> Receipt | None:
    try:
        return await engine.inbox.accept(_message(key, text))
    except Rejected as error:
        console.print(f"[yellow]{error}[/yellow]")
        return None


async def _converse(engine: Engine, accepted: Receipt | None) -> None:
    if accepted is None:
        return
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, stopping.set)
    stopper = asyncio.create_task(_stop_on(stopping, engine, accepted.turn_id))
    try:
        async for entry in _entries(engine, accepted):
            _print_live(entry)
    finally:
        stopper.cancel()
        loop.remove_signal_handler(signal.SIGINT)
    console.print()


async def _stop_on(stopping: asyncio.Event, engine: Engine, turn_id: TurnId) -> None:
    await stopping.wait()
    with contextlib.suppress(Rejected):
        await engine.cancel(turn_id)


def _message(key: str, text: str) -> Inbound:
    return Inbound(conversation=key, text=text, channel="terminal", owner=OWNER)


async def _entries(engine: Engine, accepted: Receipt):
    """Yield the entries of one turn until it comes to rest."""
    async for entry in engine.feed.follow(accepted.session_id):
        if entry.turn_id != accepted.turn_id:
            continue
        yield entry
        if entry.kind in _CLOSING and not entry.data.get("continues"):
            return


async def _print_text(entry: Entry, *, quiet: bool) -> bool:
    """Print a piece of the answer; True for the entry that closes the turn."""
    if entry.kind is Kind.TEXT and not quiet:
        click.echo(str(entry.data["text"]), nl=False)
    if entry.kind is Kind.TURN_COMPLETED and not quiet:
        click.echo()
    return entry.kind in _CLOSING


def _print_live(entry: Entry) -> None:
    match entry.kind:
        case Kind.TEXT:
            console.print(str(entry.data["text"]), end="", markup=False, soft_wrap=True)
        case Kind.REASONING:
            console.print(str(entry.data["text"]), style="dim italic", markup=False)
        case Kind.TOOL_FINISHED:
            name, outcome, result = (entry.data.get(key) for key in ("name", "outcome", "result"))
            console.print(f"⚙ {name}  {outcome}  {result}", style="magenta", markup=False)
        case Kind.TURN_FAILED | Kind.TURN_CANCELLED | Kind.TURN_INTERRUPTED:
            console.print()
            for item in fold([entry]):
                print_item(item)
        case _:
            pass


async def _show_tail(store: Store, key: str) -> None:
    session = await store.sessions.find(OWNER, key)
    if session:
        for item in fold(await store.journal.read(session.id, limit=1_000_000))[-_SHOWN_AT_START:]:
            print_item(item)


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


async def _read_line() -> str | None:
    try:
        return await asyncio.to_thread(input, "\n› ")
    except (EOFError, KeyboardInterrupt):
        return None
