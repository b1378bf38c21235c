"""Consent: whether a command runs without asking a person.

What contains the command decides, never what its text looks like.  Inside a sandbox that confines it, a command runs
unasked; without one, every command asks but a few programs that can only print.  What is said about the text of a command
besides, the reasons and the deny list, is a hint for people.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from types import MappingProxyType

REASONS_MAX = 4
HOSTS_MAX = 20
_WEB_PORTS = frozenset({80, 443})
_PORT_MAX = 65_535


class ConsentVerdict(StrEnum):
    """What a command needs before it runs: nothing, a person's answer, or that it never may."""

    RUN = "run"
    ASK = "ask"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """A verdict, and why, in plain words."""

    verdict: ConsentVerdict
    reasons: tuple[str, ...] = ()


def decide(
    command: str,
    *,
    confines: bool,
    only_prints: bool = False,
    new_hosts: Sequence[str] = (),
    deny: Sequence[str] = (),
    without: str = "no sandbox on this machine",
) -> Consent:
    """Decide about one command.

    `confines` says that a sandbox will hold it; `only_prints`, that it is one of the programs of `PRINTING` and everything
    that it names was found where it should be.  `new_hosts` are those that it wants to reach and nobody has approved yet.
    `without` says why there is no sandbox.
    """
    if pattern := denied(command, deny):
        return Consent(verdict=ConsentVerdict.REFUSE, reasons=(f"the operator denies {pattern}",))
    if not confines and not only_prints:
        return Consent(verdict=ConsentVerdict.ASK, reasons=(without, *reasons(command)))
    if confines and new_hosts:
        return Consent(verdict=ConsentVerdict.ASK, reasons=(f"it wants to reach {', '.join(new_hosts)}",))
    return Consent(verdict=ConsentVerdict.RUN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a program may be given, so that it can only print: options that match, and names of files."""

    options: str = r"(?!)"
    # The options that take the word after them, and what that word must be.
    valued: str = r"(?!)"
    files_min: int = 0
    files_max: int = 0
    # Other words, which are printed and nothing else.
    words: str = r"(?!)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Printing:
    """A command that can only print, if its program and its files are found where they should be."""

    program: str
    arguments: tuple[str, ...]
    files: tuple[str, ...]


_MANY = 100
_NUMBER = r"[+-]?[0-9]{1,9}"
# Programs with no argument that can act.  Whoever adds one reads its manual to the end: no option of it, short, long or
# abbreviated, may write, follow links, read a list of files, or start anything; only what stands here is let through.
PRINTING: Mapping[str, Shape] = MappingProxyType(
    {
        "pwd": Shape(),
        "whoami": Shape(),
        "id": Shape(),
        "true": Shape(),
        "false": Shape(),
        "uname": Shape(options=r"-[asnrvmo]+"),
        "date": Shape(options=r"-u", words=r"\+[%A-Za-z0-9:_-]+"),
        "echo": Shape(options=r"-n", words=r"[A-Za-z0-9_.,:/+%@-]+"),
        "ls": Shape(options=r"-[1aAlhrtSRdF]+", files_max=_MANY),
        "cat": Shape(options=r"-n", files_min=1, files_max=_MANY),
        "head": Shape(options=r"-[0-9]{1,9}", valued=r"-[nc]", files_min=1, files_max=_MANY),
        "tail": Shape(options=r"-[0-9]{1,9}", valued=r"-[nc]", files_min=1, files_max=_MANY),
        "wc": Shape(options=r"-[lwcm]+", files_min=1, files_max=_MANY),
    }
)
# Nothing that any shell reads as more than itself: no quote, glob, variable, assignment, redirection, comment or history.
_PLAIN = re.compile(r"[A-Za-z0-9_.,:/+%@-]+(?:[ \t]+[A-Za-z0-9_.,:/+%@-]+)*")
_PLAIN_MAX_CHARS = 2_000


def printing(command: str) -> Printing | None:
    """Return a command that is plain words of the shape that `PRINTING` has for its program; None for every other."""
    if len(command) > _PLAIN_MAX_CHARS or not _PLAIN.fullmatch(command):
        return None
    program, *arguments = command.split()
    shape = PRINTING.get(program)
    if shape is None:
        return None
    files: list[str] = []
    rest = iter(arguments)
    for word in rest:
        if re.fullmatch(shape.valued, word):
            if not re.fullmatch(_NUMBER, next(rest, "")):
                return None
        elif not re.fullmatch(shape.options, word) and not (word[0] != "-" and re.fullmatch(shape.words, word)):
            if word.startswith("-"):
                return None
            files.append(word)
    if not shape.files_min <= len(files) <= shape.files_max:
        return None
    return Printing(program=program, arguments=tuple(arguments), files=tuple(files))


# Where one command of a script ends and the next may begin.
_DIVIDERS = re.compile(r"[;&|()`\n{}]|\$\(")
# An expression of the operator may take the square or the cube of what it looks at.
_LOOKED_AT_MAX_CHARS = 20_000
_PIECE_MAX_CHARS = 1_000


def denied(command: str, patterns: Sequence[str]) -> str:
    """Return the pattern of the operator that a command matches; nothing where it matches none.

    A pattern is a glob that a command matches or begins with, or a regular expression between slashes.  It is a hint: no
    script is looked into, a command can be spelt in another way, and of a long text only the beginning counts.  Only the
    sandbox enforces anything.
    """
    if not patterns:
        return ""
    beginning = command[:_LOOKED_AT_MAX_CHARS]
    pieces = {" ".join(piece.split())[:_PIECE_MAX_CHARS] for piece in (beginning, *_DIVIDERS.split(beginning))}
    return next((pattern for pattern in patterns if any(_matches(pattern, piece) for piece in pieces)), "")


def _matches(pattern: str, text: str) -> bool:
    if len(pattern) > 2 and pattern[0] == pattern[-1] == "/":
        try:
            return re.search(pattern[1:-1], text) is not None
        except re.error:
            # It was meant to deny something, and nobody knows what.
            return True
    return fnmatchcase(text, pattern) or fnmatchcase(text, f"{pattern} *")


_WORD = re.compile(r"[A-Za-z0-9_.+-]+")
_WHY: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("rm", "rmdir", "unlink", "shred", "truncate"), "it deletes files"),
        **dict.fromkeys(("mv", "cp", "dd", "ln", "tee", "rsync"), "it writes files"),
        **dict.fromkeys(("chmod", "chown", "chgrp", "setfacl"), "it changes who may use files"),
        **dict.fromkeys(("pip", "pip3", "npm", "npx", "yarn", "pnpm", "uv", "apt", "apt-get", "dnf", "apk", "brew", "gem"),
                        "it installs packages"),
        **dict.fromkeys(("curl", "wget", "nc", "ssh", "scp", "sftp", "telnet", "ftp"), "it reaches other machines"),
        **dict.fromkeys(("sudo", "su", "doas", "pkexec"), "it acts as another user"),
        **dict.fromkeys(("kill", "pkill", "killall", "reboot", "shutdown", "systemctl"), "it ends programs or the machine"),
        **dict.fromkeys(("sh", "bash", "zsh", "python", "python3", "node", "perl", "ruby", "make", "pytest", "cargo", "go"),
                        "it runs code"),
        **dict.fromkeys(("push", "publish"), "it publishes something"),
    }
)  # fmt: skip


def reasons(command: str) -> tuple[str, ...]:
    """Return what a person may want to know about a command before they read it; a hint, which decides nothing."""
    found = dict.fromkeys(why for word in _WORD.findall(command) if (why := _WHY.get(word)))
    return tuple(found)[:REASONS_MAX]


_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*")
_HOST_MAX_CHARS = 253


def refusal(refused: Collection[str]) -> str:
    """Say which hosts a command tried to reach and could not, and what to do about it."""
    found = sorted({host(each) for each in refused})
    names = found[:HOSTS_MAX]
    more = f" and {len(found) - len(names)} more" if len(found) > len(names) else ""
    return (
        f"It tried to reach {', '.join(names)}{more}, which nobody has approved, and could not. If it needs that, run it "
        f"again with hosts={names!r}: the person is asked."
    )


def host(text: str) -> str:
    """Return a host as it is compared and approved: in lower case, with its port unless that is one of the web.

    Raises `ValueError` for what names no single host.
    """
    whole = text.strip().lower()
    # An address of the new kind is full of colons, and needs its brackets only before a port.
    whole = f"[{whole}]" if whole.count(":") > 1 and not whole.startswith("[") else whole
    name, divider, port = whole.rpartition(":")
    if not divider or whole.endswith("]"):
        name, divider, port = whole, "", ""
    name = name.rstrip(".")
    if len(name) > _HOST_MAX_CHARS or not (_is_bracketed(name) if name.startswith("[") else _HOST.fullmatch(name)):
        raise ValueError(f"{text!r} is no host; write example.com or example.com:8080")
    if not port:
        if divider:
            raise ValueError(f"{text!r} has no port after its colon")
        return name
    if not port.isascii() or not port.isdecimal() or not 0 < int(port) <= _PORT_MAX:
        raise ValueError(f"{text!r} has no port between 1 and {_PORT_MAX}")
    return name if int(port) in _WEB_PORTS else f"{name}:{int(port)}"


def _is_bracketed(name: str) -> bool:
    try:
        return name.endswith("]") and bool(ipaddress.IPv6Address(name[1:-1]))
    except ValueError:
        return False
