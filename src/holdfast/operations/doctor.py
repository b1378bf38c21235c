"""The doctor: examines everything that the gateway needs, and reports what to do about it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.core.keys import ADMIN
from holdfast.errors import Unavailable
from holdfast.operations.operation import operation

# For all the checks of one report.
REPORT_TIMEOUT_S = 60


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found, and, unless all is well, what to do about it."""

    name: str
    level: Level
    found: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings of all checks.  It is `ok` if none of them fails."""

    ok: bool
    checks: Sequence[Finding]


class Doctor:
    """Examines the gateway that it runs in.

    Concurrent callers share one report, and it is finished even if the caller that asked first leaves.
    """

    def __init__(self, examine: Callable[[], Awaitable[Report]]) -> None:
        self._examine = examine
        self._making: asyncio.Task[Report] | None = None

    @operation("GET /api/doctor", "Look at everything that the gateway lives on", scope=ADMIN)
    async def report(self) -> Report:
        """Return what is found now.  Raises `Unavailable` when it takes too long."""
        if self._making is None or self._making.done():
            self._making = asyncio.create_task(self._made())
        return await asyncio.shield(self._making)

    async def close(self) -> None:
        if self._making is not None:
            self._making.cancel()
            await asyncio.wait((self._making,))

    async def _made(self) -> Report:
        try:
            async with asyncio.timeout(REPORT_TIMEOUT_S):
                return await self._examine()
        except TimeoutError:
            raise Unavailable(f"the doctor was not done within {REPORT_TIMEOUT_S} s; see the gateway's log") from None
