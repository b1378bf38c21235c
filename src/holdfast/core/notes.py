"""What Holdfast says in its own name: banners, markers, and the system note before a resumed message."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from holdfast.core.sessions import STRIKES_MAX
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

# What a chat is told when nothing has announced the stop.
CUT_OFF = "The gateway stopped while I was answering. To let me go on, press the button or send /resume."

# What a turn is told to have failed with that crashed the gateway, or was cut off, once too often.
GIVEN_UP = (
    f"given up after {STRIKES_MAX} interruptions in a row without an answer, so that it cannot stop the gateway again."
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
        Cause.DISK_FULL: "gateway interruption (the disk was full)",
    }
)
_INTERRUPTED: Mapping[str, str] = MappingProxyType(
    {
        Cause.RESTART_TIMEOUT: "Interrupted by a gateway restart.",
        Cause.SHUTDOWN_TIMEOUT: "Interrupted by a gateway shutdown.",
        Cause.DISK_FULL: "Interrupted: the disk was full.",
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


def interrupted(cause: str, recovery: Recovery = Recovery.NOTHING, error: str = "") -> str:
    """Return the marker below what an interrupted attempt had shown; `error` says why it is given up."""
    reason = f" It was {error}" if error else ""
    without_warning = f"Interrupted: the gateway stopped without warning.{_RECOVERY[recovery]}"
    return _INTERRUPTED.get(cause, without_warning) + reason


def cancelled(cause: str) -> str:
    """Return the marker of a cancelled turn."""
    return _CANCELLATION.get(cause, "Cancelled.")


def failed(error: str) -> str:
    """Return the marker of a failed turn."""
    return f"Failed: {error}" if error else "Failed."


def waits_for_model(error: str, limit_ms: int) -> str:
    """Return what is said once while a turn waits for its model."""
    hours = limit_ms / 3_600_000
    limit = f"{hours:.0f} h" if hours >= 1 else f"{limit_ms / 1000:.0f} s"
    return (
        f"Waiting for the model: {error}. It is asked again by itself for up to {limit}; cancel this turn to stop waiting."
    )


def waited_in_vain(error: str) -> str:
    """Return why a turn has failed that has waited for its model as long as it may."""
    return f"{error}; the turn has waited as long as model.wait allows"


def compacted(summary: str) -> str:
    """Return what a person reads of a summary."""
    return f"Summary that the model reads instead of what is older: {summary}"


def sent_long_ago(text: str, sent_at: int, now_ms: int) -> str:
    """Return a message with a note of its age before it, where it was sent long ago."""
    if not sent_at:
        return text
    return f"[System note: this message was sent {ago(now_ms - sent_at)} ago and could not be read before.]\n\n{text}"


def ago(passed_ms: int) -> str:
    """Return a length of time in words, rounded down, and a minute at least."""
    minutes = max(1, passed_ms // 60_000)
    if minutes < 120:
        return f"{minutes} minute{'' if minutes == 1 else 's'}"
    return f"{minutes // 60} hours" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days"


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
