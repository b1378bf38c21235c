"""What memory costs a reply, with every kind of provider; how fast debts are paid; and how long a shutdown takes to pay all.

The turns of all kinds take turns, each in a new conversation, so that whatever else the machine does meets them alike.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from bench import workload
from bench.agent import printing_port
from bench.ground import Ground
from bench.producers import median, percentile
from bench.report import Line, Unit
from bench.workload import Watched
from holdfast.agent.loop import ModelAgent
from holdfast.agent.models.scripted import ScriptedModel
from holdfast.agent.prompt import Prompt
from holdfast.agent.scripted import Say, ScriptedAgent
from holdfast.agent.toolbox import Toolbox
from holdfast.clock import SystemClock
from holdfast.config import AgentConfig, BudgetConfig, MemoryConfig
from holdfast.core.events import EntryKind
from holdfast.core.facts import Memory, MemoryChanges
from holdfast.core.intake import Inbound
from holdfast.core.redaction import Redaction
from holdfast.engine.engine import Engine
from holdfast.engine.tuning import Tuning
from holdfast.ids import MemoryId, SessionId
from holdfast.memory.address import Address
from holdfast.memory.bindings import MemoryBindings
from holdfast.memory.builtin.plain import PlainExtractor
from holdfast.memory.builtin.provider import Builtin
from holdfast.memory.http import HttpProvider
from holdfast.ports import MemoryProvider
from holdfast.store.store import Store

NONE = "none"
NOTHING_KNOWN = "builtin, nothing known"
HUNG = "http, hung"
# With these, memory has nothing to say, and may cost nothing.
_SILENT = (NOTHING_KNOWN, HUNG)
FACTS = 500
ANSWER_WORDS = 20
LATER_MAX_MS = 1.0
# No load of the machine makes a reply so late: whoever waits longer has waited for memory.
HELD_UP_MS = 1_000.0
DRAIN_SESSIONS = 1_000
# As long as a gateway waits by default.
DRAIN_MAX_S = 30.0
# How long the provider takes that is paid at a shutdown.
DRAIN_ANSWER_MS = 10
COMMIT_TIMEOUT_S = 60
WARM_UP = 5

_QUESTION = "What did I say about the garden, and which tea should I buy in town 17?"
_VERBS = ("Likes", "Avoids", "Remembers", "Owns", "Reads about", "Dreams of", "Collects")
_THINGS = ("songs", "trains", "bridges", "stamps", "mountains", "novels", "bicycles", "museums", "rivers", "maps", "kites")
_clock = SystemClock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A gateway with one kind of provider, and what its replies took."""

    name: str
    store: Store
    engine: Engine
    first_ms: list[float] = field(default_factory=list[float])
    whole_ms: list[float] = field(default_factory=list[float])

    async def reply(self, number: int) -> tuple[float, float]:
        """Say something in a new conversation; return when the first word was there, and when the last."""
        began, first = time.perf_counter(), 0.0
        receipt = await self.engine.inbox.accept(_message(f"reply:{number}", _QUESTION))
        async for entry in self.engine.feed.follow(receipt.session_id):
            if entry.kind is EntryKind.TEXT and not first:
                first = (time.perf_counter() - began) * 1000
            if entry.kind is EntryKind.TURN_COMPLETED:
                break
        return first, (time.perf_counter() - began) * 1000


async def run(ground: Ground) -> list[Line]:
    return [*await _replies(ground), *await _commits(ground), await _drained(ground)]


