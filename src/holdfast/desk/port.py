"""The port: what may be asked of a gateway.  Whoever asks does not know whether it is this process or another."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Protocol

from holdfast.core.intake import Busy, Image, Inbound, Receipt
from holdfast.core.journal import Entry
from holdfast.core.retries import Try
from holdfast.core.sessions import SessionDeleted, SessionsMissed, SessionState
from holdfast.desk.plans import Change, Opening, Pruning
from holdfast.desk.views import (
    Health,
    JournalPage,
    Pruned,
    Search,
    SessionView,
    Status,
    Stop,
    Transcript,
    TurnView,
)
from holdfast.ids import SessionId, TurnId
from holdfast.operations.caller import Caller
from holdfast.operations.pages import Page
from holdfast.operations.services import Services
from holdfast.ports import Upload

if TYPE_CHECKING:
    # Whoever only asks does not pay for importing all that a doctor looks at.
    from holdfast.operations.upkeep import Upkeep


class Reading(Services, Protocol):
    """What can be read, also while no gateway runs.  A cursor that nobody gave out is refused with `Rejected`."""

    async def sessions(
        self,
        *,
        state: SessionState | None = None,
        channel: str | None = None,
        archived: bool | None = None,
        pinned: bool | None = None,
        key: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[SessionView]:
        """Return sessions, last used first; of one key, the newest first."""
        ...

    async def session(self, session_id: SessionId) -> SessionView: ...
    async def transcript(
        self, session_id: SessionId, *, cursor: str | None = None, limit: int | None = None, newest: bool = False
    ) -> Transcript:
        """Return a page of `limit` turns, or all of them; the `newest` page first, or the oldest."""
        ...

    async def turns(self, session_id: SessionId, *, cursor: str | None = None, limit: int = 100) -> Page[TurnView]:
        """Return the turns of a session in the order of their acceptance."""
        ...

    async def turn(self, turn_id: TurnId) -> TurnView: ...
    async def search(self, query: str, limit: int = 50) -> Search: ...


class Desk(Reading, Protocol):
    """What a working gateway can do besides."""

    async def open(self, opening: Opening) -> SessionView:
        """Return the open session of a key, made if need be.  Raises `Rejected` for a key that looks like an id."""
        ...

    async def send(
        self,
        session_id: SessionId,
        text: str,
        key: str | None = None,
        busy: Busy | None = None,
        images: Sequence[Image] = (),
    ) -> Receipt:
        """Return once the message is durable.  With the same `key` it is the same message, however often it is sent."""
        ...

    async def compact(self, session_id: SessionId) -> Receipt:
        """Let the agent put a summary in the place of what it has read so far, as a turn of its own."""
        ...

    def follow(self, session_id: SessionId, after: int = 0) -> AsyncGenerator[Entry]:
        """Yield every entry after a cursor, for ever."""
        ...

    async def change(self, session_id: SessionId, change: Change) -> SessionView: ...
    async def end(self, session_id: SessionId) -> SessionView: ...
    async def suspend(self, session_id: SessionId) -> SessionView: ...
    async def fork(self, session_id: SessionId, through: TurnId | None = None, before: TurnId | None = None) -> SessionView:
        """Copy a conversation, up to and with one of its turns or only before one, into a new one."""
        ...

    async def delete(self, session_id: SessionId) -> None:
        """Delete a session with everything in it; what still runs is cancelled."""
        ...

    async def prune(self, pruning: Pruning) -> Pruned:
        """Delete ended sessions for a second or two; whoever asks goes on as long as there is more."""
        ...

    async def cancel(self, turn_id: TurnId) -> TurnView:
        """Cancel a turn, or the one that it joined; what it has shown stays.  Once more, it is the same receipt.

        Raises `IllegalMove` when it has come to another end.
        """
        ...

    async def retry(self, turn_id: TurnId) -> TurnView:
        """Let an interrupted turn go on, or ask the same once more, for the same reader; returns the turn that runs now."""
        ...

    async def answer(self, turn_id: TurnId, text: str, question_id: str | None = None) -> TurnView:
        """Answer the question that a turn, or the one that it joined, waits for; the last one, where none is named."""
        ...

    async def health(self) -> Health:
        """Return who answers, without asking the store."""
        ...

    async def ready(self) -> Health:
        """Return whether the gateway takes work and its store answers."""
        ...

    async def status(self) -> Status: ...
    async def stop(self, stop: Stop) -> None:
        """Ask the gateway to drain and end.  Asking again interrupts what still runs."""
        ...


class Host(Desk, Protocol):
    """The desk of the gateway itself, for whatever comes in from outside."""

    @property
    def upkeep(self) -> Upkeep: ...

    def of(self, caller: Caller) -> Host:
        """Return the same desk for another caller."""
        ...

    async def accept(self, message: Inbound) -> Receipt:
        """Take a message in that a channel has parsed and authorised."""
        ...

    async def seen(self, key: str) -> Receipt | None:
        """Return the receipt of the message that a key was first used for; None where it never was."""
        ...

    async def rejoin(self, this: Try) -> Receipt | None:
        """Return the receipt of the request that a try repeats; one that was cut off goes on.  None where there is none."""
        ...

    async def heard(self, turn_ids: Sequence[TurnId]) -> None:
        """Remember that clients have read these answers: no request joins them any more."""
        ...

    async def go_on(self, turn_id: TurnId) -> bool:
        """Let a turn go on that was cut off; returns whether it does."""
        ...

    async def entries(self, turn_id: TurnId) -> list[Entry]:
        """Return what has happened in a turn so far."""
        ...

    async def upload(self, name: str, content: bytes) -> Upload:
        """Keep a file where the agent's tools find it.  Raises `NotTrusted` where its turns have no such tools."""
        ...

    async def image(self, turn_id: TurnId, place: int) -> Image:
        """Return one of the pictures that came with the message of a turn, counted from 0.  Raises `NotFound`."""
        ...

    def watch(self) -> AsyncGenerator[SessionView | SessionDeleted | SessionsMissed]:
        """Yield every session that is opened or changed, and those that are deleted, for ever.

        `Missed` comes first, and whenever something may have changed unseen: whoever watches lists sessions then.
        """
        ...

    async def journal(self, session_id: SessionId, *, cursor: str | None = None, limit: int = 30) -> JournalPage:
        """Return what happened in the newest `limit` turns of a session, or in those before a cursor."""
        ...

    async def is_last(self, turn_id: TurnId) -> bool:
        """Return whether nothing was said in its session after a turn."""
        ...
