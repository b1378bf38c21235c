"""What a run happens in: real gateways on one store, and everything around them that can break."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from tests import scratch
from tests.blackbox.gateway import ANEW, Gateway
from tests.blackbox.models import plug_in
from tests.chaos.model import Model
from tests.chaos.receiver import Receiver
from tests.chaos.verdict import MODEL
from tests.line import Connect, Line, lay
from tests.postgres import Server
from tests.webhooks.sender import SECRET

NODES = 3
DATABASE = "chaos"
DISK_MB = 256
RESTART_S = 0.5
# A gateway that ends or starts while its database is away, on a busy machine.
PATIENCE_S = 120.0
STARTS_MAX = 60
_SKEW = Path(__file__).with_name("skew")


class Setting(StrEnum):
    EMBEDDED = "embedded"
    CLUSTER = "cluster"


class Node(Gateway):
    """A gateway with a clock of its own, and perhaps with a line to its database that can be cut."""

    # The clock is set before anything is imported.
    command = ANEW

    def __init__(self, home: Path, line: Line | None, environment: Mapping[str, str], **settings: str) -> None:
        super().__init__(home, **settings)
        self.line = line
        self.patience_s = PATIENCE_S
        # One fault at a time ends, freezes or starts it.
        self.lock = asyncio.Lock()
        # With which status it has ended by itself, each time.
        self.ends: list[int] = []
        self._clock = home.with_suffix(".clock")
        self.set_clock(0)
        path = f"{_SKEW}{os.pathsep}{environment['PYTHONPATH']}"
        self.environment = {**environment, "PYTHONPATH": path, "CHAOS_CLOCK": str(self._clock)}

    def set_clock(self, offset_s: float) -> None:
        """Let its wall clock be wrong by so much, from now on."""
        packed = struct.pack("<q", int(offset_s * 1e9))
        if not self._clock.exists():
            self._clock.write_bytes(packed)
            return
        with self._clock.open("r+b", buffering=0) as file:
            file.write(packed)

    def spawn(self) -> None:
        """Start a process, and do not wait for it."""
        self._process = self._spawn()

    async def kill(self) -> None:
        """End it without warning; it may have ended by itself a moment before, without its store or on a full disk."""
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
        if (status := await self.ended()) != -signal.SIGKILL:
            self.ends.append(status)

    async def start(self, **settings: str) -> None:
        """Start a process as a service manager does: again, if it ended because the store could not be reached."""
        self.settings |= settings
        for _ in range(STARTS_MAX):
            self.spawn()
            with contextlib.suppress(AssertionError):
                return await self.ready()
            if self.process.poll() is None:
                break
            self.ends.append(self.process.returncode)
            await asyncio.sleep(RESTART_S)
        raise TimeoutError(f"{self.home.name} does not start:\n{self.tail()}")

    async def supervise(self) -> None:
        """Start it again when it has ended by itself."""
        while True:
            async with self.lock:
                if self.process.poll() is not None:
                    self.ends.append(self.process.returncode)
                    await self.start()
            await asyncio.sleep(RESTART_S)


@dataclass(kw_only=True)
class World:
    """One setting.  `disk` is a folder on a small disk of its own, where there is one."""

    setting: Setting
    nodes: list[Node]
    model: Model
    receiver: Receiver
    folder: Path
    url: str
    server: Server | None = None
    disk: Path | None = None
    # How often the disk has been full.
    fillings: int = 0
    # One restart of the database at a time.
    database: asyncio.Lock = field(default_factory=asyncio.Lock)

    @contextlib.asynccontextmanager
    async def taking(self, chance: random.Random) -> AsyncIterator[Node]:
        """Give out a node that no other fault has in its hands."""
        free = [node for node in self.nodes if not node.lock.locked()]
        node = chance.choice(free or self.nodes)
        async with node.lock:
            yield node

    @property
    def began(self) -> list[str]:
        """The words of the probes, once for each time that one began."""
        lines = self.folder / "probe" / "lines"
        return [line.split()[0] for line in lines.read_text().splitlines()] if lines.exists() else []


@contextlib.asynccontextmanager
async def world(setting: Setting, url: str | None = None) -> AsyncIterator[World]:
    """Build everything and start the gateways; end and remove all of it afterwards."""
    async with contextlib.AsyncExitStack() as stack:
        folder = stack.enter_context(scratch.folder())
        model = await stack.enter_async_context(Model(script="say noted").running())
        receiver = await stack.enter_async_context(Receiver().running())
        server = None
        if setting is Setting.CLUSTER and url is None:
            server = await asyncio.to_thread(Server, durable=True, parent=scratch.parent())
            stack.callback(server.close)
            await asyncio.to_thread(server.start)
            url = await asyncio.to_thread(server.create_database, DATABASE)
        disk = stack.enter_context(_small_disk(folder)) if setting is Setting.EMBEDDED else None
        environment = plug_in(folder / "probe")
        nodes: list[Node] = []
        for number in range(1 if setting is Setting.EMBEDDED else NODES):
            line = await stack.enter_async_context(lay(_far_end(server, url))) if url else None
            settings = _settings(model, receiver) | {"store__url": _via(line, url)}
            node = Node((disk or folder) / f"node-{number}", line, environment, **settings)
            node.log = folder / f"node-{number}.log"
            stack.callback(node.close)
            nodes.append(node)
        made = World(
            setting=setting, nodes=nodes, model=model, receiver=receiver, folder=folder, url=url or "sqlite", server=server,
            disk=disk,
        )  # fmt: skip
        for node in nodes:
            await node.start()
        yield made


def _settings(model: Model, receiver: Receiver) -> dict[str, str]:
    prompts = {"agent": {"prompt": "{text}"}, "plain": {"prompt": "{text}", "deliver_only": "true"}}
    routes = {
        f"channels__webhook__routes__{name}__{key}": value
        for name, route in prompts.items()
        for key, value in {"secret": SECRET, "deliver": receiver.target, **route}.items()
    }
    return routes | {
        "channels__url__allow_hosts": '["127.0.0.1"]',
        "channels__url__timeout": "5",
        "gateway__resume": "auto",
        "gateway__drain_timeout": "5",
        "memory__provider": "none",
        "model__name": MODEL,
        "model__base_url": model.url,
        "model__api_key": "a-key-for-the-scripted-model",
        "model__retries": "6",
        "model__stall_timeout": "3",
        "tools__terminal__approval": "allow",
    }


def _via(line: Line | None, url: str | None) -> str:
    if line is None or url is None:
        return "sqlite"
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0] or "holdfast"
    return f"postgresql://{user}@127.0.0.1:{line.port}{parts.path}"


def _far_end(server: Server | None, url: str) -> Connect:
    if server is not None:
        # A connection while the server is away must fail, not wait.
        return lambda: asyncio.open_unix_connection(str(server.folder / ".s.PGSQL.5432"))
    parts = urlsplit(url)
    return lambda: asyncio.open_connection(parts.hostname or "127.0.0.1", parts.port or 5432)


@contextlib.contextmanager
def _small_disk(folder: Path) -> Iterator[Path | None]:
    """Mount a small disk, which takes root on Linux; give out nothing where that is not possible."""
    place = folder / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0700", "chaos", str(place)]
    able = sys.platform == "linux" and os.geteuid() == 0
    if not able or subprocess.run(command, capture_output=True).returncode != 0:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], capture_output=True)
