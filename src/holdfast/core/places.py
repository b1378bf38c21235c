"""Places: what a path in a command means, told from its text alone.

Links are not followed: what stands on the disk is for the sandbox and the file tools.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from holdfast.core.shell import UNKNOWN, Word

# A folder that could be any.
ANYWHERE = f"/{UNKNOWN}"

_GLOB = re.compile(rf"[*?\[{UNKNOWN}]")
_DEVICE = re.compile(
    r"/proc/sysrq-trigger|/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|dm-|md|loop|mapper/|mem$|kmem$|port$|root$|zram)"
)
_HARMLESS_DEVICES = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full"})
# Nothing below them is anybody's to delete as a whole.
_SYSTEM = frozenset({"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "sys", "System"})
# They hold what belongs together, one folder below.
_COLLECTIONS = frozenset({"home", "Users", "usr", "var", "Library", "private"})
_TOP = _SYSTEM | _COLLECTIONS | {"root", "run", "opt", "srv", "mnt", "media", "Applications", "Volumes", "snap", "efi"}

_SECRET_FOLDERS = (
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker",
    ".password-store",
    ".holdfast",
    "gcloud",
    "keyrings",
)
_SECRET_FILES = (
    *(
        ".env",
        ".netrc",
        "_netrc",
        ".npmrc",
        ".pypirc",
        ".pgpass",
        ".my.cnf",
        ".git-credentials",
        ".vault-token",
        ".htpasswd",
    ),
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".dockercfg", ".envrc"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials.json", "hosts.yml"),
)
_SECRET_ENDINGS = (".pem", ".p12", ".pfx", ".kdbx", ".key", ".keystore", ".jks")
_SECRET_PATHS = (
    "/etc/shadow*",
    "/etc/gshadow*",
    "/etc/sudoers*",
    "/run/secrets*",
    "/var/run/secrets*",
    "/proc/*/environ",
    "/proc/*/root/*",
    "/proc/*/cwd/*",
    "/proc/*/fd/*",
    "/proc/*/mem",
)
_SECRET_EXAMPLES = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers")
_EXAMPLES = (".example", ".sample", ".template", ".dist", ".pub")
_STARTUP = (
    *(
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".bash_aliases",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
    ),
    *(".zlogin", ".kshrc", ".cshrc", ".tcshrc", ".inputrc", ".gitconfig", ".vimrc", ".tmux.conf", ".xinitrc", ".xprofile"),
    *("config.fish", "authorized_keys"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a path leads.  `path` is normal: relative to the workspace where it is inside."""

    path: str
    inside: bool

    @property
    def parts(self) -> Sequence[str]:
        return [part for part in self.path.split("/") if part]

    @property
    def is_device(self) -> bool:
        """Whether it is a disk, or the memory of the machine."""
        return _DEVICE.match(self.path) is not None

    @property
    def is_sink(self) -> bool:
        """Whether writing there changes nothing."""
        return self.path in _HARMLESS_DEVICES

    @property
    def is_vital(self) -> bool:
        """Whether losing all that is there would take the system, or a person's whole folder."""
        if self.inside:
            return False
        parts = [part for part in self.parts if part != "*"]
        if self.path.startswith("~"):
            return ".." in parts or len(parts) <= 1 or bool(len(parts) == 2 and _GLOB.search(parts[1]))
        if not self.path.startswith("/"):
            return False
        if not parts or _GLOB.search(parts[0]):
            return True
        if parts[0] in _SYSTEM or (parts[0] in _TOP and len(parts) == 1):
            return True
        return parts[0] in _COLLECTIONS and len(parts) == 2

    @property
    def is_secret(self) -> bool:
        """Whether it is known to hold what opens other doors."""
        path = self.path.lower()
        if any(fnmatchcase(path, pattern) or fnmatchcase(f"{path}/", pattern) for pattern in _SECRET_PATHS):
            return True
        if (
            path.startswith("/")
            and _GLOB.search(path)
            and any(fnmatchcase(each, path.replace(UNKNOWN, "*")) for each in _SECRET_EXAMPLES)
        ):
            return True
        return any(_is_secret_name(part.lower()) for part in self.parts)

    @property
    def holds_secrets(self) -> bool:
        """Whether secrets are to be expected somewhere below."""
        return self.is_secret or (self.is_vital and self.parts[:1] not in (["usr"], ["lib"], ["bin"], ["sys"]))

    @property
    def is_guarded(self) -> bool:
        """Whether what is written there is run, or believed, later by somebody else."""
        return ".git" in self.parts or (bool(self.parts) and self.parts[-1] in _STARTUP) or self.is_secret


def _is_secret_name(name: str) -> bool:
    if name.endswith(_EXAMPLES):
        return False
    if name in _SECRET_FOLDERS or name in _SECRET_FILES or name.startswith(".env.") or name.endswith(_SECRET_ENDINGS):
        return True
    if not _GLOB.search(name):
        return False
    # A pattern without a dot of its own never finds a name that begins with one, and one of no letters means any name.
    telling = [each for each in (*_SECRET_FOLDERS, *_SECRET_FILES) if each[0] == "." or each.startswith("id_")]
    pattern = name.replace(UNKNOWN, "*")
    literal = len(_GLOB.sub("", name)) > 1 or name[0] == "."
    return literal and any(fnmatchcase(each, pattern) for each in telling if each[0] != "." or name[0] == ".")


def locate(word: Word, cwd: str = "", workspace: str = "") -> Place:
    """Return where a word leads as a path, from the folder `cwd`, which is empty for the workspace itself."""
    text = word.text
    if not text.startswith(("/", "~", UNKNOWN)) and cwd:
        text = f"{cwd}/{text}"
    if text.startswith(UNKNOWN) or (word.varies and not text.startswith(("/", "~"))):
        return Place(path=text, inside=False)
    home = _parts(workspace)
    parts = _parts(text)
    if text.startswith("/"):
        if home and parts[: len(home)] == home:
            return Place(path="/".join(parts[len(home) :]), inside=not word.varies)
        return Place(path="/" + "/".join(parts), inside=False)
    if text.startswith("~"):
        return Place(path="/".join(parts), inside=False)
    return Place(path="/".join(parts), inside=".." not in parts)


def _parts(text: str) -> list[str]:
    """Return the components of a path; what cannot be gone up is kept."""
    parts: list[str] = []
    for part in text.split("/"):
        if part == ".." and parts and parts[-1] != ".." and not parts[-1].startswith("~"):
            parts.pop()
        elif part == ".." and text.startswith("/") and not parts:
            continue
        elif part not in ("", "."):
            parts.append(part)
    return parts
