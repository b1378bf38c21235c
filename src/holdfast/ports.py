"""What Holdfast asks of the world: agents, tools, carriers, memory.  A port speaks the domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.core.delivery import Delivery
from holdfast.core.effects import Call, Effect
from holdfast.core.facts import Recollection
from holdfast.core.intake import Image
from holdfast.core.processes import Process
from holdfast.core.questions import Question
from holdfast.core.segments import Segment, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.core.transcript import Item
from holdfast.core.turns import Turn
from holdfast.core.usage import Usage
from holdfast.errors import Rejected
from holdfast.ids import CallId, ProcessId, SessionId, TurnId


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A stretch of what a process has written: from byte `begin`, which is later than asked where the start is gone.

    `end` is where to read on.
    """

    text: str
    begin: int
    end: int


class ProcessControl(Protocol):
    """The background commands of this machine, as a person may look at and end them."""

    async def output(self, process_id: ProcessId, after: int, limit: int, *, colours: bool = False) -> Output:
        """Return what was written after a byte, `limit` bytes at most.  Raises `Rejected` where it is kept elsewhere.

        With `colours` the escape sequences that say them stay in the text, and no others.
        """
        ...

    async def kill(self, process_id: ProcessId) -> Process:
        """End a process with everything it started, and return what became of it.  One that has ended stays as it is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that a person has uploaded: where tools find it, its name, and its size."""

    path: str
    name: str
    bytes: int


class Uploads(Protocol):
    """Where files are kept that people hand in."""

    async def keep(self, name: str, content: bytes) -> Upload:
        """Return once it is durable; the same again is the same file.  Raises `DiskFull`."""
        ...


class StageTool(Protocol):
    """Something an agent can do in the world, with a declared effect."""

    @property
    def name(self) -> str: ...
    @property
    def effect(self) -> Effect: ...
    async def run(self, args: Mapping[str, object], key: str) -> str:
        """Do it and return what the model should read.  `key` is the same each time one call is repeated."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One tool call that an agent wants made.  With a question, a person is asked before it starts, or answers for it."""

    tool: StageTool
    call_id: CallId
    args: Mapping[str, object] = field(default_factory=dict[str, object])
    question: Question | None = None


class Stage(Protocol):
    """What a running turn offers its agent: every word is journalled before it is shown."""

    async def say(self, text: str) -> None:
        """Show a piece of the answer."""
        ...

    async def think(self, text: str) -> None:
        """Show a piece of reasoning."""
        ...

    async def heed(self) -> Sequence[str]:
        """Return the messages that joined this turn since it was last asked; an agent asks between its steps."""
        ...

    async def use(self, tool: StageTool, call_id: CallId, args: Mapping[str, object]) -> Call:
        """Run a tool, its intent durable before and its result after.  A call that has ended is never run again."""
        ...

    async def use_all(self, uses: Sequence[Use]) -> list[Call]:
        """Make several calls side by side, and return what became of each, in their order.

        All questions are asked before any call starts: the turn is parked with all calls recorded, and this never returns.
        A call that the person denies ends as an error; a call that they answer themselves ends with that answer.
        """
        ...

    async def ask(self, question: Question) -> str:
        """Return the person's answer; while there is none, the turn is parked and this never returns."""
        ...

    async def spend(self, used: Usage) -> None:
        """Record what a model call has used."""
        ...

    async def note(self, text: str) -> None:
        """Tell the person something that is not part of the answer."""
        ...

    async def compact(self, summary: str, through: TurnId) -> None:
        """Replace every turn up to and including `through` by `summary` in what the model reads.  The journal stays."""
        ...

    def rest(self) -> AbstractAsyncContextManager[None]:
        """Free this turn's place among the running turns while the context lasts, as while child turns work for it."""
        ...


class Recalled(Protocol):
    """Recollections that fit a message.  They are data, never instructions."""

    async def __call__(self, *, knows_store: bool = False) -> Sequence[Recollection]:
        """Return the recollections, or none if a provider takes too long.

        Remote memory was asked when the turn began, so call this last.  With `knows_store` the caller has already read all
        memories of the person in the store, and gets only those of other providers.
        """
        ...


async def nothing_recalled(*, knows_store: bool = False) -> Sequence[Recollection]:  # noqa: ARG001 - The shape of `Recalled`.
    """Return no memories, for a gateway without memory."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What an agent is to do.  `message` is the user's text, after a system note where one is due.

    `images` came with it, `earlier_images` with the last messages before it that had any.
    """

    session: Session
    turn: Turn
    message: str
    history: Sequence[Item]
    calls: Sequence[Call]
    images: Sequence[Image] = ()
    earlier_images: Mapping[TurnId, Sequence[Image]] = field(default_factory=dict[TurnId, Sequence[Image]])
    recalled: Recalled = nothing_recalled


