"""The sandbox: the best way that this machine has to run a command so that it can do no harm."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Literal

from holdfast.errors import ConfigInvalid
from holdfast.sandbox import bubblewrap, launcher, seatbelt, seccomp
from holdfast.sandbox.environment import scrubbed
from holdfast.sandbox.profile import Profile
from holdfast.sandbox.proxy import Door, Rules

Choice = Literal["auto", "on", "off"]
INSTALL = "install bubblewrap (Debian, Ubuntu, Fedora, Arch and Alpine have a package of that name)"
PROBE_MAX_S = 10
# Below this one, Landlock does not stop signals to other processes.
LANDLOCK_MIN = 6

# The file is imported rather than run, so that its bytecode is kept.
_BOOT = "import sys;sys.path[:0]=[sys.argv.pop(1)];from launcher import main;main()"
_FOLDER = str(Path(launcher.__file__).parent)
_PROXY = f"http://127.0.0.1:{launcher.PORT}"
_PROXIED = ("http_proxy", "https_proxy", "all_proxy")


class Kind(StrEnum):
    """How commands are confined."""

    BUBBLEWRAP = "bubblewrap"
    LAUNCHER = "launcher"
    LANDLOCK = "landlock"
    SEATBELT = "seatbelt"
    NONE = "none"


# In the order in which they are tried.
LINUX = (Kind.BUBBLEWRAP, Kind.LAUNCHER, Kind.LANDLOCK)
CONFINING = frozenset({Kind.BUBBLEWRAP, Kind.LAUNCHER})

_ON = {
    Kind.LAUNCHER: "on: namespaces, Landlock and seccomp, by Holdfast's own launcher",
    Kind.LANDLOCK: "weak: Landlock and seccomp alone, as namespaces are not allowed here; a command has no network, but "
    "it can see which processes run and change the modes and times of your files, so it is asked about",
    Kind.SEATBELT: "weak: sandbox-exec, which Holdfast is not tested with; a command has no network, and is asked about",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """How commands are run.  `description` says how and why, in words."""

    description: str
    profile: Profile
    kind: Kind = Kind.NONE
    # Commands are not confined, although nobody chose to do without.
    missing: bool = False
    # The program of `bubblewrap`.
    program: str = ""
    # Whether commands can be given a way out through the proxy.
    has_proxy: bool = False

    @property
    def workspace(self) -> Path:
        return self.profile.workspace

    @property
    def is_on(self) -> bool:
        return self.kind is not Kind.NONE

    @property
    def confines(self) -> bool:
        """Whether a command in it is harmless: it changes only the workspace, reads no private file and reaches no host."""
        return self.kind in CONFINING

    @classmethod
    async def find(
        cls, choice: Choice, profile: Profile, *, program: str = bubblewrap.PROGRAM, kinds: Sequence[Kind] | None = None
    ) -> Sandbox:
        """Return the best one that works, tried out.  Raises `ConfigInvalid` where it must be and cannot."""
        if choice == "off":
            return cls(description='off: tools.terminal.sandbox is "off"', profile=profile)
        if profile.workspace == Path("/"):
            problems = ["the workspace is the whole machine"]
        else:
            problems = list[str]()
            for kind in _possible() if kinds is None else kinds:
                found = await _try(kind, profile, program)
                if isinstance(found, Sandbox):
                    return found
                problems.append(found)
        problem = "; ".join(problems)
        if choice == "on":
            raise ConfigInvalid(f'tools.terminal.sandbox: is "on", but {problem}; {INSTALL}, or choose "auto" or "off"')
        return cls(description=f"missing: {problem}; to have one, {INSTALL}", profile=profile, missing=True)

    def for_profile(self, profile: Profile) -> Sandbox:
        """Return the same kind of sandbox around something else."""
        return replace(self, profile=profile)

    def wrap(self, argv: Sequence[str], workdir: Path, door: Door | None = None) -> tuple[list[str], dict[str, str]]:
        """Return the command that runs `argv` in a folder, and the variables that it needs beside its environment.

        Without a `door` it has no network.  It must be started in a session of its own, or it could type into our terminal.
        """
        if self.kind is Kind.NONE:
            return [*argv], {}
        if self.kind is Kind.SEATBELT:
            return seatbelt.arguments(self.profile, argv, Path(tempfile.gettempdir())), {}
        door = door if self.has_proxy else None
        variables = {"no_proxy": door.direct if door else "", **dict.fromkeys(_PROXIED, _PROXY if door else "")}
        variables |= {name.upper(): value for name, value in variables.items()}
        # Node looks at the others only if it is told to.
        variables |= {"NODE_USE_ENV_PROXY": "1"} if door else {}
        return self._launched(argv, workdir, door), variables

    def _launched(self, argv: Sequence[str], workdir: Path, door: Door | None) -> list[str]:
        names = {Kind.BUBBLEWRAP: "bubblewrap", Kind.LAUNCHER: "namespaces", Kind.LANDLOCK: "landlock"}
        words = [_interpreter(), "-I", "-S", "-c", _BOOT, _FOLDER, names[self.kind]]
        limits = self.profile.limits
        for name in launcher.LIMITS:
            number = {"processes": limits.processes, "memory": limits.memory, "file": limits.file}
            number |= {"files": limits.files, "cpu": limits.cpu}
            words += ["--limit", name, str(number[name])] if number[name] else []
        words += ["--filter", seccomp.program(namespaces=self.kind is not Kind.LANDLOCK).hex()]
        words += ["--network"] if self.has_proxy else []
        words += ["--door", str(door.path)] if door else []
        if self.kind is Kind.BUBBLEWRAP:
            inner = bubblewrap.arguments(self.program, self.profile, argv, workdir, has_network=self.has_proxy)
            return [*words, "--", *inner]
        return [*words, *self._tree(), "--chdir", str(workdir), "--", *argv]

    def _tree(self) -> list[str]:
        profile, covered = self.profile, self.profile.covered()
        around = [path for path in covered if any(each.is_relative_to(path) for each in profile.writable)]
        if self.kind is Kind.LANDLOCK:
            readable = [each for path in profile.readable for each in _without(path, covered)]
            return [*_each("--read", readable), *_each("--write", profile.writable)]
        hidden = [path for path in covered if path not in around]
        writable = (*profile.writable, *profile.pinned())
        words = [*_each("--read", profile.readable), *_each("--write", writable), *_each("--hide", hidden)]
        for path, target in profile.links.items():
            words += ["--link", str(path), target]
        return [*words, *_each("--blank", (*profile.blank, *around))]


def _interpreter() -> str:
    """Return the interpreter behind a virtual environment: it starts faster, and the launcher needs no package."""
    return str(Path(sys.executable).resolve())


def _each(option: str, paths: Sequence[Path]) -> list[str]:
    return [word for path in paths for word in (option, str(path))]


def _without(folder: Path, hidden: Sequence[Path]) -> list[Path]:
    """Return what to show of a folder so that the hidden paths in it are not: Landlock cannot take anything away."""
    if folder in hidden:
        return []
    if not any(path.is_relative_to(folder) for path in hidden):
        return [folder]
    return [each for entry in folder.iterdir() for each in _without(entry, hidden)]


def _could_change(program: str, profile: Profile) -> bool:
    """Return whether a program that PATH led to could be one of the agent's own, put there in an earlier command."""
    places = (Path(program).absolute(), Path(program).resolve())
    return any(place.is_relative_to(each) for place in places for each in profile.writable)


