"""`holdfast memory`: what is remembered."""

from __future__ import annotations

import click

from holdfast.cli.frame import Frame, json_option, limit_option, moment, print_json, print_table, run_async, say
from holdfast.core.memories import Memory
from holdfast.desk.views import Page
from holdfast.ids import MemoryId


@click.group()
def memory() -> None:
    """What is remembered beyond a conversation."""


@memory.command()
@limit_option(200)
@json_option
@click.pass_obj
@run_async
async def show(frame: Frame, limit: int, as_json: bool) -> None:
    """Show what is remembered."""
    async with frame.reading() as desk:
        _list(await desk.memories.list(limit=limit), as_json)


@memory.command()
@click.argument("words", nargs=-1, required=True)
@limit_option(20)
@json_option
@click.pass_obj
@run_async
async def search(frame: Frame, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find what is remembered with WORDS in it."""
    async with frame.reading() as desk:
        _list(await desk.memories.search(" ".join(words), limit), as_json, "Nothing of the kind is remembered.")


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
@click.argument("memory")
@json_option
@click.pass_obj
@run_async
async def forget(frame: Frame, memory: str, as_json: bool) -> None:
    """Forget MEMORY."""
    async with frame.desk() as desk:
        await desk.memories.remove(MemoryId(memory))
    if as_json:
        print_json({"forgotten": memory})
    else:
        say(f"{memory} is forgotten.")


def _list(page: Page[Memory], as_json: bool, otherwise: str = "Nothing is remembered.") -> None:
    if as_json:
        print_json(page)
        return
    lines = [(each.id, moment(each.updated_at), each.text) for each in page.items]
    print_table(("memory", "when", "text"), lines, otherwise)
