"""The faults: each begins at a random moment, lasts for a random while, and leaves everything mended behind it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from tests.chaos import model, receiver
from tests.chaos.world import Node, Setting, World
from tests.line import Line

# The others take a node for dead after five seconds.
PAST_LEASE_S = (6.0, 9.0)
FREEZE_S = (1.0, 4.0)
OUTAGE_S = (1.0, 4.0)
PARTITION_S = (1.0, 8.0)
DELAY_S = (0.05, 0.2)
DOWN_S = (0.0, 1.0)
STARTING_S = (0.05, 1.2)
SHORT_DRAIN_S, LONG_DRAIN_S = 0.3, 5.0
CLOCK_S = (30.0, 7_200.0)
FULL_S = (1.0, 4.0)
LOCKED_S = (1.0, 4.0)
_CHUNK = 1 << 16

BOTH = frozenset(Setting)
EMBEDDED = frozenset({Setting.EMBEDDED})
CLUSTER = frozenset({Setting.CLUSTER})

Act = Callable[[World, random.Random], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One kind of fault.  `act` returns what it has done, for the log."""

    name: str
    settings: frozenset[Setting]
    weight: int
    act: Act


def faults_for(world: World, without: frozenset[str]) -> list[Fault]:
    """Return the faults that are possible here."""
    left_out = impossible(world)
    found = [fault for fault in FAULTS if world.setting in fault.settings and fault.name not in left_out]
    return [fault for fault in found if not any(word in fault.name for word in without)]


def impossible(world: World) -> list[str]:
    """Return the faults that need what is not here: a disk that can be filled, a database that can be restarted."""
    able = {_fill: world.disk is not None, _restart_database: world.server is not None}
    return [fault.name for fault in FAULTS if world.setting in fault.settings and not able.get(fault.act, True)]


async def _kill(world: World, chance: random.Random) -> str:
    async with world.taking(chance) as node:
        await node.kill()
        await asyncio.sleep(chance.uniform(*DOWN_S))
        await node.start()
        return node.home.name


async def _kill_starting(world: World, chance: random.Random) -> str:
    """Kill a gateway, and its successor while that starts."""
    async with world.taking(chance) as node:
        await node.kill()
        node.spawn()
        after_s = chance.uniform(*STARTING_S)
        await asyncio.sleep(after_s)
        await node.kill()
        await node.start()
        return f"{node.home.name}, {after_s:.2f} s after its start"


async def _freeze(world: World, chance: random.Random) -> str:
    return await _stop_for(world, chance, chance.uniform(*FREEZE_S))


async def _outlast(world: World, chance: random.Random) -> str:
    return await _stop_for(world, chance, chance.uniform(*PAST_LEASE_S))


async def _stop_for(world: World, chance: random.Random, seconds: float) -> str:
    async with world.taking(chance) as node:
        node.signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            node.signal(signal.SIGCONT)
        await node.ready()
        return f"{node.home.name} for {seconds:.1f} s"


async def _drain(world: World, chance: random.Random) -> str:
    async with world.taking(chance) as node:
        node.signal(signal.SIGTERM)
        return await _comes_back(node, chance)


async def _stop_at_once(world: World, chance: random.Random) -> str:
    """Two signals: the second one means that nothing is waited for."""
    async with world.taking(chance) as node:
        node.signal(signal.SIGTERM)
        await asyncio.sleep(chance.uniform(0.05, 0.5))
        if node.process.poll() is None:
            node.signal(signal.SIGTERM)
        return await _comes_back(node, chance)


async def _comes_back(node: Node, chance: random.Random) -> str:
    try:
        status = await node.ended()
    except subprocess.TimeoutExpired:
        await node.kill()
        status = "nothing but SIGKILL"
    drain_s = chance.choice([SHORT_DRAIN_S, LONG_DRAIN_S])
    await node.start(gateway__drain_timeout=str(drain_s))
    if status == -signal.SIGKILL:
        # It was too slow, and its watchdog is there for that.
        node.ends.append(status)
    else:
        assert status in (0, -signal.SIGTERM), f"{node.home.name} ended with {status}"
    return f"{node.home.name}; from now on with {drain_s} s to drain"


async def _restart(world: World, chance: random.Random) -> str:
    async with world.taking(chance) as node:
        timeout_s = chance.choice([SHORT_DRAIN_S, LONG_DRAIN_S])
        before = await node.node()
        await node.run("restart", "--timeout", str(timeout_s))
        if before:
            await node.begins_anew(before)
        await node.ready()
        return f"{node.home.name} with {timeout_s} s to drain"


async def _jump(world: World, chance: random.Random) -> str:
    """Let the wall clock of one node jump, and jump back later."""
    node = chance.choice(world.nodes)
    offset_s = chance.choice([-1, 1]) * chance.uniform(*CLOCK_S)
    node.set_clock(offset_s)
    await asyncio.sleep(chance.uniform(*OUTAGE_S))
    node.set_clock(0)
    return f"{node.home.name} by {offset_s:+.0f} s"


async def _fill(world: World, chance: random.Random) -> str:
    assert world.disk
    filler, full_s = world.disk / "filler", chance.uniform(*FULL_S)
    world.fillings += 1
    try:
        await asyncio.to_thread(_write_until_full, filler)
        await asyncio.sleep(full_s)
    finally:
        filler.unlink(missing_ok=True)
    return f"for {full_s:.1f} s"


