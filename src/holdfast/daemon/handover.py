"""The handover at a restart: the process replaces itself by a fresh one with the same id, arguments and terminal.

It hands over the lock of the home, so that no other process can take it in between, and its listeners, so that a client
that connects in between waits a moment instead of being refused.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import NoReturn

LISTENER = "HOLDFAST_LISTENER"
UNIX_LISTENER = "HOLDFAST_UNIX_LISTENER"
LOCK = "HOLDFAST_LOCK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """What one process hands over to the next: its listeners for HTTP and for commands, and the lock of the home."""

    listener: socket.socket | None = None
    unix: socket.socket | None = None
    lock: int | None = None


def replace_process(handover: Handover) -> NoReturn:
    """Restart as a fresh process.  Nothing is flushed: the process may have stalled because its output is not read."""
    pass_on(handover, os.environ)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - Our own command line.


def pass_on(handover: Handover, environment: MutableMapping[str, str]) -> None:
    """Keep a handover open for the next process, and tell it by variables where to find it."""
    listeners = {LISTENER: handover.listener, UNIX_LISTENER: handover.unix}
    handles = {LOCK: handover.lock} | {name: each.fileno() if each else None for name, each in listeners.items()}
    for name, handle in handles.items():
        if handle is not None:
            os.set_inheritable(handle, True)
            environment[name] = str(handle)


def inherit(environment: MutableMapping[str, str] = os.environ) -> Handover:
    """Return what an earlier process handed over; each part is taken only once."""
    listener, unix, lock = (_handle(environment.pop(name, "")) for name in (LISTENER, UNIX_LISTENER, LOCK))
    return Handover(listener=_listener(listener), unix=_listener(unix), lock=lock)


def _listener(handle: int | None) -> socket.socket | None:
    return None if handle is None else socket.socket(fileno=handle)


def _handle(number: str) -> int | None:
    if not number.isascii() or not number.isdigit():
        return None
    try:
        os.set_inheritable(int(number), False)
    except OSError:
        return None
    return int(number)
