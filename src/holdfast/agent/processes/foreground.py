"""A foreground command: it runs in a session of its own, with bounded output, and everything that it starts ends with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.agent.processes.supervisor import lower_priority, others_in_group
from holdfast.clock import Clock

# This much of the beginning and of the end of the output is kept.
HALF_BYTES = 64 * 1024
CHUNK_BYTES = 65_536
# The last output may arrive after the command has ended.
DRAIN_S = 0.3
# The time between SIGTERM and SIGKILL.
GRACE_S = 2

# Signal 0 only checks whether the group exists.
_CHECK = 0
# The guard reads the group's number from its standard output, and a word from its standard input when the command is over.
# If the input ends without a word, the gateway was killed, and the guard kills the group.
_GUARD = 'read -r group <&1 && { read -r over || kill -s KILL -- "-$group"; }'
# The shell tells the guard its group through its standard input, and then becomes the command.
_GUARDED = 'echo $$ >&0; exec "$@" </dev/null'
# A session leader that opens a terminal gets it as its controlling terminal.
_ON_TERMINAL = 'echo $$ >&0; exec <>"$0" >&0 2>&0; exec "$@"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a command."""

    # Negative if a signal ended the command.
    exit_code: int
    duration_ms: int
    output: bytes
    # How many bytes in the middle of the output were dropped.
    dropped: int = 0
    timed_out: bool = False
    # Whether processes of its group were still running at its end.
    left_behind: bool = False


class _Output:
    """The beginning and the end of the output."""

    def __init__(self, source: int) -> None:
        self.ended = asyncio.Event()
        self._source = source
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def take(self) -> None:
        """Read the available output."""
        try:
            data = os.read(self._source, CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            # The last process has closed the terminal.
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
        """Return the kept output with a mark at the gap, and the length of the gap."""
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
    """Run a command until it ends or times out.  A timeout, a cancellation or an error ends its whole process group."""
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
            # This covers the whole group, so also what the shell has already started.
            lower_priority(transport.get_pid())
        loop.add_reader(source, output.take)
        try:
            timed_out, left_behind = await _follow(transport.get_pid(), exit_.seen, output, timeout_s)
            duration_ms = clock.monotonic_ms() - began
        finally:
            # No process outlives the call, even if it is cancelled.
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
    """Start a guard process that kills the group if the gateway is killed.  Yields the pipe for the group's number."""
    over_read, over_write = os.pipe()
    # The command may inherit a copy of this pipe, so that its end of file means nothing.
    group_read, group_write = os.pipe()
    with contextlib.ExitStack() as ours:
        ours.callback(os.close, over_write)
        ours.callback(os.close, group_write)
        try:
            guard = await asyncio.create_subprocess_exec(
                *("/bin/sh", "-c", _GUARD),
                stdin=over_read,
                stdout=group_read,
                stderr=DEVNULL,
                cwd="/",
                env={},
                start_new_session=True,
            )
        finally:
            os.close(over_read)
            os.close(group_read)
        try:
            yield group_write
        finally:
            # The guard may have been killed.
            with contextlib.suppress(BrokenPipeError):
                os.write(over_write, b"over\n")
            ours.close()
            # It ends at once.  This waits for it even when cancelled, because the loop may be closed next.
            await guard.wait()


async def _spawned(
    argv: Sequence[str], workdir: Path, environment: Mapping[str, str], guard: int, sink: int, *, pty: bool
) -> tuple[asyncio.SubprocessTransport, _Exit]:
    """Start a command.  If the start is cancelled midway, wait until the command has started, and kill its group."""
    spawning = asyncio.ensure_future(_spawn(argv, workdir, environment, guard, sink, pty=pty))
    try:
        return await asyncio.shield(spawning)
    except asyncio.CancelledError:
        # A command that could not be started leaves nothing behind.
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
        # The output only ends when this copy is closed as well.
        os.close(sink)


async def _follow(pid: int, exited: asyncio.Event, output: _Output, timeout_s: float) -> tuple[bool, bool]:
    """Wait for the end of a command; return whether it timed out, and whether it left processes running."""
    timed_out = not await _within(exited, timeout_s)
    if timed_out:
        await _end(pid, exited)
    await _within(output.ended, DRAIN_S)
    # The group also holds processes that have ended and are not reaped yet; they do not count as running.
    left_behind = _signal(pid, _CHECK) and await asyncio.to_thread(others_in_group, pid)
    if left_behind:
        _signal(pid, signal.SIGTERM)
        await _within(output.ended, DRAIN_S)
    return timed_out, left_behind and not timed_out


async def _end(pid: int, ended: asyncio.Event) -> None:
    """Terminate a process group, and kill it if it does not end."""
    _signal(pid, signal.SIGTERM)
    _signal(pid, signal.SIGCONT)
    if not await _within(ended, GRACE_S):
        _signal(pid, signal.SIGKILL)
        await ended.wait()


def _signal(group: int, number: int) -> bool:
    """Signal a process group; return False if it is empty.  The kernel does not reuse its number while it is not."""
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
