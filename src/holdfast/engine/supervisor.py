"""The supervisor restarts a component that crashed; only what is fatal for the process gets past it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import cast

from holdfast.clock import Clock
from holdfast.errors import Fatal

log = logging.getLogger(__name__)

WAIT_FIRST_MS = 100
WAIT_MAX_MS = 10_000
# After a crash that followed so long a run, the waits begin anew.
HEALTHY_MS = 60_000


async def supervise(components: Mapping[str, Callable[[], Awaitable[None]]], clock: Clock) -> None:
    """Run every component until cancelled.  Raises the first `Fatal`."""
    try:
        async with asyncio.TaskGroup() as group:
            for name, run in components.items():
                group.create_task(_keep(name, run, clock), name=name)
    except BaseExceptionGroup as group_error:
        raise _find_fatal(group_error) or group_error from None


async def _keep(name: str, run: Callable[[], Awaitable[None]], clock: Clock) -> None:
    wait_ms = WAIT_FIRST_MS
    while True:
        started = clock.monotonic_ms()
        try:
            await run()
        except asyncio.CancelledError:
            if _is_stopped():
                raise
            # Something that it awaited was cancelled, not the component itself.
            log.exception("%s crashed; starting it again", name)
        except Exception as error:  # The supervised edge of every component.
            if fatal := _find_fatal(error):
                raise fatal from error
            log.exception("%s crashed; starting it again", name)
        else:
            return
        if clock.monotonic_ms() - started >= HEALTHY_MS:
            wait_ms = WAIT_FIRST_MS
        await clock.sleep_ms(wait_ms)
        wait_ms = min(wait_ms * 2, WAIT_MAX_MS)


def _is_stopped() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _find_fatal(error: BaseException) -> Fatal | None:
    if isinstance(error, Fatal):
        return error
    if isinstance(error, BaseExceptionGroup):
        nested = cast("tuple[BaseException, ...]", error.exceptions)  # pyright: ignore[reportUnknownMemberType] - Untyped group.
        return next((fatal for each in nested if (fatal := _find_fatal(each))), None)
    return None