def _possible() -> Sequence[Kind]:
    return (Kind.SEATBELT,) if sys.platform == "darwin" else LINUX


async def _try(kind: Kind, profile: Profile, program: str) -> Sandbox | str:
    """Return a sandbox of a kind, if a command runs in it; otherwise why not."""
    match kind:
        case Kind.BUBBLEWRAP:
            if (found := shutil.which(program)) is None:
                return f"{program} is not installed"
            if _could_change(found, profile):
                return f"{found} lies where commands can change it"
            box = Sandbox(description=f"on: {found}", profile=profile, kind=kind, program=found, has_proxy=True)
            problem = await _problem(box, "bubblewrap")
            if problem and not await _problem(replace(box, has_proxy=False), "bubblewrap"):
                return replace(box, has_proxy=False, description=f"on: {found}; the network cannot be allowed: {problem}")
        case Kind.LAUNCHER:
            box = Sandbox(description=_ON[kind], profile=profile, kind=kind, has_proxy=True)
            problem = await _problem(box, "the launcher")
        case Kind.LANDLOCK:
            if launcher.landlock_version() < LANDLOCK_MIN:
                return f"Landlock is missing or older than version {LANDLOCK_MIN} (Linux 6.12)"
            if any(path.is_relative_to(each) for path in profile.covered() for each in profile.writable):
                return "Landlock cannot hide a folder that lies in the workspace"
            box = Sandbox(description=_ON[kind], profile=profile, kind=kind, missing=True)
            problem = await _problem(box, "Landlock")
        case Kind.SEATBELT:
            box = Sandbox(description=_ON[kind], profile=profile, kind=kind, missing=True)
            problem = await _problem(box, "sandbox-exec")
        case Kind.NONE:
            return "none was asked for"
    return problem or box


async def _problem(box: Sandbox, name: str) -> str:
    """Return why a sandbox does not work here; nothing where it does."""
    with tempfile.TemporaryDirectory() as folder:
        # Nobody listens there; the network is set up all the same.
        argv, variables = box.wrap(["/bin/sh", "-c", ":"], box.workspace, Door(path=Path(folder) / "door", rules=Rules()))
        try:
            box.workspace.mkdir(parents=True, exist_ok=True)
            tried = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=_environment(variables),
                start_new_session=True,
            )
        except OSError as error:
            return f"{name} cannot be started: {error.strerror}"
        try:
            async with asyncio.timeout(PROBE_MAX_S):
                _, said = await tried.communicate()
        except TimeoutError:
            tried.kill()
            await tried.wait()
            return f"{name} did not answer within {PROBE_MAX_S} s"
    if tried.returncode == 0:
        return ""
    words = said.decode("utf-8", "replace").strip().splitlines()
    return f"{name} does not work here ({words[-1] if words else f'exit status {tried.returncode}'})"


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    return {"PATH": os.defpath, **scrubbed(os.environ), **variables}
