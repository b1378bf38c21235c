"""The storm, by hand: many conversations that are owed to memory, in gateways that are struck again and again.

    python -m tests.memory.storm --sessions 300 --kills 20 [--postgres] [--builtin]

Gateways, two of them where the store is PostgreSQL, are killed, stopped with little time and held still, and begin each time
with another binding: one of three servers in rough weather, or the builtin with a model in the same.  People talk meanwhile,
cancel, fail, take back, leave and end.  At the end everything is paid, each segment to its owner, once in the ledger, in its
order and with what was said in it, and nobody has waited for that.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx2

from holdfast.store.opening import open_readonly
from tests.blackbox.gateway import Gateway, gateways, until
from tests.crash.world import query
from tests.memory.reckoning import BUILTIN, Ledger, Reckoning, Span, read, violations
from tests.memory.weather import COMMIT_MAX_S, RoughModel, RoughServer, now_ms
from tests.postgres import Server

SERVERS = 3
SPEAKERS = 24
LOOK_S = 0.03
# Long enough that few turns are cut off three times in a row, after which they are given up.
LIFE_S = (0.8, 2.5)
PAUSE_S = (0.2, 7.0)
HASTY_S = (0.3, 0.6)
STEPS = (1, 6)
CALM_S = 240.0
# A reply waits so long for what is recalled, once in a life; the rest is a machine with much to do.
RECALL_MAX_MS = 2_000
REPLY_MAX_MS = RECALL_MAX_MS + 3_000
# What a start costs others on the same machine.
AFTERMATH_MS = 1_000
GIVEN_UP_S = 12.0
STRIKES = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)


@dataclass(slots=True)
class Storm:
    """What is struck, what it speaks to, and what was seen of it."""

    nodes: Sequence[Gateway]
    servers: Sequence[RoughServer]
    model: RoughModel
    store_url: str
    chance: random.Random
    told: Callable[[str], None]
    hasty: bool = False
    said: dict[str, str] = field(default_factory=dict[str, str])
    seen: Counter[str] = field(default_factory=Counter[str])
    lives: list[Span] = field(default_factory=list[Span])
    pauses: list[Span] = field(default_factory=list[Span])
    disturbed: list[Span] = field(default_factory=list[Span])
    owners: Sequence[str] = ()
    kills: int = 0
    struck: int = 0
    _last: dict[int, str] = field(default_factory=dict[int, str])
    _begun: dict[int, tuple[int, str]] = field(default_factory=dict[int, tuple[int, str]])
    _nonces: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def nonce(self) -> str:
        return f"n{next(self._nonces):06d}"

    async def start(self, node: int, **settings: str) -> None:
        """Begin a life with whatever binding comes."""
        owner = self.chance.choice([each for each in self.owners if each != self._last.get(node)] or self.owners)
        self._last[node] = owner
        provider, _, url = owner.partition(":")
        chosen = {
            "memory__provider": provider,
            "memory__url": url,
            "memory__live_sessions": self.chance.choice(("2", "10", "1000")),
            "memory__idle_minutes": self.chance.choice(("0.01", "30")),
            "gateway__drain_timeout": f"{self.chance.uniform(0.5, 4):.1f}",
        }
        self._begun[node] = now_ms(), owner
        await self.nodes[node].start(**chosen | settings)

    async def ended(self, node: int) -> int:
        status = await self.nodes[node].ended()
        begun, owner = self._begun.pop(node)
        self.lives.append(Span(begun=begun, ended=now_ms(), owner=owner))
        return status

    def has_struck(self, times: int) -> bool:
        return self.struck >= times

    async def strike(self) -> None:
        kills = self.kills
        deck: list[signal.Signals] = []
        for number in range(1, kills + 1):
            await asyncio.sleep(self.chance.uniform(*(HASTY_S if self.hasty else LIFE_S)))
            deck = deck or self.chance.sample(STRIKES, len(STRIKES))
            node, by = self.chance.randrange(len(self.nodes)), deck.pop()
            begun = now_ms()
            await self._strike(node, by)
            self.disturbed.append(Span(begun=begun, ended=now_ms() + AFTERMATH_MS))
            self.struck += 1
            self.seen[by.name] += 1
            self.told(f"strike {number} of {kills}: {by.name} for node {node}, {len(self.said)} said")

    async def _strike(self, node: int, by: signal.Signals) -> None:
        gateway, begun = self.nodes[node], now_ms()
        gateway.signal(by)
        if by is signal.SIGSTOP:
            await asyncio.sleep(self.chance.uniform(*(HASTY_S if self.hasty else PAUSE_S)))
            gateway.signal(signal.SIGCONT)
            self.pauses.append(Span(begun=begun, ended=now_ms()))
            await gateway.ready()
            return
        expected = 0 if by is signal.SIGTERM else -by
        assert await self.ended(node) == expected, gateway.tail()
        await self.start(node)

    async def stop(self) -> None:
        for gateway in self.nodes:
            gateway.signal(signal.SIGTERM)
        for node, gateway in enumerate(self.nodes):
            assert await self.ended(node) == 0, gateway.tail()

    async def calm(self) -> None:
        """Let everything be paid, with nobody there to ask for it; in haste, what has failed lately is asked for."""
        for server in self.servers:
            server.calm = True
        self.model.calm = True
        await self.stop()
        for node in range(len(self.nodes)):
            await self.start(node, memory__idle_minutes="0.001")
        await self._none("turns", "queued", "running", "waiting")
        if self.hasty:
            await self._ask()
        await self._none("segments", "open", "sealed", "committing")

    async def _ask(self) -> None:
        """Ask for everything that is owed."""
        store = await open_readonly(self.store_url, self.nodes[0].home)
        owed = "SELECT DISTINCT session_id FROM segments WHERE state IN ('open', 'sealed', 'committing')"
        async with httpx2.AsyncClient(base_url=self.nodes[0].url, timeout=CALM_S, trust_env=False) as web:
            for (session_id,) in await query(store.database, owed):
                await web.post("/api/memory/commit", json={"session_id": session_id})
        await store.close()

    async def _none(self, table: str, *states: str) -> None:
        """Return when nothing is in such a state any more."""
        store = await open_readonly(self.store_url, self.nodes[0].home)
        among = ", ".join(f"'{state}'" for state in states)
        count = f"SELECT COUNT(*) FROM {table} WHERE state IN ({among})"

        async def is_none() -> bool:
            return await query(store.database, count) == [(0,)]

        try:
            await until(is_none, f"no {table} are {states}:\n{self.nodes[0].tail()}", CALM_S)
        finally:
            await store.close()

    async def reckon(self) -> tuple[Ledger, list[int]]:
        store = await open_readonly(self.store_url, self.nodes[0].home)
        try:
            ledger = await read(store)
            given = sorted((each for server in self.servers for each in server.given), key=lambda each: each.number)
            reckoning = Reckoning(ledger=ledger, given=given, lives=self.lives, pauses=self.pauses, said=self.said)
            found = await violations(store, reckoning)
        finally:
            await store.close()
        waits = reckoning.waits(self.disturbed)
        if max(waits, default=0) > REPLY_MAX_MS or sum(took >= RECALL_MAX_MS for took in waits) > 2 * len(self.lives):
            found.append(f"M10 the longest of {len(waits)} undisturbed replies took {waits[-5:]} ms")
        torn = [gateway.log for gateway in self.nodes if "Traceback" in gateway.log.read_text()]
        found += [f"there is a traceback in {log}:\n{log.read_text()[-4_000:]}" for log in torn]
        assert not found, "\n".join(found[:40])
        return ledger, waits


class Speaker:
    """Somebody who talks, to whichever node answers, and says everything until it was heard."""

    def __init__(self, storm: Storm, webs: Sequence[httpx2.AsyncClient]) -> None:
        self._storm = storm
        self._webs = webs
        self._chance = storm.chance

    async def talk(self, number: int) -> None:
        """Have one conversation, which ends in one way or another, or is simply left."""
        session = await self._open(f"storm-{number}")
        for _ in range(self._chance.randint(*STEPS)):
            step = self._chance.choices(
                (self._say, self._fail, self._cancel, self._take_back, self._commit, self._linger), (60, 6, 8, 14, 12, 6)
            )
            await step[0](session)
            await asyncio.sleep(self._chance.uniform(0, 0.2))
        leave = self._chance.choices((self._end, self._command, self._renew, self._abandon), (20, 30, 15, 35))
        await leave[0](session)

    async def _say(self, session: str) -> str | None:
        turn = await self._send(session, "script: say I heard that")
        return turn if await self._rests(turn) == "completed" else None

    async def _fail(self, session: str) -> None:
        await self._rests(await self._send(session, "script: says 400 no"))

    async def _cancel(self, session: str) -> None:
        turn = await self._send(session, "script: stream 400 at 20")
        await asyncio.sleep(self._chance.uniform(0, 0.5))
        await self._insist("POST", f"/api/turns/{turn}/cancel", {})
        await self._rests(turn)

    async def _take_back(self, session: str) -> None:
        if await self._say(session):
            await self._message(session, "/undo")

    async def _commit(self, session: str) -> None:
        """Ask for a commit, once; whoever asks may be disappointed."""
        body = {"session_id": session, "wait": self._chance.random() < 0.5}
        with contextlib.suppress(httpx2.TransportError):
            answer = await self._chance.choice(self._webs).post("/api/memory/commit", json=body, timeout=2 * COMMIT_MAX_S)
            self._storm.seen[f"commit {answer.status_code}"] += 1

    async def _linger(self, session: str) -> None:
        """Say something before a strike and behind it, in which time another binding may have come."""
        await self._say(session)
        strikes = self._storm.struck + 1
        if strikes <= self._storm.kills:
            await until(partial(self._storm.has_struck, strikes), "there is another strike")
        await self._say(session)

    async def _end(self, session: str) -> None:
        await self._insist("POST", f"/api/sessions/{session}/end", {})

    async def _command(self, session: str) -> None:
        await self._message(session, self._chance.choice(("/new", "/stop")))

    async def _renew(self, session: str) -> None:
        await self._insist("POST", "/api/sessions", {"previous_session_id": session})

    async def _abandon(self, _session: str) -> None:
        """Just leave."""

    async def _open(self, key: str) -> str:
        return (await self._insist("POST", "/api/sessions", {"key": key}))["id"]

    async def _send(self, session: str, script: str) -> str:
        nonce = self._storm.nonce()
        text = f"{nonce} {script}"
        receipt = await self._message(session, text, nonce)
        self._storm.said[receipt["turn_id"]] = text
        return receipt["turn_id"]

    async def _message(self, session: str, text: str, nonce: str = "") -> Any:
        return await self._insist("POST", f"/api/sessions/{session}/messages", {"text": text}, nonce or self._storm.nonce())

    async def _rests(self, turn: str) -> str:
        """Return how a turn ended; one that was cut off too often stays so."""
        deadline = time.monotonic() + GIVEN_UP_S
        while True:
            state = (await self._insist("GET", f"/api/turns/{turn}"))["state"]
            if state in ("completed", "failed", "cancelled") or (state == "interrupted" and time.monotonic() > deadline):
                self._storm.seen[state] += 1
                return state
            await asyncio.sleep(LOOK_S)

    async def _insist(self, method: str, path: str, body: object = None, key: str = "") -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        while True:
            with contextlib.suppress(httpx2.TransportError):
                answer = await self._chance.choice(self._webs).request(method, path, json=body, headers=headers)
                if answer.is_success:
                    return answer.json()
                assert answer.status_code in (409, 503), f"{path}: {answer.text}"
                self._storm.seen[f"answered {answer.status_code}"] += 1
            await asyncio.sleep(LOOK_S)


async def speak(storm: Storm, sessions: int) -> None:
    """Let everybody speak until there have been so many conversations, as many before each strike as before any other."""
    numbers = iter(range(sessions))
    async with contextlib.AsyncExitStack() as stack:
        webs = [
            await stack.enter_async_context(httpx2.AsyncClient(base_url=node.url, timeout=4, trust_env=False))
            for node in storm.nodes
        ]

        async def talk_each() -> None:
            for number in numbers:
                strikes = number * (storm.kills + 1) // sessions
                await until(partial(storm.has_struck, strikes), "there is another strike")
                await Speaker(storm, webs).talk(number)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(SPEAKERS, sessions)):
                group.create_task(talk_each())


@contextlib.asynccontextmanager
async def house(
    store_url: str,
    seed: int,
    *,
    builtin: bool = False,
    hasty: bool = False,
    told: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Storm]:
    """Have everything ready and started."""
    counter = itertools.count(1)
    chance = random.Random(seed)
    async with contextlib.AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(RoughServer(random.Random(seed + number), lambda: next(counter)).running())
            for number in range(SERVERS)
        ]
        model = RoughModel(chance=random.Random(seed))
        await stack.enter_async_context(model.running())
        settings = {
            "store__url": store_url,
            "gateway__resume": "auto",
            "memory__commit_timeout": str(COMMIT_MAX_S),
            "model__name": "openai:scripted",
            "model__base_url": model.url,
            "model__api_key": "a-key-for-nobody",
        }
        nodes = stack.enter_context(gateways(1 if store_url == "sqlite" else 2, **settings))
        owners = [BUILTIN] if builtin else [*(server.owner for server in servers), BUILTIN]
        storm = Storm(
            nodes=nodes,
            servers=servers,
            model=model,
            store_url=store_url,
            chance=chance,
            told=told,
            hasty=hasty,
            owners=owners,
        )
        for node in range(len(nodes)):
            await storm.start(node)
        yield storm


async def storm_over(storm: Storm, sessions: int, kills: int) -> tuple[Ledger, list[int]]:
    """Let it storm, and reckon."""
    storm.kills = kills
    async with asyncio.TaskGroup() as group:
        group.create_task(speak(storm, sessions))
        group.create_task(storm.strike())
    storm.told("calm")
    await storm.calm()
    await storm.stop()
    return await storm.reckon()


def figures(storm: Storm, ledger: Ledger, waits: Sequence[int]) -> str:
    """Say what there was."""
    given = [each for server in storm.servers for each in server.given]
    again = len(given) - len({each.segment_id for each in given})
    states = Counter(turn["state"] for turn in ledger.turns.values())
    owners = Counter("builtin" if segment["owner"] == BUILTIN else "http" for segment in ledger.segments.values())
    moods = sum((server.moods for server in storm.servers), Counter[str]())
    waits = waits or [0]
    median, most = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    slow = sum(took >= RECALL_MAX_MS for took in waits)
    lines = (
        f"turns: {dict(states)}, {len(ledger.undone)} undone; segments: {dict(owners)}, all committed",
        f"servers were given {len(given)}, {again} of them again; weather: {dict(moods)}",
        f"extractions: {storm.model.extractions}, {len(ledger.facts)} facts, each once",
        f"{len(waits)} undisturbed replies: median {median} ms, 99 % {most} ms, longest {waits[-1]} ms, {slow} over 2 s",
        f"{len(storm.lives)} lives; seen: {dict(storm.seen)}",
    )
    return "\n".join(lines)


async def main() -> None:
    parser = argparse.ArgumentParser(
        description="Conversations owed to memory, in gateways that are struck again and again."
    )
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--postgres", action="store_true", help="two nodes on PostgreSQL instead of one on SQLite")
    parser.add_argument("--builtin", action="store_true", help="the builtin alone")
    chosen = parser.parse_args()

    def told(words: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {words}", file=sys.stderr, flush=True)

    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(Server()).create_database("storm") if chosen.postgres else "sqlite"
        async with house(url, chosen.seed, builtin=chosen.builtin, told=told) as storm:
            ledger, waits = await storm_over(storm, chosen.sessions, chosen.kills)
            print(f"{chosen.sessions} sessions, {chosen.kills} strikes, {time.monotonic() - began:.0f} s")
            print(figures(storm, ledger, waits))


if __name__ == "__main__":
    asyncio.run(main())
