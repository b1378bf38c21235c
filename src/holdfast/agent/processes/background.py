"""Background commands: the gateway starts them, finds them again after a restart, and reaches them through their folders."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from holdfast.agent.processes import supervisor
from holdfast.agent.processes.folder import CommandSpec, Condition, ProcessFolder, ProcessPhase
from holdfast.agent.processes.identity import is_supported
from holdfast.clock import Clock, SystemClock
from holdfast.core.processes import Process, ProcessState
from holdfast.core.redaction import Redaction
from holdfast.core.sessions import Session
from holdfast.core.turns import Turn
from holdfast.errors import NotFound, Rejected, Unavailable
from holdfast.ids import ProcessId, new_process_id
from holdfast.offload.pool import Pool
from holdfast.store.processes import ProcessStore

log = logging.getLogger(__name__)

FOLDER = "processes"
# Each command has a supervisor process; more than this many are a runaway.
RUNNING_MAX = 64
START_MAX_S = 20
TYPE_MAX_S = 5
# The time between SIGTERM and SIGKILL, and how long to wait for the end after that.
GRACE_MS = 5_000
GONE_MAX_S = 5
RETENTION_DAYS = 7

_POLL_S = 0.02
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundCommand:
    """A command to run: `text` is for people, `argv` for the kernel."""

    text: str
    argv: Sequence[str]
    workdir: Path
    environment: Mapping[str, str]
    pty: bool = False
    notifies: bool = False
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphans:
    """Counts of folders without a row, whose command runs or has ended, and of rows without a folder."""

    running: int = 0
    ended: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLimits:
    """How much output is kept: the first `head_bytes`, and the last `segments` files of `segment_bytes`."""

    head_bytes: int = 2 * 1024 * 1024
    segment_bytes: int = 1024 * 1024
    segments: int = 8


class _Started(msgspec.Struct):
    """What a supervisor prints when the command runs, or could not be started."""

    pid: int = 0
    born: int = 0
    error: str = ""


class BackgroundProcesses:
    """The background commands of one home."""

    def __init__(
        self,
        processes: ProcessStore,
        home: Path,
        home_id: str,
        *,
        clock: Clock | None = None,
        redaction: Redaction | None = None,
        limits: OutputLimits | None = None,
        pool: Pool | None = None,
    ) -> None:
        self.home_id = home_id
        self.redaction = redaction or Redaction()
        # Set whenever the monitor may have something new to do.
        self.changed = asyncio.Event()
        # Matches output with patterns.
        self.pool = pool or Pool()
        self._processes = processes
        self.home = home
        self._folder = home / FOLDER
        self._clock = clock or SystemClock()
        self._limits = limits or OutputLimits()
        self._starting: set[ProcessId] = set()

    async def start(self, command: BackgroundCommand, session: Session, turn: Turn) -> Process:
        """Start a command in the background.  Its row is written first, so that a crash cannot leave it unknown."""
        if not is_supported():
            raise Rejected("background commands need a system with /proc, such as Linux; run it in the foreground")
        if len(await self._processes.running(self.home_id)) >= RUNNING_MAX:
            raise Rejected(f"{RUNNING_MAX} background commands run already; end one with the process tool, or wait for one")
        now = self._clock.now_ms()
        process = Process(
            id=new_process_id(now),
            session_id=session.id,
            turn_id=turn.id,
            owner=session.owner,
            home=self.home_id,
            command=self.redaction.text(command.text),
            workdir=str(command.workdir),
            started_at=now,
            notifies=command.notifies,
            patterns=command.patterns,
            reply_to=turn.reply_to,
        )
        self._starting.add(process.id)
        try:
            await self._processes.add(process)
            return await self._begin(process, command)
        finally:
            self._starting.discard(process.id)
            self.changed.set()

    async def _begin(self, process: Process, command: BackgroundCommand) -> Process:
        folder = self.folder(process)
        started = _Started()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            await asyncio.to_thread(folder.prepare, self._spec(command))
            started = await _spawn(folder)
        except OSError as error:
            started.error = str(error)
        finally:
            # A command without a supervisor must not get one later.
            never = not started.pid and folder.prevent_start()
        if started.pid:
            # If the store is away, the monitor reads the pid from the folder later.
            with contextlib.suppress(Unavailable):
                await self._processes.began(process.id, started.pid, started.born)
            return replace(process, pid=started.pid, born=started.born)
        if never or folder.condition().phase is ProcessPhase.LOST:
            await self._processes.remove(process.id)
            folder.remove()
            raise Unavailable(f"the command could not be started: {started.error or 'its supervisor ended at once'}")
        raise Unavailable(f"the command is slow to start; look for {process.id} with the process tool before another try")

    def _spec(self, command: BackgroundCommand) -> CommandSpec:
        return CommandSpec(
            argv=command.argv,
            workdir=str(command.workdir),
            environment=dict(command.environment),
            pty=command.pty,
            head_bytes=self._limits.head_bytes,
            segment_bytes=self._limits.segment_bytes,
            segments=self._limits.segments,
        )

    def is_starting(self, process: Process) -> bool:
        """Return whether this gateway is still starting the process."""
        return process.id in self._starting

    def folder(self, process: Process) -> ProcessFolder:
        """Return the folder of a process.  Raises `Rejected` if it belongs to another home."""
        if process.home != self.home_id:
            raise Rejected(f"{process.id} runs beside another gateway; it can only be reached there")
        return ProcessFolder(self._folder / process.id)

    def condition(self, process: Process) -> Condition:
        return self.folder(process).condition()

    async def ended(self, process: Process) -> None:
        """Return once a process has ended."""
        await self.wait(process, None)

    async def wait(self, process: Process, timeout_s: float | None) -> Condition:
        """Return the condition of a process once it has ended or the timeout is over."""
        folder = self.folder(process)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while (found := folder.condition()).phase in (ProcessPhase.WAITING, ProcessPhase.RUNNING):
                    if found.phase is ProcessPhase.WAITING and process.state is not ProcessState.RUNNING:
                        break
                    await (found.supervisor.wait() if found.supervisor else asyncio.sleep(_POLL_S))
        return folder.condition()

    async def type(self, process: Process, data: bytes) -> int:
        """Write to the input of a process, and return how many bytes it took in time."""
        folder = self.folder(process)
        written = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TYPE_MAX_S):
                while written < len(data):
                    taken = folder.type(data[written:])
                    written += taken
                    if not taken:
                        await asyncio.sleep(_POLL_S)
        return written

    def close_input(self, process: Process) -> bool:
        """Close the input of a process.  Return False if its supervisor is gone."""
        return self.folder(process).order({"do": "close"})

    async def kill(self, process: Process, grace_ms: int = GRACE_MS) -> Condition:
        """End a process and its group: terminate it, and kill it after a grace period."""
        if not self.folder(process).order({"do": "kill", "grace_ms": grace_ms}):
            self.kill_orphan(process)
        return await self.wait(process, grace_ms / 1000 + GONE_MAX_S)

    def kill_orphan(self, process: Process) -> None:
        """Kill the rest of a command whose supervisor is gone: its output and its end would not be recorded."""
        _kill_orphan(self.folder(process))

    async def orphans(self) -> Orphans:
        """Count folders without rows and rows without folders."""
        running = ended = 0
        for process_id in self._present():
            if not await self._is_known(process_id):
                phase = ProcessFolder(self._folder / process_id).condition().phase
                running += phase is ProcessPhase.RUNNING
                ended += phase is not ProcessPhase.RUNNING
        rows = sum(not self.folder(each).path.exists() for each in await self._processes.running(self.home_id))
        return Orphans(running=running, ended=ended, rows=rows)

    async def clean(self) -> int:
        """Remove processes that have ended long ago or have no row, and return how many.  A running one is ended."""
        removed = 0
        before = self._clock.now_ms() - RETENTION_DAYS * _DAY_MS
        for process_id in self._present():
            folder = ProcessFolder(self._folder / process_id)
            if process_id in self._starting or not await self._is_over(process_id, before):
                continue
            if folder.condition().phase is ProcessPhase.WAITING:
                folder.prevent_start()
            if folder.condition().phase is ProcessPhase.RUNNING and folder.order({"do": "kill", "grace_ms": GRACE_MS}):
                log.info("background process %s has lost its session and is ended", process_id)
            if folder.condition().phase in (ProcessPhase.ENDED, ProcessPhase.LOST):
                _kill_orphan(folder)
                # The row first: a folder without a row is removed the next time.
                await self._processes.remove(process_id)
                await asyncio.to_thread(folder.remove)
                removed += 1
        return removed

    async def _is_over(self, process_id: ProcessId, before: int) -> bool:
        try:
            process = await self._processes.get(process_id)
        except NotFound:
            return True
        return process.home == self.home_id and process.ended_at is not None and process.ended_at < before

    async def _is_known(self, process_id: ProcessId) -> bool:
        try:
            await self._processes.get(process_id)
        except NotFound:
            return False
        return True

    def _present(self) -> list[ProcessId]:
        try:
            return sorted(ProcessId(each.name) for each in self._folder.iterdir() if each.is_dir())
        except FileNotFoundError:
            return []


def _kill_orphan(folder: ProcessFolder) -> None:
    condition = folder.condition()
    if condition.phase is ProcessPhase.LOST and condition.command and condition.command.is_alive():
        # It leads its group, so its pid is the group's number.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(condition.command.pid, signal.SIGKILL)


async def _spawn(folder: ProcessFolder) -> _Started:
    """Start the supervisor of a folder, and return once the command runs."""
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        str(Path(supervisor.__file__)),
        str(folder.path),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(START_MAX_S):
            said, _ = await program.communicate()
    except TimeoutError:
        return _Started(error=f"its supervisor did not answer within {START_MAX_S} s")
    try:
        return msgspec.json.decode(said, type=_Started)
    except msgspec.DecodeError:
        return _Started()