class Agent(Protocol):
    """The model-and-tool loop."""

    async def run(self, work: Assignment, stage: Stage) -> str:
        """Answer a message and return the whole answer.

        Raises a `HoldfastError` to fail the turn with that message; any other exception is a bug, and interrupts it.
        """
        ...

    async def release(self, session_id: SessionId) -> None:
        """Close what is held for a session between its turns.  Its next turn may begin at any moment."""
        ...


class Models(Protocol):
    """The models that a conversation can be answered by."""

    @property
    def configured(self) -> str:
        """The model that answers where none is chosen; empty for the built-in demonstration."""
        ...

    async def offered(self, *, is_operator: bool) -> Sequence[str]:
        """Return the names to choose from, the configured ones first."""
        ...

    async def find(self, wanted: str, *, is_operator: bool) -> str:
        """Return the model that a person means by a name.  Raises `Rejected`, which names the nearest one."""
        ...


class OneModel:
    """Nothing to choose: the configured model answers everything."""

    def __init__(self, configured: str = "") -> None:
        self.configured = configured

    async def offered(self, *, is_operator: bool) -> Sequence[str]:  # noqa: ARG002 - The shape of `Models`.
        return (self.configured,) if self.configured else ()

    async def find(self, wanted: str, *, is_operator: bool) -> str:
        if wanted in await self.offered(is_operator=is_operator):
            return wanted
        raise Rejected(f"there is no model {wanted!r} to choose here")


class Carrier(Protocol):
    """Takes deliveries out to one kind of target."""

    @property
    def dedupes(self) -> bool:
        """Whether a delivery that is sent again with the same id cannot arrive twice."""
        ...

    @property
    def in_line(self) -> bool:
        """Whether its targets are chats of an account.

        There a delivery waits for all that were written before it, and leaves from the node that receives for the account.
        """
        ...

    @property
    def takes_files(self) -> bool:
        """Whether a delivery may have a file."""
        ...

    def check(self, target: str) -> None:
        """Raise `Rejected`, with the reason, for a target that no delivery can ever reach."""
        ...

    def split(self, text: str) -> Sequence[str]:
        """Cut an answer into parts that the target takes."""
        ...

    def ask(self, turn: Turn, question: Question, target: str, now_ms: int) -> Sequence[Delivery]:
        """Return the messages that take a question of a turn to people who may answer it; none if none can be reached."""
        ...

    async def send(self, sent: Delivery) -> str:
        """Send one part and return the far side's receipt.

        Raises `Unavailable` when the far side certainly has nothing and may take it later, `Rejected` when it never will.
        After any other failure, such as `OutcomeUnknown` or a timeout, the outcome is unknown.
        """
        ...

    async def find(self, sent: Delivery) -> str | None:
        """Return the receipt of a delivery whose outcome is unknown, if the far side can tell; else None."""
        ...


class AskOperator(Protocol):
    """Takes questions to the operator that are asked in no chat."""

    def __call__(self, turn: Turn, question: Question, now_ms: int) -> Sequence[Delivery]:
        """Return the messages of a question; none where there is no place for them, or the question is seen anyway."""
        ...


def ask_nowhere(turn: Turn, question: Question, now_ms: int) -> Sequence[Delivery]:  # noqa: ARG001 - The shape of `AskOperator`.
    """Return no messages, for a gateway without a home chat."""
    return ()


class MemoryProvider(Protocol):
    """A memory provider.  It is called outside of turns and locks, and with a timeout.

    The person that a memory is about is the owner of the session.
    """

    @property
    def owner(self) -> str:
        """The binding that debts are owed to: the provider's name and, behind a colon, its address."""
        ...

    @property
    def mirrors(self) -> bool:
        """Whether it wants to hear of each turn as soon as that has ended."""
        ...

    async def recall(self, session: Session, query: str, limit: int) -> Sequence[Recollection]:
        """Return what may help with a message.  The caller has a timeout."""
        ...

    async def note(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> None:
        """Take a turn that has ended, before its segment is committed.  It may be called never or twice for one turn."""
        ...

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        """Take a segment in, once per segment id however often it is called, and return what came of it in a few words.

        Any exception is a failed commit.
        """
        ...

    async def forget(self, person: str, *, memory_id: str | None = None, session_id: SessionId | None = None) -> int:
        """Forget one memory, or all that came from a session; returns how many.  Raises `Rejected` where it cannot."""
        ...

    async def check(self) -> str:
        """Return in a few words how it is.  Raises what keeps it from working."""
        ...

    async def close(self) -> None: ...


class Bindings(Protocol):
    """The providers that debts can be owed to."""

    @property
    def current(self) -> MemoryProvider | None:
        """Whom the turns that complete now are owed to."""
        ...

    def of(self, owner: str) -> MemoryProvider | None:
        """Return the provider of a binding, also of an earlier one; None when it is not configured here."""
        ...
