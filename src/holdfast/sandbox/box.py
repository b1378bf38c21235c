"""The sandbox: runs commands with the strongest confinement that this machine offers."""

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
from holdfast.sandbox.proxy import HostRules, NetworkAccess

Choice = Literal["auto", "on", "off"]
INSTALL = "install bubblewrap (Debian, Ubuntu, Fedora, Arch and Alpine have a package of that name)"
PROBE_MAX_S = 10
# Older versions of Landlock do not stop signals to other processes.
LANDLOCK_MIN = 6

# The file is imported rather than run, so that its bytecode is kept.
_BOOT = "import sys;sys.path[:0]=[sys.argv.pop(1)];from launcher import main;main()"
_FOLDER = str(Path(launcher.__file__).parent)
_PROXY = f"http://127.0.0.1:{launcher.PORT}"
_PROXIED = ("http_proxy", "https_proxy", "all_proxy")


class SandboxKind(StrEnum):
    """How commands are confined."""

    BUBBLEWRAP = "bubblewrap"
    LAUNCHER = "launcher"
    LANDLOCK = "landlock"
    SEATBELT = "seatbelt"
    NONE = "none"


# In the order in which they are tried.
LINUX = (SandboxKind.BUBBLEWRAP, SandboxKind.LAUNCHER, SandboxKind.LANDLOCK)
CONFINING = frozenset({SandboxKind.BUBBLEWRAP, SandboxKind.LAUNCHER})

