"""`holdfast memory`: what is remembered."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from holdfast.cli.bar import bar
from holdfast.cli.debts import commit, replay, status, waive
from holdfast.cli.frame import (
    Frame,
    json_option,
    limit_option,
    moment,
    print_json,
    print_table,
    print_text,
    run_async,
    say,
    tilde,
)
from holdfast.cli.sessions import find
from holdfast.core.memories import Kind, Memory
from holdfast.core.memory import State
from holdfast.desk.cursors import SIZE_MAX
from holdfast.desk.debts import BUILTIN, Edited, Forgotten, Recalled
from holdfast.desk.plans import Edit, Forgetting
from holdfast.desk.port import Desk
from holdfast.desk.views import Page
from holdfast.errors import HoldfastError, NotFound, Rejected
from holdfast.ids import SessionId

NOBODY = "none"
_DOCUMENT = click.Path(exists=True, dir_okay=False, allow_dash=True)
_CERTAIN = "Forget everything that is remembered about you?"


@click.group()
def memory() -> None:
    """What is remembered beyond a conversation, and what is still owed to memory."""


for command in (status, commit, waive, replay):
    memory.add_command(command)


@memory.command()
@limit_option(200)
@click.option("--markdown", is_flag=True, help="As the document that `memory edit` opens, all of it.")
@json_option
@click.pass_obj
@run_async
async def show(frame: Frame, limit: int, markdown: bool, as_json: bool) -> None:
    """Show what is remembered."""
    async with frame.reading() as desk:
        if not markdown:
            _list(await desk.memories.list(limit=limit), as_json)
            return
        document = await desk.memories.document()
    if as_json:
        print_json(document)
    else:
        print_text(document.markdown)


@memory.command()
@click.argument("words", nargs=-1, required=True)
@limit_option(20)
@json_option
@click.pass_obj
@run_async
async def search(frame: Frame, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find what is remembered with WORDS in it, and what a provider elsewhere recalls of them."""
    query = " ".join(words)
    async with frame.reading() as desk:
        page = await desk.memories.search(query, limit)
        recalled = await desk.memories.recall(query, limit)
    configured = frame.config.memory.provider
    if not recalled.provider and configured not in (BUILTIN, NOBODY):
        recalled = replace(recalled, problem=f"{configured} was not asked, as no gateway runs with it")
    if as_json:
        print_json({"items": page.items, "next_cursor": page.next_cursor, "recalled": recalled})
        return
    if page.items or not recalled.items:
        _list(page, as_json, "Nothing of the kind is remembered.")
    _print_recalled(recalled)


@memory.command()
@click.argument("text")
@json_option
@click.pass_obj
@run_async
async def add(frame: Frame, text: str, as_json: bool) -> None:
    """Remember TEXT."""
    async with frame.desk() as desk:
        added = await desk.memories.add(text)
    if as_json:
        print_json(added)
    else:
        say(f"{added.id} is remembered.")


@memory.command()
@click.option("--file", type=_DOCUMENT, help="Take the edited document from a file (- is stdin), without an editor.")
@click.option("--base", type=_DOCUMENT, help="With --file: what was edited (default: what is remembered now).")
@json_option
@click.pass_obj
@run_async
async def edit(frame: Frame, file: str | None, base: str | None, as_json: bool) -> None:
    """Edit what is remembered as Markdown, in $VISUAL or $EDITOR.

    Only what you change is changed: what is learned meanwhile stays.
    """
    if base and not file:
        raise click.UsageError("--base goes with --file.")
    async with frame.reading() as desk:
        before = (await desk.memories.document()).markdown
    if file:
        edited = await _send(frame, Edit(base=_text(base) if base else before, markdown=_text(file)))
    else:
        edited = await _edit_by_hand(frame, before)
    if as_json:
        print_json(edited)
    else:
        say(_edit_came_to(edited))


@memory.command()
@click.argument("memories", nargs=-1)
@click.option("--session", help="All that came from a session (its id or its key).")
@click.option("--all", "everything", is_flag=True, help="Everything that is remembered about you.")
@click.option("--yes", is_flag=True, help="Do not ask before --all.")
@json_option
@click.pass_obj
@run_async
async def forget(
    frame: Frame, memories: tuple[str, ...], session: str | None, everything: bool, yes: bool, as_json: bool
) -> None:
    """Forget MEMORIES by their ids, here and at the provider that has them."""
    if sum((bool(memories), session is not None, everything)) != 1:
        raise click.UsageError("Say what to forget: ids, --session or --all.")
    if everything and not yes:
        click.confirm(_CERTAIN, abort=True, err=True)
    async with frame.desk() as desk:
        if everything:
            forgotten = await _forget_everything(desk, as_json)
        elif session is not None:
            forgotten = await desk.memories.forget(Forgetting(session_id=(await find(desk, session)).id))
        else:
            forgotten = await desk.memories.forget(Forgetting(ids=memories))
    if as_json:
        print_json(forgotten)
    else:
        _print_forgotten(forgotten)
    if forgotten.missing:
        raise NotFound(f"there is no memory {', '.join(forgotten.missing)}; see `holdfast memory show`")


