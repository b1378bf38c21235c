"""`holdfast sessions`: conversations."""

from __future__ import annotations

import dataclasses

import click
from rich.markup import escape

from holdfast.app import reader
from holdfast.cli.frame import Frame, console, json_option, moment, plain, print_json, print_table, run_async
from holdfast.core.sessions import Session
from holdfast.core.transcript import Item, Role, fold
from holdfast.ids import SessionId
from holdfast.store.opening import Store

OWNER = "local"
_STYLES = {
    Role.USER: "bold cyan",
    Role.REASONING: "dim italic",
    Role.TOOL: "magenta",
    Role.MARKER: "yellow",
    Role.NOTE: "dim",
    Role.QUESTION: "green",
}


@click.group()
def sessions() -> None:
    """Conversations."""


@sessions.command("list")
@click.option("--limit", default=20, show_default=True, help="How many, last used first.")
@json_option
@click.pass_obj
@run_async
async def list_(frame: Frame, limit: int, as_json: bool) -> None:
    """List sessions, last used first."""
    async with reader(frame.config, frame.home) as store:
        found = await store.sessions.list(OWNER, limit=limit)
        if as_json:
            print_json({"items": [await describe(store, each) for each in found], "next_cursor": None})
            return
    lines = [(each.id, each.key, each.state.value, str(each.turns), moment(each.updated_at)) for each in found]
    print_table(("session", "key", "state", "turns", "last used"), lines, "No sessions yet. Try: holdfast ask hello")


@sessions.command()
@click.argument("session")
@json_option
@click.pass_obj
@run_async
async def show(frame: Frame, session: str, as_json: bool) -> None:
    """Show the transcript of SESSION (its id or its key)."""
    async with reader(frame.config, frame.home) as store:
        found = await find(store, session)
        items = fold(await store.journal.read(found.id, limit=1_000_000))
        if as_json:
            print_json({"session": await describe(store, found), "items": items})
            return
    for item in items:
        print_item(item)


@sessions.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", default=20, show_default=True)
@json_option
@click.pass_obj
@run_async
async def search(frame: Frame, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find messages and answers that contain all WORDS."""
    async with reader(frame.config, frame.home) as store:
        hits = await store.sessions.search(OWNER, " ".join(words), limit)
    if as_json:
        print_json({"items": hits, "next_cursor": None})
        return
    lines = [(hit.session_id, moment(hit.at), escape(_around(hit.text, words[0]))) for hit in hits]
    print_table(("session", "when", "text"), lines, "Nothing found.")


async def find(store: Store, session: str) -> Session:
    """Return a session by its key or its id.  Raises `NotFound`."""
    return await store.sessions.find(OWNER, session) or await store.sessions.get(SessionId(session))


async def describe(store: Store, session: Session) -> dict[str, object]:
    """Return a session as scripts see it."""
    cause = await store.sessions.resume_cause(session.id)
    fields = {field.name: plain(getattr(session, field.name)) for field in dataclasses.fields(session)}
    return {**fields, "resume_pending": cause is not None, "resume_reason": cause}


def print_item(item: Item) -> None:
    """Print one thing of a transcript for people."""
    style = _STYLES.get(item.role, "")
    match item.role:
        case Role.USER:
            console.print(f"\n› {item.text}", style=style, markup=False)
        case Role.TOOL:
            console.print(f"⚙ {item.name}  {item.outcome or 'running'}  {item.result or ''}", style=style, markup=False)
        case Role.MARKER:
            console.print(f"■ {item.text}", style=style, markup=False)
        case Role.QUESTION:
            console.print(f"? {item.text}" if item.kind == "asked" else f"! {item.text}", style=style, markup=False)
        case _:
            console.print(item.text, style=style, markup=False)


def _around(text: str, word: str, width: int = 80) -> str:
    start = max(text.lower().find(word.lower()) - width // 3, 0)
    cut = text[start : start + width].replace("\n", " ")
    return ("…" if start else "") + cut + ("…" if start + width < len(text) else "")
