"""`holdfast sessions`: conversations."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from holdfast.cli import cards
from holdfast.cli.answer import conclude
from holdfast.cli.frame import (
    Frame,
    console,
    limit_option,
    moment,
    print_json,
    print_outcome,
    print_table,
    print_text,
    say,
    spinning,
    with_json,
)
from holdfast.core import notes
from holdfast.core.search import fold
from holdfast.core.sessions import TITLE, Activity, SessionState
from holdfast.core.transcript import COMPACTED, Item, Role
from holdfast.ids import SessionId, TurnId
from holdfast.operations.conversation import SessionView, Transcript
from holdfast.operations.export import ExportFormat, written
from holdfast.operations.services import Services
from holdfast.operations.sessions import Change, Fork, Pruning, looks_like_id

# Generated keys, such as those of helpers and jobs, are long; a list shows only their beginning.
_KEY_MAX = 24
_STYLES = {Role.REASONING: "dim italic", Role.MARKER: "magenta", Role.NOTE: "dim", Role.QUESTION: "bold"}


@click.group()
def sessions() -> None:
    """Conversations."""


@sessions.command("list")
@limit_option(20)
@click.option("--state", type=click.Choice([each.value for each in SessionState]), help="Only those in this state.")
@click.option("--channel", help="Only those of this channel, e.g. webhook, or of this chat account.")
@click.option("--archived/--no-archived", default=None, help="Only archived sessions, or only the others.")
@click.option("--cursor", help="Continue after an earlier page.")
@with_json
async def list_(
    frame: Frame,
    limit: int,
    state: str | None,
    channel: str | None,
    archived: bool | None,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List sessions, the last used first."""
    chosen = SessionState(state) if state else None
    async with frame.reading_services() as services:
        look = partial(services.sessions.list, state=chosen, channel=channel, archived=archived)
        page = await look(cursor=cursor, limit=limit)
        # A full page may be the last.
        more = page.next_cursor and (await look(cursor=page.next_cursor, limit=1)).items
    if as_json:
        print_json(page)
        return
    lines = [
        (
            each.id,
            cards.shortened(each.key, _KEY_MAX),
            _mood(each),
            str(each.turns),
            moment(each.updated_at),
            each.title or "",
        )
        for each in page.items
    ]
    columns = ("session", "key", "state", "turns", "last used", "title")
    if not any(each.title for each in page.items):
        # A narrow terminal has no room for it.
        columns, lines = columns[:-1], [line[:-1] for line in lines]
    print_table(columns, lines, "No sessions yet. Try: holdfast ask hello")
    if more:
        say(f"There are more; go on with --cursor {page.next_cursor}", "dim")


@sessions.command()
@click.argument("session")
@with_json
async def show(frame: Frame, session: str, as_json: bool) -> None:
    """Show the transcript of SESSION (its id or its key), with its source and the model that was chosen for it."""
    async with frame.reading_services() as services:
        transcript = await services.sessions.transcript((await find(services, session)).id)
        retry_at = await _retry_at(services, transcript)
    if as_json:
        print_json(transcript)
        return
    _print_origin(transcript.session)
    for item in transcript.items:
        print_item(item)
    if retry_at:
        say(f"Waiting for the model. Next try at {moment(retry_at)}.", "yellow")


