"""Patience: a search for a pattern can take longer than anybody lives, and nothing else is done meanwhile.

What is searched comes from strangers, and a pattern that is written without thought of them is easy to keep busy.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator

from holdfast.errors import Rejected


class TooSlow(Rejected):
    """What was begun took too long."""


class _Limit:
    """Whether something is going on that may be stopped."""

    runs = False


@contextlib.contextmanager
def at_most(seconds: float) -> Generator[None]:
    """Let what is done inside have so much of the processor's time.  Raises `TooSlow`.

    A search can be stopped by a signal alone, which only the main thread hears: it is where a gateway runs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # It stays: a signal that comes late would else end the process.
    signal.signal(signal.SIGVTALRM, _give_up)
    _Limit.runs = True
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        yield
    finally:
        _Limit.runs = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _give_up(_number: int, _frame: object) -> None:
    if _Limit.runs:
        raise TooSlow("it took too long")
