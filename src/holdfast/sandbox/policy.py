"""The policy of commands: whether a command runs without asking a person.

The sandbox decides, not the text of the command.  In a sandbox that confines it, a command runs without a question.
Without one, a person is asked about every command except a few programs that can only print.  The reasons and the deny list
look at the text, but they are only hints.
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


class CommandVerdict(StrEnum):
    """Whether a command runs at once, after a person's approval, or never."""

    RUN = "run"
    ASK = "ask"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandDecision:
    """A verdict, and the reasons for it, for people."""

    verdict: CommandVerdict
    reasons: tuple[str, ...] = ()


def decide(
    command: str,
    *,
    confines: bool,
    only_prints: bool = False,
    new_hosts: Sequence[str] = (),
    deny: Sequence[str] = (),
    without: str = "no sandbox on this machine",
) -> CommandDecision:
    """Decide about one command.

    `confines` says that a sandbox confines it.  `only_prints` says that it is one of the programs in `PRINTING`, and that
    its program and files were found in permitted places.  `new_hosts` are the hosts that it names and that are not approved
    yet.  `without` says why there is no sandbox.
    """
    if pattern := denied(command, deny):
        return CommandDecision(verdict=CommandVerdict.REFUSE, reasons=(f"the operator denies {pattern}",))
    if not confines and not only_prints:
        return CommandDecision(verdict=CommandVerdict.ASK, reasons=(without, *reasons(command)))
    if confines and new_hosts:
        return CommandDecision(verdict=CommandVerdict.ASK, reasons=(f"it wants to reach {', '.join(new_hosts)}",))
    return CommandDecision(verdict=CommandVerdict.RUN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentRules:
    """The arguments with which a program can only print: matching options, and names of files."""

    options: str = r"(?!)"
    # Options that take a number as the next word.
    valued: str = r"(?!)"
    files_min: int = 0
    files_max: int = 0
    # Other words, which are only printed.
    words: str = r"(?!)"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintingCommand:
    """A command that can only print, provided that its program and its files are in permitted places."""

    program: str
    arguments: tuple[str, ...]
    files: tuple[str, ...]


_MANY = 100
_NUMBER = r"[+-]?[0-9]{1,9}"
# Programs that can only print, with the arguments that are let through.  Before you add one, read its whole manual: no
# permitted option, short, long or abbreviated, may write, follow links, read a list of files, or start a program.
PRINTING: Mapping[str, ArgumentRules] = MappingProxyType(
    {
        "pwd": ArgumentRules(),
        "whoami": ArgumentRules(),
        "id": ArgumentRules(),
        "true": ArgumentRules(),
        "false": ArgumentRules(),
        "uname": ArgumentRules(options=r"-[asnrvmo]+"),
        "date": ArgumentRules(options=r"-u", words=r"\+[%A-Za-z0-9:_-]+"),
        "echo": ArgumentRules(options=r"-n", words=r"[A-Za-z0-9_.,:/+%@-]+"),
        "ls": ArgumentRules(options=r"-[1aAlhrtSRdF]+", files_max=_MANY),
        "cat": ArgumentRules(options=r"-n", files_min=1, files_max=_MANY),
        "head": ArgumentRules(options=r"-[0-9]{1,9}", valued=r"-[nc]", files_min=1, files_max=_MANY),
        "tail": ArgumentRules(options=r"-[0-9]{1,9}", valued=r"-[nc]", files_min=1, files_max=_MANY),
        "wc": ArgumentRules(options=r"-[lwcm]+", files_min=1, files_max=_MANY),
    }
)
# Words that every shell takes literally: no quote, glob, variable, assignment, redirection, comment or history.
_PLAIN = re.compile(r"[A-Za-z0-9_.,:/+%@-]+(?:[ \t]+[A-Za-z0-9_.,:/+%@-]+)*")
_PLAIN_MAX_CHARS = 2_000


def printing(command: str) -> PrintingCommand | None:
    """Parse a command that consists of plain words and is permitted by `PRINTING`; None for every other command."""
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
    return PrintingCommand(program=program, arguments=tuple(arguments), files=tuple(files))


# The separators between the commands of a script.
_DIVIDERS = re.compile(r"[;&|()`\n{}]|\$\(")
# Bounds the time of an operator's regular expression, which may grow with a power of the text's length.
_LOOKED_AT_MAX_CHARS = 20_000
_PIECE_MAX_CHARS = 1_000


def denied(command: str, patterns: Sequence[str]) -> str:
    """Return the operator's deny pattern that a command matches; empty if there is none.

    A pattern is a glob that a command matches or begins with, or a regular expression between slashes.  It is only a hint:
    scripts are not read, a command can be spelled in another way, and only the beginning of a long text is checked.  Only
    the sandbox enforces anything.
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
            # An invalid pattern denies everything, because it is not known what it was meant to deny.
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
    """Return hints for the person who is asked about a command.  They decide nothing."""
    found = dict.fromkeys(why for word in _WORD.findall(command) if (why := _WHY.get(word)))
    return tuple(found)[:REASONS_MAX]


HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*")
HOST_MAX_CHARS = 253


def refusal(refused: Collection[str]) -> str:
    """Describe the hosts that a command tried to reach and could not, with what to do about it."""
    found = sorted({host(each) for each in refused})
    names = found[:HOSTS_MAX]
    more = f" and {len(found) - len(names)} more" if len(found) > len(names) else ""
    return (
        f"It tried to reach {', '.join(names)}{more}, which is not approved, and could not. If it needs that, run it "
        f"again with hosts={names!r}: the person is asked."
    )


def host(text: str) -> str:
    """Return a host in the form that is compared and approved: in lower case, with its port unless that is 80 or 443.

    Raises `ValueError` if the text does not name a single host.
    """
    whole = text.strip().lower()
    # An IPv6 address needs brackets only before a port.
    whole = f"[{whole}]" if whole.count(":") > 1 and not whole.startswith("[") else whole
    name, divider, port = whole.rpartition(":")
    if not divider or whole.endswith("]"):
        name, divider, port = whole, "", ""
    name = name.rstrip(".")
    if len(name) > HOST_MAX_CHARS or not (_is_bracketed(name) if name.startswith("[") else HOST.fullmatch(name)):
        raise ValueError(f"{text!r} is not a host; write example.com or example.com:8080")
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
