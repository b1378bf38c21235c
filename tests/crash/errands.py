"""Whole lives of a gateway whose agent hands tasks on, each in a process of its own, each cut short on command.

`python -m tests.crash.errands` forks a life for every line of its input, as `tests.crash.life` does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.agent.scripted import CallTool, Line, Say, ScriptedAgent
from holdfast.agent.toolbox import Toolbox
from holdfast.agent.tools.delegate import NAME, delegate_tool
from holdfast.clock import SystemClock
from holdfast.config import DelegateConfig, GatewayConfig, SessionsConfig
from holdfast.core.delegation import CHANNEL
from holdfast.core.intake import Inbound
from holdfast.core.redaction import Redaction
from holdfast.core.sessions import Session
from holdfast.core.turns import SETTLED, Mode
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.inbox import Inbox
from holdfast.engine.tuning import Tuning
from holdfast.ids import SessionId
from holdfast.ports import Assignment
from holdfast.store.audit import audit
from holdfast.store.migrations import migrate
from holdfast.store.opening import store_path
from holdfast.store.store import Store
from tests.crash.forking import serve
from tests.crash.life import Fuse, FusedDatabase, When, lived, say
from tests.crash.world import until

SETTINGS = Tuning(batch_ms=1, poll_ms=50)
GOALS = ("alpha", "beta", "gamma")
# Two tasks that nobody waits for, and one that is waited for.
LINES: Sequence[Line] = (
    CallTool(NAME, {"tasks": [{"goal": GOALS[0]}, {"goal": GOALS[1]}], "background": True}),
    CallTool(NAME, {"goal": GOALS[2]}, report=lambda call: str(call.result)),
)
MESSAGE = Inbound(conversation="chat:1", text="go", channel="chat", dedupe_key="chat:first", mode=Mode.DETACHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Errands:
    """One life; without `nth` it ends by itself, with it it is killed beside that point.

    A birth makes the store and does nothing with it.
    """

    home: str
    nth: int | None = None
    when: When = "before"
    birth: bool = False


def agent(store: Store) -> ScriptedAgent:
    accept = Inbox(store, GatewayConfig(), SessionsConfig(), Redaction(), SystemClock()).accept
    tool = delegate_tool(store, accept, DelegateConfig(children_max=9), look_s=0.05)

    def script(work: Assignment) -> Sequence[Line]:
        if work.session.channel == CHANNEL:
            return [Say(f"found {next(goal for goal in GOALS if goal in work.message)}")]
        return [Say("thank you")] if "has ended" in work.message else LINES

    return ScriptedAgent(script, toolbox=Toolbox([tool]))


async def live(life: Errands) -> None:
    fuse = Fuse(life.nth, life.when)
    database = FusedDatabase(store_path(Path(life.home)), fuse)
    await migrate(database, SystemClock().now_ms())
    store = Store(database)
    if life.birth:
        await store.close()
        return
    engine = Engine(Parts(store=store, agent=agent(store), tuning=SETTINGS))
    session_id = await lived(engine, work(engine, store))
    report = await describe(store, session_id)
    await store.close()
    say("report", json.dumps(report))


async def work(engine: Engine, store: Store) -> SessionId:
    receipt = await engine.inbox.accept(MESSAGE)
    await until(store, lambda: at_rest(store, receipt.session_id), "every task told")
    # What would come home twice would have come by now.
    await asyncio.sleep(3 * SETTINGS.poll_ms / 1000)
    return receipt.session_id


async def at_rest(store: Store, session_id: SessionId) -> bool:
    turns = await store.turns.list(session_id)
    return len(turns) >= 3 and all(turn.state in SETTLED for turn in turns)


async def describe(store: Store, session_id: SessionId) -> dict[str, Any]:
    turns = await store.turns.list(session_id)
    children = [each for each in await store.sessions.list("local", limit=50) if each.channel == CHANNEL]
    return {
        "states": [turn.state.value for turn in turns],
        "asked": [await store.turns.asked(turn.id) for turn in turns],
        "answer": str((await store.journal.read_turn(turns[0].id))[-1].data.get("text")),
        "children": sorted([await kind(store, each) for each in children]),
        "owed": len(await store.turns.unreported(0, 10)),
        "audit": await audit(store.database),
    }


async def kind(store: Store, child: Session) -> list[str]:
    """Return whether a child comes home by itself, and what became of it."""
    (turn,) = await store.turns.list(child.id)
    return [child.key.split(":")[1], child.state.value, turn.state.value]


if __name__ == "__main__":
    serve(Errands, live)
