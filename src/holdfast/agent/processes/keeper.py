"""The keeper: runs one command, and writes down what it says and how it ends, whatever becomes of the gateway.

It is a program of its own, run as a plain file with the standard library alone: `python -I -S keeper.py FOLDER`.  In the
folder it finds `spec.json`, and leaves these, each of them whole or not there:

    keeper.json     who keeps the command; whoever creates it first decides whether the command ever runs
    state.json      the command's pid and birth before it runs; at its end the exit code or the signal, and when
    output/<from>   what it printed, from that position on; the first file and the last ones are kept
    stdin, control  pipes by name, so that any later gateway can write to the command, close its input, or end it

A command has ended when its own process has, and with it everything in its process group.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import select
import signal
import sys
import time

CHUNK_BYTES = 65_536
# After the end, what was printed but not read yet is read; what escaped the group may hold the pipe open for ever.
DRAIN_MS = 1_000
GROUP_LOOK_MS = 500
# While the disk is full, the end cannot be written; it is all that matters now.
WRITE_RETRY_MS = 1_000
CONTROL_MAX_BYTES = 65_536
FILES_MAX = 65_536
# Whatever ends the gateway must not end those who would tell its successor.
DEAF_TO = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ)
# For commands.  The kernel derives the order at the disk from it.
NICENESS = 10
NEVER_RAN = 126
NOT_FOUND = 127

_TIOCSCTTY = 0x540E
_TIOCSWINSZ = 0x5414
_ROWS_COLUMNS = (40).to_bytes(2, sys.byteorder) + (120).to_bytes(2, sys.byteorder) + bytes(4)
_END_OF_INPUT = b"\x04"


def main(folder: str) -> None:
    os.chdir(folder)
    # Not every event loop keeps its own files to itself, and whoever waits for our words waits until all have closed them.
    os.closerange(3, FILES_MAX)
    if os.fork():
        # Whoever started us waits for this process only; the keeper belongs to nobody.
        os._exit(0)
    os.setsid()
    umask = os.umask(0o077)
    for number in DEAF_TO:
        signal.signal(number, signal.SIG_IGN)
    try:
        if not claim():
            return
        keeper = Keeper(Spec(umask))
        keeper.start()
    except OSError as error:
        with contextlib.suppress(BrokenPipeError):
            os.write(1, json.dumps({"error": str(error)}).encode())
        return
    # From here on nobody waits for us any more.
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.close(null)
    keeper.run()


def claim() -> bool:
    """Write down who keeps the command; False where somebody decided that it must not run."""
    name = f"keeper.{os.getpid()}"
    write(name, {**identity(os.getpid()), "at": now_ms()})
    try:
        os.link(name, "keeper.json")
    except FileExistsError:
        return False
    finally:
        os.unlink(name)
    return True


class Spec:
    """What is to be run, and how."""

    def __init__(self, umask: int) -> None:
        with open("spec.json", encoding="utf-8") as file:
            found = json.load(file)
        self.umask = umask
        self.argv: list[str] = found["argv"]
        self.workdir: str = found["workdir"]
        self.environment: dict[str, str] = found["environment"]
        self.pty: bool = found["pty"]
        self.head_bytes: int = found["head_bytes"]
        self.segment_bytes: int = found["segment_bytes"]
        self.segments: int = found["segments"]


class Keeper:
    """One command and its folder."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.pid = 0
        self.began = 0.0
        self.state: dict[str, object] = {}
        self.log = Log(spec)
        self.poll = select.poll()
        self.output = self.hold = self.typed = -1
        self.ended = False
        self.kill_at: float | None = None
        self.pending = b""
        self.commands = b""
        self.closing = False
        self.last_typed = b"\n"
        os.mkfifo("stdin", 0o600)
        os.mkfifo("control", 0o600)
        # Open for both, so that it never reads as ended when a gateway closes its side.
        self.control = os.open("control", os.O_RDWR | os.O_NONBLOCK)
        self.woken, waker = os.pipe()
        os.set_blocking(self.woken, False)
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)

    def start(self) -> None:
        """Fork the command, write down who it is, and only then let it run."""
        stdin, stdout, name = self._terminal() if self.spec.pty else self._pipes()
        go, gate = os.pipe()
        # What is sent to the command before it can hear, it hears as soon as it can.
        signal.pthread_sigmask(signal.SIG_BLOCK, DEAF_TO)
        self.pid = os.fork()
        if not self.pid:
            os.close(gate)
            self._become(go, stdin, stdout, name)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, DEAF_TO)
        os.close(go)
        for number in {stdin, stdout}:
            os.close(number)
        self.state = {**identity(self.pid), "started_at": now_ms()}
        self.began = time.monotonic()
        replace("state.json", self.state)
        # The gateway may be gone by now; the next one finds the command all the same.
        with contextlib.suppress(BrokenPipeError):
            os.write(1, json.dumps({"pid": self.pid, "born": self.state["born"]}).encode())
        with contextlib.suppress(BrokenPipeError):
            os.write(gate, b"!")
        os.close(gate)
        os.set_blocking(self.output, False)
        self.poll.register(self.output, select.POLLIN)
        self.poll.register(self.control, select.POLLIN)
        self.poll.register(self.woken, select.POLLIN)
        if self.typed >= 0:
            self.poll.register(self.typed, select.POLLIN)

    def _pipes(self) -> tuple[int, int, str]:
        # The command reads the named pipe itself.  We hold its other side, so that its input ends when we let go.
        stdin = os.open("stdin", os.O_RDONLY | os.O_NONBLOCK)
        self.hold = os.open("stdin", os.O_WRONLY | os.O_NONBLOCK)
        os.set_blocking(stdin, True)
        self.output, stdout = os.pipe()
        return stdin, stdout, ""

    def _terminal(self) -> tuple[int, int, str]:
        self.output, slave = os.openpty()
        fcntl.ioctl(slave, _TIOCSWINSZ, _ROWS_COLUMNS)
        self.typed = os.open("stdin", os.O_RDWR | os.O_NONBLOCK)
        return slave, slave, os.ttyname(slave)

    def _become(self, go: int, stdin: int, stdout: int, terminal: str) -> None:
        """Be the command, once its keeper says so.  A keeper that died meanwhile never does."""
        code = NEVER_RAN
        try:
            signal.set_wakeup_fd(-1)
            os.setsid()
            for number in (*DEAF_TO, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            if terminal:
                fcntl.ioctl(stdin, _TIOCSCTTY, 0)
            os.dup2(stdin, 0)
            os.dup2(stdout, 1)
            os.dup2(stdout, 2)
            if os.read(go, 1) != b"!":
                os._exit(code)
            give_way(0)
            os.chdir(self.spec.workdir)
            os.umask(self.spec.umask)
            os.execvpe(self.spec.argv[0], self.spec.argv, self.spec.environment)
        except FileNotFoundError as error:
            code = NOT_FOUND
            os.write(2, f"cannot be run: {error}\n".encode())
        except OSError as error:
            os.write(2, f"cannot be run: {error}\n".encode())
        finally:
            os._exit(code)

    def run(self) -> None:
        """Keep the command until it has ended, and write down how."""
        gone_at = 0.0
        while True:
            for number, event in self.poll.poll(self._patience_ms()):
                self._heed(number, event)
            self._enforce()
            if not self.ended and self._has_exited():
                self.ended = True
            if self.ended and not gone_at and not others_in_group(self.pid):
                gone_at = time.monotonic()
            if gone_at and (self.output < 0 or (time.monotonic() - gone_at) * 1000 > DRAIN_MS):
                break
        self._finish()

    def _patience_ms(self) -> int | None:
        waits = [GROUP_LOOK_MS] if self.ended else []
        if self.ended and self.output < 0:
            waits.append(GROUP_LOOK_MS // 10)
        if self.kill_at is not None:
            waits.append(max(int((self.kill_at - time.monotonic()) * 1000) + 1, 0))
        return min(waits) if waits else None

    def _heed(self, number: int, event: int) -> None:
        if number == self.woken:
            drain(self.woken)
        elif number == self.control:
            self._obey()
        elif number == self.typed:
            self._take_typed()
        elif number == self.output:
            if event & select.POLLOUT:
                self._type()
            if event & ~select.POLLOUT:
                self._take_output()

    def _take_output(self) -> None:
        try:
            data = os.read(self.output, CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            # A terminal that nobody has open any more.
            data = b""
        if data:
            self.log.write(data)
            return
        self.poll.unregister(self.output)
        os.close(self.output)
        self.output = -1

    def _take_typed(self) -> None:
        self.pending += drain(self.typed)
        self._listen()
        self._type()

    def _type(self) -> None:
        """Pass on to the terminal what was written to the command."""
        if self.output < 0:
            self.pending = b""
            return
        try:
            written = os.write(self.output, self.pending) if self.pending else 0
        except OSError as error:
            written = 0 if error.errno == errno.EAGAIN else len(self.pending)
        if written:
            self.last_typed = self.pending[:written]
        self.pending = self.pending[written:]
        self._listen()
        if self.closing and not self.pending:
            self.closing = False
            # In the middle of a line the first one only hands that line over.
            self.pending = _END_OF_INPUT if self.last_typed.endswith(b"\n") else _END_OF_INPUT * 2
            self._stop_typing()
            self._type()

    def _listen(self) -> None:
        """Take more only when the terminal has taken what there was."""
        if self.output >= 0:
            self.poll.modify(self.output, select.POLLIN | (select.POLLOUT if self.pending else 0))
        if self.typed >= 0:
            self.poll.modify(self.typed, 0 if len(self.pending) > CHUNK_BYTES else select.POLLIN)

    def _stop_typing(self) -> None:
        if self.typed >= 0:
            self.poll.unregister(self.typed)
            os.close(self.typed)
            self.typed = -1

    def _obey(self) -> None:
        self.commands = (self.commands + drain(self.control))[-CONTROL_MAX_BYTES:]
        *lines, self.commands = self.commands.split(b"\n")
        for line in lines:
            try:
                order = json.loads(line)
            except ValueError:
                continue
            if order.get("do") == "kill":
                self._end(float(order.get("grace_ms", 0)))
            elif order.get("do") == "close":
                self._close_input()

    def _close_input(self) -> None:
        try:
            os.unlink("stdin")
        except FileNotFoundError:
            return
        if self.hold >= 0:
            os.close(self.hold)
            self.hold = -1
        elif self.typed >= 0:
            self.pending += drain(self.typed)
            self.closing = True
            self._type()

    def _end(self, grace_ms: float) -> None:
        """Ask the whole group to end; what has not ended after a grace is killed."""
        if grace_ms > 0:
            self._signal(signal.SIGTERM)
            # One that is stopped could not hear it.
            self._signal(signal.SIGCONT)
        at = time.monotonic() + grace_ms / 1000
        self.kill_at = at if self.kill_at is None else min(at, self.kill_at)

    def _enforce(self) -> None:
        if self.kill_at is not None and time.monotonic() >= self.kill_at:
            self.kill_at = None
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        # The group's number is its own for as long as we have not reaped its leader.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _has_exited(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _finish(self) -> None:
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self.state |= {"exit_code": code} if code >= 0 else {"signal": -code}
        self.state |= {
            "ended_at": now_ms(),
            "duration_ms": int((time.monotonic() - self.began) * 1000),
            "output_bytes": self.log.total,
        }
        self.log.close()
        while True:
            try:
                replace("state.json", self.state)
            except FileNotFoundError:
                # The folder is gone, and with it whoever would have wanted to know.
                break
            except OSError:
                time.sleep(WRITE_RETRY_MS / 1000)
            else:
                break
        for name in ("stdin", "control"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


class Log:
    """What the command printed, in files named after their position: the first one, and the last few."""

    def __init__(self, spec: Spec) -> None:
        self.total = 0
        self._spec = spec
        self._file = -1
        self._room = 0
        self._names: list[str] = []
        os.mkdir("output", 0o700)

    def write(self, data: bytes) -> None:
        while data:
            try:
                if not self._room:
                    self._next()
                written = os.write(self._file, data[: self._room])
            except OSError:
                # The disk is full: this piece is lost, which the next file's name will show.
                written, self._room = len(data), 0
            else:
                self._room -= written
            self.total += written
            data = data[written:]

    def close(self) -> None:
        if self._file >= 0:
            with contextlib.suppress(OSError):
                os.fsync(self._file)
            os.close(self._file)
            self._file = -1

    def _next(self) -> None:
        first = self._file < 0 and not self._names
        self.close()
        name = f"output/{self.total:020d}"
        self._file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._room = self._spec.head_bytes if first else self._spec.segment_bytes
        self._names.append(name)
        if len(self._names) > self._spec.segments + 1:
            os.unlink(self._names.pop(1))


def identity(pid: int) -> dict[str, object]:
    """Return what tells a process from every other one that has had, or will have, its number."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        born = int(file.read().rpartition(b")")[2].split()[19])
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return {"pid": pid, "born": born, "boot": file.read().strip()}


def others_in_group(group: int) -> bool:
    """Return whether anybody but its leader is left in a process group; what has ended and was not reaped is not.

    Neither is the first process of a sandbox: it only waits for the others, and ends a moment after the last of them.
    """
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == group:
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, _parent, found, *_ = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(found) == group and state not in (b"Z", b"X") and not leads_namespace(name):
            return True
    return False


def give_way(leader: int) -> None:
    """Let the gateway go first at the processors: lower a command that leads a session, or this process if it is 0.

    Where the kernel groups processes by session, niceness counts only within a session, and the group has its own.
    """
    try:
        os.setpriority(os.PRIO_PGRP, leader, max(NICENESS, os.getpriority(os.PRIO_PGRP, leader)))
        with open(f"/proc/{leader or 'self'}/autogroup", "w", encoding="ascii") as file:
            file.write(str(NICENESS))
    except OSError:
        # It has ended already, or the system has no such groups.
        return


def leads_namespace(pid: str) -> bool:
    """Return whether a process is the first one of a namespace below ours, as the one that a sandbox begins with."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            _, *numbers = next((line.split() for line in file if line.startswith(b"NSpid:")), [b""])
    except OSError:
        return False
    return len(numbers) > 1 and numbers[-1] == b"1"


def drain(number: int) -> bytes:
    """Return what is there to be read without waiting."""
    try:
        return os.read(number, CHUNK_BYTES)
    except BlockingIOError:
        return b""


def write(name: str, value: object) -> None:
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(file, json.dumps(value).encode())
        os.fsync(file)
    finally:
        os.close(file)


def replace(name: str, value: object) -> None:
    """Write a file so that whoever looks sees the old one or the new one, after a power cut too."""
    write(f"{name}.new", value)
    os.rename(f"{name}.new", name)
    folder = os.open(".", os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    main(sys.argv[1])