async def _replies(ground: Ground) -> list[Line]:
    rounds = 60 if ground.quick else 400
    numbers = itertools.count(1)
    async with AsyncExitStack() as stack:
        there = stack.enter_context(printing_port("bench.provider"))[0]
        hung = stack.enter_context(printing_port("bench.provider", "hung"))[0]
        scenes = [
            await stack.enter_async_context(_scene(ground, NONE, None)),
            await stack.enter_async_context(_scene(ground, NOTHING_KNOWN, "builtin")),
            await stack.enter_async_context(_scene(ground, f"builtin, {FACTS} facts", "builtin", facts=FACTS)),
            await stack.enter_async_context(_scene(ground, "http, healthy", there)),
            await stack.enter_async_context(_scene(ground, HUNG, hung)),
        ]
        # The one reply that is held up is among these.
        early = {scene.name: [await scene.reply(next(numbers)) for _ in range(WARM_UP)] for scene in scenes}
        for _ in range(rounds):
            for scene in scenes:
                first, whole = await scene.reply(next(numbers))
                scene.first_ms.append(first)
                scene.whole_ms.append(whole)
    none, *others = scenes
    lines = [line for scene in others for line in _compared(scene, none)]
    return [*lines, _held_up(early[HUNG], next(scene for scene in scenes if scene.name == HUNG))]


def _compared(scene: Scene, none: Scene) -> list[Line]:
    later = median(scene.first_ms) - median(none.first_ms)
    bar = f"< {LATER_MAX_MS:.0f} ms later" if scene.name in _SILENT else ""
    return [
        Line(
            what=f"{scene.name}: the first token",
            measured=median(scene.first_ms),
            unit=Unit.MILLISECONDS,
            detail=f"p50, {later:+.2f} ms; {_p99(scene.first_ms, none.first_ms)}",
            raw=median(none.first_ms),
            bar=bar,
            met=later < LATER_MAX_MS if bar else None,
        ),
        Line(
            what=f"{scene.name}: the whole turn",
            measured=median(scene.whole_ms),
            unit=Unit.MILLISECONDS,
            detail=f"p50; {_p99(scene.whole_ms, none.whole_ms)}",
            raw=median(none.whole_ms),
            note="raw: the same turn with provider none",
        ),
    ]


def _p99(ours: Sequence[float], none: Sequence[float]) -> str:
    return (
        f"p99 {percentile(ours, 99):.1f}, none {percentile(none, 99):.1f}: {percentile(none, 99) / percentile(ours, 99):.2f}"
    )


def _held_up(early: Sequence[tuple[float, float]], scene: Scene) -> Line:
    whole = [each for _, each in early] + scene.whole_ms
    held = [each for each in whole if each > HELD_UP_MS]
    return Line(
        what=f"{HUNG}: the slowest reply",
        measured=max(whole) / 1000,
        unit=Unit.SECONDS,
        detail=f"{len(held)} of {len(whole)} replies took longer than {HELD_UP_MS:.0f} ms",
        bar="one, within 2 s",
        met=len(held) <= 1 and max(whole) < MemoryConfig().recall_timeout * 1000 + HELD_UP_MS,
    )


@asynccontextmanager
async def _scene(ground: Ground, name: str, kind: str | int | None, *, facts: int = 0) -> AsyncGenerator[Scene]:
    """Open a gateway whose memory is nobody, the builtin, or a server at a port."""
    store, _ = await ground.store("sqlite")
    provider = _provider(store, kind)
    if facts:
        await store.memories.change(
            "local", MemoryChanges(added=[_fact(number) for number in range(facts)]), _clock.now_ms()
        )
    agent = _agent(ground, store if provider else None, store)
    async with workload.running(store, agent, memory=MemoryBindings(provider)) as (engine, _):
        yield Scene(name=name, store=store, engine=engine)
    if provider:
        await provider.close()
    await store.close()


def _provider(store: Store, kind: str | int | None) -> MemoryProvider | None:
    match kind:
        case None:
            return None
        case int():
            address = Address(url=f"http://127.0.0.1:{kind}")
            return HttpProvider(address, timeout_s=COMMIT_TIMEOUT_S, redaction=Redaction(), clock=_clock)
        case _:
            return Builtin(store, PlainExtractor(), clock=_clock)


