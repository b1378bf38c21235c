"""A run: rounds of faults under load, each of which is calmed and judged before the next one begins."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from holdfast.store.audit import audit
from holdfast.store.opening import open_store
from tests.blackbox.gateway import until
from tests.blackbox.history import Entry, Outcome, Poll, Receipt
from tests.chaos import people
from tests.chaos.faults import Fault, faults_for, impossible
from tests.chaos.people import CAST, Caller, Unanswered
from tests.chaos.verdict import DISK_FULL, MODEL, Delivery, Round, Session, Slot, Tally, judge
from tests.chaos.world import Setting, World, world

FAULTS_PER_ROUND = 25
# Time from one fault to the next; most last longer than that, so that several happen together.
GAP_S = (0.3, 2.5)
WARM_UP_S = 1.0
FAULT_MAX_S = 120.0
CALM_S = 150.0
# How much later than its instant a job may begin.
LATE_S = 3.0
READERS = 12
ROUND = "round"
ANNOUNCEMENT = "[System note: the background"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question that waits for a person."""

    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A command in the background."""

    id: str


@dataclass(kw_only=True)
class Report:
    """What a run came to.  `log` has each fault with the second at which it began."""

    setting: Setting
    seed: int
    faults: Counter[str] = field(default_factory=Counter[str])
    figures: Counter[str] = field(default_factory=Counter[str])
    violations: list[str] = field(default_factory=list[str])
    log: list[str] = field(default_factory=list[str])
    left_out: list[str] = field(default_factory=list[str])
    impossible: list[str] = field(default_factory=list[str])
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What is wanted of a run: so many faults, or as many as there is time for."""

    setting: Setting
    seed: int
    faults: int | None = None
    duration_s: float | None = None
    without: frozenset[str] = frozenset()
    url: str | None = None
    keep: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How far the logs of the world were when a round began."""

    sends: int
    effects: int
    refused: int
    wrong: int
    fillings: int

    @classmethod
    def of(cls, there: World) -> Start:
        return cls(
            sends=len(there.receiver.sends),
            effects=len(there.began),
            refused=there.model.refused,
            wrong=len(there.model.wrong),
            fillings=there.fillings,
        )

    def excuses(self, there: World) -> frozenset[str]:
        """Return why turns may have failed since: the model was out of order, or the disk was full."""
        happened = {MODEL: there.model.refused > self.refused, DISK_FULL: there.fillings > self.fillings}
        return frozenset(words for words, true in happened.items() if true)


class Run:
    """One run in one world."""

    def __init__(self, orders: Orders, told: Callable[[str], None] = lambda _: None) -> None:
        self.report = Report(setting=orders.setting, seed=orders.seed)
        self._orders = orders
        self._told = told
        self._chance = random.Random(orders.seed)
        self._began = time.monotonic()
        # The sessions and processes of earlier rounds.
        self._known: frozenset[str] = frozenset()

    async def play(self) -> Report:
        async with world(self._orders.setting, self._orders.url) as there, _supervised(there):
            choice = faults_for(there, self._orders.without)
            self.report.left_out = sorted(self._orders.without)
            self.report.impossible = impossible(there)
            number = 0
            while (count := self._next_round()) > 0:
                number += 1
                await self._round(there, choice, number, count)
            ends = Counter(status for node in there.nodes for status in node.ends)
            if self._orders.keep:
                _keep(there, self._orders.keep)
            self.report.figures.update({f"ended by itself with status {each}": times for each, times in ends.items()})
        self.report.log.sort()
        self.report.seconds = time.monotonic() - self._began
        return self.report

    def _next_round(self) -> int:
        done = self.report.faults.total()
        if self._orders.faults is not None:
            return min(FAULTS_PER_ROUND, self._orders.faults - done)
        over = time.monotonic() - self._began > (self._orders.duration_s or 0)
        return 0 if over else FAULTS_PER_ROUND

    async def _round(self, there: World, choice: list[Fault], number: int, count: int) -> None:
        over, start = asyncio.Event(), Start.of(there)
        caller = Caller(there.nodes, f"r{number}n", random.Random(self._chance.random()))
        clients = [asyncio.create_task(act(caller, over)) for act in CAST]
        try:
            await asyncio.sleep(WARM_UP_S)
            await self._strike(there, choice, count)
            over.set()
            caller.calm_at = time.monotonic()
            ends = await asyncio.wait_for(asyncio.gather(*clients, return_exceptions=True), people.INSIST_S * 2)
            self.report.violations += [f"client: {each!r}" for each in ends if isinstance(each, BaseException)]
            found = await self._found(there, caller, start)
            self.report.violations += [f"{ROUND} {number}: {each}" for each in judge(found)]
            self._count(caller, found)
        except (Unanswered, TimeoutError, AssertionError) as error:
            self.report.violations.append(f"client: round {number} could not be judged: {error!r}")
        finally:
            for each in clients:
                each.cancel()
            await asyncio.gather(*clients, return_exceptions=True)
            await caller.close()
        self._told(f"{ROUND} {number}: {self.report.faults.total()} faults, {len(self.report.violations)} violations")

    async def _found(self, there: World, caller: Caller, start: Start) -> Round:
        """Wait until it is calm, and gather everything that there is to know."""
        status, notes = await self._calm(caller), caller.notes
        jobs = {nonce: await _slots(caller, nonce) for nonce in notes.jobs}
        sessions = {each.id: each for each in await _all(caller, "/api/sessions", Session)}
        conversations = {each.id for each in sessions.values() if not each.one_shot and each.id not in self._known}
        outcome = await self._outcome(caller, conversations)
        processes = [each.id for each in await _all(caller, "/api/processes", Process) if each.id not in self._known]
        self._known |= {*sessions, *processes}
        return Round(
            history=caller.history,
            outcome=outcome,
            tally=msgspec.convert(status, Tally),
            sessions=sessions,
            deliveries=await _all(caller, "/api/deliveries", Delivery),
            sends=there.receiver.sends[start.sends :],
            replies=notes.replies,
            jobs=jobs,
            alone=notes.alone,
            delivered=frozenset(notes.delivered),
            cancels=frozenset(notes.cancels),
            began=there.began[start.effects :],
            told=_told(outcome, processes),
            odd=[*notes.odd, *there.model.wrong[start.wrong :]],
            audit=await self._audit(there),
            excuses=start.excuses(there),
        )

    async def _strike(self, there: World, choice: list[Fault], count: int) -> None:
        """Begin one fault after the other, and wait until all are over."""
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                fault = self._chance.choices(choice, [each.weight for each in choice])[0]
                group.create_task(self._act(there, fault, random.Random(self._chance.random())))
                await asyncio.sleep(self._chance.uniform(*GAP_S))
                # Where all gateways are down or about to be, the next fault would only wait for them.
                await until(lambda: not all(node.lock.locked() for node in there.nodes), "a gateway is up", FAULT_MAX_S)

    async def _act(self, there: World, fault: Fault, chance: random.Random) -> None:
        began = time.monotonic() - self._began
        try:
            did = await fault.act(there, chance)
        except (AssertionError, TimeoutError, RuntimeError, OSError) as error:
            did = f"FAILED: {error}"
            self.report.violations.append(f"fault: {fault.name} at {began:.1f} s: {error}")
        self.report.faults[fault.name] += 1
        self.report.log.append(f"{began:8.1f} s  {fault.name}: {did}")
        self._told(f"{self.report.faults.total()} faults, {fault.name}")

    async def _calm(self, caller: Caller) -> dict[str, Any]:
        """Wait until nothing is owed any more, and return what the gateway says about it all."""
        status: dict[str, Any] = {}

        async def is_calm() -> bool:
            nonlocal status
            status = (await caller.insist("GET", "/api/status")).json()
            for asked in await _all(caller, "/api/approvals", Asked):
                await caller.answer_question(asked.turn_id)
            lost = [each for each in await _all(caller, "/api/deliveries?state=unknown", Delivery) if not each.repeats]
            due = max(caller.notes.jobs.values(), default=0) + LATE_S
            owed = (status["in_flight"], status["processes"], lost, *status["obligations"].values())
            return time.time() > due and not any(owed)

        self._told("calming")
        try:
            await until(is_calm, "everything is answered and sent", CALM_S)
        except TimeoutError:
            self.report.violations.append(f"unsettled: still owed after {CALM_S:.0f} s: {status['obligations']}")
        return status

    async def _outcome(self, caller: Caller, others: Set[str]) -> Outcome:
        """Read all sessions that a client has seen, and others, several at once; let every follower catch up."""
        self._told("reading everything")
        history = caller.history
        seen = (*history.acknowledged, *history.streams, *history.receipts)
        places = asyncio.Semaphore(READERS)

        async def look(session_id: str) -> tuple[list[Entry], Poll, list[Receipt]]:
            async with places:
                return await caller.look(session_id)

        await self._catch_up(caller)
        sessions = sorted({each.session_id for each in seen} | others)
        looks = dict(zip(sessions, await asyncio.gather(*map(look, sessions)), strict=True))
        return Outcome(
            journals={each: journal for each, (journal, _, _) in looks.items()},
            transcripts={each: poll.items for each, (_, poll, _) in looks.items()},
            turns={turn.id: turn for _, _, turns in looks.values() for turn in turns},
        )

    async def _catch_up(self, caller: Caller) -> None:
        """Let every follower see what is there, and then stop: late words may still come in afterwards."""
        for follower in caller.followers:
            session = (await caller.insist("GET", f"/api/sessions/{follower.stream.session_id}")).json()
            self.report.figures["stream connections"] += follower.connections
            try:
                await follower.caught_up(session["seq"])
            except TimeoutError as error:
                self.report.violations.append(f"stream: {error} of {follower.stream.session_id}")
            await caller.leave(follower)

    async def _audit(self, there: World) -> list[str]:
        """Run Holdfast's own audit of the rows; the embedded store belongs to its gateway until that has ended."""
        if there.setting is Setting.CLUSTER:
            return await _audited(there.url, there)
        (node,) = there.nodes
        async with node.lock:
            await node.kill()
            found = await _audited("sqlite", there)
            await node.start()
        return found

    def _count(self, caller: Caller, found: Round) -> None:
        history, figures = caller.history, self.report.figures
        turns = {ack.nonce: found.outcome.turns.get(ack.turn_id) for ack in history.acknowledged}
        figures["inputs acknowledged"] += len(turns)
        figures["requests"] += caller.notes.requests
        figures["requests repeated"] += caller.notes.retries
        for turn in turns.values():
            figures[_ENDS.get(turn.state, turn.state) if turn else "turns missing"] += 1
            figures["turns answered in full across an interruption"] += bool(
                turn and turn.state == "completed" and turn.attempt > 1
            )
        figures["entries streamed"] += sum(len(each.entries) for each in history.streams)
        figures["transcripts read"] += len(history.polls)
        figures["jobs"] += len(found.jobs)
        figures["jobs missed"] += sum(slot.outcome == "missed" for slots in found.jobs.values() for slot in slots)
        figures["sends received"] += len(found.sends)
        figures["sends labelled as repeats"] += sum(each.repeat for each in found.sends)
        mine, read = {turn.id for turn in turns.values() if turn}, {each.id for each in found.sends}
        banners = [each for each in found.deliveries if each.part <= 0 and each.turn_id in mine]
        figures["banners of a stop"] += len(banners)
        figures["banners of a stop that did not arrive"] += len({each.id for each in banners} - read)
        figures["effects"] += len(found.began)
        figures["background commands"] += len(found.told)


