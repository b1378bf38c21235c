"""The profile of a confined command: what it sees, where it may write, and how much it may use.

A profile is an allowlist.  The system is visible read-only and the workspace is writable.  Of the user's home folder, only
the programs that PATH names are visible: virtual environments, pyenv, nvm and the like.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MEGABYTE = 1024 * 1024

# The folders of programs and libraries.  A symbolic link, as /bin often is, is a symbolic link in the sandbox as well.
_TOP = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt", "nix/store", "gnu/store", "snap")
SYSTEM = (*(Path("/", name) for name in _TOP), Path("/sys/devices/system/cpu"))
# Each command gets its own empty copy of these.
PRIVATE = tuple(Path(name) for name in ("/tmp", "/var/tmp", "/run"))  # noqa: S108 - Private ones are made there.
# Variables that name where a toolchain lives.
TOOLCHAINS = ("VIRTUAL_ENV", "PYENV_ROOT", "CONDA_PREFIX", "NVM_DIR", "RUSTUP_HOME", "JAVA_HOME", "GOROOT")
PROGRAM_FOLDERS = frozenset({"bin", "sbin", "shims"})
# Folders of the home that hold more than programs: only their `bin` is shown.
MIXED = (".local", ".cargo")
# At most this many entries of /etc are checked for files that not every user may read, or the start would take too long.
ETC_MAX = 20_000

# Credentials in the home folder, hidden even if the workspace is the home folder or contains it.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a command may use; 0 means that Holdfast sets no limit."""

    # Processes and threads of one command together.
    processes: int = 1024
    # Bytes of memory of a process.
    memory: int = 8192 * MEGABYTE
    # Bytes of a file that it writes.
    file: int = 16384 * MEGABYTE
    # Files that a process has open.
    files: int = 8192
    # Seconds of CPU time of a process.
    cpu: int = 14_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a command sees.  Every path is absolute and resolved; other paths do not exist for the command."""

    # Commands run in the first one.
    writable: tuple[Path, ...]
    readable: tuple[Path, ...] = ()
    # Never visible, even inside a readable or writable folder.
    hidden: tuple[Path, ...] = ()
    # Empty, writable, and removed when the command ends.
    blank: tuple[Path, ...] = PRIVATE
    # Links of the system, such as /bin to usr/bin.
    links: Mapping[Path, str] = field(default_factory=dict[Path, str])
    limits: Limits = field(default_factory=Limits)

    @property
    def workspace(self) -> Path:
        return self.writable[0]

    def covered(self) -> list[Path]:
        """Return the hidden paths that exist inside a visible folder.  The others are not visible anyway."""
        shown = (*self.readable, *self.writable)
        return [path for path in self.hidden if _exists(path) and _is_in(path, shown) and path not in self.writable]

    def pinned(self) -> list[Path]:
        """Return the folders between a writable one and a hidden path inside it.

        Each is mounted on itself, because a command could rename a plain folder, and the next command would see the secret.
        """
        between = (each for path in self.covered() for each in path.parents if _is_below(each, self.writable))
        return list(dict.fromkeys(each for each in between if not each.is_symlink() and each not in self.readable))


def profile(
    workspace: Path,
    *,
    hidden: Sequence[Path] = (),
    readable: Sequence[Path] = (),
    writable: Sequence[Path] = (),
    environment: Mapping[str, str] = os.environ,
    user_home: Path | None = None,
    limits: Limits | None = None,
) -> Profile:
    """Return the profile of commands that work in a folder.  This reads the disk, so callers make it once."""
    home = (user_home or Path.home()).resolve()
    own = tuple(path.resolve() for path in (workspace, *writable))
    system = [path for path in SYSTEM if path.exists()]
    links = {path: str(path.readlink()) for path in system if path.is_symlink()}
    seen = [path for path in system if path not in links]
    seen += [path.resolve() for path in readable if _exists(path)]
    seen += [path for path in _programs(environment, home) if not _is_in(path, (*own, *seen))]
    return Profile(
        writable=own,
        readable=tuple(dict.fromkeys(path for path in seen if path not in own)),
        hidden=tuple(dict.fromkeys(_real([*hidden, *_not_for_everybody(Path("/etc")), *(home / name for name in SECRETS)]))),
        blank=tuple(dict.fromkeys(path for path in (*PRIVATE, home) if path not in own and path != Path("/"))),
        links=links,
        limits=limits or Limits(),
    )


def _programs(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Return the folders of the programs in PATH that do not belong to the system."""
    for place in environment.get("PATH", "").split(os.pathsep):
        folder = Path(place)
        if not folder.is_absolute() or not _is_folder(folder):
            continue
        yield from _toolchain(folder.resolve(), home)
        if not _is_in(folder, SYSTEM):
            yield from (each for target in _targets(folder) for each in _toolchain(target, home))
    for name in TOOLCHAINS:
        folder = Path(environment.get(name) or "relative")
        if folder.is_absolute() and _is_folder(folder) and _is_modest(folder.resolve(), home):
            yield folder.resolve()
    if _is_folder(home / ".rustup"):
        yield home / ".rustup"


def _targets(folder: Path) -> list[Path]:
    """Return the folders that symbolic links in `folder` point to, such as that of a virtual environment's interpreter."""
    with os.scandir(folder) as entries:
        links = {os.path.dirname(folder / os.readlink(each)) for each in entries if each.is_symlink()}  # noqa: PTH115, PTH120
    return [Path(each).resolve() for each in sorted(links) if Path(each).is_dir() and Path(each) != folder]


def _toolchain(folder: Path, home: Path) -> Iterator[Path]:
    """Return the installation that a folder of programs is part of, or else the folder itself."""
    above = folder.parent
    whole = folder.name in PROGRAM_FOLDERS and any(_exists(above / name) for name in ("lib", "shims", "pyvenv.cfg"))
    if whole and _is_modest(above, home) and above not in [home / name for name in MIXED]:
        yield above
    elif _is_modest(folder, home):
        yield folder


def _is_modest(folder: Path, home: Path) -> bool:
    """Return whether a folder is neither the home, nor one of its parents, nor the root folder."""
    return not home.is_relative_to(folder) and folder != Path("/")


def _not_for_everybody(folder: Path) -> list[Path]:
    """Return the paths below a folder that not every user may read; a command of root could read them."""
    found: list[Path] = []
    pending, seen = [folder], 0
    while pending and seen < ETC_MAX:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if entry.is_symlink():
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            if not entry.stat(follow_symlinks=False).st_mode & 0o004:
                found.append(Path(entry.path))
            elif is_folder:
                pending.append(Path(entry.path))
    return found


def _real(paths: Iterable[Path]) -> Iterator[Path]:
    """Return each path as given and resolved: either may be the visible one."""
    for path in paths:
        yield path.absolute()
        if _exists(path):
            yield path.resolve()


def _is_in(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(each) for each in folders)


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path != each and path.is_relative_to(each) for each in folders)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        # The command cannot look there either.
        return False
