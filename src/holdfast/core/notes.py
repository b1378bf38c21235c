"""What Holdfast says in its own name: banners, markers, and the system note before a resumed message."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from holdfast.core.turns import Cause

RESTART_BANNER = (
    "The gateway is restarting. I will try to resume this conversation when it is back; if I do not, send /resume."
)
SHUTDOWN_BANNER = "The gateway is shutting down. Your conversation is saved."
# By what a stop interrupts turns with, if they take too long: what it calls itself, and what it says.
BANNERS: Mapping[Cause, tuple[str, str]] = MappingProxyType(
    {
        Cause.RESTART_TIMEOUT: ("restart", RESTART_BANNER),
        Cause.SHUTDOWN_TIMEOUT: ("shutdown", SHUTDOWN_BANNER),
    }
)

# How everything begins that the gateway itself says in a person's place.
SYSTEM_NOTE = "[System note:"


class Recovery(StrEnum):
    """How much of a lost attempt has been found."""

    NOTHING = "nothing"
    PENDING = "pending"
    OUTPUT = "output"


# Nothing found is nothing said: what is not there now may still arrive.
_RECOVERY: Mapping[Recovery, str] = MappingProxyType(
    {
        Recovery.NOTHING: "",
        Recovery.PENDING: " Recovery of its output is pending.",
        Recovery.OUTPUT: " Its output was recovered from the run journal.",
    }
)
# Keyed by text, because a stored cause may be one that this version does not know.
_INTERRUPTION: Mapping[str, str] = MappingProxyType(
    {
        Cause.RESTART_TIMEOUT: "gateway restart",
        Cause.SHUTDOWN_TIMEOUT: "gateway shutdown",
    }
)
_CANCELLATION: Mapping[str, str] = MappingProxyType(
    {
        Cause.SUPERSEDED: "Cancelled: a newer message took its place.",
        Cause.SESSION_ENDED: "Cancelled: the session was ended.",
        Cause.SESSION_SUSPENDED: "Cancelled: the session was suspended.",
    }
)


def interruption(cause: str) -> str:
    """Name the event behind an interruption."""
    return _INTERRUPTION.get(cause, "gateway interruption")


def interrupted(cause: str, recovery: Recovery = Recovery.NOTHING) -> str:
    """Return the marker below what an interrupted attempt had shown."""
    if planned := _INTERRUPTION.get(cause):
        return f"Interrupted by a {planned}."
    return f"Interrupted: the gateway stopped without warning.{_RECOVERY[recovery]}"


def cancelled(cause: str) -> str:
    """Return the marker of a cancelled turn."""
    return _CANCELLATION.get(cause, "Cancelled.")


def failed(error: str) -> str:
    """Return the marker of a failed turn."""
    return f"Failed: {error}" if error else "Failed."


def compacted(summary: str) -> str:
    """Return what a person reads of a summary."""
    return f"Summary that the model reads instead of what is older: {summary}"


def before_message(text: str, *, interrupted_by: str | None, tool_unanswered: bool) -> str:
    """Return the next message with exactly one system note before it, or as it is where none is called for."""
    if interrupted_by is not None:
        note = (
            f"[System note: the previous turn was cut off by a {interruption(interrupted_by)}. What it had shown is in "
            "the transcript above. Do not repeat finished tool calls; treat unknown outcomes as unknown.]"
        )
    elif tool_unanswered:
        note = "[System note: the last tool result above has not been answered yet. Take it into account.]"
    else:
        return text
    return f"{note}\n\n{text}"


def pictures_later(count: int) -> str:
    """Return what an agent is told about the pictures of a message that joined its turn."""
    return f"[{count} picture(s) came with this message. You will see them with the next one; say so if they matter.]"


def is_note(text: str) -> bool:
    """Return whether the gateway itself speaks in a person's place."""
    return text.lstrip().startswith(SYSTEM_NOTE)
