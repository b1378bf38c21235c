"""What each kind of entry says: the shape of its `data`, which readers in other languages are given as types."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NotRequired, TypedDict

from holdfast.core.journal import EntryKind


class Picture(TypedDict):
    """A picture that came with a message; its bytes are asked for by the number that its place in the list gives."""

    media_type: str
    bytes: int


class Said(TypedDict):
    """Something that a client says was said before its message."""

    speaker: str
    text: str


class Accepted(TypedDict):
    """A message; the `key` is the one that it was sent with."""

    text: str
    key: NotRequired[str]
    images: NotRequired[list[Picture]]
    prior: NotRequired[list[Said]]
    request: NotRequired[dict[str, object]]


class Started(TypedDict):
    attempt: int


class Spoken(TypedDict):
    """Words: of the answer, or of what is thought before it."""

    text: str


class CallStarted(TypedDict):
    call_id: str
    name: str
    args: object


class CallFinished(TypedDict):
    """The end of a call.  One that never started says here what was wanted; one that nobody knows has no result."""

    call_id: str
    name: str
    outcome: str
    result: NotRequired[str | None]
    args: NotRequired[object]


class Asked(TypedDict):
    question_id: str
    text: str
    about: str
    choices: list[str]
    detail: dict[str, object]
    expires_at: int | None
    call_id: NotRequired[str]
    name: NotRequired[str]
    args: NotRequired[object]


class Answered(TypedDict):
    question_id: str
    text: str


class Noted(TypedDict):
    """What Holdfast says in its own name; with a `banner` it is about a stop, and with `waiting` about what it waits for."""

    text: str
    banner: NotRequired[str]
    waiting: NotRequired[str]


class Deferred(TypedDict):
    """The turn waits for its model, which could not answer because of `error`, and is tried again at `retry_at`."""

    error: str
    retry_at: int


class Used(TypedDict):
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_micros: int


class Compacted(TypedDict):
    """A summary for all that stands before the entry after `after`, which the turn `through` is the last of."""

    text: str
    through: str
    after: int


class Joined(TypedDict):
    """The message of another turn, which became a part of this one."""

    text: str
    turn_id: str


class Closed(TypedDict):
    """The end of an attempt.  An interrupted one that goes on by itself `continues`; a message that joined has no more."""

    text: NotRequired[str]
    error: NotRequired[str]
    cause: NotRequired[str]
    joined: NotRequired[str]
    continues: NotRequired[bool]
    recovery: NotRequired[str]


class Recovered(TypedDict):
    attempt: int
    found: int


class Undone(TypedDict):
    pass


PAYLOADS: Mapping[EntryKind, type] = MappingProxyType(
    {
        EntryKind.TURN_ACCEPTED: Accepted,
        EntryKind.TURN_STARTED: Started,
        EntryKind.TEXT: Spoken,
        EntryKind.REASONING: Spoken,
        EntryKind.TOOL_STARTED: CallStarted,
        EntryKind.TOOL_FINISHED: CallFinished,
        EntryKind.APPROVAL_ASKED: Asked,
        EntryKind.APPROVAL_ANSWERED: Answered,
        EntryKind.NOTE: Noted,
        EntryKind.TURN_DEFERRED: Deferred,
        EntryKind.USAGE: Used,
        EntryKind.CONTEXT_COMPACTED: Compacted,
        EntryKind.MESSAGE_JOINED: Joined,
        EntryKind.TURN_COMPLETED: Closed,
        EntryKind.TURN_FAILED: Closed,
        EntryKind.TURN_CANCELLED: Closed,
        EntryKind.TURN_INTERRUPTED: Closed,
        EntryKind.TURN_RECOVERED: Recovered,
        EntryKind.TURN_UNDONE: Undone,
    }
)
