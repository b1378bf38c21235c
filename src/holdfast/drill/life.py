"""One life of the scratch gateway, in a process of its own: it takes messages and answers them until it is ended.

What it prints is what a user would have seen: `accepted` after the acknowledgement, `shown` for every entry on screen.
The parent believes nothing else.  SIGTERM lets it drain, in less time than its turns take, and print how many that cut.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import uvloop

from holdfast.agent.scripted import FunctionTool, Line, Pause, Say, ScriptedAgent, Think, UseTool
from holdfast.config import Config, GatewayConfig
from holdfast.core.delivery import Delivery
from holdfast.core.effects import Effect
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.journal import settles
from holdfast.core.keys import LOCAL
from holdfast.core.questions import Question
from holdfast.core.segments import Segment, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.core.turns import IN_FLIGHT, Cause, Mode, Turn
from holdfast.drill.commits import Commit
from holdfast.drill.nonces import nonces_in, words_for
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.tuning import Tuning
from holdfast.ids import NodeId
from holdfast.memory.bindings import MemoryBindings
from holdfast.memory.provider import Provider
from holdfast.ports import Assignment
from holdfast.store.opening import open_store
from holdfast.store.store import Store

PRODUCERS = 8
CONVERSATIONS = 5
# How many conversations are told to memory between their turns, so that some lives end in the middle of that.
COMMITS = 0.25
# Less than a turn takes, so that some are cut in each drain and some are not.
DRAIN_MS = 25
TARGET = "ledger:out"


class Ledger:
    """A file outside the store that keeps every effect on the world, written as the effect happens."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, *words: object) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


class LedgerCarrier:
    """Delivers into the ledger."""

    dedupes = False
    in_line = False
    takes_files = False

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def check(self, target: str) -> None:
        """Every target is one line in the ledger."""

    def split(self, text: str) -> Sequence[str]:
        middle = len(text) // 2
        return [text[:middle], text[middle:]]

    def ask(self, turn: Turn, question: Question, target: str, now_ms: int) -> Sequence[Delivery]:  # noqa: ARG002 - No person reads it.
        return ()

    async def send(self, sent: Delivery) -> str:
        self._ledger.write("sent", sent.turn_id, sent.part, "repeat" if sent.repeats else "first")
        return "written"

    async def find(self, sent: Delivery) -> str | None:  # noqa: ARG002 - A file cannot be asked.
        return None


class LedgerMemory(Provider):
    """Commits memory into the ledger."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__("ledger")
        self._ledger = ledger

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:  # noqa: ARG002 - A port.
        turns = list(dict.fromkeys(message.turn_id for message in messages))
        self._ledger.write(*Commit(segment_id=segment.id, turns=turns).words())
        return "written"


def scripted(ledger: Ledger, seed: int) -> ScriptedAgent:
    """Return an agent that answers each nonce of a message, and touches the world for it."""
    chance = random.Random(seed)  # noqa: S311 - Variety, not a secret.

    def effect(args: Mapping[str, object], key: str) -> str:
        ledger.write("effect", key)
        return f"done for {args['nonce']}"

    tool = FunctionTool("touch_the_world", Effect.EFFECTFUL, effect)

    def lines_for(nonce: str) -> Iterator[Line]:
        yield Think(f"about {nonce}")
        for number, word in enumerate(words_for(nonce)):
            yield Say(word)
            yield Pause(chance.uniform(0, 12))
            if number == 2:
                yield UseTool(tool, {"nonce": nonce})

    def script(work: Assignment) -> list[Line]:
        return [line for nonce in nonces_in(work.message) for line in lines_for(nonce)]

    return ScriptedAgent(script)


def _message(life: int, number: int, chance: random.Random) -> Inbound:
    nonce = f"n{life}x{number}"
    if chance.random() < 0.5:
        return Inbound(
            conversation=f"hook:{nonce}",
            text=f"please answer {nonce}",
            channel="webhook",
            dedupe_key=f"drill:{nonce}",
            mode=Mode.DETACHED,
            one_shot=True,
            reply_to=TARGET,
        )
    return Inbound(
        conversation=f"chat:{chance.randrange(CONVERSATIONS)}",
        text=f"please answer {nonce}",
        channel="terminal",
        dedupe_key=f"drill:{nonce}",
    )


async def _produce(engine: Engine, life: int, producer: int, chance: random.Random) -> None:
    for number in range(producer, 1_000_000, PRODUCERS):
        message = _message(life, number, chance)
        receipt = await engine.inbox.accept(message)
        print("accepted", message.text.rsplit(maxsplit=1)[-1], receipt.turn_id, flush=True)
        await _show(engine, receipt)
        if chance.random() < COMMITS:
            await engine.commit(receipt.session_id)
        # Half of the senders repeat themselves, as webhooks do.
        if chance.random() < 0.5 and (await engine.inbox.accept(message)).turn_id != receipt.turn_id:
            print("doubled", message.dedupe_key, flush=True)


async def _show(engine: Engine, receipt: Receipt) -> None:
    async for entry in engine.feed.follow(receipt.session_id):
        if entry.turn_id == receipt.turn_id:
            print("shown", entry.session_id, entry.seq, entry.kind, flush=True)
            if settles(entry.event):
                return


async def _settled(store: Store, node_id: NodeId) -> None:
    while True:
        if await is_settled(store, node_id):
            return
        await asyncio.sleep(0.05)


async def is_settled(store: Store, node_id: NodeId) -> bool:
    """Return whether no turn and no delivery is in flight."""
    tally = await store.turns.tally()
    if any(tally.get(state) for state in IN_FLIGHT) or await store.deliveries.next_due_at() is not None:
        return False
    return not await store.deliveries.held(node_id)


async def _remember(engine: Engine, store: Store) -> None:
    """Give memory every segment that is left."""
    while owing := await store.segments.owing(LOCAL):
        await asyncio.gather(*(engine.commit(session_id) for session_id in owing))


async def live(home: Path, url: str, life: int, settle: bool) -> None:
    """Run one life: until killed or drained, or with `settle` until everything accepted has come to rest."""
    ledger = Ledger(home / "ledger.txt")
    store = await open_store(url, home)
    parts = Parts(
        store=store,
        agent=scripted(ledger, life),
        carriers={"ledger": LedgerCarrier(ledger)},
        memory=MemoryBindings(LedgerMemory(ledger)),
        # A drill sends no follow-ups, so conversations go on by themselves.
        config=Config(gateway=GatewayConfig(resume="auto")),
        tuning=Tuning(beat_ms=100, lease_ms=500),
    )
    engine = Engine(parts)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(engine.run())]
        if settle:
            await _settled(store, engine.node_id)
            await _remember(engine, store)
        else:
            chance = random.Random(life)  # noqa: S311 - Variety, not a secret.
            tasks += [group.create_task(_produce(engine, life, producer, chance)) for producer in range(PRODUCERS)]
            await stopped(engine)
        for task in tasks:
            task.cancel()
    await store.close()


async def stopped(engine: Engine) -> None:
    """Wait for SIGTERM, drain with too short a timeout, and print how many turns were interrupted."""
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    await told.wait()
    # Messages still come in: what is accepted now is answered in the next life.
    print("drained", await engine.drain(DRAIN_MS, Cause.RESTART_TIMEOUT), flush=True)


if __name__ == "__main__":
    uvloop.run(live(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4] == "settle"))
