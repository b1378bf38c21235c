"""The profile of a confined command: what it sees, where it may write, and how much it may use.

It is an allowlist.  The system is visible read-only, the workspace is writable, and of the person's home folder nothing is
there but the programs that PATH names: virtual environments, pyenv, nvm and the like.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MEGABYTE = 1024 * 1024

# What programs and libraries live in.  Those that are links, as /bin often is, are links in the sandbox as well.
_TOP = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt", "nix/store", "gnu/store", "snap")
SYSTEM = (*(Path("/", name) for name in _TOP), Path("/sys/devices/system/cpu"))
# Folders that a command gets empty and for itself.
PRIVATE = tuple(Path(name) for name in ("/tmp", "/var/tmp", "/run"))  # noqa: S108 - Private ones are made there.
# Variables that name where a toolchain lives.
TOOLCHAINS = ("VIRTUAL_ENV", "PYENV_ROOT", "CONDA_PREFIX", "NVM_DIR", "RUSTUP_HOME", "JAVA_HOME", "GOROOT")
PROGRAM_FOLDERS = frozenset({"bin", "sbin", "shims"})
# Folders of the home that hold programs, and much else besides: only their `bin` is shown.
MIXED = (".local", ".cargo")
# Looking for more than this many files of /etc that are not for everybody would delay the start.
ETC_MAX = 20_000

# What opens other doors, should the workspace be the home folder itself or hold it.
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
    """How much a command may use; 0 is no limit of ours."""

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
    """What a command sees.  Every path is absolute and without links; what is not named does not exist for it."""

    # Writable.  The first one is where commands run.
    writable: tuple[Path, ...]
    readable: tuple[Path, ...] = ()
    # Never visible, also where a readable or writable folder holds it.
    hidden: tuple[Path, ...] = ()
    # Empty, writable and gone when the command ends.
    blank: tuple[Path, ...] = PRIVATE
    # Links of the system, such as /bin to usr/bin.
    links: Mapping[Path, str] = field(default_factory=dict[Path, str])
    limits: Limits = field(default_factory=Limits)

    @property
    def workspace(self) -> Path:
        return self.writable[0]

    def covered(self) -> list[Path]:
        """Return the hidden paths that exist and lie in a folder that is shown: the others are not there anyway."""
        shown = (*self.readable, *self.writable)
        return [path for path in self.hidden if _exists(path) and _is_in(path, shown) and path not in self.writable]

    def pinned(self) -> list[Path]:
        """Return the folders between a writable one and a hidden path in it.

        Each is to be mounted on itself: one that is no mount could be renamed, and the next command would find the secret.
        """
        between = (each for path in self.covered() for each in path.parents if _is_below(each, self.writable))
        return list(dict.fromkeys(each for each in between if not each.is_symlink() and each not in self.readable))

    def visible(self, path: Path) -> bool:
        """Return whether a command finds what is at a path of ours."""
        return _is_in(path, (*self.readable, *self.writable)) and not _is_in(path, self._above(self.hidden))

    def _above(self, paths: Iterable[Path]) -> list[Path]:
        """Return those that do not hold a writable folder: that one is put on top of them."""
        return [path for path in paths if not any(each.is_relative_to(path) for each in self.writable)]


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
    """Return what commands see that work in a folder.  It looks at the disk, so it is made once."""
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
    """Return the folders that hold the programs of PATH, as far as they do not belong to the system."""
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
    """Return the folders that the links of one lead to, as that of a virtual environment to its interpreter."""
    with os.scandir(folder) as entries:
        links = {os.path.dirname(folder / os.readlink(each)) for each in entries if each.is_symlink()}  # noqa: PTH115, PTH120
    return [Path(each).resolve() for each in sorted(links) if Path(each).is_dir() and Path(each) != folder]


def _toolchain(folder: Path, home: Path) -> Iterator[Path]:
    """Return the folder of programs, or the whole installation that it is part of."""
    above = folder.parent
    whole = folder.name in PROGRAM_FOLDERS and any(_exists(above / name) for name in ("lib", "shims", "pyvenv.cfg"))
    if whole and _is_modest(above, home) and above not in [home / name for name in MIXED]:
        yield above
    elif _is_modest(folder, home):
        yield folder


def _is_modest(folder: Path, home: Path) -> bool:
    """Return whether a folder is not the home, does not hold it, and is not the whole machine."""
    return not home.is_relative_to(folder) and folder != Path("/")


def _not_for_everybody(folder: Path) -> list[Path]:
    """Return what is below a folder and not readable for every user: root would read it all the same."""
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
    """Return paths as they are and without links: either may be the one that is shown."""
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
        # Where we cannot look, neither can the command.
        return False
