"""Succession: a process is replaced by a fresh one with the same id, arguments and terminal, and leaves it its listener.

Whoever connects between the two waits a moment instead of being refused.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import MutableMapping
from typing import NoReturn

VARIABLE = "HOLDFAST_LISTENER"


def succeed(listener: socket.socket | None = None) -> NoReturn:
    """Begin anew as a fresh process."""
    if listener:
        bequeath(listener, os.environ)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - Our own command line.


def bequeath(listener: socket.socket, environment: MutableMapping[str, str]) -> None:
    """Keep a listener open for the process that follows."""
    listener.set_inheritable(True)
    environment[VARIABLE] = str(listener.fileno())


def inherit(environment: MutableMapping[str, str] = os.environ) -> socket.socket | None:
    """Return the listener that an earlier process left, if it did."""
    number = environment.pop(VARIABLE, "")
    if not number.isascii() or not number.isdigit():
        return None
    try:
        listener = socket.socket(fileno=int(number))
    except OSError:
        return None
    listener.set_inheritable(False)
    return listener
