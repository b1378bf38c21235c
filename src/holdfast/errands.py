"""Errands to code of others: it may hang, exit, or not stop when it is told to, and nobody here pays for that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")

# The loop keeps nothing alive by itself, and some of these go on when nobody waits for them any more.
_under_way: set[asyncio.Task[object]] = set()


class Broken(Exception):
    """What was asked ended in a way that would have ended us, too."""


async def errand(call: Awaitable[T], timeout_s: float, name: str) -> T:
    """Return what a call brings.  Raises `TimeoutError` where that takes too long, and what the call raises."""
    task = asyncio.create_task(_unbroken(call), name=name)
    _under_way.add(task)
    task.add_done_callback(_under_way.discard)
    try:
        done, _ = await asyncio.wait((task,), timeout=timeout_s)
    finally:
        # Not waited for: it may not heed this.
        task.cancel()
    if not done:
        raise TimeoutError
    result = task.result()
    if isinstance(result, Broken):
        raise result
    return result


async def _unbroken(call: Awaitable[T]) -> T | Broken:
    try:
        return await call
    except (KeyboardInterrupt, Exception):
        raise
    except BaseException as error:  # The edge to others: neither an exit nor a stray cancellation is ours.
        return Broken(str(error) or type(error).__name__)
