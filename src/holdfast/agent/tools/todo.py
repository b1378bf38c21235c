"""The `todo` tool: the agent's list of steps for a long task.  The latest list in the journal is the current one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from holdfast.agent.tools.port import CallContext, StructTool
from holdfast.core.effects import CallState, Effect
from holdfast.core.events import ToolFinished
from holdfast.core.journal import Entry
from holdfast.store.journal import JournalStore

NAME = "todo"
ITEMS_MAX = 100
ITEM_MAX_CHARS = 500
PAGE = 500
# An older list is not looked for.
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

    async def todo(args: TodoArgs, context: CallContext) -> str:
        if args.items is None:
            return await _look_up(journal, context)
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
    """Return a list as text for the model."""
    if not items:
        return _EMPTY
    done = sum(item.status == "done" for item in items)
    lines = (f"{number}. {_BOXES[item.status]} {item.text}" for number, item in enumerate(items, 1))
    return "\n".join((f"{done} of {len(items)} done:", *lines))


def latest(entries: Sequence[Entry]) -> str | None:
    """Return the latest list in a part of a journal; None if there is none."""
    for entry in reversed(entries):
        match entry.event:
            case ToolFinished(name=name, outcome=CallState.OK.value, result=str(result)) if name == NAME:
                return result
            case _:
                continue
    return None


async def _look_up(journal: JournalStore, context: CallContext) -> str:
    """Read a journal backwards, page by page, until a list is found."""
    session = context.session
    # The entries of the turn itself come after the last entry at its start.
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
