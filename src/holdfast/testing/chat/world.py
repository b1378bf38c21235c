"""The gateway of a case: a real store, a real engine and a real account, with an agent that does as it is told."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from holdfast.channels.chat.account import ChatContext, ChatKind
from holdfast.channels.chat.channel import ChatSurroundings, at_work, open_account
from holdfast.channels.chat.port import Place
from holdfast.channels.chat.receiver import Timing
from holdfast.channels.port import Capabilities
from holdfast.clock import SystemClock
from holdfast.config import Config, GatewayConfig, SessionsConfig
from holdfast.core.chats import AccountRecord, AccountState, target_of
from holdfast.core.delivery import Delivery, DeliveryState
from holdfast.core.events import Text
from holdfast.core.redaction import Redaction
from holdfast.core.turns import SETTLED, Turn, TurnState
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.inbox import Inbox
from holdfast.engine.tuning import Tuning
from holdfast.ids import DeliveryId, SessionId, TurnId, new_node_id
from holdfast.ports import Assignment, Stage
from holdfast.store.audit import audit
from holdfast.store.database import Run, Transaction
from holdfast.store.opening import open_store
from holdfast.store.store import Store
from holdfast.testing.chat.far_side import FarSide, Shown, Where, Who
from holdfast.testing.chat.played import Play, echo
from holdfast.testing.chat.watched import WatchedPlatform

T = TypeVar("T")

ACCOUNT = "tested"
DEADLINE_S = 20.0
LOOK_S = 0.01
# What waits for a person or a platform in operation does so briefly here.
TUNING = Tuning(poll_ms=50, batch_ms=1)
TIMING = Timing(call_ms=10_000, taken_first_ms=50, look_again_ms=200, back_off_first_ms=10, back_off_max_ms=200, lease_ms=50)
_KNOWN_MESSAGE = """
    SELECT 1 FROM status_lines WHERE message_id = :id UNION ALL SELECT 1 FROM deliveries WHERE receipt = :id