async def _forget_everything(desk: Desk, as_json: bool) -> Forgotten:
    """Forget what is kept here, and session by session what was given to others."""
    here, elsewhere, problems = 0, 0, dict[str, None]()
    sessions = await _given_away(desk)
    with bar(as_json) as progress:
        for session_id in progress.track(sessions, description="forgetting elsewhere"):
            gone = await desk.memories.forget(Forgetting(session_id=session_id))
            here, elsewhere = here + gone.forgotten, elsewhere + gone.elsewhere
            problems |= dict.fromkeys(gone.problems)
    rest = await desk.memories.forget(Forgetting(everything=True))
    return Forgotten(forgotten=here + rest.forgotten, elsewhere=elsewhere, problems=list(problems))


async def _given_away(desk: Desk) -> Sequence[SessionId]:
    """Return the sessions of which some other provider than our own was given something."""
    found: dict[SessionId, None] = {}
    cursor: str | None = None
    while True:
        page = await desk.memories.segments(state=State.COMMITTED, cursor=cursor, limit=SIZE_MAX)
        found |= {each.session_id: None for each in page.items if each.owner != BUILTIN}
        cursor = page.next_cursor
        if cursor is None:
            return list(found)


async def _send(frame: Frame, change: Edit) -> Edited:
    async with frame.desk() as desk:
        return await desk.memories.edit(change)


async def _edit_by_hand(frame: Frame, before: str) -> Edited:
    # Whoever else uses this machine cannot read what is in it.
    folder = Path(tempfile.mkdtemp(prefix="holdfast-memory-"))
    file, base = folder / "memory.md", folder / "before.md"
    for each in (file, base):
        each.touch(0o600)
        each.write_text(before, "utf-8")
    try:
        click.edit(filename=str(file))
        edited = await _send(frame, Edit(base=before, markdown=_text(str(file))))
    except (HoldfastError, click.ClickException) as error:
        again = f"holdfast memory edit --file {tilde(file)} --base {tilde(base)}"
        raise Rejected(f"{_said(error)}; your edit is kept, so mend it and run: {again}") from error
    shutil.rmtree(folder)
    return edited


def _said(error: HoldfastError | click.ClickException) -> str:
    return error.format_message().rstrip(".") if isinstance(error, click.ClickException) else str(error)


def _text(file: str) -> str:
    with click.open_file(file, "rb") as opened:
        raw: bytes = opened.read()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Rejected(f"{file} is not UTF-8, from byte {error.start} on; save it as UTF-8") from error


def _edit_came_to(edited: Edited) -> str:
    amounts = {
        "added": edited.added,
        "changed": edited.changed,
        "removed": edited.removed,
        "known already": edited.known,
        "left out, as there is no room for more": edited.left_out,
    }
    said = [f"{number} {what}" for what, number in amounts.items() if number]
    return f"{', '.join(said)}." if said else "Nothing was changed."


def _print_forgotten(forgotten: Forgotten) -> None:
    total = forgotten.forgotten + forgotten.elsewhere
    if total or not forgotten.missing:
        beside = f", {forgotten.elsewhere} of them elsewhere" if forgotten.elsewhere else ""
        say(f"{total} {'memory is' if total == 1 else 'memories are'} forgotten{beside}.")
    for problem in forgotten.problems:
        say(f"Not everything: {problem}", "yellow")
    if forgotten.owed:
        say("Some of that conversation has yet to be remembered; what comes of it can be forgotten then.", "dim")


def _list(page: Page[Memory], as_json: bool, otherwise: str = "Nothing is remembered.") -> None:
    if as_json:
        print_json(page)
        return
    lines = [(each.id, moment(each.updated_at), _shown(each)) for each in page.items]
    print_table(("memory", "when", "text"), lines, otherwise)


def _shown(each: Memory) -> str:
    return f"(profile) {each.text}" if each.kind is Kind.PROFILE else each.text


def _print_recalled(recalled: Recalled) -> None:
    if recalled.items:
        say(f"\n{recalled.provider} recalls:", "bold")
        print_table(("memory", "text"), [(each.id or "–", each.text) for each in recalled.items], "")
    if recalled.problem:
        say(": ".join(filter(None, (recalled.provider, recalled.problem))), "yellow")
