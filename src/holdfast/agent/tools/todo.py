"""Todo: the agent's own list for a long task.  It is kept in the journal alone: the last list written is the list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from holdfast.agent.tools.port import Site, StructTool
from holdfast.core.effects import CallState, Effect
from holdfast.core.journal import Entry, EntryKind
from holdfast.store.journal import JournalStore

NAME = "todo"
ITEMS_MAX = 100
ITEM_MAX_CHARS = 500
PAGE = 500
# A list further back than this has been forgotten by everybody.
LOOK_BACK_MAX = 20_000
_BOXES = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}
_EMPTY = "The list is empty."


class TodoItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, msgspec.Meta(description="What is to be done.", min_length=1, max_length=ITEM_MAX_CHARS)]
    status: Annotated[Literal["pending", "in_progress", "done"], msgspec.Meta(description="How far it is.")] = "pending"


class TodoArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    items: Annotated[
        Annotated[list[TodoItem], msgspec.Meta(max_length=ITEMS_MAX)] | None,
        msgspec.Meta(description="The whole list, which replaces the old one. Without it, the list is shown."),
    ] = None


def todo_tool(journal: JournalStore) -> StructTool[TodoArgs]:
    """Return the tool that keeps a list."""

    async def todo(args: TodoArgs, site: Site) -> str:
        if args.items is None:
            return await _look_up(journal, site)
        return shown(args.items)

    return StructTool(
        name=NAME,
        description=(
            "Keep a list of the steps of a longer task. Give the whole list each time; it replaces the old one and is "
            "returned. Call it without items to see the list again. Have one item in progress at a time."
        ),
        args=TodoArgs,
        effect=Effect.PURE,
        action=todo,
        harmless=True,
        reads_private=False,
    )


def shown(items: Sequence[TodoItem]) -> str:
    """Return a list as a model reads it."""
    if not items:
        return _EMPTY
    done = sum(item.status == "done" for item in items)
    lines = (f"{number}. {_BOXES[item.status]} {item.text}" for number, item in enumerate(items, 1))
    return "\n".join((f"{done} of {len(items)} done:", *lines))


def latest(entries: Sequence[Entry]) -> str | None:
    """Return the list that stands in a part of a journal; None where none does."""
    for entry in reversed(entries):
        match entry.data:
            case {"name": name, "outcome": CallState.OK.value, "result": str(result)} if name == NAME:
                if entry.kind is EntryKind.TOOL_FINISHED:
                    return result
            case _:
                continue
    return None


async def _look_up(journal: JournalStore, site: Site) -> str:
    """Read a journal backwards, page by page, until a list stands in it."""
    session = site.session
    # Whatever the turn itself has written stands behind the last entry that was there when it began.
    tail = session.seq
    own: list[Entry] = []
    while page := await journal.read(session.id, tail + len(own), PAGE):
        own += page
    if (found := latest(own)) is not None:
        return found
    oldest = max(tail - LOOK_BACK_MAX, 0)
    for after in range(max(tail - PAGE, 0), oldest - PAGE, -PAGE):
        page = await journal.read(session.id, max(after, 0), PAGE)
        if (found := latest(page)) is not None:
            return found
    return _EMPTY