"""


class SkippingClock(SystemClock):
    """A clock that can be set forward; who sleeps until then wakes."""

    def __init__(self) -> None:
        self._skipped_ms = 0
        self._skips = asyncio.Event()

    def now_ms(self) -> int:
        return super().now_ms() + self._skipped_ms

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self._skipped_ms

    async def sleep_ms(self, duration_ms: float) -> None:
        until_ms = self.monotonic_ms() + duration_ms
        while (left_ms := until_ms - self.monotonic_ms()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_ms / 1000):
                    await self._skips.wait()

    def skip(self, duration_ms: int) -> None:
        """Let time pass at once."""
        self._skipped_ms += duration_ms
        self._skips.set()
        self._skips = asyncio.Event()


@dataclass
class PlayedAgent:
    """Does what a function says.  `heard` is every message that reached it."""

    play: Play = echo
    heard: list[str] = field(default_factory=list[str])

    async def run(self, work: Assignment, stage: Stage) -> str:
        self.heard.append(work.message)
        return await self.play(work, stage)

    async def release(self, session_id: SessionId) -> None:
        """Hold nothing between turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """A gateway that runs."""

    store: Store
    platform: WatchedPlatform
    agent: PlayedAgent
    inbox: Inbox
    clock: SkippingClock
    can: Capabilities

    async def record(self) -> AccountRecord:
        """Return how the account stands with its platform."""
        return await self.store.channels.find(ACCOUNT) or AccountRecord(name=ACCOUNT, kind="")

    async def turns(self) -> list[Turn]:
        """Return all turns, in the order of their acceptance."""
        found: list[tuple[Any, ...]] = await self._rows("SELECT id FROM turns ORDER BY accepted_at, ordinal")
        return [await self.store.turns.get(TurnId(row[0])) for row in found]

    async def answered(self) -> list[Turn]:
        """Return all turns once each of them is at rest, and what it has to say has left."""

        async def look() -> list[Turn] | None:
            turns = await self.turns()
            if any(each.state not in SETTLED for each in turns):
                return None
            for each in turns:
                if any(_may_move(sent) for sent in await self.store.deliveries.of_turn(each.id)):
                    return None
            return turns

        return await until(look)

    async def delivery(self, state: DeliveryState) -> Delivery:
        """Return the only delivery of the last turn once it is in a state."""

        async def look() -> Delivery | None:
            turns = await self.turns()
            found = await self.store.deliveries.of_turn(turns[-1].id) if turns else []
            return found[0] if [each.state for each in found] == [state] else None

        return await until(look)

    async def knows(self, message_id: str) -> bool:
        """Return whether the id of a message that the platform gave is durable."""
        return bool(await self._rows(_KNOWN_MESSAGE, id=message_id))

    async def turns_at_least(self, count: int) -> list[Turn] | None:
        """Return all turns where there are so many."""
        turns = await self.turns()
        return turns if len(turns) >= count else None

    async def is_in(self, nth: int, state: TurnState) -> bool:
        """Return whether the nth turn is in a state."""
        return (await self.turns())[nth].state is state

    async def asks(self, turn: Turn, text: str) -> bool:
        """Return whether a turn is to answer a text."""
        return await self.store.turns.asked(turn.id) == text

    async def has_said(self, text: str) -> bool:
        """Return whether these words of the last turn are durable."""
        turns = await self.turns()
        entries = await self.store.journal.read_turn(turns[-1].id) if turns else []
        return any(isinstance(each.event, Text) and each.event.text == text for each in entries)

    async def has_state(self, state: AccountState) -> bool:
        """Return whether the account stands so with its platform."""
        return (await self.record()).state is state

    async def is_sent(self, delivery_id: DeliveryId, state: DeliveryState) -> bool:
        """Return whether a delivery is in a state."""
        return (await self.store.deliveries.get(delivery_id)).state is state

    async def is_idle(self) -> bool:
        """Return whether all events that were received are handled or wait for a decision."""
        return not await self.store.channels.staged(ACCOUNT)

    async def _rows(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        def read() -> Transaction[list[Any]]:
            return (yield Run(sql, params))

        return await self.store.database.read(read)


def _may_move(sent: Delivery) -> bool:
    return sent.settled_at is None or (sent.state is DeliveryState.UNKNOWN and not sent.repeats)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One account at its far side, and a home that outlives its gateways."""

    # `Any` because each kind has settings of its own.
    kind: ChatKind[Any]
    far: FarSide
    home: Path
    clock: SkippingClock = field(default_factory=SkippingClock)

    @property
    def can(self) -> Capabilities:
        return self.kind.capabilities

    @property
    def me(self) -> Place:
        """Where the operator and the account talk."""
        return self.far.place(Who.OPERATOR, Where.PRIVATE)

    def target(self, place: Place) -> str:
        return target_of(ACCOUNT, place)

    @contextlib.asynccontextmanager
    async def gateway(
        self, play: Play = echo, timing: Timing = TIMING, resume: Literal["auto", "on_message"] = "auto", **settings: object
    ) -> AsyncGenerator[Gateway]:
        """Run a gateway until the body ends.  It stops without a word, as if it had crashed.

        `resume` says whether an answer that was cut off goes on by itself.
        """
        chosen = self.kind.settings(
            **{"allow": (self.far.user_ids[Who.OPERATOR],), **self.far.settings, "kind": self.kind.name, **settings}
        )
        context = ChatContext(name=ACCOUNT, home=self.home, environment={}, clock=self.clock)
        async with contextlib.AsyncExitStack() as stack:
            store = await open_store("sqlite", self.home)
            stack.push_async_callback(store.close)
            opened = await stack.enter_async_context(open_account(self.kind, chosen, context))
            watched = WatchedPlatform(opened.platform)
            inbox = Inbox(store, GatewayConfig(), SessionsConfig(), Redaction(), self.clock)
            node_id = new_node_id(self.clock.now_ms())
            around = ChatSurroundings(store=store, clock=self.clock, node_id=node_id, accept=inbox.accept, timing=timing)
            chat = at_work({ACCOUNT: replace(opened, platform=watched)}, around)[ACCOUNT]
            agent = PlayedAgent(play)
            parts = Parts(
                store=store,
                agent=agent,
                config=Config(gateway=GatewayConfig(resume=resume)),
                carriers={ACCOUNT: chat.carrier},
                components={ACCOUNT: chat.run},
                tuning=TUNING,
                clock=self.clock,
                node_id=node_id,
            )
            gateway = Gateway(store=store, platform=watched, agent=agent, inbox=inbox, clock=self.clock, can=self.can)
            async with _running(Engine(parts)):
                yield gateway
            assert await audit(store.database) == []
            assert watched.violations == []

    async def reconnects(self, gateway: Gateway, connects: int = 0) -> None:
        """Return when people may write again: at once where the platform keeps what they write.

        `connects` is how often the account had connected before.
        """
        if self.far.keeps_history:
            return
        await until(lambda: len(gateway.platform.of("identify")) > connects)
        await until(lambda: gateway.has_state(AccountState.CONNECTED))

    async def shown(self, place: Place | None = None) -> Sequence[Shown]:
        """Return what people see in a place: where nothing is said, in the chat of the operator."""
        return await self.far.shown(place or self.me)

    async def texts(self, place: Place | None = None) -> list[str]:
        return [each.text for each in await self.shown(place)]

    async def see(self, *texts: str, place: Place | None = None) -> Sequence[Shown]:
        """Return what people see once it is just these texts."""

        async def look() -> Sequence[Shown] | None:
            shown = await self.shown(place)
            return shown if [each.text for each in shown] == list(texts) else None

        try:
            return await until(look)
        except AssertionError:
            assert await self.texts(place) == list(texts)
            raise

    async def draw(self) -> str:
        """Return what people see everywhere, for the report of a case that failed."""
        return "\n".join([f"  {place.chat_id} {place.thread_id}: {await self.far.shown(place)}" for place in self._places()])

    def _places(self) -> list[Place]:
        found: list[Place] = []
        for who, where in ((Who.OPERATOR, Where.PRIVATE), (Who.STRANGER, Where.PRIVATE), (Who.OPERATOR, Where.GROUP)):
            with contextlib.suppress(Exception):
                found.append(self.far.place(who, where))
        return found


@contextlib.asynccontextmanager
async def _running(engine: Engine) -> AsyncGenerator[None]:
    running = asyncio.create_task(engine.run(), name="engine")
    recovered = asyncio.create_task(engine.recovered())
    try:
        await asyncio.wait((running, recovered), return_when=asyncio.FIRST_COMPLETED)
        yield
    finally:
        for each in (running, recovered):
            each.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def until(look: Callable[[], Awaitable[T | None] | T | None]) -> T:
    """Return the first thing that `look` sees and that counts as true; fail at the deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        seen = look()
        found: Any = await seen if inspect.isawaitable(seen) else seen
        if found:
            return found
        assert time.monotonic() < deadline, f"still {found!r} after {DEADLINE_S:.0f} s: {inspect.getsource(look).strip()}"
        await asyncio.sleep(LOOK_S)
