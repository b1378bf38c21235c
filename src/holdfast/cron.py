"""When a job is due: by a cron expression in this machine's time zone, or once at a given moment."""

from __future__ import annotations

import os
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from holdfast.errors import Rejected

_LOCALTIME = Path("/etc/localtime")
_HINT = 'write minute, hour, day, month and weekday, like "30 7 * * 1-5"'
_FIELDS = 5
_ONCE = "at "
# A schedule is parsed again at every look at the jobs, so its length is bounded.
SCHEDULE_MAX = 200


def next_instant(schedule: str, after_ms: int, zone: tzinfo | None = None) -> int:
    """Return the first instant after `after_ms` at which a schedule is due.  Raises `Rejected` if there is none."""
    if len(schedule) > SCHEDULE_MAX:
        raise Rejected(f"a schedule has {SCHEDULE_MAX} characters at most; {_HINT}")
    if is_once(schedule):
        instant = moment_of(schedule.removeprefix(_ONCE), zone)
        if instant <= after_ms:
            raise Rejected(f"{schedule!r} is in the past")
        return instant
    if len(schedule.split()) != _FIELDS:
        raise Rejected(f"{schedule!r} is not a schedule: it needs {_FIELDS} fields; {_HINT}")
    moment = datetime.fromtimestamp(after_ms / 1000, zone or local_zone())
    try:
        due = next(CronSim(schedule, moment), None)
    except CronSimError as error:
        raise Rejected(f"{schedule!r} is not a schedule: {error}; {_HINT}") from error
    if due is None:
        raise Rejected(f"{schedule!r} is never due; {_HINT}")
    return int(due.timestamp() * 1000)


def instants(schedule: str, after_ms: int, count: int) -> list[int]:
    """Return the next `count` instants of a schedule, or fewer if it ends.  Raises `Rejected` if there are none."""
    found = [next_instant(schedule, after_ms)]
    while len(found) < count and (following := upcoming(schedule, found[-1])) is not None:
        found.append(following)
    return found


def is_once(schedule: str) -> bool:
    """Return whether a schedule is a single moment."""
    return schedule.startswith(_ONCE)


def once(instant: int) -> str:
    """Return the schedule that is due at one instant, and never again."""
    return f"{_ONCE}{datetime.fromtimestamp(instant / 1000, UTC).isoformat(timespec='seconds')}"


def moment_of(text: str, zone: tzinfo | None = None) -> int:
    """Return the instant of a date and time, in this machine's zone unless they name one.  Raises `Rejected`."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise Rejected(f'{text!r} is not a date and time; write it like "2031-05-04T09:30"') from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone or local_zone())
    return int(moment.timestamp() * 1000)


def upcoming(schedule: str, after_ms: int) -> int | None:
    """Return when a schedule is due next; None if never again."""
    try:
        return next_instant(schedule, after_ms)
    except Rejected:
        return None


def zone_at(instant: int) -> str:
    """Return the name of this machine's time zone at an instant, such as CEST."""
    return datetime.fromtimestamp(instant / 1000, local_zone()).tzname() or ""


def local_zone() -> tzinfo:
    """Return this machine's time zone with its rules, so that a job keeps its hour when the clocks change."""
    name = os.environ.get("TZ", "").lstrip(":")
    try:
        if name:
            return ZoneInfo(name)
        with _LOCALTIME.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError, KeyError):
        # The machine has no known zone: use its current offset.
        return datetime.now().astimezone().tzinfo or UTC
