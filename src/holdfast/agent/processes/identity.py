"""The identity of a process: its pid alone may belong to another process by now."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

# How often to poll where the kernel offers no pidfd.
POLL_S = 0.1

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A process: its pid, its start time in the kernel's ticks, and the id of the boot that the ticks count from."""

    pid: int
    born: int
    boot: str

    def is_alive(self) -> bool:
        """Return whether this process runs.  A zombie does not."""
        return self._state() not in (b"", b"Z", b"X")

    def _state(self) -> bytes:
        """Return the kernel's letter for the state of this process; empty if it is gone."""
        if self.boot != current_boot():
            return b""
        try:
            fields = (_PROC / str(self.pid) / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return b""
        return fields[0] if int(fields[19]) == self.born else b""

    def handle(self) -> int | None:
        """Return a pidfd, which becomes readable when the process ends; None if it has ended or there are no pidfds."""
        try:
            handle = os.pidfd_open(self.pid)
        except (OSError, AttributeError):
            return None
        # Checked after opening: from now on, the handle means one process, even if its pid is reused.
        if self.is_alive():
            return handle
        os.close(handle)
        return None

    async def wait(self) -> None:
        """Return when it has ended."""
        handle = self.handle()
        if handle is None:
            while self.is_alive():  # noqa: ASYNC110 - There is no event to wait for.
                await asyncio.sleep(POLL_S)
            return
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(handle, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(handle)
            os.close(handle)
            self.reap()

    def reap(self) -> None:
        """Reap the process if it is a zombie child: a gateway that is the init process inherits all orphans."""
        if self._state() == b"Z":
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)


def current_boot() -> str:
    """Return the id of this machine's current boot."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def is_supported() -> bool:
    """Return whether this machine can tell processes with the same pid apart."""
    return (_PROC / "self/stat").exists() and (_PROC / "sys/kernel/random/boot_id").exists()
