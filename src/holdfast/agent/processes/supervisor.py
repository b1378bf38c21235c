"""The supervisor process of a background command: it records the command's output and exit status on disk.

It outlives the gateway, and is a program of its own that uses the standard library alone:
`python -I -S supervisor.py FOLDER`.  It reads `spec.json` in the folder, and writes these files, each of them atomically:

    keeper.json     the supervisor's identity; the process that creates it first decides whether the command ever runs
    state.json      the command's pid and start time before it runs; at its end the exit code or the signal, and the time
    output/<from>   the output from that position on; the first file and the last ones are kept
    stdin, control  named pipes, so that any later gateway can write to the command, close its input, or end it

The file names are a format: a supervisor may be older than the gateway that reads its folder.  A command has ended when its
own process and its whole process group have.
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
# After the end, unread output is read for this long: a process that left the group may hold the pipe open for ever.
DRAIN_MS = 1_000
GROUP_LOOK_MS = 500
# While the disk is full, writing the end is retried this often.
WRITE_RETRY_MS = 1_000
CONTROL_MAX_BYTES = 65_536
FILES_MAX = 65_536
# A signal that ends the gateway must not end its supervisors.
IGNORED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ)
# The niceness of commands, from which the kernel also derives their disk priority.
NICENESS = 10
NEVER_RAN = 126
NOT_FOUND = 127

_TIOCSCTTY = 0x540E
_TIOCSWINSZ = 0x5414
_ROWS_COLUMNS = (40).to_bytes(2, sys.byteorder) + (120).to_bytes(2, sys.byteorder) + bytes(4)
_END_OF_INPUT = b"\x04"


def main(folder: str) -> None:
    os.chdir(folder)
    # Some event loops leak their file descriptors to child processes.
    os.closerange(3, FILES_MAX)
    if os.fork():
        # The gateway waits for this process only; the supervisor is its orphan.
        os._exit(0)
    os.setsid()
    umask = os.umask(0o077)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    try:
        if not claim():
            return
        supervisor = Supervisor(Spec(umask))
        supervisor.start()
    except OSError as error:
        with contextlib.suppress(BrokenPipeError):
            os.write(1, json.dumps({"error": str(error)}).encode())
        return
    # The gateway reads standard output until it closes.
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.close(null)
    supervisor.run()


def claim() -> bool:
    """Write this supervisor's identity.  Return False if the gateway has decided that the command must not run."""
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
    """The command, and how to run it."""

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


