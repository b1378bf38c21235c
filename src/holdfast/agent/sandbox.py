"""The sandbox: a command sees the machine read-only, may write in the workspace, and finds no secrets.

Bubblewrap does it, as root and as anybody else.  The network stays: installing and testing need it, and what leaves the
machine is a matter of judgement, not of mounts.  So do sockets without a file, which belong to the network.  The command
has process ids of its own: when it ends, or is killed, all that it started ends with it, and whoever keeps it lives on
outside.  It must be started in a session of its own, or it could type into the terminal of the gateway.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from holdfast.errors import ConfigInvalid

Choice = Literal["auto", "on", "off"]
PROGRAM = "bwrap"
INSTALL = "install bubblewrap (Debian, Ubuntu, Fedora, Arch and Alpine have a package of that name)"
PROBE_MAX_S = 10

# Below the person's own folder: what opens other doors.  A folder appears empty, a file as nothing at all.
SECRETS = (
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker",
    ".password-store",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/git/credentials",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".config/google-chrome",
    ".config/chromium",
    ".local/share/keyrings",
    ".mozilla",
    ".terraform.d/credentials.tfrc.json",
    ".oci",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".vault-token",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
)
# What only root could read: the sandbox takes its rights, but not its name.
SYSTEM_SECRETS = (Path("/etc/shadow"), Path("/etc/gshadow"), Path("/etc/ssl/private"))
# Programs fail without a place for these; what they leave there is gone with the command.
CACHES = (".cache", ".npm")

# What a program needs to find its files, its words and its terminal, and nothing that opens a door.
KEPT = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TERM",
        "COLORTERM",
        "COLUMNS",
        "LINES",
        "PAGER",
        "EDITOR",
        "VIRTUAL_ENV",
        "PYENV_ROOT",
        "CONDA_PREFIX",
        "NVM_DIR",
        "GOPATH",
        "GOROOT",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "JAVA_HOME",
        "NODE_PATH",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        "NO_PROXY",
        "no_proxy",
        "CI",
        "NO_COLOR",
        "FORCE_COLOR",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUTF8",
        "PYTHONIOENCODING",
    }
)
_KEPT_PREFIXES = ("LC_",)
# A proxy is needed to get anywhere, unless its address holds a password.
_PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy"})
_PASSWORD = re.compile(r"//[^/@]*@")


def scrubbed(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a command may know of the environment: a few names that are known to be harmless."""
    return {name: value for name, value in environment.items() if _is_kept(name, value)}


def _is_kept(name: str, value: str) -> bool:
    if name.lower() in _PROXIES:
        return not _PASSWORD.search(value)
    return name in KEPT or name.startswith(_KEPT_PREFIXES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """How commands are run.  `program` is empty where they run as they are; `description` says how and why.

    It is `missing` where nobody chose to do without it.
    """

    description: str
    workspace: Path
    program: str = ""
    hidden: tuple[Path, ...] = ()
    caches: tuple[Path, ...] = ()
    missing: bool = False

    @property
    def is_on(self) -> bool:
        return bool(self.program)

    @classmethod
    async def find(
        cls,
        choice: Choice,
        workspace: Path,
        *,
        hidden: Sequence[Path] = (),
        user_home: Path | None = None,
        program: str = PROGRAM,
    ) -> Sandbox:
        """Return what the operator chose, tried out once.  Raises `ConfigInvalid` where it must be and cannot.

        `hidden` are folders that no command may see, such as the home of the gateway; the workspace may lie in one.
        """
        workspace = workspace.resolve()
        if choice == "off":
            return cls(description='off: tools.terminal.sandbox is "off"', workspace=workspace)
        own = user_home or Path.home()
        found = shutil.which(program)
        sandbox = cls(
            description=f"on: {found}",
            workspace=workspace,
            program=found or program,
            hidden=(*hidden, *SYSTEM_SECRETS, *(own / name for name in SECRETS)),
            caches=tuple(own / name for name in CACHES),
        )
        problem = f"{program} is not installed" if found is None else await sandbox._problem()
        if not problem:
            return sandbox
        if choice == "on":
            raise ConfigInvalid(f'tools.terminal.sandbox: is "on", but {problem}; {INSTALL}, or choose "auto" or "off"')
        description = f"off, and code of the workspace is asked about: {problem}; to have one, {INSTALL}"
        return cls(description=description, workspace=workspace, missing=True)

    def wrap(self, argv: Sequence[str], workdir: Path) -> list[str]:
        """Return the command that runs `argv` in a folder, inside the sandbox where there is one."""
        if not self.is_on:
            return [*argv]
        return [self.program, *self._walls(), "--chdir", str(workdir), "--", *argv]

    def _walls(self) -> list[str]:
        walls = ["--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
        walls += ["--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        # Root owns the settings of the kernel, and would need no further right to change them.
        walls += ["--ro-bind", "/proc/sys", "/proc/sys"]
        # Sockets of daemons, which would do anything for whoever may connect; names of hosts are looked up there as well.
        walls += ["--tmpfs", "/run", "--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"]
        walls += ["--tmpfs", "/tmp", "--tmpfs", "/var/tmp"]  # noqa: S108 - Private ones are made here.
        for path in _present(self.caches):
            walls += ["--tmpfs", str(path)]
        hidden = _present(self.hidden)
        around = [path for path in hidden if self.workspace.is_relative_to(path)]
        # The outermost first: it would cover what was done inside it.
        for path in sorted(around):
            walls += ["--tmpfs", str(path)]
        walls += ["--bind", str(self.workspace), str(self.workspace)]
        for path in hidden:
            if path not in around:
                walls += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", os.devnull, str(path)]
        return walls

    async def _problem(self) -> str:
        """Return why the sandbox does not work here; nothing where it does."""
        if self.workspace == Path("/"):
            return "the workspace is the whole machine"
        try:
            self.workspace.mkdir(parents=True, exist_ok=True)
            tried = await asyncio.create_subprocess_exec(
                *self.wrap(["true"], self.workspace),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=scrubbed(os.environ),
                start_new_session=True,
            )
        except OSError as error:
            return f"{self.program} cannot be started: {error.strerror}"
        try:
            async with asyncio.timeout(PROBE_MAX_S):
                _, said = await tried.communicate()
        except TimeoutError:
            tried.kill()
            await tried.wait()
            return f"{self.program} did not answer within {PROBE_MAX_S} s"
        if tried.returncode == 0:
            return ""
        words = said.decode("utf-8", "replace").strip().splitlines()
        return f"{self.program} does not work here ({words[-1] if words else f'exit status {tried.returncode}'})"


def _present(paths: Sequence[Path]) -> list[Path]:
    """Return those that exist by now, without links: a wall can only stand where something is."""
    return [path.resolve() for path in paths if _exists(path)]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        # Where we cannot look, neither can the command.
        return False
