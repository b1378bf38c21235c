"""`holdfast memory`: what the agent remembers across conversations."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from holdfast.cli.bar import bar
from holdfast.cli.cards import shortened
from holdfast.cli.debts import commit, status, waive
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
    tilde,
    with_json,
)
from holdfast.cli.replay import replay
from holdfast.cli.sessions import find
from holdfast.core.facts import Memory, MemoryKind
from holdfast.core.segments import BUILTIN, SegmentState
from holdfast.core.transcript import Role
from holdfast.errors import HoldfastError, NotFound, Rejected
from holdfast.ids import MemoryId, SessionId
from holdfast.operations import pages
from holdfast.operations.forgetting import Forgetting, Forgotten
from holdfast.operations.memories import Edit, Edited, MemoryView, RecallResult, Remembered
from holdfast.operations.pages import SIZE_MAX, Page
from holdfast.operations.services import Services

NO_PROVIDER = "none"
_KEY_MAX = 20
_SAID_MAX_CHARS = 400
# A narrower terminal shows no times in a list, to leave room for the memories.
_NARROW = 90
_DOCUMENT = click.Path(exists=True, dir_okay=False, allow_dash=True)
_CHOOSE_EDITOR = "Another editor can be named in $EDITOR."
_CERTAIN = "Forget everything that is remembered about you?"


@click.group()
def memory() -> None:
    """What the agent remembers across conversations, and what it still has to learn.

    \b
    What you say is handed to memory in segments: a stretch of one conversation.
      in progress    the conversation goes on
      waiting        it is over, and its segment waits for the provider
      on hold        it is over, and its provider cannot be opened here
      being learned  the provider is being given it now
      learned        the provider has it: for builtin, facts were extracted
      skipped        you gave it up, with `holdfast memory waive`
    """


for command in (status, commit, waive, replay):
    memory.add_command(command)


@memory.command()
@click.argument("memory", required=False)
@limit_option(200)
@click.option("--markdown", is_flag=True, help="Print the whole document that `memory edit` opens.")
@with_json
async def show(frame: Frame, memory: str | None, limit: int, markdown: bool, as_json: bool) -> None:
    """Show all memories, or the source of MEMORY (its id)."""
    if memory is not None and markdown:
        raise click.UsageError("--markdown shows all of it: leave MEMORY out.")
    async with frame.reading_services() as services:
        if memory is not None:
            await _show_one(services, MemoryId(memory), as_json)
        elif markdown:
            document = await services.memories.document()
            print_json(document) if as_json else print_text(document.markdown)
        else:
            _list(await _first(services, limit), as_json)


@memory.command()
@click.argument("words", nargs=-1, required=True)
@limit_option(20)
@with_json
async def search(frame: Frame, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find memories that contain WORDS.

    A provider elsewhere is asked as well, and what it recalls is shown apart.
    """
    query = " ".join(words)
    async with frame.reading_services() as services:
        page = await services.memories.list(query=query, limit=limit)
        recalled = await services.memories.recall(query, limit)
    configured = frame.config.memory.provider
    if not recalled.provider and configured not in (BUILTIN, NO_PROVIDER):
        recalled = replace(recalled, problem=f"{configured} was not asked, as no gateway runs with it")
    if as_json:
        print_json({"items": page.items, "next_cursor": page.next_cursor, "recalled": recalled})
        return
    if page.items or not recalled.items:
        _list(page, as_json, "Nothing of the kind is remembered.")
    _print_recalled(recalled)


@memory.command()
@click.argument("text")
@with_json
async def add(frame: Frame, text: str, as_json: bool) -> None:
    """Remember TEXT."""
    async with frame.services() as services:
        added = await services.memories.add(Remembered(text=text))
    if as_json:
        print_json(added)
    else:
        # Said in other letters before, it stays as it was.
        known = "" if added.text == " ".join(text.split()) else f" already: {added.text}"
        say(f"{added.id} is remembered{known or '.'}")


