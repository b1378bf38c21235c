"""`holdfast channels`: accounts of chat platforms, and how each stands with its platform."""

from __future__ import annotations

import click

from holdfast.cli.frame import EXIT_FAILED, Frame, moment, print_json, print_table, print_view, say, with_json

_NONE = "No chat accounts yet. Add one on the page, or as [channels.telegram] in holdfast.toml."


@click.group()
def channels() -> None:
    """Accounts of chat platforms."""


@channels.command("list")
@with_json
async def list_(frame: Frame, as_json: bool) -> None:
    """List all accounts with their state."""
    async with frame.reading_services() as services:
        page = await services.channels.list()
    if as_json:
        print_json(page)
        return
    lines = [
        (each.name, each.kind, each.state.value if each.enabled else "disabled",
         moment(each.last_receive_at) if each.last_receive_at else "never", str(each.pending_deliveries), each.problem or "")
        for each in page.items
    ]  # fmt: skip
    print_table(("account", "kind", "state", "last heard", "to send", "problem"), lines, _NONE)


@channels.command()
@click.argument("name")
@with_json
async def show(frame: Frame, name: str, as_json: bool) -> None:
    """Show the account NAME."""
    async with frame.reading_services() as services:
        account = await services.channels.get(name)
    print_view("account", account, as_json)


@channels.command()
@click.argument("name")
@with_json
async def test(frame: Frame, name: str, as_json: bool) -> None:
    """Ask the platform of NAME who the account is."""
    async with frame.services() as services:
        trial = await services.channels.test(name)
    if as_json:
        print_json(trial)
    elif trial.ok:
        say(f"{name} is {trial.bot_name or trial.bot_id}{f', {trial.bot_url}' if trial.bot_url else ''}.")
    else:
        say(f"{name}: {trial.problem}", "red")
        say(trial.hint or "", "dim")
    if not trial.ok:
        raise SystemExit(EXIT_FAILED)
