"""The folder of one background command, seen from the gateway: what its keeper wrote, and the way to both of them."""

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

from holdfast.agent.processes.identity import Identity
from holdfast.errors import Rejected

T = TypeVar("T")

_READS_MAX = 5
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
# What may become an escape sequence; a longer one is none.
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}|\][^\x07\x1b]{0,256}\x1b?)?\Z")


class Phase(StrEnum):
    """How far a command is, as far as its folder shows."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a keeper is to run, and how much of what it prints is kept."""

    argv: Sequence[str]
    workdir: str
    environment: Mapping[str, str]
    pty: bool
    head_bytes: int
    segment_bytes: int
    segments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What became of a command.  `exit_code` is negative where a signal ended it."""

    phase: Phase
    keeper: Identity | None = None
    command: Identity | None = None
    exit_code: int | None = None
    ended_at: int | None = None
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Some output: the bytes between two positions, and how many were dropped right before the first of them."""

    data: bytes
    start: int
    end: int
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """How often matches were told, when last, and up to where the last of these messages looked."""

    sent: int = 0
    at: int = 0
    to: int = 0
    too_slow: bool = False


class _Who(msgspec.Struct):
    pid: int
    born: int = 0
    boot: str = ""

    def identity(self) -> Identity:
        return Identity(pid=self.pid, born=self.born, boot=self.boot)


class _State(_Who):
    exit_code: int | None = None
    signal: int | None = None
    ended_at: int | None = None
    duration_ms: int | None = None


class Folder:
    """One command's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def prepare(self, spec: Spec) -> None:
        """Write down what is to be run.  It holds an environment, and is for nobody else to read."""
        self.path.mkdir(mode=0o700)
        # What is no UTF-8 in the environment comes out again as the bytes that it was.
        _replace(self.path / "spec.json", json.dumps(asdict(spec)).encode())
        _sync(self.path.parent)

    def void(self) -> bool:
        """Make sure that a command that has not begun never will; False when it has."""
        mark = self.path / "nobody"
        try:
            mark.write_bytes(msgspec.json.encode(_Who(pid=0)))
            os.link(mark, self.path / "keeper.json")
        except FileExistsError:
            return False
        except (FileNotFoundError, NotADirectoryError):
            # Without a folder there is nothing to run.
            return True
        finally:
            with contextlib.suppress(OSError):
                mark.unlink()
        return True

    def condition(self) -> Condition:
        """Return what became of the command."""
        keeper = _load(self.path / "keeper.json", _Who)
        if keeper is None:
            waits = (self.path / "spec.json").exists() and not (self.path / "keeper.json").exists()
            return Condition(phase=Phase.WAITING if waits else Phase.LOST)
        # Asked before its last words are read: a keeper writes them, and only then ends.
        alive = keeper.pid > 0 and keeper.identity().is_alive()
        state = _load(self.path / "state.json", _State)
        phase = Phase.RUNNING if alive else Phase.LOST
        if state and state.ended_at is not None:
            phase = Phase.ENDED
        return Condition(
            phase=phase,
            keeper=keeper.identity(),
            command=state.identity() if state else None,
            exit_code=_exit_code(state) if phase is Phase.ENDED else None,
            ended_at=state.ended_at if state else None,
            duration_ms=state.duration_ms if state else None,
        )

    def order(self, order: Mapping[str, object]) -> bool:
        """Tell the keeper something; False when nobody listens any more."""
        try:
            return self._send("control", msgspec.json.encode(order) + b"\n") > 0
        except (FileNotFoundError, BrokenPipeError):
            return False

    def type(self, data: bytes) -> int:
        """Write to the command's input without waiting; returns how many bytes were taken.  Raises `Rejected`."""
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
        """Return how much the command has printed so far, whatever is kept of it."""
        files = self._outputs()
        return files[-1][0] + files[-1][1] if files else 0

    def read(self, position: int, limit: int) -> Piece:
        """Return what was printed from a position on; what is not kept any more is skipped and counted."""
        for _ in range(_READS_MAX):
            with contextlib.suppress(FileNotFoundError):
                return self._read(position, limit)
        return Piece(data=b"", start=position, end=position)

    def tail(self, limit: int) -> Piece:
        """Return the end of what was printed so far."""
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
        """Return where each file of output begins, and how long it is."""
        found: list[tuple[int, int]] = []
        with contextlib.suppress(FileNotFoundError):
            for each in (self.path / "output").iterdir():
                with contextlib.suppress(FileNotFoundError):
                    found.append((int(each.name), each.stat().st_size))
        return sorted(found)

    def watch(self) -> Watch:
        """Return what was last written down about matches that were told."""
        return _load(self.path / "watch.json", Watch) or Watch()

    def save_watch(self, watch: Watch) -> None:
        _replace(self.path / "watch.json", msgspec.json.encode(watch))

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def readable(data: bytes, *, colours: bool = False) -> str:
    """Return output as text: without the movements of a terminal, or its colours unless wanted, or what no store takes."""
    text = data.decode("utf-8", "replace").replace("\x00", "�").replace("\r\n", "\n")
    return _ESCAPES.sub(lambda found: found[0] if colours and _COLOUR.fullmatch(found[0]) else "", text)


def whole(data: bytes) -> bytes:
    """Return bytes without a character or an escape sequence at their end of which the rest is still to come."""
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
    """Return what a file holds; None where it is not there, or holds something else."""
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