@memory.command()
@click.option("--file", type=_DOCUMENT, help="Read the edited document from a file (- is stdin) instead of an editor.")
@click.option("--base", type=_DOCUMENT, help="With --file: the document before editing (default: the current one).")
@with_json
async def edit(frame: Frame, file: str | None, base: str | None, as_json: bool) -> None:
    """Edit all memories in $VISUAL or $EDITOR.

    Only what you change is changed: what is learned meanwhile stays.
    """
    if base and not file:
        raise click.UsageError("--base goes with --file.")
    async with frame.reading_services() as services:
        before = (await services.memories.document()).markdown
    if file:
        edited = await _send(frame, Edit(base=_text(base) if base else before, markdown=_text(file)))
    else:
        edited = await _edit_by_hand(frame, before)
    print_outcome(edited, _edit_came_to(edited), as_json)


@memory.command()
@click.argument("memories", nargs=-1)
@click.option("--session", help="All memories from this session (its id or its key).")
@click.option("--all", "everything", is_flag=True, help="All memories about you.")
@click.option("--yes", is_flag=True, help="Do not ask before --all.")
@with_json
async def forget(
    frame: Frame, memories: tuple[str, ...], session: str | None, everything: bool, yes: bool, as_json: bool
) -> None:
    """Forget MEMORIES, by their ids.

    They are forgotten here, and at the provider that has them if it can delete.
    """
    if sum((bool(memories), session is not None, everything)) != 1:
        raise click.UsageError("Say what to forget: ids, --session or --all.")
    if everything and not yes:
        click.confirm(_CERTAIN, abort=True, err=True)
    async with frame.services() as services:
        if everything:
            forgotten = await _forget_everything(services, as_json)
        elif session is not None:
            forgotten = await services.memories.forget(Forgetting(session_id=(await find(services, session)).id))
        else:
            forgotten = await services.memories.forget(Forgetting(ids=memories))
    if as_json:
        print_json(forgotten)
    else:
        _print_forgotten(forgotten)
    if forgotten.missing:
        raise NotFound(f"there is no memory {', '.join(forgotten.missing)}; see `holdfast memory show`")


async def _forget_everything(services: Services, as_json: bool) -> Forgotten:
    """Forget the memories in the store, and for each session what other providers were given."""
    here, elsewhere, problems = 0, 0, dict[str, None]()
    sessions = await _given_away(services)
    with bar(as_json) as progress:
        for session_id in progress.track(sessions, description="forgetting elsewhere"):
            gone = await services.memories.forget(Forgetting(session_id=session_id))
            here, elsewhere = here + gone.forgotten, elsewhere + gone.elsewhere
            problems |= dict.fromkeys(gone.problems)
    rest = await services.memories.forget(Forgetting(everything=True))
    return Forgotten(forgotten=here + rest.forgotten, elsewhere=elsewhere, problems=list(problems))


async def _given_away(services: Services) -> Sequence[SessionId]:
    """Return the sessions that another provider than the builtin one was given."""
    found: dict[SessionId, None] = {}
    cursor: str | None = None
    while True:
        page = await services.memories.segments(state=SegmentState.COMMITTED, cursor=cursor, limit=SIZE_MAX)
        found |= {each.session_id: None for each in page.items if each.owner != BUILTIN}
        cursor = page.next_cursor
        if cursor is None:
            return list(found)


async def _send(frame: Frame, change: Edit) -> Edited:
    async with frame.services() as services:
        return await services.memories.edit(change)


async def _edit_by_hand(frame: Frame, before: str) -> Edited:
    # Other users of this machine must not read it.
    folder = Path(tempfile.mkdtemp(prefix="holdfast-memory-"))
    file, base = folder / "memory.md", folder / "before.md"
    for each in (file, base):
        each.touch(0o600)
        each.write_text(before, "utf-8")
    try:
        click.edit(filename=str(file))
        edited = await _send(frame, Edit(base=before, markdown=_text(str(file))))
    except (HoldfastError, click.ClickException, FileNotFoundError) as error:
        if not file.exists() or file.read_bytes() == base.read_bytes():
            # The editor failed and changed nothing, so the person cancelled the edit.
            shutil.rmtree(folder)
            raise Rejected(f"{_said(error)}; nothing was changed. {_CHOOSE_EDITOR}") from error
        again = f"holdfast memory edit --file {tilde(file)} --base {tilde(base)}"
        raise Rejected(f"{_said(error)}\nNothing was changed, and your edit is kept: mend it and run\n  {again}") from error
    shutil.rmtree(folder)
    return edited