_ENDS = {
    "completed": "turns answered in full",
    "cancelled": "turns cancelled by their client",
    "failed": "turns failed because the model was away or the disk full",
    "interrupted": "turns given up after three interruptions or more",
}


@contextlib.asynccontextmanager
async def _supervised(there: World) -> AsyncIterator[None]:
    """Start gateways again that have ended by themselves, as a service manager does."""
    watching = [asyncio.create_task(node.supervise()) for node in there.nodes]
    try:
        yield
    finally:
        for each in watching:
            each.cancel()
        await asyncio.gather(*watching, return_exceptions=True)


def _keep(there: World, folder: Path) -> None:
    """Copy what the gateways have written to their logs."""
    folder.mkdir(parents=True, exist_ok=True)
    for node in there.nodes:
        shutil.copy(node.log, folder / f"{there.setting}-{node.log.name}")


async def _audited(url: str, there: World) -> list[str]:
    store = await open_store(url, there.nodes[0].home if url == "sqlite" else there.folder / "auditor")
    try:
        return await audit(store.database)
    finally:
        await store.close()


def _told(outcome: Outcome, processes: list[str]) -> dict[str, int]:
    """Return how often the end of each process was announced."""
    texts = [item.text for items in outcome.transcripts.values() for item in items if ANNOUNCEMENT in item.text]
    return {each: sum(each in text for text in texts) for each in processes}


async def _slots(caller: Caller, nonce: str) -> list[Slot]:
    """Return what became of a job; each turn that it began counts as acknowledged from here on."""
    job = (await caller.insist("GET", f"/api/jobs/{nonce}")).json()
    slots = msgspec.convert(job["slots"], list[Slot])
    for slot in slots:
        if slot.turn_id:
            turn = await caller.turn(slot.turn_id)
            caller.acknowledge(nonce, {"session_id": turn.session_id, "turn_id": turn.id})
            caller.notes.alone[nonce] = "cron_complete"
    return slots


async def _all(caller: Caller, path: str, kind: Any) -> list[Any]:
    found: list[Any] = []
    cursor = ""
    while True:
        query = f"limit=200&cursor={cursor}" if cursor else "limit=200"
        page = (await caller.insist("GET", f"{path}{'&' if '?' in path else '?'}{query}")).json()
        found += msgspec.convert(page["items"], list[kind])
        if not (cursor := page.get("next_cursor") or ""):
            return found
