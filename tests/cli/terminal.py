"""A terminal: the real command in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from holdfast.cli import main
from tests import scratch
from tests.warm import Started

TIMEOUT_S = 60


class Terminal:
    """Runs `holdfast` as a user would, in a home of its own, with the signals `ignored` that `nohup` or a `&` takes away."""

    def __init__(self, home: Path, ignored: Sequence[signal.Signals] = ()) -> None:
        self.home = home
        self.ignored = ignored

    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        return {
            **inherited,
            "HOLDFAST_HOME": str(self.home),
            "HOLDFAST_TOOLS__TERMINAL__SANDBOX": "off",
            "COLUMNS": "120",
            "NO_COLOR": "1",
        }

    def run(self, *words: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a process of its own, and return how it ended."""
        with scratch.folder() as folder:
            given, output, errors = (folder / name for name in ("given", "output", "errors"))
            given.write_text(stdin)
            started = Started(words, self.environment() | variables, output, errors, given)
            try:
                status = started.wait(TIMEOUT_S)
            finally:
                started.kill()
            return subprocess.CompletedProcess(words, status, output.read_text(), errors.read_text())

    def type(self, *words: str) -> Result:
        """Run a command in this process, because most of what a process of its own takes is its beginning."""
        return CliRunner().invoke(main, words, env=self._difference())

    def read(self, *words: str) -> Any:
        """Run a command that must succeed, and return its JSON."""
        done = self.type(*words, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    def _difference(self) -> dict[str, str | None]:
        ours = self.environment()
        return {name: ours.get(name) for name in {*ours, *os.environ} if ours.get(name) != os.environ.get(name)}

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        with self.signals():
            return subprocess.Popen(
                [sys.executable, "-u", "-m", "holdfast", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=self.environment() | variables,
            )

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """What is started meanwhile ignores what it should and nothing else, however this run itself was started."""
        before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGHUP)}
        for each, handler in before.items():
            if (handler is signal.SIG_IGN) != (each in self.ignored):
                signal.signal(each, signal.SIG_IGN if each in self.ignored else signal.SIG_DFL)
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
