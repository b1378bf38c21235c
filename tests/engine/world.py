"""The world around an engine under test: a real store, a clock that obeys, and small carriers and providers.

Everything here is a real class behind a port; nothing of the engine is patched.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import inspect
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from holdfast.core.delivery import Delivery
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.questions import Question
from holdfast.core.segments import Segment, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.core.turns import SETTLED, Turn
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.tuning import Tuning
from holdfast.errors import Rejected, Unavailable
from holdfast.ids import SessionId
from holdfast.memory.bindings import MemoryBindings
from holdfast.memory.provider import Provider
from holdfast.ports import Agent
from holdfast.store.audit import audit
from holdfast.store.store import Store

T = TypeVar("T")
Open = Callable[[], Awaitable[Store]]

START = 1_700_000_000_000
DEADLINE_S = 20
LOOK_S, LOOK_MAX_S = 0.003, 0.03
TARGET = "chat:1"
# What only waits for a lost hint waits briefly, so that no test has to.
FAST = Tuning(poll_ms=20, batch_ms=1)


async def until(look: Callable[[], Awaitable[T] | T]) -> T:
    """Return the first thing that `look` sees and that counts as true; fail at the deadline."""
    deadline = time.monotonic() + DEADLINE_S
    pause_s = LOOK_S
    while True:
        seen = look()
        found: Any = await seen if inspect.isawaitable(seen) else seen
        if found:
            return found
        assert time.monotonic() < deadline, f"still {found!r} after {DEADLINE_S} s: {inspect.getsource(look).strip()}"
        await asyncio.sleep(pause_s)
        # Looking costs time of its own, which what is waited for needs more.
        pause_s = min(pause_s * 1.3, LOOK_MAX_S)


@asynccontextmanager
async def opened(open_it: Open) -> AsyncIterator[Store]:
    """Open the store of a test, and audit it before it is closed."""
    store = await open_it()
    try:
        yield store
        assert await audit(store.database) == []
    finally:
        await store.close()


@asynccontextmanager
async def running_engine(store: Any, agent: Agent, **parts: Any) -> AsyncIterator[Engine]:
    """Run an engine for as long as the context lasts; it stops the way a cancelled task does, with no drain.

    A memory provider alone is bound, and knows of no earlier ones.
    """
    if isinstance(memory := parts.get("memory"), Provider):
        parts["memory"] = MemoryBindings(memory)
    engine = Engine(Parts(**{"store": store, "agent": agent, "tuning": FAST, **parts}))
    task = asyncio.create_task(engine.run(), name="engine")
    recovered = asyncio.create_task(engine.recovered())
    try:
        await asyncio.wait((task, recovered), return_when=asyncio.FIRST_COMPLETED, timeout=DEADLINE_S)
        yield engine
    finally:
        for each in (task, recovered):
            each.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def message(text: str = "hello", **changes: Any) -> Inbound:
    return Inbound(**{"conversation": "chat:1", "text": text, "channel": "telegram", **changes})


async def settled(store: Store, receipt: Receipt) -> Turn:
    """Return a turn once it is at rest."""

    async def look() -> Turn | None:
        turn = await store.turns.get(receipt.turn_id)
        return turn if turn.state in SETTLED else None

    return await until(look)


async def answered(engine: Engine, store: Store, text: str = "hello", **changes: Any) -> Turn:
    """Send a message and return its turn once it is at rest."""
    return await settled(store, await engine.inbox.accept(message(text, **changes)))


class ManualClock:
    """A clock that moves only when it is told to.  `naps` is how long each sleeper wanted to sleep, in order."""

    def __init__(self, now_ms: int = START) -> None:
        self.naps: list[float] = []
        self._now_ms = now_ms
        self._monotonic_ms = 0.0
        self._numbers = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return int(self._monotonic_ms)

    async def sleep_ms(self, duration_ms: float) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.naps.append(duration_ms)
        heapq.heappush(self._sleepers, (self._monotonic_ms + duration_ms, next(self._numbers), waiter))
        await waiter

    async def asleep(self, naps: int) -> None:
        """Return once so many naps have begun, from the first on."""
        await until(lambda: len(self.naps) >= naps)

    async def advance(self, duration_ms: int) -> None:
        """Let time pass, wake whoever has slept long enough, and let them look around."""
        self._now_ms += duration_ms
        self._monotonic_ms += duration_ms
        while self._sleepers and self._sleepers[0][0] <= self._monotonic_ms:
            waiter = heapq.heappop(self._sleepers)[2]
            if not waiter.done():
                waiter.set_result(None)
        await asyncio.sleep(0)


class Hang:
    """Something that does not answer until it is released."""

    def __init__(self) -> None:
        self._released = asyncio.Event()

    def release(self) -> None:
        self._released.set()

    async def wait(self) -> None:
        await self._released.wait()


class Altered:
    """A store, or one of its aggregates, with some of its parts replaced."""

    def __init__(self, whole: Any, **parts: Any) -> None:
        self._whole = whole
        self.__dict__.update(parts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)


class LosingAnswer:
    """A write that takes effect, though the first who asks for it never hears so.  `calls` counts the askers."""

    def __init__(self, write: Callable[..., Awaitable[Any]]) -> None:
        self.calls = 0
        self._write = write

    async def __call__(self, *args: Any, **changes: Any) -> Any:
        self.calls += 1
        answer = await self._write(*args, **changes)
        if self.calls == 1:
            raise Unavailable("the connection was lost before the answer came")
        return answer


async def _play(answer: Any) -> Any:
    """Do what a script says: fail, hang, or answer."""
    if isinstance(answer, BaseException):
        raise answer
    if isinstance(answer, Hang):
        await answer.wait()
        return None
    return answer


class RecordingCarrier:
    """Carries deliveries nowhere and remembers them.  A `|` parts a text; each send and each search plays its script."""

    def __init__(
        self,
        *answers: str | Exception | Hang,
        finds: Sequence[str | Exception | Hang | None] = (),
        dedupes: bool = False,
        in_line: bool = False,
        takes_files: bool = False,
    ) -> None:
        self.dedupes = dedupes
        self.in_line = in_line
        self.takes_files = takes_files
        self.sent: list[Delivery] = []
        self.sought: list[Delivery] = []
        self._answers = list(answers)
        self._finds = list(finds)

    def check(self, target: str) -> None:
        if target.endswith(":nobody"):
            raise Rejected(f"{target!r} is nobody: use a number")

    def split(self, text: str) -> Sequence[str]:
        return text.split("|")

    def ask(self, turn: Turn, question: Question, target: str, now_ms: int) -> Sequence[Delivery]:
        return ()

    async def send(self, sent: Delivery) -> str:
        self.sent.append(sent)
        answer = await _play(self._answers.pop(0) if self._answers else None)
        return answer or f"receipt {len(self.sent)}"

    async def find(self, sent: Delivery) -> str | None:
        self.sought.append(sent)
        return await _play(self._finds.pop(0) if self._finds else None)

    def texts(self, turn: Turn) -> list[str]:
        """Return what left for a turn, as it left."""
        return [each.outgoing for each in self.sent if each.turn_id == turn.id]


class RecordingMemory(Provider):
    """Remembers what it is given, and what of that it took; each commit plays its script."""

    def __init__(self, *answers: object, owner: str = "memory:main") -> None:
        super().__init__(owner)
        self.given: list[tuple[Segment, list[SpokenMessage]]] = []
        self.taken: list[tuple[Segment, list[SpokenMessage]]] = []
        self._answers = list(answers)

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        assert session.id == segment.session_id
        self.given.append((segment, list(messages)))
        answer = await _play(self._answers.pop(0) if self._answers else None)
        self.taken.append((segment, list(messages)))
        return answer or f"{len(messages)} messages read"

    def recover(self) -> None:
        """Answer everything from now on."""
        self._answers.clear()

    def given_of(self, session_id: SessionId) -> list[Segment]:
        return [segment for segment, _ in self.given if segment.session_id == session_id]

    def taken_of(self, session_id: SessionId) -> list[str]:
        """Return what was said in the segments of a session that were taken, in order."""
        taken = [messages for segment, messages in self.taken if segment.session_id == session_id]
        return [message.text for messages in taken for message in messages]