@sessions.command()
@click.argument("words", nargs=-1, required=True)
@limit_option(20)
@with_json
async def search(frame: Frame, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find messages, answers and titles that have all WORDS, or words that begin with them."""
    async with frame.reading_services() as services:
        hits = await services.sessions.search(" ".join(words), limit=limit)
    if as_json:
        print_json(hits)
        return
    lines = [
        (hit.session_id, moment(hit.at), "title" if hit.kind == TITLE else "", _around(hit.text, words[0]))
        for hit in hits.items
    ]
    print_table(("session", "when", "", "text"), lines, "Nothing found.")
    if hits.indexing:
        click.echo("What was said is still being indexed: something older may be missing.", err=True)


@sessions.command()
@click.argument("session")
@click.option(
    "--format",
    "form",
    type=click.Choice([each.value for each in ExportFormat]),
    default=ExportFormat.MARKDOWN.value,
    show_default=True,
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file instead of stdout.")
@with_json
async def export(frame: Frame, session: str, form: str, output: Path | None, as_json: bool) -> None:
    """Write the whole conversation of SESSION as Markdown or JSON."""
    async with frame.reading_services() as services:
        transcript = await services.sessions.transcript((await find(services, session)).id)
    text = written(transcript, ExportFormat.JSON if as_json else ExportFormat(form))
    if output:
        output.write_text(text, "utf-8")
    else:
        print_text(text)


@sessions.command()
@click.argument("session")
@with_json
async def end(frame: Frame, session: str, as_json: bool) -> None:
    """End SESSION for good; its next message starts a new one."""
    async with frame.services() as services:
        _tell(await services.sessions.end((await find(services, session)).id), as_json)


@sessions.command()
@click.argument("session")
@with_json
async def suspend(frame: Frame, session: str, as_json: bool) -> None:
    """Suspend SESSION: its turns are cancelled, and its next message starts a new one."""
    async with frame.services() as services:
        _tell(await services.sessions.suspend((await find(services, session)).id), as_json)


@sessions.command()
@click.argument("session")
@click.argument("title")
@with_json
async def rename(frame: Frame, session: str, title: str, as_json: bool) -> None:
    """Give SESSION a title."""
    async with frame.services() as services:
        _tell(await services.sessions.change((await find(services, session)).id, Change(title=title)), as_json)


@sessions.command()
@click.argument("session")
@click.option("--off", is_flag=True, help="Undo it.")
@with_json
async def pin(frame: Frame, session: str, off: bool, as_json: bool) -> None:
    """Pin SESSION to the top of the list."""
    async with frame.services() as services:
        _tell(await services.sessions.change((await find(services, session)).id, Change(pinned=not off)), as_json)


@sessions.command()
@click.argument("session")
@click.option("--off", is_flag=True, help="Undo it.")
@with_json
async def archive(frame: Frame, session: str, off: bool, as_json: bool) -> None:
    """Archive SESSION: hide it from the list without deleting it."""
    async with frame.services() as services:
        _tell(await services.sessions.change((await find(services, session)).id, Change(archived=not off)), as_json)


@sessions.command()
@click.argument("session")
@click.option("--through", help="Copy the conversation up to and including this turn (default: all of it).")
@click.option("--before", help="Copy what came before this turn.")
@with_json
async def fork(frame: Frame, session: str, through: str | None, before: str | None, as_json: bool) -> None:
    """Copy SESSION into a new session that continues separately."""
    last, next_ = TurnId(through) if through else None, TurnId(before) if before else None
    async with frame.services() as services:
        _tell(await services.sessions.fork((await find(services, session)).id, Fork(through=last, before=next_)), as_json)


@sessions.command()
@click.argument("session")
@with_json
async def compact(frame: Frame, session: str, as_json: bool) -> None:
    """Summarise SESSION for the agent.  Nothing is deleted."""
    async with frame.services() as services:
        found = await find(services, session)
        await conclude(services, found, await services.sessions.compact(found.id), as_json)


@sessions.command()
@click.argument("session")
@with_json
async def delete(frame: Frame, session: str, as_json: bool) -> None:
    """Delete SESSION with everything in it."""
    async with frame.services() as services:
        found = await find(services, session)
        await services.sessions.delete(found.id)
    print_outcome({"deleted": found.id}, f"{found.id} ({found.key}) is deleted.", as_json)


@sessions.command()
@click.option("--older-than-days", "days", type=click.FloatRange(0), default=30, show_default=True)
@click.option("--channel", required=True, help="Sessions of this channel, e.g. webhook.")
@with_json
async def prune(frame: Frame, days: float, channel: str, as_json: bool) -> None:
    """Delete ended sessions of a channel with everything in them."""
    async with frame.services() as services:
        pruned = await _prune(services, Pruning(channel=channel, older_than_days=days), shown=not as_json)
    if as_json:
        print_json({"pruned": pruned})
    else:
        console.print(f"{pruned} sessions deleted.")


async def _prune(services: Services, pruning: Pruning, *, shown: bool) -> int:
    """Prune in batches, with a progress bar on a terminal."""
    pruned = 0
    async with spinning(shown=shown) as spinner:
        while (step := await services.sessions.prune(pruning)).more:
            pruned += step.pruned
            spinner.update(f"{pruned} sessions deleted")
        return pruned + step.pruned


async def find(services: Services, session: str) -> SessionView:
    """Return the session with an id, or the newest of a key.  Raises `NotFound`."""
    if looks_like_id(session):
        return await services.sessions.get(SessionId(session))
    of_key = (await services.sessions.list(key=session, limit=1)).items
    return of_key[0] if of_key else await services.sessions.get(SessionId(session))


def print_item(item: Item) -> None:
    """Print one item of a transcript as text."""
    style = _STYLES.get(item.role, "")
    match item.role:
        case Role.USER:
            console.print(cards.message(item.text))
        case Role.TOOL:
            outcome = item.outcome or ("unknown" if item.recovered else None)
            room = min(console.width, cards.WIDTH_MAX)
            console.print(cards.card(item.name or "", item.args, outcome, item.result, width=room))
        case Role.MARKER:
            say(f"■ {item.text}", style)
        case Role.QUESTION:
            say(f"? {item.text}", style) if item.kind == "asked" else say(f"  → {item.text}", "dim")
        case Role.ASSISTANT:
            say(item.text.strip("\n").lstrip(), style)
        case Role.PRIOR:
            say(f"({item.kind}, before) {item.text}", "dim")
        case Role.NOTE if item.kind == COMPACTED:
            say(notes.compacted(item.text), style)
        case _:
            say(item.text, style)


def _print_origin(session: SessionView) -> None:
    """Print the source of a session, such as its chat, and its model; one from the command line may have neither."""
    said = {name: value for name, value in asdict(session.source).items() if value}
    if session.chosen_model:
        said["model"] = session.chosen_model
    for name, value in said.items():
        say(f"{name:<10} {value}", "dim", soft_wrap=True)
    if said:
        say("")


async def _retry_at(services: Services, transcript: Transcript) -> int | None:
    """Return when a turn that waits for its model is tried again; None if no turn waits."""
    if transcript.session.activity is not Activity.RETRYING:
        return None
    # It is the first turn that is not over; only queued turns come after it.
    for turn_id in reversed(dict.fromkeys(item.turn_id for item in transcript.items)):
        if retry_at := (await services.turns.get(turn_id)).retry_at:
            return retry_at
    return None


def _mood(session: SessionView) -> str:
    if session.activity is Activity.RETRYING:
        return f"{session.state}, waiting for the model"
    return f"{session.state}, resume pending" if session.resume_pending else session.state.value


def _tell(session: SessionView, as_json: bool) -> None:
    print_outcome(session, f"{session.id} ({session.key}) is {_mood(session)}.", as_json)


def _around(text: str, word: str, width: int = 80) -> str:
    start = max(fold(text).find(fold(word)) - width // 3, 0)
    cut = text[start : start + width].replace("\n", " ")
    return ("…" if start else "") + cut + ("…" if start + width < len(text) else "")
