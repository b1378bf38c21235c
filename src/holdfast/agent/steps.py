"""The ids of the calls of a turn, which say in which step the model asked for them."""

from __future__ import annotations

import re

from holdfast.ids import CallId

STEP = re.compile(r"s(\d+)_c(\d+)")


def call_id(step: int, number: int) -> CallId:
    """Return the id of a call of one turn."""
    return CallId(f"s{step}_c{number}")


def step_of(call: str | None) -> int | None:
    """Return the step that a call belongs to; None for an id that says none."""
    found = STEP.fullmatch(call or "")
    return int(found[1]) if found else None
