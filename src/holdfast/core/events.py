"""What a journal entry can say: one type for each kind of entry.

To add a kind, add its name to `EntryKind`, its type to `Event`, and show it in transcript.py.

The types are msgspec structs, because msgspec decodes JSON into them in compiled code, and encodes exactly what was decoded.
A field that is always written has no default.  A field with a default is not written while it has that value.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, cast, get_args

import msgspec
from msgspec import UNSET, Struct, UnsetType

from holdfast.core.intake import Prior
from holdfast.core.usage import Usage
from holdfast.ids import TurnId

# The content of an entry as JSON has it.
Data: TypeAlias = Mapping[str, object]
E = TypeVar("E", bound="EventBase")

# The `recovery` of an interruption whose attempt may have left output that has not arrived; `turn.recovered` ends the wait.
PENDING = "pending"
# The content of an entry that is not JSON.
UNREADABLE: Data = MappingProxyType({"unreadable": True})


class EntryKind(StrEnum):
    """The name of a kind of entry, as it is stored and sent."""

    TURN_ACCEPTED = "turn.accepted"
    TURN_STARTED = "turn.started"
    TEXT = "text"
    REASONING = "reasoning"
    TOOL_STARTED = "tool.started"
    TOOL_FINISHED = "tool.finished"
    APPROVAL_ASKED = "approval.asked"
    APPROVAL_ANSWERED = "approval.answered"
    NOTE = "note"
    TURN_DEFERRED = "turn.deferred"
    USAGE = "usage"
    CONTEXT_COMPACTED = "context.compacted"
    MESSAGE_JOINED = "message.joined"
    TURN_COMPLETED = "turn.completed"
    TURN_FAILED = "turn.failed"
    TURN_CANCELLED = "turn.cancelled"
    TURN_INTERRUPTED = "turn.interrupted"
    TURN_RECOVERED = "turn.recovered"
    TURN_UNDONE = "turn.undone"
    TURN_REVISED = "turn.revised"


class EventBase(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What one entry says."""

    kind: ClassVar[EntryKind]


class Picture(Struct, frozen=True, kw_only=True):
    """A picture that came with a message.  Clients fetch its bytes by its position in the list."""

    media_type: str
    bytes: int


class TurnAccepted(EventBase, frozen=True):
    """A message was accepted.  It is the first entry of its turn."""

    kind: ClassVar = EntryKind.TURN_ACCEPTED
    text: str
    # The key that the client sent the message with.
    key: str = ""
    images: tuple[Picture, ...] = ()
    # What was said before the message, according to the client.
    prior: tuple[Prior, ...] = ()
    # When it was sent, in milliseconds since 1970, where that was long before it was accepted.
    sent_at: int = 0
    # Fields of the request that the client reads again with the turn.
    request: dict[str, object] | UnsetType = UNSET

    @property
    def said_before(self) -> tuple[Prior, ...]:
        """What the client says was said before, without what is empty."""
        return tuple(each for each in self.prior if each.text)


class TurnStarted(EventBase, frozen=True):
    """A worker began an attempt."""

    kind: ClassVar = EntryKind.TURN_STARTED
    attempt: int


class Text(EventBase, frozen=True):
    """A piece of the answer."""

    kind: ClassVar = EntryKind.TEXT
    text: str


class Reasoning(EventBase, frozen=True):
    """A piece of what the model thought before its answer."""

    kind: ClassVar = EntryKind.REASONING
    text: str


class ToolStarted(EventBase, frozen=True):
    """A tool call began."""

    kind: ClassVar = EntryKind.TOOL_STARTED
    call_id: str
    name: str
    args: object


class ToolFinished(EventBase, frozen=True):
    """A tool call ended.  A call that never started has its `args` here; one with an unknown outcome may have no result."""

    kind: ClassVar = EntryKind.TOOL_FINISHED
    call_id: str
    name: str
    outcome: str
    result: str | UnsetType | None = UNSET
    args: object = UNSET


class ApprovalAsked(EventBase, frozen=True):
    """The turn waits for a person to answer a question, which may be about a tool call."""

    kind: ClassVar = EntryKind.APPROVAL_ASKED
    question_id: str
    text: str
    about: str
    choices: tuple[str, ...]
    detail: dict[str, object]
    expires_at: int | None
    call_id: str = ""
    name: str = ""
    args: object = UNSET


class ApprovalAnswered(EventBase, frozen=True):
    """A question was answered, and the turn is queued again."""

    kind: ClassVar = EntryKind.APPROVAL_ANSWERED
    question_id: str
    text: str


class Note(EventBase, frozen=True):
    """Holdfast said something in its own name."""

    kind: ClassVar = EntryKind.NOTE
    text: str
    # Which stop of the gateway the note announces.
    banner: str = ""
    # What the turn waits for.
    waiting: str = ""


class TurnDeferred(EventBase, frozen=True):
    """The model failed with `error`, and the turn is tried again at `retry_at`."""

    kind: ClassVar = EntryKind.TURN_DEFERRED
    error: str
    retry_at: int


class TokensUsed(EventBase, frozen=True):
    """One call of a model, and what it cost."""

    kind: ClassVar = EntryKind.USAGE
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_micros: int

    @property
    def usage(self) -> Usage:
        """The same numbers, ready to be added up."""
        return Usage(
            model=self.model,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cached_tokens=self.cached_tokens,
            cost_micros=self.cost_micros,
        )


class ContextCompacted(EventBase, frozen=True):
    """A summary replaces everything up to the entry `after`, whose last turn is `through`."""

    kind: ClassVar = EntryKind.CONTEXT_COMPACTED
    text: str
    through: TurnId
    after: int


