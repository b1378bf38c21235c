"""The ids of the calls of a turn, which hold the number of their step."""

from __future__ import annotations

import re

from holdfast.ids import CallId

STEP = re.compile(r"s(\d+)_c(\d+)")


def call_id(step: int, number: int) -> CallId:
    """Return the id of a call of one turn."""
    return CallId(f"s{step}_c{number}")


def step_of(call: str | None) -> int | None:
    """Return the step of a call; None for an id without one."""
    found = STEP.fullmatch(call or "")
    return int(found[1]) if found else None
