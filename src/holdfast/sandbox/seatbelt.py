"""The profile for macOS's sandbox-exec, as the text that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from holdfast.sandbox.profile import Profile

PROGRAM = "/usr/bin/sandbox-exec"
# Every macOS program needs these to start.
_SYSTEM = ("/System", "/Library", "/usr", "/bin", "/sbin", "/opt", "/private/etc", "/private/var/db/timezone", "/dev")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper")


def arguments(profile: Profile, command: Sequence[str], private: Path) -> list[str]:
    """Return how sandbox-exec runs a command.  `private` is its folder for temporary files."""
    return [PROGRAM, "-p", text(profile, private), *command]


def text(profile: Profile, private: Path) -> str:
    """Return the profile: everything else is denied, and the last matching rule counts."""
    readable = [*_SYSTEM, *map(str, profile.readable)]
    writable = [*map(str, profile.writable), str(private)]
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-exec process-fork)",
        "(allow signal (target same-sandbox))",
        "(allow process-info* (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow file-read-metadata)",
        '(allow file-read-data (literal "/"))',
        *(f"(allow file-read* (subpath {_quoted(path)}))" for path in (*readable, *writable)),
        *(f"(allow file-write* (subpath {_quoted(path)}))" for path in writable),
        *(f"(allow file-write-data (literal {_quoted(path)}))" for path in _DEVICES),
        '(allow file-read* file-write* file-ioctl (regex #"^/dev/ttys[0-9]+$"))',
        *(f"(deny file* (subpath {_quoted(str(path))}))" for path in profile.hidden if path not in profile.writable),
        *(f"(allow file* (subpath {_quoted(str(path))}))" for path in _inside_hidden(profile)),
        "(deny network*)",
    ]
    return "\n".join(lines) + "\n"


def _inside_hidden(profile: Profile) -> list[Path]:
    """Return the writable folders inside hidden ones, such as the workspace in the gateway's home."""
    return [path for path in profile.writable if any(path.is_relative_to(each) for each in profile.hidden)]


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
