"""The gateway's side of background commands: starting them, finding them again, and reaching them through their folders."""

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

from holdfast.agent.processes import keeper
from holdfast.agent.processes.folder import Condition, Folder, Phase, Spec
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
# Each one is a process beside its command, and more are a runaway, not work.
RUNNING_MAX = 64
START_MAX_S = 20
TYPE_MAX_S = 5
# A command that is asked to end gets this much before it is killed, and this much more to be gone.
GRACE_MS = 5_000
GONE_MAX_S = 5
RETENTION_DAYS = 7

_LOOK_S = 0.02
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What is to be run: `text` for people, `argv` for the kernel."""

    text: str
    argv: Sequence[str]
    workdir: Path
    environment: Mapping[str, str]
    pty: bool = False
    notifies: bool = False
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphans:
    """What belongs together and is not: folders that no row names, by whether they run, and rows without their folder."""

    running: int = 0
    ended: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """How much output is kept: so much of its beginning, and so many pieces of its end."""

    head_bytes: int = 2 * 1024 * 1024
    segment_bytes: int = 1024 * 1024
    segments: int = 8


class _Begun(msgspec.Struct):
    pid: int = 0
    born: int = 0
    error: str = ""


class Keeping:
    """Every background command of one home."""

    def __init__(
        self,
        processes: ProcessStore,
        home: Path,
        home_id: str,
        *,
        clock: Clock | None = None,
        redaction: Redaction | None = None,
        kept: Kept | None = None,
        pool: Pool | None = None,
    ) -> None:
        self.home_id = home_id
        self.redaction = redaction or Redaction()
        # Set whenever there may be something new to look after.
        self.changed = asyncio.Event()
        # Where output is compared with patterns.
        self.pool = pool or Pool()
        self._processes = processes
        self.home = home
        self._folder = home / FOLDER
        self._clock = clock or SystemClock()
        self._kept = kept or Kept()
        self._starting: set[ProcessId] = set()

    async def start(self, command: Command, session: Session, turn: Turn) -> Process:
        """Run a command beside the gateway.  Its row comes first, so that whatever happens it is accounted for."""
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

    async def _begin(self, process: Process, command: Command) -> Process:
        folder = self.folder(process)
        begun = _Begun()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            await asyncio.to_thread(folder.prepare, self._spec(command))
            begun = await _spawn(folder)
        except OSError as error:
            begun.error = str(error)
        finally:
            # What has no keeper by now must not get one later, when nobody expects it any more.
            never = not begun.pid and folder.void()
        if begun.pid:
            # The watcher finds in the folder what cannot be written now.
            with contextlib.suppress(Unavailable):
                await self._processes.began(process.id, begun.pid, begun.born)
            return replace(process, pid=begun.pid, born=begun.born)
        if never or folder.condition().phase is Phase.LOST:
            await self._processes.remove(process.id)
            folder.remove()
            raise Unavailable(f"the command could not be started: {begun.error or 'its keeper ended at once'}")
        raise Unavailable(f"the command is slow to start; look for {process.id} with the process tool before another try")

    def _spec(self, command: Command) -> Spec:
        return Spec(
            argv=command.argv,
            workdir=str(command.workdir),
            environment=dict(command.environment),
            pty=command.pty,
            head_bytes=self._kept.head_bytes,
            segment_bytes=self._kept.segment_bytes,
            segments=self._kept.segments,
        )

    def is_starting(self, process: Process) -> bool:
        """Return whether a start of this process is still under way here."""
        return process.id in self._starting

    def folder(self, process: Process) -> Folder:
        """Return where a process keeps its things.  Raises `Rejected` for one of another home."""
        if process.home != self.home_id:
            raise Rejected(f"{process.id} runs beside another gateway; it can only be reached there")
        return Folder(self._folder / process.id)

    def condition(self, process: Process) -> Condition:
        """Return what became of a process."""
        return self.folder(process).condition()

    async def ended(self, process: Process) -> None:
        """Return once a process has ended."""
        await self.wait(process, None)

    async def wait(self, process: Process, timeout_s: float | None) -> Condition:
        """Return what became of a process once it has ended, or when the time is over."""
        folder = self.folder(process)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while (found := folder.condition()).phase in (Phase.WAITING, Phase.RUNNING):
                    if found.phase is Phase.WAITING and process.state is not ProcessState.RUNNING:
                        break
                    await (found.keeper.end() if found.keeper else asyncio.sleep(_LOOK_S))
        return folder.condition()

    async def type(self, process: Process, data: bytes) -> int:
        """Write to the input of a process; returns how much it took in time."""
        folder = self.folder(process)
        written = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TYPE_MAX_S):
                while written < len(data):
                    taken = folder.type(data[written:])
                    written += taken
                    if not taken:
                        await asyncio.sleep(_LOOK_S)
        return written

    def close_input(self, process: Process) -> bool:
        """Let the input of a process end; False when nobody reads it any more."""
        return self.folder(process).order({"do": "close"})

    async def kill(self, process: Process, grace_ms: int = GRACE_MS) -> Condition:
        """End a process with everything in its group: ask it, and after a grace kill it."""
        if not self.folder(process).order({"do": "kill", "grace_ms": grace_ms}):
            self.bury(process)
        return await self.wait(process, grace_ms / 1000 + GONE_MAX_S)

    def bury(self, process: Process) -> None:
        """Kill what is left of a command whose keeper is gone: nobody would see what it does or how it ends."""
        _bury(self.folder(process))

    async def orphans(self) -> Orphans:
        """Count what belongs to nothing."""
        running = ended = 0
        for process_id in self._present():
            if not await self._is_known(process_id):
                phase = Folder(self._folder / process_id).condition().phase
                running += phase is Phase.RUNNING
                ended += phase is not Phase.RUNNING
        rows = sum(not self.folder(each).path.exists() for each in await self._processes.running(self.home_id))
        return Orphans(running=running, ended=ended, rows=rows)

    async def clean(self) -> int:
        """Remove what has ended and is old, or belongs to nothing; returns how many.  What runs for nobody is ended."""
        removed = 0
        before = self._clock.now_ms() - RETENTION_DAYS * _DAY_MS
        for process_id in self._present():
            folder = Folder(self._folder / process_id)
            if process_id in self._starting or not await self._is_over(process_id, before):
                continue
            if folder.condition().phase is Phase.WAITING:
                folder.void()
            if folder.condition().phase is Phase.RUNNING and folder.order({"do": "kill", "grace_ms": GRACE_MS}):
                log.info("background process %s belongs to no session any more, and is ended", process_id)
            if folder.condition().phase in (Phase.ENDED, Phase.LOST):
                _bury(folder)
                # The row first: a folder without one is removed the next time.
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


def _bury(folder: Folder) -> None:
    condition = folder.condition()
    if condition.phase is Phase.LOST and condition.command and condition.command.is_alive():
        # It leads its group, which has its number.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(condition.command.pid, signal.SIGKILL)


async def _spawn(folder: Folder) -> _Begun:
    """Start the keeper of a folder, and return once the command runs."""
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        str(Path(keeper.__file__)),
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
        return _Begun(error=f"its keeper did not answer within {START_MAX_S} s")
    try:
        return msgspec.json.decode(said, type=_Begun)
    except msgspec.DecodeError:
        return _Begun()
