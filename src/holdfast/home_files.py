"""The files by which the gateway of a home is found: a Unix socket that only its owner can open, a lock, a sign-in page."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

SOCKET = "gateway.sock"
LOCK = "gateway.lock"
# Leads a browser to the sign-in link.
OPENING = "sign-in.html"
# The kernel takes 107 bytes; what makes it fit needs a few of them.
LENGTH_MAX = 100


@contextlib.contextmanager
def short_path(path: Path) -> Generator[str]:
    """Yield a name of a socket that is short enough for the kernel, however deep the home lies."""
    if len(os.fsencode(path)) <= LENGTH_MAX:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
