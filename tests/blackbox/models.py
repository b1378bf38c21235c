"""A model for gateways: the scripted model server as a process of its own, and the tools that its scripts may call."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.blackbox import probe
from tests.blackbox.gateway import Gateway, free_port, gateways, until

_ROOT = Path(__file__).parents[2]
_POINTS = "[holdfast.tools]\nprobe = tests.blackbox.probe:tools\n"
_METADATA = "Metadata-Version: 2.1\nName: holdfast-probe\nVersion: 1\n"


class ModelProcess:
    """The model server at one address, which can be away for a while."""

    def __init__(self, folder: Path, script: str) -> None:
        self.port = free_port()
        self.record = folder / "model-requests"
        self._script = script
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.models.servers", "--port", str(self.port), "--script", self._script]
        self._process = subprocess.Popen(
            [*command, "--record", str(self.record)],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": _PATH},
        )
        assert self._process.stdout
        assert int(self._process.stdout.readline()) == self.port

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.record.read_text().splitlines()] if self.record.exists() else []

    def asked(self, message: str) -> int:
        """Return how often it was asked to answer a message, which may have a word before it."""
        return sum(str(line.get("asked", "")).removeprefix("n").lstrip("0123456789 ") == message for line in self.lines)

    def answered(self, message: str = "") -> int:
        """Return how often it has answered in full: a message, or all together."""
        return sum(line["answered"] == message or not message for line in self.lines if "answered" in line)

    def check(self) -> None:
        """Every request was one that a vendor would have taken."""
        wrong = [line for line in self.lines if line.get("problems")]
        assert not wrong, wrong


# What the tests run against comes first: a mutant is a copy of the sources.
_PATH = os.pathsep.join([os.environ.get("PYTHONPATH", str(_ROOT / "src")), str(_ROOT)])


class Workshop:
    """Gateways with a model and with tools that can be watched."""

    def __init__(self, nodes: list[Gateway], model: ModelProcess, folder: Path) -> None:
        self.nodes = nodes
        self.model = model
        self.folder = folder

    @property
    def gateway(self) -> Gateway:
        return self.nodes[0]

    @property
    def began(self) -> Counter[str]:
        """How often each word of a probe began."""
        lines = self.folder / probe.LINES
        return Counter(line.split()[0] for line in lines.read_text().splitlines()) if lines.exists() else Counter()

    async def has_begun(self, *words: str) -> None:
        await until(lambda: all(self.began[word] for word in words), f"{words} have begun")

    def open_gate(self) -> None:
        (self.folder / probe.GATE).touch()

    async def leaves_nothing(self) -> None:
        """Nothing of any home runs but its gateway."""
        await until(lambda: not self.processes(), f"nothing is left running: {self.processes()}", patience_s=15)

    def processes(self) -> list[str]:
        """Return what runs in a folder of ours or was told of one, beside the gateways and the model."""
        return [each for each in _commands_in(str(self.folder.parent)) if "holdfast" not in each.split()[:4]]


def _commands_in(folder: str) -> Iterator[str]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            told = folder in command or str((entry / "cwd").readlink()).startswith(folder)
            if told and command and "tests.models.servers" not in command:
                yield f"{command} ({entry.name})"


def plug_in(folder: Path) -> dict[str, str]:
    """Make a folder that has the probes as a plugin; return the environment in which a gateway finds it."""
    plugin = folder / "holdfast_probe-1.dist-info"
    plugin.mkdir(parents=True)
    (plugin / "METADATA").write_text(_METADATA)
    (plugin / "entry_points.txt").write_text(_POINTS)
    return {"PYTHONPATH": f"{folder}{os.pathsep}{_PATH}", probe.FOLDER: str(folder)}


@contextlib.contextmanager
def workshop(count: int = 1, wire: str = "openai", script: str = "say noted", **settings: str) -> Iterator[Workshop]:
    """Give out homes for gateways whose model answers by script; whatever runs at the end is killed."""
    with gateways(count, **settings) as nodes:
        folder = nodes[0].home.parent / "probe"
        environment = plug_in(folder)
        model = ModelProcess(folder, script)
        model.start()
        for node in nodes:
            node.environment = environment
            node.settings |= {
                "model__name": f"{wire}:scripted",
                "model__base_url": f"http://127.0.0.1:{model.port}/v1",
                "model__api_key": "a-key-for-nobody",
                "model__retries": "2",
            }
        try:
            yield Workshop(nodes, model, folder)
        finally:
            model.kill()
            for node in nodes:
                node.close()
            for each in _commands_in(str(folder.parent)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(each.rpartition("(")[2].rstrip(")")), signal.SIGKILL)
