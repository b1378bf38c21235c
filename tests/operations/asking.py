"""An agent that asks, and the services of a gateway in which it works."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.app.services import ServiceParts
from holdfast.clock import Clock, SystemClock
from holdfast.core.effects import Effect
from holdfast.core.processes import Process, ProcessEvent
from holdfast.core.questions import APPROVAL_CHOICES, About, Question, fingerprint
from holdfast.core.turns import TurnState
from holdfast.engine.engine import Engine
from holdfast.ids import CallId, ProcessId, SessionId, TurnId
from holdfast.operations.approvals import ApprovalView
from holdfast.operations.caller import Caller
from holdfast.operations.gateway import AgentView
from holdfast.operations.lifecycle import Lifecycle
from holdfast.operations.memories import Memories, Payment
from holdfast.operations.services import Services
from holdfast.operations.sessions import Message, Opening
from holdfast.ports import Assignment, Output, Stage, Use
from holdfast.store.store import Store
from holdfast.targets import Targets
from tests.engine.world import RecordingCarrier, until


class Shell:
    """A tool that only says what it would have done."""

    name = "terminal"
    effect = Effect.EFFECTFUL

    async def run(self, args: Mapping[str, object], key: str) -> str:
        return f"ran {args['command']}"


class Asking:
    """An agent that runs what it is told once it may; "ask …" is a question of its own."""

    async def run(self, work: Assignment, stage: Stage) -> str:
        said = work.message
        if said.startswith("ask "):
            return await stage.ask(Question(id="q", text=said[4:], choices=("north", "south")))
        if said == "/compress":
            return "compacted"
        question = Question(
            id="approve",
            text=f"May I run {said}?",
            about=About.APPROVAL,
            choices=APPROVAL_CHOICES,
            fingerprint=fingerprint(command=said),
            detail={"command": said},
        )
        use = Use(tool=Shell(), call_id=CallId("call_1"), args={"command": said}, question=question)
        (call,) = await stage.use_all([use])
        return f"{call.state}: {call.result}"


class Kept:
    """Background commands whose output is known, and which end at once when they are told to."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def output(self, process_id: ProcessId, after: int, limit: int, *, colours: bool = False) -> Output:
        text = "one\ntwo\nthree\n"[after : after + limit]
        return Output(text=text, begin=after, end=after + len(text))

    async def kill(self, process_id: ProcessId) -> Process:
        return await self.store.processes.end(process_id, ProcessEvent.EXIT, -9, 5)


def services_of(store: Store, engine: Engine, owner: str = "local", clock: Clock | None = None) -> Services:
    clock = clock or SystemClock()
    life = Lifecycle(clock, home="", store="")
    view = AgentView(model="mine:small", tools=("terminal",), sandbox="none")
    parts = ServiceParts(
        store=store,
        engine=engine,
        lifecycle=life,
        clock=clock,
        control=Kept(store),
        describe=lambda: view,
        targets=Targets({"chat": RecordingCarrier()}),
    )
    return parts.services(Caller(owner=owner))


async def waiting(services: Services, text: str, key: str = "chat") -> ApprovalView:
    """Send a message and return the question that its turn waits with."""
    session = await services.sessions.open(Opening(key=key))
    turn_id = (await services.sessions.send(session.id, Message(text=text))).turn_id

    async def look() -> ApprovalView | None:
        return next((each for each in (await services.approvals.list()).items if each.turn_id == turn_id), None)

    return await until(look)


async def paid(memories: Memories, session_id: SessionId, *, wait: bool = True) -> bool:
    """Commit a session, and return whether something was owed and is paid now."""
    return (await memories.commit(Payment(session_id=session_id, wait=wait))).committed


async def said(services: Services, turn_id: TurnId) -> str:
    async def look() -> bool:
        return (await services.turns.get(turn_id)).state is TurnState.COMPLETED

    await until(look)
    entries = await services.gateway.store.journal.read_turn(turn_id)
    return str(entries[-1].data["text"])
