"""`holdfast turns`: receipts."""

from __future__ import annotations

import click

from holdfast.app import reader
from holdfast.cli.frame import Frame, json_option, moment, print_json, print_table, run_async
from holdfast.cli.sessions import find
from holdfast.core.turns import Turn
from holdfast.ids import TurnId
from holdfast.store.opening import Store


@click.group()
def turns() -> None:
    """Receipts: accepted, started, answered, delivered."""


@turns.command("list")
@click.argument("session")
@click.option("--limit", default=100, show_default=True)
@json_option
@click.pass_obj
@run_async
async def list_(frame: Frame, session: str, limit: int, as_json: bool) -> None:
    """List the turns of SESSION (its id or its key) in the order of their acceptance."""
    async with reader(frame.config, frame.home) as store:
        found = await store.turns.list((await find(store, session)).id, limit=limit)
        receipts = [await receipt(store, turn) for turn in found]
    if as_json:
        print_json({"items": receipts, "next_cursor": None})
        return
    lines = [
        (turn.id, turn.state.value, turn.cause or "", moment(turn.accepted_at), moment(turn.answered_at)) for turn in found
    ]
    print_table(("turn", "state", "cause", "accepted", "answered"), lines, "No turns in this session.")


@turns.command()
@click.argument("turn")
@json_option
@click.pass_obj
@run_async
async def show(frame: Frame, turn: str, as_json: bool) -> None:
    """Show the receipt of TURN."""
    async with reader(frame.config, frame.home) as store:
        shown = await receipt(store, await store.turns.get(TurnId(turn)))
    if as_json:
        print_json(shown)
        return
    lines = [
        (name, moment(value) if name.endswith("_at") and isinstance(value, int | None) else str(value))
        for name, value in shown.items()
        if value is not None or name.endswith("_at")
    ]
    print_table(("receipt", ""), lines, "")


async def receipt(store: Store, turn: Turn) -> dict[str, object]:
    """Return a turn as scripts see it."""
    return {
        "id": turn.id,
        "session_id": turn.session_id,
        "state": turn.state.value,
        "cause": turn.cause,
        "attempt": turn.attempt,
        "accepted_at": turn.accepted_at,
        "started_at": turn.started_at,
        "answered_at": turn.answered_at,
        "delivered_at": await store.turns.delivered_at(turn.id),
        "error": turn.error,
    }
