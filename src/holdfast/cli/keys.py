"""`holdfast keys`: keys that programs use the API with."""

from __future__ import annotations

import secrets
import sys

import click

from holdfast.cli.frame import Frame, moment, print_json, print_table, say, with_json
from holdfast.config import weakness
from holdfast.core.keys import API, LOCAL
from holdfast.errors import Rejected
from holdfast.operations.keys import KeyPlan
from holdfast.passwords import SALT_BYTES, hashed

_FIRST = (
    "It is the first one: from now on a key, or a browser that is signed in (holdfast link), is needed on this machine too. "
    "The command line needs none."
)
_LAST = "It was the last one: this machine needs no key any more. Others are not let in."


@click.group()
def keys() -> None:
    """Keys for programs.  Each is shown once, and stored as a digest."""


@keys.command()
@click.argument("name", default="")
@click.option("--scope", "scopes", multiple=True, help="api (default), admin or webhook:ROUTE.  Can be repeated.")
@click.option("--owner", default=LOCAL, show_default=True, help="The owner of the sessions that it can see and create.")
@click.option("--rate-limit", type=click.IntRange(0), default=0, help="Requests per minute (default: no limit).")
@with_json
async def create(frame: Frame, name: str, scopes: tuple[str, ...], owner: str, rate_limit: int, as_json: bool) -> None:
    """Create a key and show it once."""
    plan = KeyPlan(name=name, scopes=scopes or (API,), owner=owner, rate_limit=rate_limit)
    async with frame.services() as services:
        made = await services.keys.create(plan)
    if as_json:
        print_json(made)
        return
    # On a line of its own, so that a script can use it without JSON.
    click.echo(made.key)
    say("Keep it now: it is not shown again.", "dim")
    say(f"Revoke it with: holdfast keys revoke {made.made.prefix}", "dim")
    if made.first:
        say(_FIRST, "yellow")


@keys.command("list")
@click.option("--all", "every", is_flag=True, help="Also revoked keys.")
@with_json
async def list_(frame: Frame, every: bool, as_json: bool) -> None:
    """List keys by their first characters."""
    async with frame.reading_services() as services:
        page = await services.keys.list()
    if as_json:
        print_json(page)
        return
    lines = [
        (each.prefix, each.name, each.owner, ", ".join(each.scopes), _rate(each.rate_limit),
         f"revoked {moment(each.revoked_at)}" if each.revoked_at else moment(each.created_at))
        for each in page.items
        if every or each.revoked_at is None
    ]  # fmt: skip
    columns = ("begins with", "name", "owner", "scopes", "a minute", "when")
    print_table(columns, lines, "There are no keys. Make one with: holdfast keys create NAME")


@keys.command()
@click.argument("key")
@with_json
async def revoke(frame: Frame, key: str, as_json: bool) -> None:
    """Revoke KEY: its id, its name or its first characters."""
    async with frame.services() as services:
        gone = await services.keys.revoke(key)
    if as_json:
        print_json(gone)
        return
    say(f"{gone.revoked.id} is revoked.")
    if gone.last:
        say(_LAST, "yellow")


@keys.command()
def password() -> None:
    """Ask for a password and print its hash, for server.password."""
    typed = _typed()
    if problem := weakness(typed):
        raise Rejected(f"the password {problem}")
    click.echo(hashed(typed, secrets.token_bytes(SALT_BYTES)))


def _typed() -> str:
    if sys.stdin.isatty():
        return click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return sys.stdin.readline().rstrip("\n")


def _rate(per_minute: int) -> str:
    return str(per_minute) if per_minute else "any"