class Supervisor:
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
        # Open for writing too, so that it does not reach its end when a gateway closes its side.
        self.control = os.open("control", os.O_RDWR | os.O_NONBLOCK)
        self.woken, waker = os.pipe()
        os.set_blocking(self.woken, False)
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)

    def start(self) -> None:
        """Fork the command, write its identity, and only then let it run."""
        stdin, stdout, name = self._terminal() if self.spec.pty else self._pipes()
        go, gate = os.pipe()
        # A signal that is sent before the command has reset its handlers is delivered afterwards.
        signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)
        self.pid = os.fork()
        if not self.pid:
            os.close(gate)
            self._become(go, stdin, stdout, name)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED)
        os.close(go)
        for number in {stdin, stdout}:
            os.close(number)
        self.state = {**identity(self.pid), "started_at": now_ms()}
        self.began = time.monotonic()
        replace("state.json", self.state)
        # The gateway may be gone by now; the next one reads the identity from the folder.
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
        # The command reads the named pipe itself.  The supervisor holds the other side; the input ends when it is closed.
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
        """Become the command once the supervisor says so.  If the supervisor dies first, the command never runs."""
        code = NEVER_RAN
        try:
            signal.set_wakeup_fd(-1)
            os.setsid()
            for number in (*IGNORED, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            if terminal:
                fcntl.ioctl(stdin, _TIOCSCTTY, 0)
            os.dup2(stdin, 0)
            os.dup2(stdout, 1)
            os.dup2(stdout, 2)
            if os.read(go, 1) != b"!":
                os._exit(code)
            lower_priority(0)
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
        """Serve the command until it has ended, and record how."""
        gone_at = 0.0
        while True:
            for number, event in self.poll.poll(self._timeout_ms()):
                self._dispatch(number, event)
            self._enforce()
            if not self.ended and self._has_exited():
                self.ended = True
            if self.ended and not gone_at and not others_in_group(self.pid):
                gone_at = time.monotonic()
            if gone_at and (self.output < 0 or (time.monotonic() - gone_at) * 1000 > DRAIN_MS):
                break
        self._finish()

    def _timeout_ms(self) -> int | None:
        waits = [GROUP_LOOK_MS] if self.ended else []
        if self.ended and self.output < 0:
            waits.append(GROUP_LOOK_MS // 10)
        if self.kill_at is not None:
            waits.append(max(int((self.kill_at - time.monotonic()) * 1000) + 1, 0))
        return min(waits) if waits else None

    def _dispatch(self, number: int, event: int) -> None:
        if number == self.woken:
            drain(self.woken)
        elif number == self.control:
            self._take_orders()
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
            # The last process has closed the terminal.
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
        """Write pending input to the terminal."""
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
            # In the middle of a line, the first one only submits that line.
            self.pending = _END_OF_INPUT if self.last_typed.endswith(b"\n") else _END_OF_INPUT * 2
            self._stop_typing()
            self._type()

    def _listen(self) -> None:
        """Read more input only after the terminal has taken the pending input."""
        if self.output >= 0:
            self.poll.modify(self.output, select.POLLIN | (select.POLLOUT if self.pending else 0))
        if self.typed >= 0:
            self.poll.modify(self.typed, 0 if len(self.pending) > CHUNK_BYTES else select.POLLIN)

    def _stop_typing(self) -> None:
        if self.typed >= 0:
            self.poll.unregister(self.typed)
            os.close(self.typed)
            self.typed = -1

    def _take_orders(self) -> None:
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
        """Terminate the whole group, and kill it after a grace period."""
        if grace_ms > 0:
            self._signal(signal.SIGTERM)
            # A stopped process would not handle the signal.
            self._signal(signal.SIGCONT)
        at = time.monotonic() + grace_ms / 1000
        self.kill_at = at if self.kill_at is None else min(at, self.kill_at)

    def _enforce(self) -> None:
        if self.kill_at is not None and time.monotonic() >= self.kill_at:
            self.kill_at = None
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        # The kernel does not reuse the group's number while its leader is not reaped.
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
                # The folder was deleted with its session.
                break
            except OSError:
                time.sleep(WRITE_RETRY_MS / 1000)
            else:
                break
        for name in ("stdin", "control"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


class Log:
    """The output of the command, in files named after their position.  The first and the last few are kept."""

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
                # The disk is full: this piece is lost, and the next file's name shows the gap.
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
    """Return the identity of a process: pid, start time and boot."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        born = int(file.read().rpartition(b")")[2].split()[19])
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return {"pid": pid, "born": born, "boot": file.read().strip()}


def others_in_group(group: int) -> bool:
    """Return whether a process group has running processes besides its leader.

    The init process of a sandbox does not count: it only waits for the others, and ends a moment after the last of them.
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


def lower_priority(leader: int) -> None:
    """Lower the CPU priority of a session's leader, or of this process if `leader` is 0, below that of the gateway.

    If the kernel schedules sessions as groups, niceness counts only within a session, so the group's is set as well.
    """
    try:
        os.setpriority(os.PRIO_PGRP, leader, max(NICENESS, os.getpriority(os.PRIO_PGRP, leader)))
        with open(f"/proc/{leader or 'self'}/autogroup", "w", encoding="ascii") as file:
            file.write(str(NICENESS))
    except OSError:
        # The process has ended already, or the system has no session groups.
        return


def leads_namespace(pid: str) -> bool:
    """Return whether a process is the init process of a nested pid namespace, such as a sandbox."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            _, *numbers = next((line.split() for line in file if line.startswith(b"NSpid:")), [b""])
    except OSError:
        return False
    return len(numbers) > 1 and numbers[-1] == b"1"


def drain(number: int) -> bytes:
    """Read without blocking."""
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
    """Write a file atomically, also in the event of a power cut."""
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
