"""A background process outlives the gateway that started it: its states, and what was promised about its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Self

from holdfast.core.moves import move
from holdfast.ids import ProcessId, SessionId, TurnId


class ProcessState(StrEnum):
    RUNNING = "running"
    EXITED = "exited"
    LOST = "lost"


class ProcessEvent(StrEnum):
    EXIT = "exit"
    LOSE = "lose"


# Lost means that it is gone and how it ended is unknown, as after a power cut.
MOVES: Mapping[tuple[ProcessState, ProcessEvent], ProcessState] = MappingProxyType(
    {
        (ProcessState.RUNNING, ProcessEvent.EXIT): ProcessState.EXITED,
        (ProcessState.RUNNING, ProcessEvent.LOSE): ProcessState.LOST,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One background command.

    `pid` alone may be another process by now: with `born`, the kernel's start time, it is this one or none.  It is
    looked after by the gateway of the `home` whose folder holds its output.  `notifies` is the promise to say when it
    ends, `patterns` the promise to say when its output matches; `watched` is how many bytes were looked at for them.
    """

    id: ProcessId
    session_id: SessionId
    turn_id: TurnId
    owner: str
    home: str
    command: str
    workdir: str
    started_at: int
    pid: int = 0
    born: int = 0
    state: ProcessState = ProcessState.RUNNING
    exit_code: int | None = None
    ended_at: int | None = None
    notifies: bool = False
    patterns: tuple[str, ...] = ()
    watched: int = 0
    reply_to: str | None = None

    def on(self, event: ProcessEvent) -> Self:
        """Return the process after `event`."""
        return replace(self, state=move(MOVES, self.id, self.state, event))
