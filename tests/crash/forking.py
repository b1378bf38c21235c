"""A warm process that forks a child for each line of its input, which is ten times as fast as a new interpreter.

Nothing that could not be forked is started before it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from typing import IO, Any, Generic, Self, TypeVar

from holdfast.store import home, sqlite

CHILD_DEADLINE_S = 30
L = TypeVar("L")


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """How a life ended; `output` is what it had printed until then."""

    status: int
    output: list[str]
    errors: str

    def lines(self, word: str) -> list[str]:
        return [line.removeprefix(f"{word} ") for line in self.output if line.startswith(f"{word} ")]

    def shown(self) -> list[Any]:
        return [json.loads(line) for line in self.lines("shown")]

    def reports(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines("report")]


class Warm(Generic[L]):
    """The parent's end of a warm process: a module that calls `serve`."""

    def __init__(self, module: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def live(self, life: L) -> Death:
        """Let one life be lived, and return how it ended."""
        stdin, stdout = self._pipes()
        stdin.write(json.dumps(asdict(life)) + "\n")  # type: ignore[call-overload] - A life is a dataclass.
        stdin.flush()
        return Death(**json.loads(stdout.readline()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        stdin, stdout = self._pipes()
        stdin.close()
        self._process.wait(CHILD_DEADLINE_S)
        stdout.close()

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        assert self._process.stdin
        assert self._process.stdout
        return self._process.stdin, self._process.stdout


def serve(kind: type[L], live: Callable[[L], Coroutine[Any, Any, None]]) -> None:
    """Live a life for each line of the input, one after the other."""
    # Small lives, so that checkpoints and ballast are part of each without taking its time.
    sqlite.CHECKPOINT_PAGES = 40
    home.BALLAST_BYTES = 64 * 1024
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        print(json.dumps(asdict(_fork(live, kind(**json.loads(line))))), flush=True)


def _fork(live: Callable[[L], Coroutine[Any, Any, None]], life: L) -> Death:
    """Live one life in a child, and wait for its end."""
    output, errors = os.memfd_create("output"), os.memfd_create("errors")
    child = os.fork()
    if child == 0:
        signal.alarm(CHILD_DEADLINE_S)
        os.dup2(output, 1)
        os.dup2(errors, 2)
        status = 1
        try:
            asyncio.run(live(life))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    texts = [os.pread(file, 1 << 24, 0).decode() for file in (output, errors)]
    for file in (output, errors):
        os.close(file)
    return Death(status=os.waitstatus_to_exitcode(status), output=texts[0].splitlines(), errors=texts[1])
