"""`holdfast pair`: people who ask to be let in on a chat channel, and those who are."""

from __future__ import annotations

import click

from holdfast.cli.cards import shortened
from holdfast.cli.frame import Frame, moment, print_json, print_outcome, print_table, say, with_json
from holdfast.core.people import ROLES, TOLD, Choice, Role
from holdfast.operations.people import Approval, PairingView, PersonView, RoleChange, SettledPairing

MESSAGE_MAX_CHARS = 40
_AS = [choice.value for choice in ROLES]


@click.group()
def pair() -> None:
    """People who ask to be let in on a chat channel, and those who are."""


@pair.command("list")
@with_json
async def list_(frame: Frame, as_json: bool) -> None:
    """List the people who ask, and those who are let in."""
    async with frame.reading_services() as services:
        pairings, people = await services.pairings.list(), await services.people.list()
    if as_json:
        print_json({"items": pairings.items, "next_cursor": None, "people": people.items})
        return
    _print_pairings(list(pairings.items))
    say("")
    _print_people(list(people.items))


@pair.command()
@click.argument("code")
@click.option("--as", "choice", type=click.Choice(_AS), default=Choice.GUEST.value, show_default=True, help="What they are.")
@with_json
async def approve(frame: Frame, code: str, choice: str, as_json: bool) -> None:
    """Let the person in who has CODE (or whose request has that id).

    me: it is you, and their chats are yours.  trusted: a person with the tools of this machine.  guest: a person with tools
    that use their own data only.
    """
    async with frame.services() as services:
        settled = await services.pairings.approve(code, Approval(role=ROLES[Choice(choice)]))
    _print_settled(settled, as_json)


@pair.command()
@click.argument("code")
@with_json
async def deny(frame: Frame, code: str, as_json: bool) -> None:
    """Refuse the person who has CODE (or whose request has that id)."""
    async with frame.services() as services:
        settled = await services.pairings.deny(code)
    _print_settled(settled, as_json)


@pair.command()
@click.argument("person")
@with_json
async def revoke(frame: Frame, person: str, as_json: bool) -> None:
    """Let PERSON in no longer, as `holdfast pair list` names them: ACCOUNT:USER."""
    async with frame.services() as services:
        revoked = await services.people.revoke(person)
    print_outcome(revoked, f"{revoked.revoked} is not let in any more.", as_json)


@pair.command()
@click.argument("person")
@click.argument("role", type=click.Choice([each.value for each in Role]))
@with_json
async def role(frame: Frame, person: str, role: str, as_json: bool) -> None:
    """Give PERSON another ROLE."""
    async with frame.services() as services:
        changed = await services.people.change(person, RoleChange(role=Role(role)))
    print_outcome(changed, f"{changed.person} is {changed.role.value} from the next message on.", as_json)


def _print_pairings(pairings: list[PairingView]) -> None:
    lines = [
        (each.account, each.user_name, each.user_id, moment(each.expires_at), shortened(each.message, MESSAGE_MAX_CHARS))
        for each in pairings
    ]
    columns = ("asks on", "name", "user", "until", "wrote")
    print_table(columns, lines, "Nobody asks to be let in.")
    if pairings:
        say("Let one in with the code that they were shown: holdfast pair approve CODE --as guest", "dim")


def _print_people(people: list[PersonView]) -> None:
    lines = [
        (each.person, each.user_name, each.role.value, moment(each.approved_at) if each.approved_at else "by allow",
         moment(each.last_seen_at) if each.last_seen_at else "never")
        for each in people
    ]  # fmt: skip
    print_table(("person", "name", "role", "let in", "last seen"), lines, "Nobody is let in yet.")


def _print_settled(settled: SettledPairing, as_json: bool) -> None:
    print_outcome(settled, TOLD[settled.choice].format(settled.person), as_json)
