"""Which process is meant: a number alone may belong to another one by now."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

# Where the kernel cannot tell us, we look.
LOOK_S = 0.1

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A process: its number, the kernel's time of its start, and the boot since which that time counts."""

    pid: int
    born: int
    boot: str

    def is_alive(self) -> bool:
        """Return whether this very process runs; one that has ended and was not reaped does not."""
        return self._state() not in (b"", b"Z", b"X")

    def _state(self) -> bytes:
        """Return the kernel's letter for what this very process is at; nothing when it is no more."""
        if self.boot != current_boot():
            return b""
        try:
            fields = (_PROC / str(self.pid) / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return b""
        return fields[0] if int(fields[19]) == self.born else b""

    def handle(self) -> int | None:
        """Return a file descriptor that becomes readable when it ends; None when it has, or the kernel offers none."""
        try:
            handle = os.pidfd_open(self.pid)
        except (OSError, AttributeError):
            return None
        # Looked at only now: what the number meant a moment ago does not matter, this handle means one process for good.
        if self.is_alive():
            return handle
        os.close(handle)
        return None

    async def end(self) -> None:
        """Return when it has ended."""
        handle = self.handle()
        if handle is None:
            while self.is_alive():  # noqa: ASYNC110 - Nobody would set an event.
                await asyncio.sleep(LOOK_S)
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
        """Take note of the end of a child that nobody else waits for: the first process of a machine gets all orphans."""
        if self._state() == b"Z":
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)


def current_boot() -> str:
    """Return the name of the time since this machine was last started."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def is_supported() -> bool:
    """Return whether this machine can tell one process from another that has had its number."""
    return (_PROC / "self/stat").exists() and (_PROC / "sys/kernel/random/boot_id").exists()