_ON = {
    SandboxKind.LAUNCHER: "on: namespaces, Landlock and seccomp, by Holdfast's own launcher",
    SandboxKind.LANDLOCK: "weak: Landlock and seccomp alone, as namespaces are not allowed here; a command has no network, "
    "but it can see which processes run and change the modes and times of your files, so it is asked about",
    SandboxKind.SEATBELT: "weak: sandbox-exec, which Holdfast is not tested with; a command has no network, "
    "and is asked about",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """How commands are run."""

    # For people: which kind of confinement is used, and why.
    description: str
    profile: Profile
    kind: SandboxKind = SandboxKind.NONE
    # Commands are not fully confined although the configuration does not turn the sandbox off.
    missing: bool = False
    # The path of bubblewrap, for that kind.
    program: str = ""
    # Whether commands can be given network access through the proxy.
    has_proxy: bool = False

    @property
    def workspace(self) -> Path:
        return self.profile.workspace

    @property
    def confines(self) -> bool:
        """Whether a command changes only the workspace, reads no private file and reaches no host that is not allowed."""
        return self.kind in CONFINING

    @classmethod
    async def find(
        cls,
        choice: Choice,
        profile: Profile,
        *,
        program: str = bubblewrap.PROGRAM,
        kinds: Sequence[SandboxKind] | None = None,
    ) -> Sandbox:
        """Return the first kind that works in a trial run.  Raises `ConfigInvalid` if the choice is "on" and none works."""
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
        """Return the same kind of sandbox with another profile."""
        return replace(self, profile=profile)

    def wrap(
        self, argv: Sequence[str], workdir: Path, access: NetworkAccess | None = None
    ) -> tuple[list[str], dict[str, str]]:
        """Return the command that runs `argv` in a folder, and the variables to add to its environment.

        Without `access` it has no network.  Start it in a session of its own, or it could type into the gateway's terminal.
        """
        if self.kind is SandboxKind.NONE:
            return [*argv], {}
        if self.kind is SandboxKind.SEATBELT:
            return seatbelt.arguments(self.profile, argv, Path(tempfile.gettempdir())), {}
        access = access if self.has_proxy else None
        variables = {"no_proxy": access.direct if access else "", **dict.fromkeys(_PROXIED, _PROXY if access else "")}
        variables |= {name.upper(): value for name, value in variables.items()}
        # Node reads the proxy variables only if this one is set.
        variables |= {"NODE_USE_ENV_PROXY": "1"} if access else {}
        return self._launched(argv, workdir, access), variables

    def _launched(self, argv: Sequence[str], workdir: Path, access: NetworkAccess | None) -> list[str]:
        names = {SandboxKind.BUBBLEWRAP: "bubblewrap", SandboxKind.LAUNCHER: "namespaces", SandboxKind.LANDLOCK: "landlock"}
        words = [_interpreter(), "-I", "-S", "-c", _BOOT, _FOLDER, names[self.kind]]
        limits = self.profile.limits
        for name in launcher.LIMITS:
            number = {"processes": limits.processes, "memory": limits.memory, "file": limits.file}
            number |= {"files": limits.files, "cpu": limits.cpu}
            words += ["--limit", name, str(number[name])] if number[name] else []
        words += ["--filter", seccomp.program(namespaces=self.kind is not SandboxKind.LANDLOCK).hex()]
        words += ["--network"] if self.has_proxy else []
        words += ["--proxy-socket", str(access.path)] if access else []
        if self.kind is SandboxKind.BUBBLEWRAP:
            inner = bubblewrap.arguments(self.program, self.profile, argv, workdir, has_network=self.has_proxy)
            return [*words, "--", *inner]
        return [*words, *self._tree(), "--chdir", str(workdir), "--", *argv]

    def _tree(self) -> list[str]:
        profile, covered = self.profile, self.profile.covered()
        around = [path for path in covered if any(each.is_relative_to(path) for each in profile.writable)]
        if self.kind is SandboxKind.LANDLOCK:
            readable = [each for path in profile.readable for each in _without(path, covered)]
            return [*_each("--read", readable), *_each("--write", profile.writable)]
        hidden = [path for path in covered if path not in around]
        writable = (*profile.writable, *profile.pinned())
        words = [*_each("--read", profile.readable), *_each("--write", writable), *_each("--hide", hidden)]
        for path, target in profile.links.items():
            words += ["--link", str(path), target]
        return [*words, *_each("--blank", (*profile.blank, *around))]


def _interpreter() -> str:
    """Return the interpreter behind a virtual environment: it starts faster, and the launcher needs no packages."""
    return str(Path(sys.executable).resolve())


def _each(option: str, paths: Sequence[Path]) -> list[str]:
    return [word for path in paths for word in (option, str(path))]


def _without(folder: Path, hidden: Sequence[Path]) -> list[Path]:
    """Return the parts of a folder without hidden paths.  Landlock can only add paths, not take one away."""
    if folder in hidden:
        return []
    if not any(path.is_relative_to(folder) for path in hidden):
        return [folder]
    return [each for entry in folder.iterdir() for each in _without(entry, hidden)]


def _could_change(program: str, profile: Profile) -> bool:
    """Return whether a command could have put or changed this program, which was found by PATH."""
    places = (Path(program).absolute(), Path(program).resolve())
    return any(place.is_relative_to(each) for place in places for each in profile.writable)


def _possible() -> Sequence[SandboxKind]:
    return (SandboxKind.SEATBELT,) if sys.platform == "darwin" else LINUX


async def _try(kind: SandboxKind, profile: Profile, program: str) -> Sandbox | str:
    """Return a sandbox of this kind if a command runs in it; otherwise the reason why not."""
    match kind:
        case SandboxKind.BUBBLEWRAP:
            if (found := shutil.which(program)) is None:
                return f"{program} is not installed"
            if _could_change(found, profile):
                return f"{found} lies where commands can change it"
            box = Sandbox(description=f"on: {found}", profile=profile, kind=kind, program=found, has_proxy=True)
            problem = await _problem(box, "bubblewrap")
            if problem and not await _problem(replace(box, has_proxy=False), "bubblewrap"):
                return replace(box, has_proxy=False, description=f"on: {found}; the network cannot be allowed: {problem}")
        case SandboxKind.LAUNCHER:
            box = Sandbox(description=_ON[kind], profile=profile, kind=kind, has_proxy=True)
            problem = await _problem(box, "the launcher")
        case SandboxKind.LANDLOCK:
            if launcher.landlock_version() < LANDLOCK_MIN:
                return f"Landlock is missing or older than version {LANDLOCK_MIN} (Linux 6.12)"
            if any(path.is_relative_to(each) for path in profile.covered() for each in profile.writable):
                return "Landlock cannot hide a folder that lies in the workspace"
            box = Sandbox(description=_ON[kind], profile=profile, kind=kind, missing=True)
            problem = await _problem(box, "Landlock")
        case SandboxKind.SEATBELT:
            box = Sandbox(description=_ON[kind], profile=profile, kind=kind, missing=True)
            problem = await _problem(box, "sandbox-exec")
        case SandboxKind.NONE:
            return "no kind was given"
    return problem or box


async def _problem(box: Sandbox, name: str) -> str:
    """Return why a sandbox does not work here; empty if it works."""
    with tempfile.TemporaryDirectory() as folder:
        # The launcher sets up the network even though no proxy listens on this socket.
        argv, variables = box.wrap(
            ["/bin/sh", "-c", ":"], box.workspace, NetworkAccess(path=Path(folder) / "access", rules=HostRules())
        )
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
