"""Fifty producers that wait for durability on SQLite: Holdfast beside plain apsw with the same rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from bench import limit
from bench.ground import Ground
from bench.limit import SqliteLimit
from bench.producers import PRODUCERS, Operation, Round, median_round, produce
from bench.report import Line, Unit
from holdfast.clock import SystemClock
from holdfast.config import GatewayConfig, SessionsConfig
from holdfast.core.events import EntryKind
from holdfast.core.intake import Inbound
from holdfast.core.journal import DraftEntry
from holdfast.core.redaction import Redaction
from holdfast.core.sessions import Source
from holdfast.core.turns import Mode, Turn
from holdfast.engine.inbox import Inbox
from holdfast.ids import new_node_id
from holdfast.store.store import Store

SHARE_MIN = 0.5
P99_MAX_MS = 10.0
# A conversation takes a hundred waiting messages; these share the load so that none is full.
CONVERSATIONS = 2_000

_clock = SystemClock()
_TEXT = "the build of main failed, please look at it"


class Pair(NamedTuple):
    """Our operation and its raw counterpart, and what ends them."""

    name: str
    ours: Operation
    raw: Operation
    close: Callable[[], Awaitable[None]]


async def run(ground: Ground) -> list[Line]:
    seconds, rounds = (0.25, 3) if ground.quick else (1.0, 7)
    lines = [await _small(ground, seconds, rounds)]
    for make in (_append, _accept, _join):
        pair = await make(ground)
        ours: list[Round] = []
        raw: list[Round] = []
        for _ in range(rounds):
            raw.append(await produce(pair.raw, seconds))
            ours.append(await produce(pair.ours, seconds))
        await pair.close()
        lines.append(_line(pair.name, median_round(ours), median_round(raw)))
    return lines


def _line(name: str, ours: Round, raw: Round) -> Line:
    p50, p99 = ours.percentile_ms(50), ours.percentile_ms(99)
    count = len(ours.latencies_ms)
    spent = ", ".join(f"{thread} {used * 1e6 / count:.0f}" for thread, used in ours.threads_s.items() if used > 0)
    return Line(
        what=name,
        measured=ours.rate,
        unit=Unit.RATE,
        detail=f"p50 {p50:.1f} p99 {p99:.1f} ms",
        raw=raw.rate,
        bar=f"≥ {SHARE_MIN} of raw, p99 < {P99_MAX_MS:.0f} ms",
        met=ours.rate >= SHARE_MIN * raw.rate and p99 < P99_MAX_MS,
        note=f"processor µs per operation by thread: {spent}; raw in all {raw.cpu_ms * 1000:.0f}",
    )


async def _small(ground: Ground, seconds: float, rounds: int) -> Line:
    raw = SqliteLimit(str(ground.home() / "small.db"))
    measured = [await produce(lambda _, nth: raw.write({"small": [(f"{nth:026}", _TEXT)]}), seconds) for _ in range(rounds)]
    await raw.close()
    middle = median_round(measured)
    detail = f"p50 {middle.percentile_ms(50):.1f} p99 {middle.percentile_ms(99):.1f} ms"
    return Line(what="raw: one small row", measured=middle.rate, unit=Unit.RATE, detail=detail)


async def _append(ground: Ground) -> Pair:
    """One entry to a running turn, fifty turns at once."""
    store, raw = await _open(ground)
    turns = await _running(store)
    for number in range(PRODUCERS):
        await raw.write(limit.accept(number, 1))
        await raw.write(limit.claim(number))
        await raw.write(limit.start(number, 1))
    last = [1] * PRODUCERS
    draft = DraftEntry.read(kind=EntryKind.TEXT, at=_clock.now_ms(), data={"text": "a few words "})

    async def ours(producer: int, _: int) -> None:
        turns[producer], _entries = await store.journal.append(turns[producer], [draft])

    async def plain(producer: int, _: int) -> None:
        await raw.write(limit.append(producer, last[producer], 1, _clock.now_ms()))
        last[producer] += 1

    return Pair("append one entry", ours, plain, _closing(store, raw))


async def _accept(ground: Ground) -> Pair:
    """A webhook delivery: a new one-shot session with a dedupe key."""
    store, raw = await _open(ground)
    inbox = Inbox(store, GatewayConfig(), SessionsConfig(), Redaction(), _clock)
    numbers = iter(range(10**9))

    async def ours(_: int, __: int) -> None:
        key = f"webhook:bench:{next(numbers):012}"
        await inbox.accept(
            Inbound(
                conversation=key,
                text=_TEXT,
                channel="webhook",
                source=_SOURCE,
                dedupe_key=key,
                mode=Mode.DETACHED,
                one_shot=True,
            )
        )

    async def plain(_: int, __: int) -> None:
        await raw.write(limit.accept(next(numbers), _clock.now_ms()))

    return Pair("accept, new one-shot session", ours, plain, _closing(store, raw))


async def _join(ground: Ground) -> Pair:
    """A chat message in a conversation that exists."""
    store, raw = await _open(ground)
    inbox = Inbox(store, GatewayConfig(), SessionsConfig(), Redaction(), _clock)
    numbers = iter(range(10**9))

    async def say(conversation: int) -> None:
        key = f"chat:bench:{next(numbers):012}"
        await inbox.accept(Inbound(conversation=f"chat:{conversation}", text=_TEXT, channel="chat", dedupe_key=key))

    for number in range(CONVERSATIONS):
        await say(number)
        await raw.write(limit.accept(number, 1))
    ordinals = [1] * CONVERSATIONS

    async def ours(_: int, nth: int) -> None:
        await say(nth % CONVERSATIONS)

    async def plain(_: int, nth: int) -> None:
        conversation = nth % CONVERSATIONS
        ordinals[conversation] += 1
        rows = limit.join(10**9 + next(numbers), f"ses_{conversation:026}", ordinals[conversation], _clock.now_ms())
        await raw.write(rows)

    return Pair("accept, existing conversation", ours, plain, _closing(store, raw))


_SOURCE = Source(chat_id="webhook:bench", chat_type="webhook", user="webhook:bench")


async def _open(ground: Ground) -> tuple[Store, SqliteLimit]:
    """Open a store, and the raw limit on a second one with the same schema."""
    store, _ = await ground.store("sqlite")
    other, path = await ground.store("sqlite")
    await other.close()
    return store, SqliteLimit(path)


def _closing(store: Store, raw: SqliteLimit) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        await store.close()
        await raw.close()

    return close


async def _running(store: Store) -> list[Turn]:
    inbox = Inbox(store, GatewayConfig(), SessionsConfig(), Redaction(), _clock)
    for number in range(PRODUCERS):
        await inbox.accept(Inbound(conversation=f"chat:{number}", text=_TEXT, channel="chat"))
    now = _clock.now_ms()
    node = new_node_id(now)
    await store.nodes.join(node, now)
    taken = await store.turns.take(node, PRODUCERS, now)
    return [turn if entries else (await store.turns.start(turn, now))[0] for turn, entries in taken]