def _said(error: HoldfastError | click.ClickException | FileNotFoundError) -> str:
    match error:
        case click.ClickException():
            return error.format_message().rstrip(".")
        case FileNotFoundError():
            return "the document is gone"
        case _:
            return str(error)


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


async def _first(services: Services, limit: int) -> Page[MemoryView]:
    """Return as many as requested, page by page."""
    items: list[MemoryView] = []
    cursor: str | None = None
    while True:
        page = await services.memories.list(cursor=cursor, limit=min(limit - len(items), SIZE_MAX))
        items += page.items
        cursor = page.next_cursor
        if cursor is None or len(items) == limit:
            break
    # A full page may be the last.
    more = cursor and (await services.memories.list(cursor=cursor, limit=1)).items
    return Page(items=items, next_cursor=cursor if more else None)


def _list(page: Page[MemoryView], as_json: bool, otherwise: str = "Nothing is remembered.") -> None:
    if as_json:
        print_json(page)
        return
    lines = [(each.id, moment(each.updated_at), _said_in(each), _shown(each)) for each in page.items]
    columns = ("memory", "when", "said in", "text")
    if console.width < _NARROW:
        # `show MEMORY` has it.
        columns, lines = (columns[0], *columns[2:]), [(line[0], *line[2:]) for line in lines]
    print_table(columns, lines, otherwise)
    if page.next_cursor:
        say("There are more; see them with --limit, or all of them with --markdown.", "dim")


def _said_in(each: MemoryView) -> str:
    if each.origin:
        return shortened(each.origin.title or each.origin.key, _KEY_MAX)
    return "(deleted)" if each.turn_id else "by hand"


async def _show_one(services: Services, memory_id: MemoryId, as_json: bool) -> None:
    try:
        found = await services.memories.get(memory_id)
    except NotFound as error:
        raise NotFound(f"there is no memory {memory_id}; see `holdfast memory show`") from error
    if as_json:
        print_json(found)
        return
    lines = [("id", found.id), ("text", found.text), *await _source(services, found)]
    changed = [("changed", moment(found.updated_at))] if found.updated_at != found.created_at else []
    print_table((found.kind.value, ""), [*lines, ("remembered", moment(found.created_at)), *changed], "")
    if found.origin:
        say(f"All of that conversation: holdfast sessions show {found.origin.session_id}", "dim", soft_wrap=True)
    say(f"To forget it: holdfast memory forget {found.id}", "dim", soft_wrap=True)


async def _source(services: Services, found: MemoryView) -> list[tuple[str, str]]:
    """Return the session that a memory came from, and the message there."""
    origin = found.origin
    if origin is None:
        return [("said in", "a conversation that is deleted" if found.turn_id else "no conversation: added by hand")]
    place = f"{origin.title or origin.key}, message {origin.ordinal}, {moment(origin.at)}"
    before = pages.after((origin.ordinal - 1, "")) if origin.ordinal > 1 else None
    items = (await services.sessions.transcript(origin.session_id, cursor=before, limit=1)).items
    said = [each.text for each in items if each.role is Role.USER and each.turn_id == found.turn_id]
    return [("said in", place), *(("you said", shortened(text, _SAID_MAX_CHARS)) for text in said)]


def _shown(each: Memory) -> str:
    return f"(profile) {each.text}" if each.kind is MemoryKind.PROFILE else each.text


def _print_recalled(recalled: RecallResult) -> None:
    if recalled.items:
        say(f"\n{recalled.provider} recalls:", "bold")
        print_table(("memory", "text"), [(each.id or "–", each.text) for each in recalled.items], "")
    if recalled.problem:
        say(": ".join(filter(None, (recalled.provider, recalled.problem))), "yellow")
