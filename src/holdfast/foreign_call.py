"""Calls of foreign code, such as a plugin, which may hang, exit the process, or ignore that it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")

# The event loop holds tasks only weakly, and a call that ignores its cancellation goes on.
_under_way: set[asyncio.Task[object]] = set()


class CallBroken(Exception):
    """The call raised an exception that would have ended the caller's task or the process."""


async def foreign_call(call: Awaitable[T], timeout_s: float, name: str) -> T:
    """Return the result of a call.  Raises `TimeoutError` when it takes too long, and what the call raises."""
    task = asyncio.create_task(_unbroken(call), name=name)
    _under_way.add(task)
    task.add_done_callback(_under_way.discard)
    try:
        done, _ = await asyncio.wait((task,), timeout=timeout_s)
    finally:
        # Not awaited, because the call may ignore it.
        task.cancel()
    if not done:
        raise TimeoutError
    result = task.result()
    if isinstance(result, CallBroken):
        raise result
    return result


async def _unbroken(call: Awaitable[T]) -> T | CallBroken:
    try:
        return await call
    except (KeyboardInterrupt, Exception):
        raise
    except BaseException as error:  # The edge to foreign code: neither its exit nor its stray cancellation is ours.
        return CallBroken(str(error) or type(error).__name__)
