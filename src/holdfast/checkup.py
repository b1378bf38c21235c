"""A checkup: asks the gateway of a home how it is, if one runs there, and has the doctor look at everything else."""

from __future__ import annotations

import asyncio
from pathlib import Path

from holdfast.consultation import consult
from holdfast.contact import running_desk
from holdfast.desk.doctor import Report
from holdfast.desk.views import Status
from holdfast.errors import HoldfastError

# A gateway that is well answers at once.
ANSWER_TIMEOUT_S = 5


async def check_up(home: Path, file: Path, *, required: bool) -> Report:
    """Look at a home and its configuration, whatever is wrong with them."""
    return await consult(home, file, await _gateway(home), required=required)


async def _gateway(home: Path) -> Status | Exception:
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S), running_desk(home) as desk:
            return await desk.status()
    except (HoldfastError, OSError, TimeoutError) as error:
        return error
