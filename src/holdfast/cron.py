"""Cron expressions, in the time of the place where this machine is."""

from __future__ import annotations

import os
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from holdfast.errors import Rejected

_LOCALTIME = Path("/etc/localtime")
_HINT = 'write minute, hour, day, month and weekday, like "30 7 * * 1-5"'


def next_instant(schedule: str, after_ms: int, zone: tzinfo | None = None) -> int:
    """Return the first instant after another at which a schedule is due.  Raises `Rejected` for one that never is."""
    moment = datetime.fromtimestamp(after_ms / 1000, zone or local_zone())
    try:
        due = next(CronSim(schedule, moment), None)
    except CronSimError as error:
        raise Rejected(f"{schedule!r} is no schedule: {error}; {_HINT}") from error
    if due is None:
        raise Rejected(f"{schedule!r} is never due; {_HINT}")
    return int(due.timestamp() * 1000)


def local_zone() -> tzinfo:
    """Return the zone of this machine with its rules, so that a job keeps its hour when the clocks change."""
    name = os.environ.get("TZ", "").lstrip(":")
    try:
        if name:
            return ZoneInfo(name)
        with _LOCALTIME.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError, KeyError):
        # A machine that does not say where it is keeps the time that all share.
        return datetime.now().astimezone().tzinfo or UTC