def _agent(ground: Ground, remembering: Store | None, store: Store) -> ModelAgent:
    config = AgentConfig()
    prompt = Prompt(config, ground.home(), remembering.memories if remembering else None, _clock)
    model = ScriptedModel(lambda _: ["word "] * ANSWER_WORDS)
    return ModelAgent(model, Toolbox(), prompt, store.spending, agent=config, budget=BudgetConfig(), clock=_clock)


def _fact(number: int) -> Memory:
    """Return one of many facts, of which every tenth has to do with what is asked."""
    at = _clock.now_ms() + number
    what = f"tea in the garden of town {number}" if number % 10 == 0 else f"the {_THINGS[number % len(_THINGS)]} of {number}"
    text = f"{_VERBS[number % len(_VERBS)]} {what}, since they were {20 + number % 50}."
    return Memory(id=MemoryId(f"mem_{number:06}"), owner="local", text=text, created_at=at, updated_at=at)


async def _commits(ground: Ground) -> list[Line]:
    count = 200 if ground.quick else 1_000
    with printing_port("bench.provider") as (port, _):
        return [await _committed(ground, name, kind, count) for name, kind in (("builtin", "builtin"), ("http", port))]


async def _committed(ground: Ground, name: str, kind: str | int, count: int) -> Line:
    """Seal many conversations at once, and measure until all are paid in the background."""
    async with _conversations(ground, kind, count) as (store, _, session_ids):
        began = time.perf_counter()
        await store.segments.seal_all(session_ids, _clock.now_ms())
        while await _owed(store):
            await _clock.sleep_ms(10)
        seconds = time.perf_counter() - began
    return Line(
        what=f"{name}: commits",
        measured=count / seconds,
        unit=Unit.RATE,
        detail=f"{count:,} segments of one turn in {seconds:.2f} s, {Tuning().commits_max} at once",
        note="in the background, each durable when it is counted; the builtin extracts with plain rules, without a model",
    )


async def _drained(ground: Ground) -> Line:
    count = DRAIN_SESSIONS // 5 if ground.quick else DRAIN_SESSIONS
    with printing_port("bench.provider", str(DRAIN_ANSWER_MS)) as (port, _):
        async with _conversations(ground, port, count) as (store, engine, _):
            owed, began = await _owed(store), time.perf_counter()
            await engine.drain(round(DRAIN_MAX_S * 1000))
            seconds, left = time.perf_counter() - began, await _owed(store)
    return Line(
        what=f"a shutdown that owes {owed:,} sessions",
        measured=seconds,
        unit=Unit.SECONDS,
        detail=f"{left} left; the provider takes {DRAIN_ANSWER_MS} ms each",
        bar=f"all within {DRAIN_MAX_S:.0f} s",
        met=owed == count and not left and seconds < DRAIN_MAX_S,
    )


@asynccontextmanager
async def _conversations(
    ground: Ground, kind: str | int, count: int
) -> AsyncGenerator[tuple[Store, Engine, list[SessionId]]]:
    """Have many conversations of one turn each, none of which is committed yet."""
    store, _ = await ground.store("sqlite")
    provider = _provider(store, kind)
    agent = ScriptedAgent([Say("I will.")])
    async with workload.running(store, agent, memory=MemoryBindings(provider)) as (engine, watched):
        yield store, engine, await asyncio.gather(*(_talk(engine, watched, number) for number in range(count)))
    if provider:
        await provider.close()
    await store.close()


async def _talk(engine: Engine, watched: Watched, number: int) -> SessionId:
    receipt = await engine.inbox.accept(_message(f"talk:{number}", f"Remember that I was in town {number}."))
    await watched.ended(receipt.turn_id)
    return receipt.session_id


async def _owed(store: Store) -> int:
    return sum(each.count for each in await store.segments.unpaid("local"))


def _message(conversation: str, text: str) -> Inbound:
    return Inbound(conversation=conversation, text=text, channel="chat")
