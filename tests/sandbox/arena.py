"""The arena: a person's home, a gateway and sinks beside a workspace, and what must be true of them after every command."""

from __future__ import annotations

import ctypes
import os
import resource
import secrets
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.sandbox import Limits, Profile, Sandbox, SandboxKind, profile, scrubbed
from holdfast.sandbox.proxy import NetworkAccess
from tests.sandbox.attacks import Attack

MARKER = "HF-SECRET-7c1e"
PLANTED = ("/etc", "/usr", "/usr/bin", "/opt", "/var", "/boot", "/lib", "/srv", "/etc/cron.d", "/var/spool/cron")
LIMITS = Limits(processes=300, memory=1024 * 1024 * 1024, file=8 * 1024 * 1024, files=1024, cpu=2)
PATIENCE_S = 30
_IPC_CREATE = 0o1000


class Arena:
    """Everything that a command must not touch, and where it may work."""

    def __init__(self, root: Path, programs: Mapping[str, str]) -> None:
        self.programs = programs
        self._boxes: dict[SandboxKind, Sandbox] = {}
        self.id = f"hf-{secrets.token_hex(6)}"
        self.root = root
        self.person, self.gateway, self.outside = root / "person", root / "gateway", root / "outside"
        self.workspace = self.gateway / "workspace"
        for folder in (
            self.person / ".ssh",
            self.person / "Documents",
            self.outside,
            self.workspace,
            self.gateway / "proxy",
        ):
            folder.mkdir(parents=True)
        for path in (self.person / ".ssh/id_rsa", self.person / "Documents/diary.txt", self.person / ".netrc"):
            path.write_text(f"{MARKER}\n")
        (self.person / ".bashrc").write_text("# as it was\n")
        (self.gateway / "holdfast.toml").write_text(f'api_key = "{MARKER}"\n')
        (self.outside / "victim.txt").write_text("as it was\n")
        self._sinks = self._listen()
        self._anywhere = socket.create_server(("0.0.0.0", 0))
        self._sinks.append(self._anywhere)
        self._shared_key = secrets.randbelow(1 << 30) + 1
        self._shared = ctypes.CDLL(None).shmget(self._shared_key, 4096, _IPC_CREATE | 0o600)
        self.victim = subprocess.Popen(
            ["sleep", "600"], env={"PATH": os.environ["PATH"], "TOKEN": MARKER}, start_new_session=True, cwd=self.outside
        )
        # What somebody forgot to close; a command must not inherit it.
        self._leak = os.open(self.person / "Documents/diary.txt", os.O_RDONLY)
        os.set_inheritable(self._leak, True)
        while self._stat() != "S":
            os.sched_yield()
        self._before = self._state()

    def profile(self) -> Profile:
        return profile(
            self.workspace, hidden=[self.gateway], user_home=self.person, limits=LIMITS, environment=self.programs
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """Where the targets are."""
        tcp, tcp6, udp, *_ = self._sinks
        return {
            "HOME": str(self.person),
            "OUTSIDE": str(self.outside),
            "PERSON": str(self.person),
            "GATEWAY": str(self.gateway),
            "PORT": str(tcp.getsockname()[1]),
            "ANYWHERE": str(self._anywhere.getsockname()[1]),
            "PORT6": str(tcp6.getsockname()[1]),
            "UDP": str(udp.getsockname()[1]),
            "ABSTRACT": self.id,
            "SHARED": str(self._shared_key),
            "VICTIM": str(self.victim.pid),
            "RUNNER": str(os.getpid()),
            "HF_ARENA": self.id,
        }

    async def box(self, kind: SandboxKind) -> Sandbox:
        """Return a sandbox around the workspace, tried out once."""
        if kind not in self._boxes:
            self._boxes[kind] = await Sandbox.find("on", self.profile(), kinds=[kind])
        return self._boxes[kind]

    def run(
        self, box: Sandbox, attack: Attack, access: NetworkAccess | None = None, *, user: int | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run an attack to its end.  The environment of the gateway holds a secret, as it does in life."""
        own = self.workspace / "work"
        own.mkdir(exist_ok=True)
        own.chmod(0o777)
        command = ["/bin/sh", "-c", attack.script] if attack.language == "sh" else ["python3", "-c", attack.script]
        argv, variables = box.wrap(command, own, access)
        if user is not None:
            argv[0] = interpreter_for_everybody()
        gateways = scrubbed({**os.environ, **self.programs, "HOLDFAST_SERVER__API_KEY": MARKER, "OPENAI_API_KEY": MARKER})
        environment = {**gateways, **variables, **self.environment}
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=own,
            timeout=PATIENCE_S,
            start_new_session=True,
            pass_fds=(self._leak,),
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )

    def check(self, done: subprocess.CompletedProcess[bytes], patience_s: float = PATIENCE_S) -> None:
        """Nothing outside the workspace has changed, no byte reached a sink, and nothing private was read or is left."""
        assert done.stdout.startswith(b"begun"), done.stdout
        assert b"ACHIEVED" not in done.stdout, done.stdout
        assert MARKER.encode() not in done.stdout, "a secret was read"
        assert not self._touched(), "a byte reached a sink"
        now = self._state()
        assert not {key for key in {**now, **self._before} if now.get(key) != self._before.get(key)}, "something has changed"
        assert self.victim.poll() is None, "a process of somebody else was killed"
        assert not [place for place in PLANTED if Path(place, "hf-planted").exists()]
        # Bubblewrap tells the exit status a moment before the last process of the sandbox is gone.
        deadline = time.monotonic() + patience_s
        while self._left():
            assert time.monotonic() < deadline, "it has left a process behind"
        huge = self.workspace / "work/huge"
        assert not huge.exists() or huge.stat().st_size <= LIMITS.file

    def clean(self) -> None:
        """Make the workspace empty again."""
        shutil.rmtree(self.workspace / "work", ignore_errors=True)

    def close(self) -> None:
        self.victim.kill()
        self.victim.wait()
        for pid in self._left():
            os.kill(pid, 9)
        for sink in self._sinks:
            sink.close()
        os.close(self._leak)
        ctypes.CDLL(None).shmctl(self._shared, 0, None)
        self.person.chmod(0o755)

    def _listen(self) -> list[socket.socket]:
        tcp = socket.create_server(("127.0.0.1", 0))
        tcp6 = socket.create_server(("::1", 0), family=socket.AF_INET6)
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        abstract, letters, file, own = (
            socket.socket(socket.AF_UNIX),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
            socket.socket(socket.AF_UNIX),
            socket.socket(socket.AF_UNIX),
        )
        abstract.bind(f"\0{self.id}")
        letters.bind(f"\0{self.id}-d")
        for held, folder, name in ((file, self.outside, "sink.sock"), (own, self.gateway, "gateway.sock")):
            number = os.open(folder, os.O_PATH)
            held.bind(f"/proc/self/fd/{number}/{name}")
            os.close(number)
        for held in (abstract, file, own):
            held.listen()
        return [tcp, tcp6, udp, abstract, letters, file, own]

    def _touched(self) -> list[socket.socket]:
        return select.select(self._sinks, [], [], 0)[0]

    def _state(self) -> dict[str, object]:
        """Return everything that can be seen of what is outside."""
        found: dict[str, object] = {}
        for path in (self.root, *self.root.rglob("*")):
            if path.is_relative_to(self.workspace):
                continue
            seen = path.lstat()
            times = (seen.st_mtime_ns,) if path != self.gateway else ()
            content = path.read_bytes() if path.is_file() else b""
            found[str(path)] = (seen.st_mode, seen.st_uid, seen.st_nlink if path.is_file() else 0, *times, content)
        found["limits"] = resource.prlimit(self.victim.pid, resource.RLIMIT_CPU)
        found["priority"] = os.getpriority(os.PRIO_PROCESS, self.victim.pid)
        found["affinity"] = os.sched_getaffinity(self.victim.pid)
        found["state"] = self._stat()
        found["host"] = socket.gethostname()
        return found

    def _stat(self) -> str:
        """Return whether the other process sleeps, as it should, is stopped or has ended."""
        return Path(f"/proc/{self.victim.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def _left(self) -> list[int]:
        """Return the processes of a command that are still there."""
        needle = f"HF_ARENA={self.id}".encode()
        found: list[int] = []
        for path in Path("/proc").iterdir():
            if path.name.isdigit():
                try:
                    if (
                        needle in (path / "environ").read_bytes()
                        and b"Z" not in (path / "stat").read_bytes().rpartition(b")")[2][:3]
                    ):
                        found.append(int(path.name))
                except OSError:
                    continue
        return found


def interpreter_for_everybody() -> str:
    """Return an interpreter that others can run as well; ours may be in a home folder."""
    for path in (Path(sys.executable).resolve(), Path("/usr/bin/python3").resolve()):
        if all(each.stat().st_mode & 0o001 for each in (path, *path.parents)):
            return str(path)
    pytest.skip("no interpreter of this machine is for everybody")


@contextmanager
def arena(root: Path, programs: Mapping[str, str] | None = None) -> Iterator[Arena]:
    """Give out an arena; nothing of it is left running.  `programs` says where programs are; by default, where ours are."""
    made = Arena(root, programs or {"PATH": os.environ["PATH"]})
    try:
        yield made
    finally:
        made.close()
