"""The watchdog process watches the gateway from outside, because what blocks the event loop may block all of its process.

It is a program of its own, run as a plain file with the standard library alone:

    python -I -S watchdog_process.py STALL_SECONDS DRAIN_SECONDS STACKS < pipe

The gateway writes into the pipe, which ends when the gateway does:

    \\x00                  the event loop runs
    \\x01 SECONDS \\x01      the gateway stops, and running turns get this many seconds
    anything else         a signal came that stops the gateway; written by the signal handler itself, so also while the
                          loop is stalled

When the loop stalls, a signal asks the gateway to write its stacks into the file STACKS and to restart.  If it does not
restart, or does not stop in time, it is killed.  Nothing that was acknowledged is lost by that.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time

BEAT = b"\x00"
STOP = b"\x01"
# Asks the gateway to show its stacks and to restart.
STALLED = signal.SIGUSR2
# How many checks fit into the time for which a loop may be stalled.
LOOKS = 8
LOOK_MAX_S = 1.0
# How long a gateway that was asked to restart may take for that.
GRACE_S = 5.0
# How long a gateway may take to close once its turns have had their time.
MARGIN_S = 10.0
SHOWING_MAX_S = 2.0
STACKS_MAX_BYTES = 1_000_000
STDERR = 2
# These may be sent to all processes of the gateway; this one ends after the gateway has.
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)


class GatewayMonitor:
    """What the watchdog process knows of the gateway."""

    def __init__(self, stall_s: float, drain_s: float, stacks: int) -> None:
        self._stall_s = stall_s
        self._drain_s = drain_s
        self._stacks = stacks
        self._gateway = os.getppid()
        self._pause_s = min(stall_s / LOOKS, LOOK_MAX_S) if stall_s else LOOK_MAX_S
        self._looked = time.monotonic()
        # Not before the first beat: a start may take long.
        self._seen: float | None = None
        self._asked: float | None = None
        self._deadline: float | None = None
        self._unread = b""

    def watch(self) -> None:
        """Return when the gateway has ended."""
        while True:
            ready, _, _ = select.select([0], [], [], self._pause_s)
            now = time.monotonic()
            # While the machine slept this process did too, so the silence of the loop means nothing.
            if self._seen is not None and now - self._looked > 2 * self._pause_s + LOOK_MAX_S:
                self._seen = now
            self._looked = now
            if ready:
                said = os.read(0, 65_536)
                if not said:
                    break
                self._hear(said, now)
            self._judge(now)
        if self._asked is not None:
            self._show(f"{self._stalled}; every stack follows, then the gateway starts again")

    def _hear(self, said: bytes, now: float) -> None:
        pieces = (self._unread + said).split(STOP)
        # The seconds of a stop stand between two marks.
        self._unread = STOP + pieces.pop() if len(pieces) % 2 == 0 else b""
        for seconds in pieces[1::2]:
            self._deadline = now + float(seconds) + MARGIN_S
        words = b"".join(pieces[0::2])
        if BEAT in words:
            self._seen, self._asked = now, None
        if words.strip(BEAT):
            hurried = now + self._drain_s + MARGIN_S
            self._deadline = hurried if self._deadline is None else min(self._deadline, hurried)

    def _judge(self, now: float) -> None:
        if self._deadline is not None:
            if now > self._deadline:
                self._kill("the gateway has not stopped in time and is killed; every stack follows")
        elif self._asked is not None:
            if now - self._asked > GRACE_S:
                self._kill(f"{self._stalled} and cannot begin anew; the gateway is killed, and every stack follows")
        elif self._stall_s and self._seen is not None and now - self._seen > 2 * self._pause_s:
            if _is_suspended(self._gateway):
                self._seen = now
            elif now - self._seen > self._stall_s:
                self._asked = now
                os.kill(self._gateway, STALLED)

    def _kill(self, why: str) -> None:
        if self._asked is None:
            # The gateway shows its stacks, and cannot restart before it is killed, because it waits for us first.
            os.kill(self._gateway, STALLED)
            time.sleep(self._pause_s)
        # While this process is its child, the id of the gateway cannot be that of another process.
        if os.getppid() == self._gateway:
            os.kill(self._gateway, signal.SIGKILL)
        self._show(why)
        os._exit(0)

    @property
    def _stalled(self) -> str:
        return f"the event loop has not moved for {self._stall_s:g} s"

    def _show(self, what: str) -> None:
        """Write the stacks to the log, with a timeout: the gateway may have stalled because its log is not read."""
        text = f"holdfast: {what}\n".encode() + os.pread(self._stacks, STACKS_MAX_BYTES, 0)
        showing = threading.Thread(target=_write, args=(text,), daemon=True)
        showing.start()
        showing.join(SHOWING_MAX_S)


def _write(left: bytes) -> None:
    try:
        while left:
            left = left[os.write(STDERR, left) :]
    except OSError:
        return


def _is_suspended(pid: int) -> bool:
    """Return whether a process is stopped, as by Ctrl-Z or a debugger."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[0]
    except OSError:
        # Not every system has such files.
        import subprocess

        state = subprocess.run(["/bin/ps", "-o", "state=", "-p", str(pid)], capture_output=True, check=False).stdout.strip()
    return state[:1] in (b"T", b"t")


def main(stall_s: str, drain_s: str, stacks: str) -> None:
    os.closerange(3, int(stacks))
    os.closerange(int(stacks) + 1, 65_536)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    GatewayMonitor(float(stall_s), float(drain_s), int(stacks)).watch()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
