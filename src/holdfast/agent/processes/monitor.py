"""The monitor of the background commands of a home: it records their ends, and sends the notifications that were promised.

A notification is accepted first, under a dedupe key of its own, and recorded as sent afterwards.  After a crash in between
it is accepted again, and the key makes it the same message.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from holdfast.agent.processes import notices
from holdfast.agent.processes.background import BackgroundProcesses
from holdfast.agent.processes.folder import Condition, ProcessFolder, ProcessPhase, Watch
from holdfast.agent.processes.identity import ProcessIdentity
from holdfast.agent.processes.patterns import LINE_MAX_CHARS, LINES_MAX, MatchInput, match
from holdfast.clock import Clock, SystemClock
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.processes import Process, ProcessEvent
from holdfast.core.turns import Mode
from holdfast.errors import IllegalMove, KeyReused, NotFound, Rejected, Stale, Unavailable
from holdfast.ids import ProcessId
from holdfast.store.processes import ProcessStore
from holdfast.store.sessions import SessionStore

log = logging.getLogger(__name__)

# How often output is matched with patterns, and how often everything is checked in case a hint was lost.
LOOK_MS = 500
IDLE_MS = 5_000
CLEAN_MS = 3_600_000
# Further matches are not sent; the model can read them with the process tool.
MATCH_PAUSE_MS = 10_000
MATCHES_MAX = 20
SCAN_BYTES = 65_536
SCANS_MAX = 16
# Patterns that take longer than this for one check are given up, because other commands wait.
MATCHING_MAX_S = 1.0

Accept = Callable[[Inbound], Awaitable[Receipt]]


@dataclass(slots=True)
class _Found:
    """The matches in the output up to a position."""

    to: int
    lines: list[str] = field(default_factory=list[str])
    more: int = 0
    took_s: float = 0

    @property
    def too_slow(self) -> bool:
        return self.took_s >= MATCHING_MAX_S


class ProcessMonitor:
    """Monitors the background commands of a home, as a component of the engine."""

    def __init__(
        self,
        processes: ProcessStore,
        sessions: SessionStore,
        background: BackgroundProcesses,
        accept: Accept,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._processes = processes
        self._sessions = sessions
        self._background = background
        self._accept = accept
        self._clock = clock or SystemClock()
        self._handles: dict[ProcessId, int] = {}
        self._scanned: dict[ProcessId, int] = {}
        self._complaints: dict[ProcessId, str] = {}
        self._cleaned_at: int | None = None
        self._is_blind = False

    async def run(self) -> None:
        """Monitor until cancelled."""
        try:
            await self._report()
            while True:
                self._background.changed.clear()
                wait_ms = await self._round()
                await self._clean()
                await self._rest(wait_ms)
        finally:
            for process_id in [*self._handles]:
                self._forget(process_id)

    async def _report(self) -> None:
        """Log orphaned rows and folders at the start."""
        with contextlib.suppress(Unavailable):
            found = await self._background.orphans()
            if found.running or found.ended or found.rows:
                log.warning(
                    "background processes: %d run and %d have ended that belong to no session; %d have lost their folder",
                    found.running,
                    found.ended,
                    found.rows,
                )

    async def _round(self) -> int:
        """Check every running process, and return when to check again if nothing happens before."""
        self._is_blind = False
        try:
            running = await self._processes.running(self._background.home_id)
        except Unavailable as error:
            log.warning("cannot look after background processes: %s", error)
            return IDLE_MS
        for process_id in {*self._handles, *self._scanned, *self._complaints} - {each.id for each in running}:
            # It was deleted with its session before it ended: clean up now, which ends it.
            self._cleaned_at = None
            self._forget(process_id)
        for process in running:
            if not self._background.is_starting(process):
                await self._look_safely(process)
        watches = any(each.patterns for each in running)
        return LOOK_MS if watches or self._is_blind else IDLE_MS

    async def _look_safely(self, process: Process) -> None:
        """Check one process.  A failure is retried in the next round."""
        try:
            await self._look(process)
        except (NotFound, IllegalMove, Stale):
            # It was already recorded, or deleted with its session.
            self._forget(process.id)
        except (Unavailable, Rejected, OSError) as error:
            # The same problem is logged once.
            if self._complaints.get(process.id) != str(error):
                log.warning("cannot look after background process %s now: %s", process.id, error)
            self._complaints[process.id] = str(error)
            self._is_blind = True

    async def _look(self, process: Process) -> None:
        condition = self._background.condition(process)
        if condition.phase is ProcessPhase.WAITING:
            # The gateway that was starting it is gone.  It has no supervisor yet, and must not get one.
            self._background.folder(process).prevent_start()
            condition = self._background.condition(process)
        match condition.phase:
            case ProcessPhase.WAITING:
                self._is_blind = True
            case ProcessPhase.RUNNING:
                await self._look_at_running(process, condition)
            case ProcessPhase.ENDED | ProcessPhase.LOST:
                await self._look_at_ended(process, condition)

    async def _look_at_running(self, process: Process, condition: Condition) -> None:
        if not process.pid and condition.command:
            await self._processes.began(process.id, condition.command.pid, condition.command.born)
        if process.id not in self._handles:
            self._follow(process.id, condition.supervisor)
        await self._watch(process, final=False)

    async def _look_at_ended(self, process: Process, condition: Condition) -> None:
        # A start may have failed and removed its row since the rows were read: then there is nothing to report.
        process = await self._processes.get(process.id)
        lost = condition.phase is ProcessPhase.LOST
        if lost:
            self._background.kill_orphan(process)
        await self._watch(process, final=True)
        if process.notifies:
            tail = self._background.folder(process).tail(notices.TAIL_BYTES)
            await self._tell(process, "ended", notices.ended(process, condition, tail))
        ended_at = condition.ended_at if condition.ended_at is not None else self._clock.now_ms()
        event = ProcessEvent.LOSE if lost else ProcessEvent.EXIT
        await self._processes.end(process.id, event, condition.exit_code, ended_at)
        if condition.supervisor:
            condition.supervisor.reap()
        self._forget(process.id)

    async def _tell(self, process: Process, what: str, text: str) -> None:
        """Accept a message about a process, once, in its session, with the reply target of the turn that started it."""
        session = await self._sessions.get(process.session_id)
        message = Inbound(
            conversation=session.key,
            text=text,
            channel=session.channel,
            owner=process.owner,
            source=session.source,
            dedupe_key=f"process:{process.id}:{what}",
            mode=Mode.DETACHED,
            reply_to=process.reply_to,
            one_shot=session.one_shot,
        )
        # A different text under the same key, as after a change of masked secrets, is still the same message.
        with contextlib.suppress(KeyReused):
            await self._accept(message)

    async def _watch(self, process: Process, *, final: bool) -> None:
        """Match new output and report matches, at most once per pause, and once more at the end."""
        if not process.patterns:
            return
        folder = self._background.folder(process)
        watch = folder.watch()
        begin = max(process.watched, self._scanned.get(process.id, 0))
        if watch.to > process.watched:
            # An earlier gateway began to send this; scanned up to the same position, it is the same message.
            found = await self._scan(process, folder, process.watched, watch.to)
            await self._tell_matches(process, found, watch)
            begin = max(begin, watch.to)
        now = self._clock.now_ms()
        if watch.sent >= MATCHES_MAX or (not final and 0 <= now - watch.at < MATCH_PAUSE_MS):
            return
        found = await self._scan(process, folder, begin, None if final else _last_line_end(folder, begin))
        self._scanned[process.id] = found.to
        if found.lines or found.too_slow:
            watch = Watch(
                sent=MATCHES_MAX if found.too_slow else watch.sent + 1, at=now, to=found.to, too_slow=found.too_slow
            )
            await asyncio.to_thread(folder.save_watch, watch)
            await self._tell_matches(process, found, watch)

    async def _tell_matches(self, process: Process, found: _Found, watch: Watch) -> None:
        if watch.too_slow:
            await self._tell(process, f"output:{watch.to}", notices.too_slow(process))
        elif found.lines:
            text = notices.matched(process, found.lines, found.more, last=watch.sent >= MATCHES_MAX)
            await self._tell(process, f"output:{watch.to}", text)
        await self._processes.watched(process.id, watch.to)

    async def _scan(self, process: Process, folder: ProcessFolder, begin: int, end: int | None) -> _Found:
        """Match output between two positions, or to its end."""
        found = _Found(to=begin)
        rest = b""
        while (end is None or found.to < end) and not found.too_slow:
            piece = folder.read(found.to, SCAN_BYTES if end is None else min(SCAN_BYTES, end - found.to))
            if not piece.data:
                break
            *lines, rest = (rest + piece.data if not piece.dropped else piece.data).split(b"\n")
            found.to = piece.end
            if len(rest) > LINE_MAX_CHARS:
                lines, rest = [*lines, rest], b""
            await self._pick(process, found, lines)
        await self._pick(process, found, [rest] if rest else [])
        return found

    async def _pick(self, process: Process, found: _Found, lines: list[bytes]) -> None:
        """Add the matching lines to `found`."""
        if not lines or found.too_slow:
            return
        output = MatchInput(patterns=tuple(process.patterns), lines=lines)
        try:
            matches = await self._background.pool.run(match, output, MATCHING_MAX_S, user=process.id)
        except TimeoutError:
            found.took_s += MATCHING_MAX_S
            return
        room = LINES_MAX - len(found.lines)
        found.lines += matches.lines[:room]
        found.more += len(matches.lines[room:]) + matches.more
        found.took_s += matches.took_s

    def _follow(self, process_id: ProcessId, supervisor: ProcessIdentity | None) -> None:
        """Wake the monitor when a supervisor ends, if the kernel offers pidfds."""
        handle = supervisor.handle() if supervisor else None
        if handle is None:
            self._is_blind = True
            return
        self._handles[process_id] = handle
        # The reader is removed at the first wake-up, because the handle stays readable.
        loop = asyncio.get_running_loop()
        loop.add_reader(handle, self._notice, handle)

    def _notice(self, handle: int) -> None:
        asyncio.get_running_loop().remove_reader(handle)
        self._background.changed.set()

    def _forget(self, process_id: ProcessId) -> None:
        self._scanned.pop(process_id, None)
        self._complaints.pop(process_id, None)
        if (handle := self._handles.pop(process_id, None)) is not None:
            asyncio.get_running_loop().remove_reader(handle)
            os.close(handle)

    async def _clean(self) -> None:
        now = self._clock.monotonic_ms()
        if self._cleaned_at is not None and now - self._cleaned_at < CLEAN_MS:
            return
        self._cleaned_at = now
        try:
            if removed := await self._background.clean():
                log.info("removed what %d background processes had left behind", removed)
        except (Unavailable, OSError) as error:
            log.warning("cannot clean up after background processes: %s", error)

    async def _rest(self, wait_ms: int) -> None:
        """Return after a hint, or after `wait_ms`."""
        hinted = asyncio.create_task(self._background.changed.wait())
        slept = asyncio.create_task(self._clock.sleep_ms(wait_ms))
        try:
            await asyncio.wait((hinted, slept), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (hinted, slept):
                each.cancel()


def _last_line_end(folder: ProcessFolder, begin: int) -> int:
    """Return the position up to which output consists of whole lines; a line that is too long counts as whole."""
    end = min(folder.size(), begin + SCAN_BYTES * SCANS_MAX)
    last = folder.read(max(end - SCAN_BYTES, begin), SCAN_BYTES)
    line_end = last.data.rfind(b"\n", 0, max(end - last.start, 0))
    if line_end >= 0:
        return last.start + line_end + 1
    return end if end - begin > LINE_MAX_CHARS * 4 else begin
