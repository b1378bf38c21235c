"""`holdfast memory status`, `commit` and `waive`: what memory still has to learn, and what came of the rest."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from holdfast.cli.bar import bar
from holdfast.cli.cards import shortened
from holdfast.cli.frame import (
    EXIT_FAILED,
    Frame,
    console,
    count,
    moment,
    print_json,
    print_lines,
    print_table,
    say,
    with_json,
)
from holdfast.cli.sessions import find
from holdfast.core.segments import SegmentState
from holdfast.ids import SegmentId, SessionId
from holdfast.operations.memories import Counts, MemoryProviderView, MemoryStatus, Payment
from holdfast.operations.pages import SIZE_MAX
from holdfast.operations.segments import SegmentView, in_words
from holdfast.operations.services import Services

if TYPE_CHECKING:
    from rich.progress import Progress

# Sessions that are committed at the same time.
SIDE_BY_SIDE = 8
WHY_MAX_CHARS = 240
_KEY_MAX = 24
# Below it there is no room for keys; ids do as well.
_NARROW = 90
# What is said of a segment of which nothing has come yet.
_WAITS = {
    SegmentState.OPEN: "handed over when the conversation is over",
    SegmentState.SEALED: "waits to be handed over",
    SegmentState.COMMITTING: "being handed over now",
    SegmentState.COMMITTED: "taken",
    SegmentState.WAIVED: "never handed over",
}
_STATES = {
    SegmentState.OPEN: "in progress",
    SegmentState.SEALED: "waiting",
    SegmentState.COMMITTING: "being learned",
    SegmentState.COMMITTED: "learned",
    SegmentState.WAIVED: "skipped",
}


@click.command()
@click.argument("session", required=False)
@with_json
async def status(frame: Frame, session: str | None, as_json: bool) -> None:
    """Show the state of memory, or what was remembered from SESSION.

    SESSION is the id or the key of a conversation.  `holdfast memory --help` explains the words.
    """
    async with frame.reading_services() as services:
        if session is not None:
            page = await services.memories.segments(session_id=(await find(services, session)).id, limit=SIZE_MAX)
            _print_receipts(page.items) if not as_json else print_json(page)
            return
        found = await services.memories.status()
    if as_json:
        print_json(found)
    else:
        _print_status(found, frame.config.memory.provider)


@click.command()
@click.argument("session", required=False)
@click.option("--all", "every", is_flag=True, help="Every session that has something to learn from.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait if it is being learned already.")
@with_json
async def commit(frame: Frame, session: str | None, every: bool, wait: bool, as_json: bool) -> None:
    """Learn from SESSION now, before it is over.

    SESSION is the id or the key of a conversation.  With --all, the exit code is 1 if something is left.
    """
    if every == (session is not None):
        raise click.UsageError("Name a SESSION, or say --all.")
    async with frame.services() as services:
        if session is None:
            await _commit_all(services, wait=wait, as_json=as_json)
            return
        # An unknown session has nothing to learn from.
        session_id = (await find(services, session)).id if session else SessionId("")
        committed = await services.memories.commit(Payment(session_id=session_id, wait=wait))
        if as_json:
            print_json(committed)
        elif session_id:
            await _tell_commit(services, session_id, committed.committed)
        else:
            say("Nothing is left to learn.")


@click.command()
@click.argument("segment")
@with_json
async def waive(frame: Frame, segment: str, as_json: bool) -> None:
    """Skip SEGMENT: it will never be remembered.

    That is for a provider that will never be back.  Later segments of the same conversation are then learned.
    """
    async with frame.services() as services:
        waived = await services.memories.waive(SegmentId(segment))
    if as_json:
        print_json(waived)
    else:
        what = f"turn {_turns(waived)} of {waived.session_id}"
        say(f"{waived.id} is skipped: {waived.owner} will never be given {what}.", soft_wrap=True)
        say("Another provider still can be, with: holdfast memory replay --provider NAME", "dim", soft_wrap=True)


async def _commit_all(services: Services, *, wait: bool, as_json: bool) -> None:
    owing = await _owing(services, (SegmentState.OPEN, SegmentState.SEALED, SegmentState.COMMITTING))
    free = asyncio.Semaphore(SIDE_BY_SIDE)

    async def pay(session_id: SessionId, progress: Progress) -> None:
        async with free:
            await services.memories.commit(Payment(session_id=session_id, wait=wait))
        progress.advance(task)

    with bar(as_json) as progress:
        task = progress.add_task("learning", total=len(owing))
        await asyncio.gather(*(pay(each, progress) for each in owing))
    # What the gateway paid meanwhile by itself is paid as well, and what was said meanwhile is no failure.
    left = set(await _owing(services, (SegmentState.SEALED, SegmentState.COMMITTING))) & set(owing)
    paid = len(owing) - len(left)
    if as_json:
        print_json({"sessions": len(owing), "committed": paid, "failed": len(left)})
    elif not owing:
        say("Nothing is left to learn.")
    else:
        say(f"{count(paid, 'session')} learned, {len(left)} still waiting.")
        if left:
            say("See why with: holdfast memory status", "dim")
    if left:
        sys.exit(EXIT_FAILED)


async def _owing(services: Services, states: Sequence[SegmentState]) -> list[SessionId]:
    """Return the sessions with a segment in one of these states, the oldest first."""
    found: dict[SessionId, None] = {}
    cursor: str | None = None
    while True:
        page = await services.memories.segments(unpaid=True, cursor=cursor, limit=SIZE_MAX)
        found |= {each.session_id: None for each in page.items if each.state in states}
        cursor = page.next_cursor
        if cursor is None:
            return list(reversed(found))


async def _tell_commit(services: Services, session_id: SessionId, committed: bool) -> None:
    if committed:
        done = await services.memories.segments(session_id=session_id, state=SegmentState.COMMITTED, limit=1)
        say(f"{session_id} is learned: {', '.join(each.receipt or 'done' for each in done.items)}.")
        return
    owed = (await services.memories.segments(session_id=session_id, unpaid=True, limit=SIZE_MAX)).items
    if not owed:
        say(f"{session_id} has nothing left to learn.")
        return
    first = min(owed, key=lambda each: each.generations)
    say(f"{session_id} is not learned yet: {_standing(first)}. {first.error or ''}".rstrip(), "yellow")
    _advise([first])


def _print_status(found: MemoryStatus, configured: str) -> None:
    counts = found.counts
    profile = " and a profile" if counts.profile else ""
    lines = [
        ("provider", _provider(found.provider, configured)),
        ("remembered", f"{count(counts.facts, 'fact')}{profile}"),
        ("segments", _segments(counts)),
    ]
    if found.everyone and found.everyone.unpaid != counts.unpaid:
        lines.append(("of everyone", in_words(found.everyone)))
    print_table(("memory", ""), lines, "")
    if counts.owed and found.provider is None and configured != "none":
        say("Some of what is waiting may be on hold; a running gateway and holdfast doctor can tell.", "dim")
    if not found.owing:
        return
    say("")
    columns = ("session", "state", "next try", "key")
    rows = [(each.session_id, *_row(each.next, each.segments), shortened(each.key, _KEY_MAX)) for each in found.owing]
    if console.width < _NARROW:
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    print_table(columns, rows, "")
    if found.owing_sessions > len(found.owing):
        say(f"and {found.owing_sessions - len(found.owing)} more sessions", "dim")
    first = [each.next for each in found.owing]
    _print_reasons(first)
    _advise(first)


def _row(view: SegmentView, segments: int) -> tuple[str, ...]:
    state = _standing(view) if segments == 1 else f"{_standing(view)}, and {segments - 1} behind it"
    return state, moment(view.next_try_at)


def _print_reasons(segments: Sequence[SegmentView]) -> None:
    """Print each provider that sessions wait for, and why, once for all sessions with the same reason."""
    reasons = Counter((each.owner, shortened(each.error or "", WHY_MAX_CHARS)) for each in segments)
    for (owner, error), number in reasons.items():
        waits = f"{count(number, 'session')} {'waits' if number == 1 else 'wait'} for {owner}"
        print_lines([f"{waits}: {error}" if error else waits], 2)


def _print_receipts(segments: Sequence[SegmentView]) -> None:
    if not segments:
        say("Nothing of it is, or was, to be remembered.", "dim")
    lines = [
        (
            each.id,
            _standing(each),
            _number_of_turns(each),
            moment(each.settled_at or each.next_try_at or each.created_at),
        )
        for each in segments
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for each, line in zip(segments, lines, strict=True):
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        # Below itself, as it may be long.
        print_lines([f"{each.owner}: {shortened(_outcome(each), WHY_MAX_CHARS)}"], 2)
    _advise(segments)


def _outcome(view: SegmentView) -> str:
    waits = "it cannot be reached from here" if view.parked else _WAITS[view.state]
    return view.receipt or view.error or waits


def _advise(segments: Sequence[SegmentView]) -> None:
    for advice in _advice(segments):
        # What is copied from here stays in one piece.
        say(advice, "dim", soft_wrap=True)


def _advice(segments: Sequence[SegmentView]) -> list[str]:
    """Print what to do about a problem."""
    advice: list[str] = []
    parked = [each for each in segments if each.parked]
    for owner in sorted({each.owner for each in parked}):
        first = next(each.id for each in parked if each.owner == owner)
        advice.append(
            f"{owner} cannot be reached: bring it back (its plugin, or its address under [memory]), or skip what waits "
            f"for it with: holdfast memory waive {first}"
        )
    failed = next(
        (each for each in segments if each.state is SegmentState.SEALED and each.attempt and not each.parked), None
    )
    if failed:
        advice.append(
            f"What failed is tried again by itself, or now with: holdfast memory commit {failed.session_id}; "
            "holdfast doctor says what is wrong with the provider"
        )
    return advice


def _standing(view: SegmentView) -> str:
    if view.parked:
        return "on hold"
    if view.state is SegmentState.SEALED and view.attempt:
        return "failed once" if view.attempt == 1 else f"failed {view.attempt} times"
    return _STATES[view.state]


def _segments(counts: Counts) -> str:
    settled = {"learned": counts.committed, "skipped": counts.waived}
    return ", ".join([in_words(counts), *(f"{number} {what}" for what, number in settled.items() if number)])


def _provider(provider: MemoryProviderView | None, configured: str) -> str:
    if provider is None:
        without = "none: nothing more is remembered"
        return without if configured == "none" else f"{configured}: not asked, as no gateway runs"
    if provider.healthy:
        return f"{provider.owner}: {provider.detail}" if provider.detail else provider.owner
    return f"{provider.owner} does not work: {provider.detail}; see: holdfast doctor"


def _number_of_turns(view: SegmentView) -> str:
    return f"{'turn' if view.generations[0] == view.generations[1] else 'turns'} {_turns(view)}"


def _turns(view: SegmentView) -> str:
    first, last = view.generations
    return str(first) if first == last else f"{first}–{last}"
