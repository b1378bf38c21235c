"""A tool call touches the world: its states, and what may be done about one that was cut off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Self, assert_never

from holdfast.core.moves import move
from holdfast.ids import CallId, SessionId, TurnId


class Effect(StrEnum):
    """What a tool declares about running it twice."""

    PURE = "pure"
    KEYED = "keyed"
    EFFECTFUL = "effectful"


class CallState(StrEnum):
    PLANNED = "planned"
    AWAITING_APPROVAL = "awaiting_approval"
    STARTED = "started"
    OK = "ok"
    ERROR = "error"
    UNKNOWN = "unknown"


class CallEvent(StrEnum):
    ASK = "ask"
    START = "start"
    DENY = "deny"
    SUCCEED = "succeed"
    FAIL = "fail"
    REPEAT = "repeat"
    LOSE = "lose"


MOVES: Mapping[tuple[CallState, CallEvent], CallState] = MappingProxyType(
    {
        (CallState.PLANNED, CallEvent.ASK): CallState.AWAITING_APPROVAL,
        (CallState.PLANNED, CallEvent.START): CallState.STARTED,
        (CallState.AWAITING_APPROVAL, CallEvent.START): CallState.STARTED,
        (CallState.AWAITING_APPROVAL, CallEvent.DENY): CallState.ERROR,
        (CallState.STARTED, CallEvent.SUCCEED): CallState.OK,
        (CallState.STARTED, CallEvent.FAIL): CallState.ERROR,
        (CallState.STARTED, CallEvent.REPEAT): CallState.PLANNED,
        (CallState.STARTED, CallEvent.LOSE): CallState.UNKNOWN,
    }
)

ENDED = frozenset({CallState.OK, CallState.ERROR, CallState.UNKNOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call of one turn.  `starts` never passes one for an effectful call; the schema holds it."""

    id: CallId
    turn_id: TurnId
    session_id: SessionId
    name: str
    effect: Effect
    args: str = "{}"
    state: CallState = CallState.PLANNED
    starts: int = 0
    result: str | None = None

    def on(self, event: CallEvent) -> Self:
        """Return the call after `event`."""
        return replace(self, state=move(MOVES, self.id, self.state, event))


def after_cut(effect: Effect) -> CallEvent:
    """Decide about a call that had started and whose end was not recorded."""
    match effect:
        case Effect.PURE | Effect.KEYED:
            # A keyed call is repeated under its own id, so the far side sees the same key.
            return CallEvent.REPEAT
        case Effect.EFFECTFUL:
            return CallEvent.LOSE
        case _:
            assert_never(effect)
