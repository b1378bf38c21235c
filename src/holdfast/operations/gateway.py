"""The gateway itself: whether it is well, whether it takes work, what it is doing, and its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast import __version__
from holdfast.core.keys import ADMIN, LOCAL
from holdfast.core.obligations import Obligations
from holdfast.core.processes import ProcessState
from holdfast.core.segments import Debt, debt
from holdfast.core.turns import IN_FLIGHT, TurnState
from holdfast.errors import Damaged, NotReady, Rejected, Unavailable
from holdfast.ids import NodeId
from holdfast.operations import pages
from holdfast.operations.caller import Caller
from holdfast.operations.operation import operation

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.clock import Clock
    from holdfast.engine.engine import Engine
    from holdfast.operations.lifecycle import Lifecycle
    from holdfast.store.store import Store

TIMEOUT_MAX_S = 7 * 86_400
STORE_TIMEOUT_S = 2
# The health endpoints need no key, so they do not say what exactly is damaged.
DAMAGED = "the store is damaged; run: holdfast doctor"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """Who answers, and with what: `mcp` says of each server how it is.

    `unsafe` says that commands run unasked and without a sandbox.
    """

    model: str = ""
    demonstration: bool = False
    tools: Sequence[str] = ()
    sandbox: str = ""
    unsafe: bool = False
    mcp: Mapping[str, str] = field(default_factory=dict[str, str])


class Phase(StrEnum):
    """Where in its life a gateway is."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Who answers, and whether it can be given work.  `problem` is there also where it can, while part of it is damaged."""

    version: str
    node: NodeId
    pid: int
    state: Phase
    ready: bool
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A wish to end the gateway, or to have it begin anew.  `timeout` is seconds; None is what is configured."""

    restart: bool = False
    timeout: float | None = None

    def __post_init__(self) -> None:
        # Not a number is not between these either.
        if self.timeout is not None and not 0 <= self.timeout <= TIMEOUT_MAX_S:
            raise Rejected(f"timeout must be between 0 and {TIMEOUT_MAX_S} seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """A stop on its way: how many turns still run, and the seconds they have left."""

    restart: bool
    running: int
    seconds_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOff:
    """A node whose machine has a clock that is `off_ms` ahead or, below zero, behind; jobs and expiry do not go by it."""

    node: NodeId
    off_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A gateway at a glance.  `accepted` is `settled` and `in_flight` together, always.

    `memory` says what the segments in `obligations` wait for, whosever they are.  `clocks_off` has every node, this one or
    another, whose clock is off.  While the store does not answer there are no counts, and `problem` says so.
    """

    pid: int
    node: NodeId
    version: str
    home: str
    url: str
    store: str
    state: Phase
    ready: bool
    started_at: int
    uptime_s: float
    running: int
    agent: AgentView = AgentView()
    questions: int = 0
    # People of chat platforms who ask to be let in.
    pairings: int = 0
    processes: int = 0
    accepted: int = 0
    settled: int = 0
    in_flight: int = 0
    turns: Mapping[TurnState, int] = field(default_factory=dict[TurnState, int])
    obligations: Obligations | None = None
    memory: Debt | None = None
    boot: Sequence[str] = ()
    clocks_off: Sequence[ClockOff] = ()
    drain: Drain | None = None
    problem: str | None = None
    # What is known to be damaged of the store, in the words of its database; what is kept elsewhere is served.
    damage: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """The gateway, as far as the caller may see it."""

    store: Store
    caller: Caller
    clock: Clock
    engine: Engine
    lifecycle: Lifecycle
    # Called each time, because servers of tools come and go.
    describe: Callable[[], AgentView]

    @operation("GET /health", "Say that the gateway is alive", scope=None)
    async def health(self) -> Health:
        """Return who answers, without asking the store."""
        phase = self.lifecycle.phase
        return Health(
            version=__version__,
            node=self.engine.node_id,
            pid=os.getpid(),
            state=phase,
            ready=phase is Phase.READY,
            problem=DAMAGED if self.store.damage else None,
        )

    @operation("GET /ready", "Say whether new work will be done", scope=None)
    async def ready(self) -> Health:
        """Return that the gateway takes work and that its store answers.  Raises `NotReady`."""
        health = await self.health()
        try:
            async with asyncio.timeout(STORE_TIMEOUT_S):
                await self.store.nodes.probe(self.engine.node_id)
                if self.store.damage:
                    # Most damage is in old rows, and is met only there.
                    await self.store.intake.rehearse(self.clock.now_ms())
        except Damaged as error:
            raise NotReady(DAMAGED) from error
        except Unavailable as error:
            raise NotReady(str(error)) from error
        except TimeoutError:
            raise NotReady("the store does not answer") from None
        if not health.ready:
            raise NotReady(health.problem or f"the gateway is {health.state}")
        return health

    @operation("GET /api/status", "Show what the gateway does")
    async def status(self) -> Status:
        life = self.lifecycle
        glance = Status(
            pid=os.getpid(),
            node=self.engine.node_id,
            version=__version__,
            home="",
            url=life.url,
            store="",
            state=life.phase,
            ready=life.phase is Phase.READY,
            started_at=life.started_at,
            uptime_s=life.uptime_s,
            running=0,
        )
        if self.caller.owner != LOCAL:
            # Only the operator is told how much others ask and what this machine is like.
            return glance
        running, report = self.engine.running, self.engine.report
        return await self._with_counts(
            replace(
                glance,
                home=life.home,
                store=life.store,
                running=running,
                agent=self.describe(),
                boot=report.lines() if report else (),
                drain=life.drain(running),
                damage=tuple(self.store.damage),
            )
        )

    @operation("POST /api/stop", "End or restart the gateway", scope=ADMIN, status=202)
    async def stop(self, stop: Stop) -> Health:
        """Ask the gateway to drain and end.  A second request interrupts what still runs."""
        self.lifecycle.ask(stop)
        return await self.health()

    async def _with_counts(self, glance: Status) -> Status:
        owner, now = self.caller.owner, self.clock.now_ms()
        try:
            tally = await self.store.turns.tally()
            await self.store.nodes.probe(self.engine.node_id)
            obligations = await self.store.catalog.obligations()
            owed = debt(await self.store.segments.unpaid(), self._is_unreachable)
            questions = await self.store.questions.open(owner, limit=pages.SIZE_MAX)
            pairings = await self.store.people.pairings()
            at_work = await self.store.processes.list(owner, state=ProcessState.RUNNING, limit=pages.SIZE_MAX)
            off = await self.store.nodes.clocks_off()
        except Unavailable as error:
            return replace(glance, ready=False, problem=str(error))
        accepted = sum(tally.values())
        in_flight = sum(count for state, count in tally.items() if state in IN_FLIGHT)
        return replace(
            glance,
            accepted=accepted,
            settled=accepted - in_flight,
            in_flight=in_flight,
            turns=tally,
            obligations=replace(obligations, segments=owed.unpaid),
            memory=owed,
            questions=len(questions),
            pairings=sum(each.is_open(now) for each in pairings),
            processes=len(at_work),
            clocks_off=[ClockOff(node=node, off_ms=off_ms) for node, off_ms in off.items()],
        )

    def _is_unreachable(self, binding: str) -> bool:
        memory = self.engine.memory
        return memory is None or memory.of(binding) is None
