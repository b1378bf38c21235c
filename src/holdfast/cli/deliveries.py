"""`holdfast deliveries`: messages to other systems, and what is known of their arrival."""

from __future__ import annotations

import click

from holdfast.cli.frame import (
    Frame,
    limit_option,
    moment,
    print_fields,
    print_json,
    print_outcome,
    print_table,
    with_json,
)
from holdfast.cli.sessions import find
from holdfast.core.delivery import DeliveryState
from holdfast.ids import DeliveryId

WHY_MAX_CHARS = 100


@click.group()
def deliveries() -> None:
    """Messages on their way to other systems."""


@deliveries.command("list")
@click.option("--session", help="Only those of this session (its id or its key).")
@click.option("--state", type=click.Choice([each.value for each in DeliveryState]), help="Only those in this state.")
@limit_option(50)
@click.option("--cursor", help="Continue after an earlier page.")
@with_json
async def list_(frame: Frame, session: str | None, state: str | None, limit: int, cursor: str | None, as_json: bool) -> None:
    """List deliveries, the newest first."""
    async with frame.reading_services() as services:
        session_id = (await find(services, session)).id if session else None
        chosen = DeliveryState(state) if state else None
        page = await services.deliveries.list(state=chosen, session_id=session_id, cursor=cursor, limit=limit)
    if as_json:
        print_json(page)
        return
    lines = [
        (each.id, each.state.value, each.target, str(each.attempt), moment(each.next_try_at), _why(each.error))
        for each in page.items
    ]
    print_table(("delivery", "state", "target", "tries", "next", "why"), lines, "There are no such deliveries.")


@deliveries.command()
@click.argument("delivery")
@with_json
async def show(frame: Frame, delivery: str, as_json: bool) -> None:
    """Show one DELIVERY."""
    async with frame.reading_services() as services:
        found = await services.deliveries.get(DeliveryId(delivery))
    if as_json:
        print_json(found)
    else:
        # For a delivery that is over, this is only the time of its last try.
        print_fields("delivery", found, without=("due_at",) if found.next_try_at is None else ())


@deliveries.command()
@click.argument("delivery")
@with_json
async def retry(frame: Frame, delivery: str, as_json: bool) -> None:
    """Send DELIVERY again after it was given up."""
    async with frame.services() as services:
        found = await services.deliveries.retry(DeliveryId(delivery))
    print_outcome(found, f"{found.id} is sent again now; see: holdfast deliveries show {found.id}", as_json, soft_wrap=True)


def _why(error: str | None) -> str:
    """Return the beginning of an error; `show` has all of it."""
    error = error or ""
    return f"{error[:WHY_MAX_CHARS]}…" if len(error) > WHY_MAX_CHARS else error
