"""A command that somebody waits for: run in a session of its own, its output bounded, and ended with all that it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.agent.processes.keeper import give_way, others_in_group
from holdfast.clock import Clock

# What is kept in memory of the output: as much of its beginning as of its end.
HALF_BYTES = 64 * 1024
CHUNK_BYTES = 65_536
# What was printed last may still be on its way when the command has ended.
DRAIN_S = 0.3
# What is told to end gets this much before it is killed.
GRACE_S = 2

# The signal that is none, and only finds out whether there is anybody to get it.
_LOOK = 0
# It is told which group it guards on what would be its output.  On its input it hears one word when all is over; where it
# never does, the gateway was killed.
_GUARD = 'read -r group <&1 && { read -r over || kill -s KILL -- "-$group"; }'
# A command names its group to the guard, on what is its input until then, before it becomes what was asked for.
_GUARDED = 'echo $$ >&0; exec "$@" </dev/null'
# The leader of a session that opens a terminal gets it for its own.
_ON_TERMINAL = 'echo $$ >&0; exec <>"$0" >&0 2>&0; exec "$@"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a command.  `exit_code` is negative where a signal ended it."""

    exit_code: int
    duration_ms: int
    output: bytes
    dropped: int = 0
    timed_out: bool = False
    left_behind: bool = False


class _Output:
    """The beginning and the end of what was printed."""

    def __init__(self, source: int) -> None:
        self.ended = asyncio.Event()
        self._source = source
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def take(self) -> None:
        """Read what is there."""
        try:
            data = os.read(self._source, CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            # A terminal that nobody has open any more.
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._source)
            self.ended.set()
        room = max(HALF_BYTES - len(self._head), 0)
        self._total += len(data)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 4 * HALF_BYTES:
            del self._tail[:-HALF_BYTES]

    def kept(self) -> tuple[bytes, int]:
        """Return what is kept, with the gap named, and how long the gap is."""
        tail = bytes(self._tail[-HALF_BYTES:])
        dropped = self._total - len(self._head) - len(tail)
        gap = f"\n[… {dropped} bytes left out …]\n".encode() if dropped else b""
        return bytes(self._head) + gap + tail, dropped


class _Exit(asyncio.SubprocessProtocol):
    def __init__(self) -> None:
        self.seen = asyncio.Event()

    def process_exited(self) -> None:
        self.seen.set()


async def run(
    argv: Sequence[str], workdir: Path, environment: Mapping[str, str], timeout_s: float, clock: Clock, *, pty: bool = False
) -> Result:
    """Run a command to its end, or to the end of its time.  Whatever ends the waiting ends its whole process group."""
    async with _guard() as guard:
        return await _run(argv, workdir, environment, timeout_s, clock, guard, pty=pty)


async def _run(
    argv: Sequence[str],
    workdir: Path,
    environment: Mapping[str, str],
    timeout_s: float,
    clock: Clock,
    guard: int,
    *,
    pty: bool,
) -> Result:
    loop = asyncio.get_running_loop()
    source, sink = os.openpty() if pty else os.pipe()
    os.set_blocking(source, False)
    output = _Output(source)
    try:
        began = clock.monotonic_ms()
        transport, exit_ = await _spawned(argv, workdir, environment, guard, sink, pty=pty)
        if transport.get_returncode() is None:
            # What a shell has started by now is in its group.
            give_way(transport.get_pid())
        loop.add_reader(source, output.take)
        try:
            timed_out, left_behind = await _follow(transport.get_pid(), exit_.seen, output, timeout_s)
            duration_ms = clock.monotonic_ms() - began
        finally:
            # Also when we are cancelled: nothing of it outlives the call.
            _signal(transport.get_pid(), signal.SIGKILL)
            loop.remove_reader(source)
            transport.close()
    finally:
        os.close(source)
    kept, dropped = output.kept()
    return Result(
        exit_code=transport.get_returncode() or 0,
        duration_ms=duration_ms,
        output=kept,
        dropped=dropped,
        timed_out=timed_out,
        left_behind=left_behind,
    )


@contextlib.asynccontextmanager
async def _guard() -> AsyncGenerator[int]:
    """Start the process that ends a group should we be killed before we could.  Gives out where the group is named to it."""
    ear, mouth = os.pipe()
    # An event loop may leave a copy of the second pipe open in the command, so its end says nothing.
    listens, names = os.pipe()
    with contextlib.ExitStack() as ours:
        ours.callback(os.close, mouth)
        ours.callback(os.close, names)
        try:
            guard = await asyncio.create_subprocess_exec(
                "/bin/sh", "-c", _GUARD, stdin=ear, stdout=listens, stderr=DEVNULL, cwd="/", env={}, start_new_session=True
            )
        finally:
            os.close(ear)
            os.close(listens)
        try:
            yield names
        finally:
            # The guard may have been ended from outside.
            with contextlib.suppress(BrokenPipeError):
                os.write(mouth, b"over\n")
            ours.close()
            # It ends at once. Its end is waited for when we are cancelled too: the loop may be closed next.
            await guard.wait()


async def _spawned(
    argv: Sequence[str], workdir: Path, environment: Mapping[str, str], guard: int, sink: int, *, pty: bool
) -> tuple[asyncio.SubprocessTransport, _Exit]:
    """Start a command.  It may have begun before we know: cancelled then, its start is waited for, and its group ended."""
    spawning = asyncio.ensure_future(_spawn(argv, workdir, environment, guard, sink, pty=pty))
    try:
        return await asyncio.shield(spawning)
    except asyncio.CancelledError:
        # One that could not be started leaves nothing behind.
        with contextlib.suppress(OSError):
            transport, _ = await spawning
            _signal(transport.get_pid(), signal.SIGKILL)
            transport.close()
        raise


async def _spawn(
    argv: Sequence[str], workdir: Path, environment: Mapping[str, str], guard: int, sink: int, *, pty: bool
) -> tuple[asyncio.SubprocessTransport, _Exit]:
    try:
        script, name = (_ON_TERMINAL, os.ttyname(sink)) if pty else (_GUARDED, "sh")
        return await asyncio.get_running_loop().subprocess_exec(
            _Exit,
            "/bin/sh",
            "-c",
            script,
            name,
            *argv,
            stdin=guard,
            stdout=sink,
            stderr=sink,
            cwd=str(workdir),
            env=dict(environment),
            start_new_session=True,
        )
    finally:
        # While we hold its side too, the end of the output would never be seen.
        os.close(sink)


async def _follow(pid: int, exited: asyncio.Event, output: _Output, timeout_s: float) -> tuple[bool, bool]:
    """Wait for the end of a command; returns whether its time was over, and whether it left anything running."""
    timed_out = not await _within(exited, timeout_s)
    if timed_out:
        await _end(pid, exited)
    await _within(output.ended, DRAIN_S)
    # Whoever has ended and was not reaped yet is still in the group, and was not left running.
    left_behind = _signal(pid, _LOOK) and await asyncio.to_thread(others_in_group, pid)
    if left_behind:
        _signal(pid, signal.SIGTERM)
        await _within(output.ended, DRAIN_S)
    return timed_out, left_behind and not timed_out


async def _end(pid: int, ended: asyncio.Event) -> None:
    """Ask a process group to end, and kill it if it does not."""
    _signal(pid, signal.SIGTERM)
    _signal(pid, signal.SIGCONT)
    if not await _within(ended, GRACE_S):
        _signal(pid, signal.SIGKILL)
        await ended.wait()


def _signal(group: int, number: int) -> bool:
    """Signal a process group; False when nobody is in it.  Its number is not given away while anybody is."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def _within(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
