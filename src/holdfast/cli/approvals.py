"""`holdfast approvals`: open questions, and actions that are allowed without asking."""

from __future__ import annotations

import click

from holdfast.cli.answer import rested
from holdfast.cli.cards import decided, how_to_answer, question, shortened
from holdfast.cli.frame import Frame, console, limit_option, moment, print_json, print_outcome, print_table, say, with_json
from holdfast.cli.sessions import find as find_session
from holdfast.core.questions import About, Decision
from holdfast.errors import Rejected
from holdfast.operations.approvals import find
from holdfast.operations.turns import Answer

_TEXT_MAX = 120

LENGTHS = (Decision.ONCE.value, Decision.SESSION.value, Decision.ALWAYS.value)


@click.group()
def approvals() -> None:
    """Questions that wait for you, and actions that you have allowed."""


@approvals.command("list")
@click.option("--session", help="Only those of this session (its id or its key).")
@limit_option(50)
@click.option("--cursor", help="Continue after an earlier page.")
@with_json
async def list_(frame: Frame, session: str | None, limit: int, cursor: str | None, as_json: bool) -> None:
    """List open questions, the oldest first."""
    async with frame.reading_services() as services:
        session_id = (await find_session(services, session)).id if session else None
        page = await services.approvals.list(session_id=session_id, cursor=cursor, limit=limit)
    if as_json:
        print_json(page)
        return
    if not page.items:
        say("Nothing waits for you.", "dim")
    for each in page.items:
        console.print(question(each))
        until = f", until {moment(each.expires_at)}" if each.expires_at else ""
        say(f"  {each.id}  asked {moment(each.asked_at)}{until}; {how_to_answer(each)}\n", "dim")
    if page.next_cursor and len(page.items) == limit:
        say(f"There may be more; go on with --cursor {page.next_cursor}", "dim")


@approvals.command()
@click.argument("approval")
@click.option(
    "--for",
    "length",
    type=click.Choice(LENGTHS),
    default=LENGTHS[0],
    show_default=True,
    help="Only this time, in this session, or always.",
)
@with_json
async def approve(frame: Frame, approval: str, length: str, as_json: bool) -> None:
    """Allow the action of APPROVAL: its id, the beginning of its id, or its turn."""
    await _decide(frame, approval, Decision(length), as_json)


@approvals.command()
@click.argument("approval")
@with_json
async def deny(frame: Frame, approval: str, as_json: bool) -> None:
    """Refuse the action of APPROVAL; the turn continues without it."""
    await _decide(frame, approval, Decision.DENY, as_json)


async def _decide(frame: Frame, name: str, decision: Decision, as_json: bool) -> None:
    async with frame.services() as services:
        asked = await find(services.approvals, name)
        if asked.about is About.ANSWER:
            raise Rejected(f"{asked.id} is a question, not an approval: {asked.text}; {how_to_answer(asked)}")
        said = decided(asked, yes=decision is not Decision.DENY, length=decision)
        await services.turns.answer(asked.turn_id, Answer(text=said, question_id=asked.question_id))
        turn = await rested(services, asked.turn_id)
    print_outcome(
        {"id": asked.id, "decision": decision, "turn": turn},
        f"{asked.id}: {_SAID[decision]} The turn is {turn.state}.",
        as_json,
    )


_SAID = {
    Decision.ONCE: "allowed this once.",
    Decision.SESSION: "allowed in this session.",
    Decision.ALWAYS: "allowed from now on; take it back with `holdfast approvals revoke`.",
    Decision.DENY: "denied.",
}


@approvals.command()
@with_json
async def grants(frame: Frame, as_json: bool) -> None:
    """List the actions that you have allowed for a session or for ever."""
    async with frame.reading_services() as services:
        page = await services.approvals.grants()
    if as_json:
        print_json(page)
        return
    lines = [
        (each.id, each.session_id or "every session", moment(each.granted_at), shortened(each.text, _TEXT_MAX))
        for each in page.items
    ]
    print_table(("grant", "session", "when", "what"), lines, "You have allowed nothing for longer than once.")


@approvals.command()
@click.argument("grant")
@with_json
async def revoke(frame: Frame, grant: str, as_json: bool) -> None:
    """Revoke GRANT, so that you are asked again."""
    async with frame.services() as services:
        taken = await services.approvals.revoke(grant)
    print_outcome(taken, f"{taken.id} is taken back: {shortened(taken.text, _TEXT_MAX)}", as_json)
