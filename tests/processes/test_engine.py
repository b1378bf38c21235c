"""Promises about background commands on the real engine and both stores, from the model's call to the answer in the chat."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.loop import ModelAgent
from holdfast.agent.models.port import Request, ToolMessage, UserMessage
from holdfast.agent.models.scripted import Step, call
from holdfast.agent.processes.background import BackgroundProcesses
from holdfast.agent.processes.control import Control
from holdfast.agent.processes.monitor import ProcessMonitor
from holdfast.agent.tools.files import Workspace
from holdfast.agent.tools.hosts import Hosts
from holdfast.agent.tools.process import ProcessTool
from holdfast.agent.tools.terminal import Terminal
from holdfast.clock import SystemClock
from holdfast.config import TerminalConfig
from holdfast.core.effects import CallState
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.processes import ProcessState
from holdfast.core.turns import SETTLED, Mode, Turn
from holdfast.engine.engine import Engine
from holdfast.sandbox import Profile, Sandbox
from holdfast.store.store import Store
from tests.agent.world import agent_of, question_of
from tests.engine.world import TARGET, Open, RecordingCarrier, message, opened, running_engine, settled, until
from tests.processes.scene import ENVIRONMENT, HOME_ID, SOURCE, end_all, in_group


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    end_all(tmp_path)


@dataclass
class Gateway:
    """An engine with a terminal, and what its chat got to see."""

    engine: Engine
    store: Store
    background: BackgroundProcesses
    carrier: RecordingCarrier

    async def turns(self, receipt: Receipt, count: int) -> list[Turn]:
        """Return the turns of a session once there are so many, all at rest."""

        async def look() -> list[Turn] | None:
            found = await self.store.turns.list(receipt.session_id)
            return found if len(found) >= count and all(turn.state in SETTLED for turn in found) else None

        return await until(look)

    async def result(self, receipt: Receipt) -> str:
        (used, *_) = await self.store.journal.calls(receipt.turn_id)
        return used.result or ""


@asynccontextmanager
async def working(
    store: Store, home: Path, script: Any, **config: Any
) -> AsyncIterator[tuple[ModelAgent, BackgroundProcesses]]:
    """Yield an agent that has a terminal, and the commands that it starts."""
    workspace = home / "workspace"
    workspace.mkdir(exist_ok=True)
    background = BackgroundProcesses(store.processes, home, HOME_ID)
    sandbox = Sandbox(description="off", profile=Profile(writable=(workspace,)))
    hosts = Hosts(store.questions.is_granted, SystemClock())
    # What is shown here is what becomes of commands, not who is asked about them.
    allowed = TerminalConfig(**{"approval": "allow", **config})
    terminal = Terminal(allowed, Workspace(workspace), background, sandbox, ENVIRONMENT, hosts)
    process = ProcessTool(store.processes, store.sessions, background)
    agent, _ = agent_of(script, store, terminal.tool(), process.tool(), home=home)
    yield agent, background
    await background.pool.close()


@asynccontextmanager
async def gateway(store: Store, home: Path, script: Any, **config: Any) -> AsyncIterator[Gateway]:
    """Run an engine whose agent has a terminal; what it started outlives it."""
    carrier = RecordingCarrier()
    engines: list[Engine] = []

    async def accept(note: Inbound) -> Receipt:
        return await engines[0].inbox.accept(note)

    async with working(store, home, script, **config) as (agent, background):
        monitor = ProcessMonitor(store.processes, store.sessions, background, accept)
        parts: dict[str, Any] = {"carriers": {"chat": carrier}, "components": {"processes": monitor.run}}
        async with running_engine(store, agent, **parts) as engine:
            engines.append(engine)
            yield Gateway(engine=engine, store=store, background=background, carrier=carrier)


def last(request: Request) -> str:
    """Return what a model was last told by a person or a note; nothing when it was a tool that spoke last."""
    final = request.messages[-1]
    return final.text if isinstance(final, UserMessage) else ""


def starts(**args: Any) -> Any:
    """A model that starts a command when it is asked to, and answers a note with what it read there."""

    def script(request: Request) -> Step:
        if "[System note: the background process" in last(request):
            return [f"heard: {'exit code 3' in last(request)}"]
        return [call("terminal", background=True, **args)] if last(request) else ["started"]

    return script


async def test_a_promise_is_kept_as_a_turn_of_the_same_chat(open_it: Open, tmp_path: Path) -> None:
    """A5: true, no note, and the end arrives where the turn that started it was read."""
    async with opened(open_it) as store:
        script = starts(command="echo well; exit 3", notify_on_complete=True)
        async with gateway(store, tmp_path, script) as here:
            receipt = await here.engine.inbox.accept(message("go", reply_to=TARGET, source=SOURCE))
            first, told = await here.turns(receipt, 2)
            said = json.loads(await here.result(receipt))
            assert said["notify_on_complete"] is True
            assert "notify_unsupported" not in said
            assert (told.mode, told.delivers_later, told.reply_to) == (Mode.DETACHED, True, TARGET)
            await until(lambda: here.carrier.texts(told))
            assert here.carrier.texts(first) == ["started"]
            assert here.carrier.texts(told) == ["heard: True"]
            (row,) = await store.processes.list("local")
            assert (row.state, row.exit_code, row.turn_id) == (ProcessState.EXITED, 3, first.id)


async def test_where_it_cannot_be_kept_the_agent_polls_instead(open_it: Open, tmp_path: Path) -> None:
    """A4: nobody watches and the result says so; A7: channel, chat, thread, user and session stay readable."""

    def script(request: Request) -> Step:
        final = request.messages[-1]
        if not isinstance(final, ToolMessage):
            return [call("terminal", command="echo well; exit 3", background=True, notify_on_complete=True)]
        said = json.loads(final.text)
        if "notify_unsupported" in said:
            return [call("process", action="wait", process_id=said["process_id"], timeout=20)]
        return [f"{said['state']} {said['exit_code']} {said['output']}"]

    async with opened(open_it) as store, gateway(store, tmp_path, script) as here:
        asked = message("go", mode=Mode.SYNCHRONOUS, delivers_later=False, source=SOURCE, channel="api")
        receipt = await here.engine.inbox.accept(asked)
        assert (await settled(store, receipt)).delivers_later is False
        said = json.loads(await here.result(receipt))
        assert said["notify_on_complete"] is False
        assert "`process` tool" in said["notify_unsupported"]
        (row,) = await store.processes.list("local")
        assert (row.notifies, row.patterns) == (False, ())

        async def over() -> bool:
            return (await store.processes.get(row.id)).state is ProcessState.EXITED

        await until(over)
        assert len(await store.turns.list(receipt.session_id)) == 1
        session = await store.sessions.get(receipt.session_id)
        assert (session.channel, session.source) == ("api", SOURCE)
        calls = await store.journal.calls(receipt.turn_id)
        assert [each.state for each in calls] == [CallState.OK, CallState.OK]
        assert json.loads(calls[1].result or "")["exit_code"] == 3


async def test_an_end_that_no_gateway_saw_is_a_turn_of_the_next_one(open_it: Open, tmp_path: Path) -> None:
    """A8: the notification is delivered later, and once."""
    script = starts(command="read line; exit 3", notify_on_complete=True)
    async with opened(open_it) as store:
        async with gateway(store, tmp_path, script) as here:
            receipt = await here.engine.inbox.accept(message("go", reply_to=TARGET))
            await here.turns(receipt, 1)
        (row,) = await store.processes.running(HOME_ID)
        here.background.close_input(row)
        assert (await here.background.wait(row, 20)).exit_code == 3
        async with gateway(store, tmp_path, script) as here:
            _, told = await here.turns(receipt, 2)
            await until(lambda: here.carrier.texts(told))
            assert here.carrier.texts(told) == ["heard: True"]
            assert await store.processes.running(HOME_ID) == []
        async with gateway(store, tmp_path, script) as here:
            await settled(store, await here.engine.inbox.accept(message("again", conversation="chat:2")))
            assert len(await store.turns.list(receipt.session_id)) == 2


async def test_a_person_ends_a_process_and_the_agent_hears_of_it(open_it: Open, tmp_path: Path) -> None:
    async with opened(open_it) as store:
        script = starts(command="echo up; exec sleep 60", notify_on_complete=True)
        async with gateway(store, tmp_path, script) as here:
            receipt = await here.engine.inbox.accept(message("go"))
            await here.turns(receipt, 1)
            (row,) = await store.processes.list("local")
            control = Control(store.processes, here.background)
            output = await until(lambda: _printed(control, row.id))
            assert (output.text, output.begin, output.end) == ("up\n", 0, 3)
            killed = await control.kill(row.id)
            assert (killed.state, killed.exit_code) == (ProcessState.EXITED, -15)
            _, told = await here.turns(receipt, 2)
            assert "signal 15 (SIGTERM)" in await store.turns.asked(told.id)
            assert await control.kill(row.id) == await store.processes.get(row.id)


async def _printed(control: Control, process_id: Any) -> Any:
    found = await control.output(process_id, 0, 100)
    return found if found.text else None


async def test_a_cancelled_turn_takes_its_command_with_it(open_it: Open, tmp_path: Path) -> None:
    script: list[Step] = [[call("terminal", command="echo $$ > pid; sleep 60")]]
    async with opened(open_it) as store, gateway(store, tmp_path, script) as here:
        receipt = await here.engine.inbox.accept(message("go"))
        file = tmp_path / "workspace" / "pid"
        group = int(await until(lambda: file.exists() and file.read_text()))
        await here.engine.cancel(receipt.turn_id)
        await until(lambda: in_group(group) == [])


async def test_a_command_that_nothing_confines_runs_once_somebody_consents(open_it: Open, tmp_path: Path) -> None:
    """SECURITY 9: the turn is parked, and what was shown is what runs."""
    command = "mkdir -p build && echo ran >> proof && rm -rf build"
    script: list[Step] = [[call("terminal", command=command)], ["done"]]
    async with opened(open_it) as store, gateway(store, tmp_path, script, approval="ask") as here:
        receipt = await here.engine.inbox.accept(message("go"))
        asked = await question_of(store, receipt)
        assert asked.question.detail["command"] == command
        assert not (tmp_path / "workspace" / "proof").exists()
        await here.engine.answer(receipt.turn_id, asked.question.id, "once")
        await settled(store, receipt)
        assert (tmp_path / "workspace" / "proof").read_text() == "ran\n"
        assert (await here.result(receipt)).startswith("Exit code 0")