def _write_until_full(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (_CHUNK, 4_096, 1):
            with contextlib.suppress(OSError):
                while True:
                    os.write(file.fileno(), bytes(size))


async def _cut(world: World, chance: random.Random) -> str:
    """Break every connection of a node with its database, and refuse new ones."""
    return await _partition(world, chance, lambda node: _line(node).hang_up())


async def _black_hole(world: World, chance: random.Random) -> str:
    """Let nothing through between a node and its database, and tell neither."""
    return await _partition(world, chance, lambda node: _line(node).cut())


async def _lose_commit(world: World, chance: random.Random) -> str:
    """Let the database commit, and lose its answer."""
    return await _partition(world, chance, lambda node: _line(node).lose_answer(b"COMMIT"))


async def _partition(world: World, chance: random.Random, begin: Callable[[Node], None]) -> str:
    node, seconds = chance.choice(world.nodes), chance.uniform(*PARTITION_S)
    begin(node)
    try:
        await asyncio.sleep(seconds)
    finally:
        _line(node).mend()
    return f"{node.home.name} for {seconds:.1f} s"


async def _delay(world: World, chance: random.Random) -> str:
    node, seconds = chance.choice(world.nodes), chance.uniform(*PARTITION_S)
    _line(node).delay_s = DELAY_S
    try:
        await asyncio.sleep(seconds)
    finally:
        _line(node).delay_s = (0.0, 0.0)
    return f"{node.home.name} for {seconds:.1f} s"


def _line(node: Node) -> Line:
    assert node.line
    return node.line


async def _restart_database(world: World, _chance: random.Random) -> str:
    assert world.server
    async with world.database:
        await asyncio.to_thread(world.server.restart, "immediate")
    return "immediate"


_LOCKS = (
    "LOCK TABLE turns IN SHARE ROW EXCLUSIVE MODE",
    "LOCK TABLE entries IN SHARE MODE",
    "LOCK TABLE nodes IN ACCESS EXCLUSIVE MODE",
    "SELECT 1 FROM sessions FOR UPDATE",
    "SELECT 1 FROM turns ORDER BY ordinal DESC LIMIT 50 FOR UPDATE",
    "SELECT 1 FROM deliveries FOR UPDATE",
    "SELECT 1 FROM nodes FOR UPDATE",
)


async def _lock(world: World, chance: random.Random) -> str:
    """Hold rows or a table, as another program at the same database does."""
    statement, seconds = chance.choice(_LOCKS), chance.uniform(*LOCKED_S)
    with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
        connection = await asyncpg.connect(world.url, timeout=5)
        try:
            async with connection.transaction():
                await connection.execute(statement, timeout=5)
                await asyncio.sleep(seconds)
        finally:
            connection.terminate()
    return f"{statement} for {seconds:.1f} s"


def _model_is(mood: model.Mood) -> Act:
    async def act(world: World, chance: random.Random) -> str:
        seconds = chance.uniform(*OUTAGE_S)
        world.model.mood = mood
        await asyncio.sleep(seconds)
        world.model.mood = model.Mood.WELL
        return f"for {seconds:.1f} s"

    return act


def _receiver_is(mood: receiver.Mood) -> Act:
    async def act(world: World, chance: random.Random) -> str:
        seconds = chance.uniform(*OUTAGE_S)
        world.receiver.mood = mood
        await asyncio.sleep(seconds)
        world.receiver.mood = receiver.Mood.WELL
        return f"for {seconds:.1f} s"

    return act


def _catalogue() -> Iterator[Fault]:
    rows: list[tuple[str, frozenset[Setting], int, Act]] = [
        ("SIGKILL", BOTH, 5, _kill),
        ("SIGKILL during start", BOTH, 2, _kill_starting),
        ("SIGSTOP for seconds", BOTH, 2, _freeze),
        ("SIGSTOP past the lease", BOTH, 2, _outlast),
        ("SIGTERM", BOTH, 3, _drain),
        ("SIGTERM twice", BOTH, 2, _stop_at_once),
        ("holdfast restart", BOTH, 2, _restart),
        ("clock jump", BOTH, 2, _jump),
        ("disk full", EMBEDDED, 2, _fill),
        ("database: connections cut", CLUSTER, 2, _cut),
        ("database: black hole", CLUSTER, 2, _black_hole),
        ("database: delay of 50 to 200 ms", CLUSTER, 2, _delay),
        ("database: answer to COMMIT lost", CLUSTER, 3, _lose_commit),
        ("database: foreign locks", CLUSTER, 2, _lock),
        ("database: immediate restart", CLUSTER, 2, _restart_database),
        *((f"model: {mood}", BOTH, 1, _model_is(mood)) for mood in model.Mood if mood is not model.Mood.WELL),
        *((f"receiver: {mood}", BOTH, 1, _receiver_is(mood)) for mood in receiver.Mood if mood is not receiver.Mood.WELL),
    ]
    for name, settings, weight, act in rows:
        yield Fault(name=name, settings=settings, weight=weight, act=act)


FAULTS = tuple(_catalogue())
