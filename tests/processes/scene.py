"""A conversation on a real store with real processes beside it; whatever it started is gone when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast.agent.processes.background import FOLDER, BackgroundCommand, BackgroundProcesses
from holdfast.agent.processes.folder import ProcessFolder, ProcessPhase
from holdfast.agent.processes.monitor import ProcessMonitor
from holdfast.clock import Clock, SystemClock
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.processes import Process
from holdfast.core.sessions import Session, Source
from holdfast.core.turns import Turn
from holdfast.ids import new_session_id, new_turn_id
from holdfast.offload.pool import Pool
from holdfast.store.opening import open_store
from holdfast.store.store import Store
from tests import machine

HOME_ID = "home_1"
ENVIRONMENT = {"PATH": machine.PATH}
SOURCE = Source(chat_id="42", chat_name="chat", chat_type="private", thread_id="7", user="someone")


@dataclass
class Scene:
    """One home, one session, one turn in it."""

    home: Path
    store: Store
    session: Session
    turn: Turn
    background: BackgroundProcesses
    clock: Clock
    accepted: list[Inbound] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        folder = self.home / "workspace"
        folder.mkdir(exist_ok=True)
        return folder

    async def start(self, text: str, **changes: Any) -> Process:
        argv = ["/bin/sh", "-c", text]
        command = BackgroundCommand(text=text, argv=argv, workdir=self.workspace, environment=ENVIRONMENT, **changes)
        return await self.background.start(command, self.session, self.turn)

    async def accept(self, message: Inbound) -> Receipt:
        """The way in, as the inbox is, remembering what came through it."""
        now = self.clock.now_ms()
        receipt = await self.store.intake.accept(message, new_turn_id(now), new_session_id(now), now)
        if not receipt.duplicate:
            self.accepted.append(message)
        return receipt

    def monitor(self) -> ProcessMonitor:
        return ProcessMonitor(self.store.processes, self.store.sessions, self.background, self.accept, clock=self.clock)

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Run a monitor for as long as the context lasts."""
        running = asyncio.create_task(self.monitor().run())
        try:
            yield
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running

    def output(self, process: Process) -> bytes:
        return self.background.folder(process).read(0, 10**8).data


@asynccontextmanager
async def scene(home: Path, clock: Clock | None = None, **changes: Any) -> AsyncIterator[Scene]:
    """Open a scene, and leave nothing of it running."""
    try:
        async with opened(home, clock, **changes) as here:
            yield here
    finally:
        end_all(home)


@asynccontextmanager
async def opened(home: Path, clock: Clock | None = None, **changes: Any) -> AsyncIterator[Scene]:
    """Open the store of a scene; the same home is the same scene again."""
    clock = clock or SystemClock()
    home.mkdir(exist_ok=True)
    store, pool = await open_store("sqlite", home), Pool()
    try:
        now = clock.now_ms()
        message = Inbound(
            conversation="telegram:42", text="go", channel="telegram", source=SOURCE, dedupe_key="first",
            reply_to="telegram:42",
        )  # fmt: skip
        receipt = await store.intake.accept(message, new_turn_id(now), new_session_id(now), now)
        session, turn = await store.sessions.get(receipt.session_id), await store.turns.get(receipt.turn_id)
        background = BackgroundProcesses(store.processes, home, HOME_ID, clock=clock, pool=pool, **changes)
        yield Scene(home=home, store=store, session=session, turn=turn, background=background, clock=clock)
    finally:
        await pool.close()
        await store.close()


def end_all(home: Path) -> None:
    """Kill every command and supervisor of a home."""
    for path in (home / FOLDER).glob("*"):
        condition = ProcessFolder(path).condition()
        if condition.phase is ProcessPhase.RUNNING and condition.supervisor:
            os.kill(condition.supervisor.pid, signal.SIGKILL)
        if condition.command and condition.command.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(condition.command.pid, signal.SIGKILL)


def in_group(group: int) -> list[int]:
    """Return who is alive in a process group."""
    found: list[int] = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            with contextlib.suppress(OSError):
                state, _, member, *_ = (each / "stat").read_bytes().rpartition(b")")[2].split()
                if int(member) == group and state not in (b"Z", b"X"):
                    found.append(int(each.name))
    return found


def unable(turn: Turn) -> Turn:
    """Return a turn as one whose channel cannot deliver later."""
    return replace(turn, delivers_later=False)
