"""The folder of one background command: the files that its supervisor writes, and the pipes to both of them."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import msgspec

from holdfast.agent.processes.identity import ProcessIdentity
from holdfast.errors import Rejected

T = TypeVar("T")

_READS_MAX = 5
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
# The beginning of an escape sequence; a longer one is not an escape sequence.
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}|\][^\x07\x1b]{0,256}\x1b?)?\Z")


class ProcessPhase(StrEnum):
    """The phase of a command, according to its folder."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """The command that a supervisor runs, and how much of its output is kept."""

    argv: Sequence[str]
    workdir: str
    environment: Mapping[str, str]
    pty: bool
    head_bytes: int
    segment_bytes: int
    segments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The condition of a command.  `exit_code` is negative if a signal ended it."""

    phase: ProcessPhase
    supervisor: ProcessIdentity | None = None
    command: ProcessIdentity | None = None
    exit_code: int | None = None
    ended_at: int | None = None
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The output between two positions."""

    data: bytes
    start: int
    end: int
    # How many bytes before `start` are no longer kept.
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What was reported about matching output."""

    # How many messages were sent, and when the last one was.
    sent: int = 0
    at: int = 0
    # The position in the output up to which the last message looked.
    to: int = 0
    # Whether matching was given up because it took too long.
    too_slow: bool = False


class _Who(msgspec.Struct):
    pid: int
    born: int = 0
    boot: str = ""

    def identity(self) -> ProcessIdentity:
        return ProcessIdentity(pid=self.pid, born=self.born, boot=self.boot)


class _State(_Who):
    exit_code: int | None = None
    signal: int | None = None
    ended_at: int | None = None
    duration_ms: int | None = None


class ProcessFolder:
    """One command's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def prepare(self, spec: CommandSpec) -> None:
        """Write the command for its supervisor.  It holds an environment, so only this user may read it."""
        self.path.mkdir(mode=0o700)
        # JSON with escapes keeps bytes of the environment that are not UTF-8.
        _replace(self.path / "spec.json", json.dumps(asdict(spec)).encode())
        _sync(self.path.parent)

    def prevent_start(self) -> bool:
        """Make sure that a command that has not begun never begins.  Return False if it has begun."""
        mark = self.path / "nobody"
        try:
            mark.write_bytes(msgspec.json.encode(_Who(pid=0)))
            os.link(mark, self.path / "keeper.json")
        except FileExistsError:
            return False
        except (FileNotFoundError, NotADirectoryError):
            # A supervisor cannot start without the folder.
            return True
        finally:
            with contextlib.suppress(OSError):
                mark.unlink()
        return True

    def condition(self) -> Condition:
        """Return the condition of the command."""
        supervisor = _load(self.path / "keeper.json", _Who)
        if supervisor is None:
            waits = (self.path / "spec.json").exists() and not (self.path / "keeper.json").exists()
            return Condition(phase=ProcessPhase.WAITING if waits else ProcessPhase.LOST)
        # Checked before the state is read, because a supervisor writes its last state before it ends.
        alive = supervisor.pid > 0 and supervisor.identity().is_alive()
        state = _load(self.path / "state.json", _State)
        phase = ProcessPhase.RUNNING if alive else ProcessPhase.LOST
        if state and state.ended_at is not None:
            phase = ProcessPhase.ENDED
        return Condition(
            phase=phase,
            supervisor=supervisor.identity(),
            command=state.identity() if state else None,
            exit_code=_exit_code(state) if phase is ProcessPhase.ENDED else None,
            ended_at=state.ended_at if state else None,
            duration_ms=state.duration_ms if state else None,
        )

    def order(self, order: Mapping[str, object]) -> bool:
        """Send an order to the supervisor.  Return False if it is gone."""
        try:
            return self._send("control", msgspec.json.encode(order) + b"\n") > 0
        except (FileNotFoundError, BrokenPipeError):
            return False

    def type(self, data: bytes) -> int:
        """Write to the command's input without waiting, and return how many bytes were taken.  Raises `Rejected`."""
        try:
            return self._send("stdin", data)
        except FileNotFoundError:
            raise Rejected("its input is closed") from None
        except BrokenPipeError:
            raise Rejected("it no longer reads its input") from None

    def _send(self, name: str, data: bytes) -> int:
        try:
            pipe = os.open(self.path / name, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno == errno.ENXIO:
                raise BrokenPipeError(name) from error
            raise
        try:
            return os.write(pipe, data)
        except BlockingIOError:
            return 0
        finally:
            os.close(pipe)

    def size(self) -> int:
        """Return how many bytes the command has printed so far, kept or not."""
        files = self._outputs()
        return files[-1][0] + files[-1][1] if files else 0

    def read(self, position: int, limit: int) -> Piece:
        """Return output from a position on.  Bytes that are no longer kept are skipped and counted."""
        for _ in range(_READS_MAX):
            with contextlib.suppress(FileNotFoundError):
                return self._read(position, limit)
        return Piece(data=b"", start=position, end=position)

    def tail(self, limit: int) -> Piece:
        """Return the end of the output so far."""
        return self.read(max(self.size() - limit, 0), limit)

    def _read(self, position: int, limit: int) -> Piece:
        data, at, dropped = b"", position, 0
        for start, length in self._outputs():
            if start + length <= at:
                continue
            if start > at and data:
                break
            dropped += max(start - at, 0)
            at = max(start, at)
            with (self.path / "output" / f"{start:020d}").open("rb") as file:
                file.seek(at - start)
                found = file.read(limit - len(data))
            data += found
            at += len(found)
            if len(data) >= limit:
                break
        begin = position + dropped
        return Piece(data=data, start=begin, end=begin + len(data), dropped=dropped)

    def _outputs(self) -> list[tuple[int, int]]:
        """Return the position and the length of each output file."""
        found: list[tuple[int, int]] = []
        with contextlib.suppress(FileNotFoundError):
            for each in (self.path / "output").iterdir():
                with contextlib.suppress(FileNotFoundError):
                    found.append((int(each.name), each.stat().st_size))
        return sorted(found)

    def watch(self) -> Watch:
        """Return what was last saved about reported matches."""
        return _load(self.path / "watch.json", Watch) or Watch()

    def save_watch(self, watch: Watch) -> None:
        _replace(self.path / "watch.json", msgspec.json.encode(watch))

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def readable(data: bytes, *, colours: bool = False) -> str:
    """Return output as text, without escape sequences (except colours, if wanted) and NUL characters."""
    text = data.decode("utf-8", "replace").replace("\x00", "�").replace("\r\n", "\n")
    return _ESCAPES.sub(lambda found: found[0] if colours and _COLOUR.fullmatch(found[0]) else "", text)


def whole(data: bytes) -> bytes:
    """Return bytes without an incomplete character or escape sequence at their end."""
    if unfinished := _UNFINISHED.search(data):
        return data[: unfinished.start()]
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back else data
        if byte < 0x80:
            break
    return data


def _exit_code(state: _State | None) -> int | None:
    if state is None:
        return None
    return -state.signal if state.signal is not None else state.exit_code


def _load(path: Path, kind: type[T]) -> T | None:
    """Return the content of a file; None if it is missing or malformed."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError):
        return None


def _replace(path: Path, data: bytes) -> None:
    new = path.with_suffix(".new")
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(file, data)
        os.fsync(file)
    finally:
        os.close(file)
    new.rename(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