class MessageJoined(EventBase, frozen=True):
    """The message of the turn `turn_id` became a part of this turn."""

    kind: ClassVar = EntryKind.MESSAGE_JOINED
    text: str
    turn_id: TurnId


class _Closing(EventBase, frozen=True):
    """The end of an attempt."""

    text: str = ""
    error: str = ""
    cause: str = ""


class TurnCompleted(_Closing, frozen=True):
    """The turn was answered with `text`, or its message joined another turn."""

    kind: ClassVar = EntryKind.TURN_COMPLETED
    # The turn that the message became a part of.
    joined: TurnId = TurnId("")


class TurnFailed(_Closing, frozen=True):
    """The turn failed."""

    kind: ClassVar = EntryKind.TURN_FAILED


class TurnCancelled(_Closing, frozen=True):
    """The turn was cancelled."""

    kind: ClassVar = EntryKind.TURN_CANCELLED


class TurnInterrupted(_Closing, frozen=True):
    """An attempt lost its worker."""

    kind: ClassVar = EntryKind.TURN_INTERRUPTED
    # Whether the turn is queued again at once.
    continues: bool | UnsetType = UNSET
    # `PENDING` while a search for output that has not arrived goes on.
    recovery: str = ""


class TurnRecovered(EventBase, frozen=True):
    """The search for output of a lost attempt ended, after it found `found` entries."""

    kind: ClassVar = EntryKind.TURN_RECOVERED
    attempt: int
    found: int


class TurnUndone(EventBase, frozen=True):
    """The turn is left out of the conversation from now on."""

    kind: ClassVar = EntryKind.TURN_UNDONE


class TurnRevised(EventBase, frozen=True):
    """The message was changed by its sender before it was read: it says `text` now."""

    kind: ClassVar = EntryKind.TURN_REVISED
    text: str


class UnknownEvent(Struct, frozen=True, kw_only=True):
    """An entry of a kind that a newer version added.  It is stored, served and exported as it is."""

    kind: str
    data: Data

    @property
    def text(self) -> str:
        """What it says to people, as far as this version can tell."""
        return text if isinstance(text := self.data.get("text"), str) else ""


KnownEvent: TypeAlias = (
    Text
    | Reasoning
    | ToolStarted
    | ToolFinished
    | TokensUsed
    | TurnAccepted
    | TurnStarted
    | TurnCompleted
    | TurnFailed
    | TurnCancelled
    | TurnInterrupted
    | TurnDeferred
    | TurnRecovered
    | TurnUndone
    | TurnRevised
    | MessageJoined
    | Note
    | ApprovalAsked
    | ApprovalAnswered
    | ContextCompacted
)
Event: TypeAlias = KnownEvent | UnknownEvent

EVENTS: Mapping[EntryKind, type[KnownEvent]] = MappingProxyType({each.kind: each for each in get_args(KnownEvent)})


class _Reader(Generic[E]):
    """Decodes the content of one kind of entry."""

    def __init__(self, event_type: type[E]) -> None:
        self.decode = msgspec.json.Decoder(event_type).decode
        self._type = event_type

    def salvage(self, data: Data) -> E:
        """Return what malformed content says, with empty values for fields that are missing or wrong."""
        found: dict[str, object] = {}
        for each in msgspec.structs.fields(self._type):
            if each.name in data and (kept := _converted(data[each.name], each.type)) is not UNSET:
                found[each.name] = kept
            elif each.required:
                zeros = (_converted(zero, each.type) for zero in _ZEROS)
                found[each.name] = next(zero for zero in zeros if zero is not UNSET)
        return self._type(**found)


_ZEROS: tuple[object, ...] = (None, "", 0, (), {})
_READERS: Mapping[str, _Reader[Any]] = MappingProxyType({kind: _Reader(each) for kind, each in EVENTS.items()})
_decode_data: Callable[[bytes | str], dict[str, object]] = msgspec.json.Decoder(dict[str, object]).decode


def decoded(kind: str, text: bytes | str) -> tuple[Event, Data | None]:
    """Return what an entry says, and its content where that has more or less than the type of its kind.

    An entry is never refused, so that one malformed entry does not hide its neighbours.
    """
    reader = _READERS.get(kind)
    if reader is not None:
        try:
            return reader.decode(text), None
        except msgspec.DecodeError:
            pass
    try:
        data: Data = _decode_data(text)
    except msgspec.DecodeError:
        data = UNREADABLE
    return converted(kind, data)


def converted(kind: str, data: Data) -> tuple[Event, Data | None]:
    """Return what an entry says, as `decoded` does, from content that is no text any more."""
    reader = _READERS.get(kind)
    if reader is None:
        return UnknownEvent(kind=kind, data=data), None
    event = reader.salvage(data)
    return event, None if content(event) == data else data


def content(event: Event) -> Data:
    """Return what an event says, as JSON has it."""
    if isinstance(event, UnknownEvent):
        return event.data
    data = cast("Data", msgspec.to_builtins(event))
    if isinstance(event, TurnAccepted | ApprovalAsked):
        return {
            name: list(cast("tuple[object]", value)) if isinstance(value, tuple) else value for name, value in data.items()
        }
    return data


def _converted(value: object, expected: Any) -> object:  # A type of a field, which is any form that has no common class.
    """Return a value as a field of a type has it; UNSET if it does not fit.  Of a list, only its good members are kept."""
    try:
        return msgspec.convert(value, expected)
    except msgspec.ValidationError:
        pass
    try:
        good = list(msgspec.convert([], expected))
    except msgspec.ValidationError:
        return UNSET
    for each in cast("list[object]", value) if isinstance(value, list) else ():
        with contextlib.suppress(msgspec.ValidationError):
            good += msgspec.convert([each], expected)
    return tuple(good)
