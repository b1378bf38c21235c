"""A warm process that has imported Holdfast, and from which gateways and commands are forked.

A gateway spends four fifths of its start on importing itself.  A forked one is a process like any other: only its
interpreter began earlier.  It has arguments and an environment of its own; a test that looks at them from outside, in /proc,
starts a new interpreter instead.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import math
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
# Whatever else a command imports, it imports itself.
_IMPORTED = ("holdfast.cli", "holdfast.app.gateway", "holdfast.daemon.watchdog", "holdfast.store.sqlite")
_REQUEST_MAX = 128 * 1024
_LOOK_S = 0.01


class Started:
    """`python -m holdfast` with some words, forked from the warm process; it has what `subprocess.Popen` has."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        output: Path,
        errors: Path,
        given: Path = Path(os.devnull),
    ) -> None:
        files = {"given": given, "output": output, "errors": errors}
        asked = {"words": words, "environment": dict(environment), "files": files, "folder": Path.cwd()}
        heard, told = os.pipe()
        socket.send_fds(_warm(environment.get("COLUMNS", "")), [json.dumps(asked, default=str).encode()], [told])
        os.close(told)
        self._heard = os.fdopen(heard, "rb", buffering=0)
        self._looking = threading.Lock()
        self.pid = int(self._heard.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with self._looking:
            if self.returncode is None and select.select([self._heard], [], [], 0)[0]:
                with self._heard:
                    self.returncode = int(self._heard.readline())
            return self.returncode

    def wait(self, timeout: float = math.inf) -> int:
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("holdfast", timeout)
            time.sleep(_LOOK_S)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@functools.cache
def _warm(columns: str) -> socket.socket:
    """Start the warm process; it ends when the socket is closed, with this process at the latest.

    How wide a command writes is decided when it is imported, so that each width has a process of its own.
    """
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    environment |= {"COLUMNS": columns} if columns else {}
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.warm"], stdin=its, stdout=subprocess.DEVNULL, cwd=ROOT, env=environment
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _birth() -> dict[str, Any]:
    """Fork a process for each request; return in that process, with the request."""
    # A Ctrl-C is for the tests.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=os.dup(0)) as requests:
        while True:
            request, handles, _, _ = socket.recv_fds(requests, _REQUEST_MAX, 1)
            # Those that are over are reaped, so that the time which they took counts as taken by the tests.
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if not request:
                sys.exit()
            (told,) = handles
            if os.fork() == 0:
                break
            os.close(told)
    # One process waits for the other, and tells how it ended.
    if pid := os.fork():
        os.write(told, b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    os.close(told)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return json.loads(request)


def _live(words: list[str], environment: dict[str, str], files: dict[str, str], folder: str) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.path[:0] = [each for each in environment.get("PYTHONPATH", "").split(os.pathsep) if each not in ("", *sys.path)]
    for handle, path, flags in (
        (0, files["given"], os.O_RDONLY),
        (1, files["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (2, files["errors"], os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        opened = os.open(path, flags, 0o666)
        os.dup2(opened, handle)
        os.close(opened)
    sys.orig_argv[1:] = ["-m", "holdfast", *words]
    sys.argv[1:] = words
    runpy.run_module("holdfast", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    for name in _IMPORTED:
        importlib.import_module(name)
    # What is never looked at by the collector need not be copied.
    gc.freeze()
    _live(**_birth())
