"""`holdfast turns`: receipts."""

from __future__ import annotations

import click

from holdfast.cli.answer import rested
from holdfast.cli.frame import (
    Frame,
    count,
    limit_option,
    moment,
    print_json,
    print_outcome,
    print_table,
    print_view,
    say,
    with_json,
)
from holdfast.cli.sessions import find
from holdfast.ids import TurnId
from holdfast.operations import pages
from holdfast.operations.turns import Answer, TurnView


@click.group()
def turns() -> None:
    """Messages and their state: accepted, started, answered, delivered."""


@turns.command("list")
@click.argument("session")
@limit_option(100)
@click.option("--cursor", help="Continue after an earlier page.")
@with_json
async def list_(frame: Frame, session: str, limit: int, cursor: str | None, as_json: bool) -> None:
    """List the newest turns of SESSION (its id or its key) in order of acceptance.

    As JSON, and with a cursor, they are pages that begin with the oldest.
    """
    async with frame.reading_services() as services:
        found = await find(services, session)
        # The turns of a session are numbered without a gap.
        earlier = 0 if cursor or as_json else max(found.turns - pages.size(limit), 0)
        page = await services.turns.list(found.id, cursor=pages.after((earlier, "")) if earlier else cursor, limit=limit)
    if as_json:
        print_json(page)
        return
    if earlier:
        say(f"{count(earlier, 'earlier turn')} not shown; see more with --limit, or begin with --cursor 0~", "dim")
    lines = [
        (turn.id, turn.state.value, _why(turn), moment(turn.accepted_at), moment(turn.answered_at)) for turn in page.items
    ]
    print_table(("turn", "state", "cause", "accepted", "answered"), lines, "No turns in this session.")
    last = pages.position(page.next_cursor)
    if last and last[0] < found.turns:
        say(f"There are more; go on with --cursor {page.next_cursor}", "dim")


@turns.command()
@click.argument("turn")
@with_json
async def show(frame: Frame, turn: str, as_json: bool) -> None:
    """Show the receipt of TURN."""
    async with frame.reading_services() as services:
        receipt = await services.turns.get(TurnId(turn))
    print_view("receipt", receipt, as_json)


@turns.command()
@click.argument("turn")
@with_json
async def cancel(frame: Frame, turn: str, as_json: bool) -> None:
    """Cancel TURN on any node.  What it has shown stays."""
    async with frame.services() as services:
        _tell(await services.turns.cancel(TurnId(turn)), as_json)


@turns.command()
@click.argument("turn")
@with_json
async def retry(frame: Frame, turn: str, as_json: bool) -> None:
    """Continue an interrupted TURN, or send the message of a finished one again."""
    async with frame.services() as services:
        again = await services.turns.retry(TurnId(turn))
        _tell(await rested(services, again.id), as_json)


@turns.command()
@click.argument("turn")
@click.argument("text")
@with_json
async def answer(frame: Frame, turn: str, text: str, as_json: bool) -> None:
    """Answer the question of TURN."""
    async with frame.services() as services:
        answered = await services.turns.answer(TurnId(turn), Answer(text=text))
        _tell(await rested(services, answered.id), as_json)


def _why(turn: TurnView) -> str:
    return f"model; next try {moment(turn.retry_at)}" if turn.retry_at else turn.cause or ""


def _tell(turn: TurnView, as_json: bool) -> None:
    print_outcome(turn, f"{turn.id} is {turn.state}.", as_json)
