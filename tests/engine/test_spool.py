"""The store goes away while turns speak: their words stay on this node's own disk, and arrive once and in order."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import stat
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.config import Config, GatewayConfig
from holdfast.core.effects import Effect
from holdfast.core.events import EntryKind
from holdfast.core.intake import Receipt
from holdfast.core.recovery import GIVE_UP_AGE_MS, PendingRecovery
from holdfast.core.redaction import MASK, Redaction
from holdfast.core.transcript import Item, Role, fold
from holdfast.core.turns import Cause, Policy, TurnState
from holdfast.core.usage import Usage
from holdfast.engine.spool import Left, Spool
from holdfast.errors import NodeLost, StoreDown
from holdfast.ids import CallId, TurnId
from holdfast.store.store import Store
from tests.engine.players import Follower, HeldTool, Puppet, journal_of, text_of
from tests.engine.world import FAST, START, Altered, Hang, Open, message, opened, running_engine, settled, until

SETTINGS = replace(FAST, beat_ms=100)
WRITES = ("turns", "settlement", "journal", "nodes", "recoveries", "deliveries", "segments")


class Line:
    """The way to a store.

    While it is cut, nothing gets through; with its answers cut, a write takes effect and nobody hears so; with its answers
    held, neither an answer nor an error comes back.
    """

    def __init__(self) -> None:
        self.cut = False
        self.answers_cut = False
        self.answers_held: Hang | None = None
        self.refused = 0

    def through(self, store: Store) -> Any:
        """Return the store as it is seen from the far end of this line."""
        return Altered(store, **{name: _Part(getattr(store, name), self) for name in WRITES})

    async def carry(self, call: Callable[[], Awaitable[Any]]) -> Any:
        if self.cut:
            self.refused += 1
            raise StoreDown("nobody answers")
        answer = await call()
        if self.answers_held:
            await self.answers_held.wait()
        if self.answers_cut:
            self.refused += 1
            raise StoreDown("the answer was lost")
        return answer

    async def refusals(self, count: int) -> None:
        """Return after so many more calls have been refused."""
        wanted = self.refused + count
        await until(lambda: self.refused >= wanted)


class _Part:
    def __init__(self, part: Any, line: Line) -> None:
        self._part = part
        self._line = line

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)

        async def call(*args: Any, **named: Any) -> Any:
            return await self._line.carry(lambda: method(*args, **named))

        return call


def files(home: Path) -> list[Path]:
    try:
        return sorted((home / "spool").glob("*/*.jsonl"))
    except FileNotFoundError:
        return files(home)  # A folder was removed between two looks at it.


def kept(home: Path) -> str:
    """Return the text that is on disk."""
    lines = [json.loads(line) for file in files(home) for line in file.read_text().splitlines()]
    return "".join(line["data"]["text"] for line in lines if line["kind"] == "text")


async def on_disk(home: Path, text: str) -> None:
    await until(lambda: kept(home) == text)


async def transcript(store: Store, receipt: Receipt) -> list[Item]:
    return fold(await journal_of(store, receipt.session_id))


async def test_an_agent_goes_on_while_the_store_is_away_and_its_words_are_on_disk(open_it: Open, tmp_path: Path) -> None:
    """J1: what only the disk has is not shown; when the store is back each word is in the journal once, in order."""
    agent, line, home = Puppet(), Line(), tmp_path / "home"
    async with (
        opened(open_it) as store,
        running_engine(line.through(store), agent, tuning=SETTINGS, spool=Spool(home)) as engine,
    ):
        receipt = await engine.inbox.accept(message())
        follower = Follower(engine, receipt.session_id)
        await agent.say("one ")
        await follower.until(EntryKind.TEXT)
        line.cut = True
        for word in ("two ", "three ", "four "):
            await agent.say(word)
            await until(lambda word=word: word in kept(home))
        assert kept(home) == "two three four "
        assert [entry.data["text"] for entry in follower.seen if entry.kind is EntryKind.TEXT] == ["one "]
        line.cut = False
        await until(lambda: not files(home))
        assert await text_of(store, receipt) == "one two three four "
        await agent.say("five")
        await agent.finish("one two three four five")
        assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert await text_of(store, receipt) == "one two three four five"
        seen = await follower.leave()
        assert [entry.seq for entry in seen] == list(range(1, len(seen) + 1))


async def test_what_a_model_call_used_is_kept_with_the_words_and_counts_once(open_it: Open, tmp_path: Path) -> None:
    """J1: to record it keeps nobody waiting, and no outage makes it free or twice as dear."""
    agent, line, home = Puppet(), Line(), tmp_path / "home"
    async with (
        opened(open_it) as store,
        running_engine(line.through(store), agent, tuning=SETTINGS, spool=Spool(home)) as engine,
    ):
        receipt = await engine.inbox.accept(message())
        await agent.say("one ")
        line.cut = True
        await agent.do(lambda stage: stage.spend(Usage(model="m", input_tokens=7, output_tokens=3)))
        await agent.say("two ")
        await until(lambda: "two " in kept(home))
        line.cut = False
        await agent.finish("one two ")
        turn = await settled(store, receipt)
        assert (await store.spending.spent(turn, "local", 0)).turn.tokens == 10
        assert await text_of(store, receipt) == "one two "


async def test_nothing_is_written_to_disk_while_the_store_answers(open_it: Open, tmp_path: Path) -> None:
    agent, tool, home = Puppet(), HeldTool(Effect.EFFECTFUL).let_go(), tmp_path / "home"
    async with (
        opened(open_it) as store,
        running_engine(store, agent, tuning=SETTINGS, spool=Spool(home)) as engine,
    ):
        receipt = await engine.inbox.accept(message())
        await agent.say("one ")
        await agent.do(lambda stage: stage.use(tool, CallId("1"), {}))
        await agent.finish("one")
        await settled(store, receipt)
        assert [path.name for path in home.iterdir()] == ["home.id"]


async def test_a_batch_whose_answer_was_lost_is_repeated_exactly(open_it: Open, tmp_path: Path) -> None:
    """J1: it is in the store and on the disk, and still only once in the journal."""
    agent, line, home = Puppet(), Line(), tmp_path / "home"
    async with (
        opened(open_it) as store,
        running_engine(line.through(store), agent, tuning=SETTINGS, spool=Spool(home)) as engine,
    ):
        receipt = await engine.inbox.accept(message())
        await agent.say("one ")
        await until(lambda: text_of(store, receipt))
        line.answers_cut = True
        await agent.say("two ")
        await on_disk(home, "two ")
        assert await text_of(store, receipt) == "one two "
        line.cut, line.answers_cut = True, False
        await agent.say("three")
        await on_disk(home, "two three")
        await line.refusals(2)
        line.cut = False
        await agent.finish("one two three")
        assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert await text_of(store, receipt) == "one two three"
        await until(lambda: not files(home))


async def test_a_store_that_neither_answers_nor_refuses_counts_as_away(open_it: Open, tmp_path: Path) -> None:
    """J1: behind a dead network nobody says no; what is said then is on disk after a moment, and in the journal once."""
    agent, line, home = Puppet(), Line(), tmp_path / "home"
    async with (
        opened(open_it) as store,
        running_engine(line.through(store), agent, tuning=SETTINGS, spool=Spool(home)) as engine,
    ):
        receipt = await engine.inbox.accept(message())
        await agent.say("one ")
        await until(lambda: text_of(store, receipt))
        line.answers_held = Hang()
        await agent.say("two ")
        await until(lambda: kept(home))
        await agent.say("three")
        await on_disk(home, "two three")
        line.answers_held.release()
        await agent.finish("one two three")
        assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert await text_of(store, receipt) == "one two three"


async def test_a_result_is_kept_on_disk_and_an_intent_waits_for_the_store(open_it: Open, tmp_path: Path) -> None:
    """X1: no tool starts while another node could own its turn; one that has ended keeps its result."""
    agent, line, home = Puppet(), Line(), tmp_path / "home"
    first, second = HeldTool(Effect.EFFECTFUL), HeldTool(Effect.EFFECTFUL, name="second").let_go()
    async with (
        opened(open_it) as store,
        running_engine(line.through(store), agent, tuning=SETTINGS, spool=Spool(home)) as engine,
    ):
        receipt = await engine.inbox.accept(message())
        agent.order(lambda stage: stage.use(first, CallId("1"), {}))
        await until(lambda: first.keys)
        line.cut = True
        first.let_go()
        await agent.say("then ")
        agent.order(lambda stage: stage.use(second, CallId("2"), {}))
        await on_disk(home, "then ")
        await line.refusals(3)
        assert not second.keys
        kinds = [json.loads(each)["kind"] for file in files(home) for each in file.read_text().splitlines()]
        assert kinds == ["tool.finished", "text"]
        line.cut = False
        await until(lambda: second.keys)
        await agent.finish()
        assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert [(each.id, each.state) for each in await store.journal.calls(receipt.turn_id)] == [("1", "ok"), ("2", "ok")]
        cards = [item for item in await transcript(store, receipt) if item.role is Role.TOOL]
        assert [(card.call_id, card.outcome) for card in cards] == [("1", "ok"), ("2", "ok")]


async def test_an_agent_that_asks_for_messages_is_not_kept_waiting_by_a_store_that_is_away(
    open_it: Open, tmp_path: Path
) -> None:
    """J1: between its steps an agent looks for messages that want to join; there is nobody to tell it of one."""
    agent, line, home = Puppet(), Line(), tmp_path / "home"
    async with (
        opened(open_it) as store,
        running_engine(line.through(store), agent, tuning=SETTINGS, spool=Spool(home)) as engine,
    ):
        receipt = await engine.inbox.accept(message())
        await until(lambda: agent.work)
        line.cut = True
        await agent.say("one ")
        await on_disk(home, "one ")
        assert await agent.do(lambda stage: stage.heed()) == []
        await agent.say("two")
        await on_disk(home, "one two")
        line.cut = False
        await agent.finish("one two")
        assert (await settled(store, receipt)).state is TurnState.COMPLETED


async def test_a_turn_with_too_much_on_disk_waits_for_the_store(open_it: Open, tmp_path: Path) -> None:
    agent, line, home = Puppet(), Line(), tmp_path / "home"
    tight = replace(SETTINGS, spool_max_bytes=100)
    async with (
        opened(open_it) as store,
        running_engine(line.through(store), agent, tuning=tight, spool=Spool(home)) as engine,
    ):
        receipt = await engine.inbox.accept(message())
        await until(lambda: agent.work)
        line.cut = True
        await agent.say("w" * 100)
        await on_disk(home, "w" * 100)
        # More than a buffer takes, so that this waits for what is not durable yet.
        long = "x" * 70_000
        agent.order(lambda stage: stage.say(long))
        agent.order(lambda stage: stage.say("after"))
        await line.refusals(3)
        line.cut = False
        await agent.finish("done")
        assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert await text_of(store, receipt) == "w" * 100 + long + "after"


async def test_the_last_words_of_a_turn_are_on_disk_until_its_end_is_in_the_store(open_it: Open, tmp_path: Path) -> None:
    """A1 J1: the answer is whole, and given once."""
    agent, line, home = Puppet(), Line(), tmp_path / "home"
    # Longer than the machine has been up, since all turns write at the same instants.
    slow = replace(SETTINGS, batch_ms=10**12)
    async with (
        opened(open_it) as store,
        running_engine(line.through(store), agent, tuning=slow, spool=Spool(home)) as engine,
    ):
        receipt = await engine.inbox.accept(message())
        await agent.say("one ")
        await until(lambda: text_of(store, receipt))
        await agent.say("two")
        line.cut = True
        await agent.finish("one two")
        await on_disk(home, "two")
        line.cut = False
        assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert await text_of(store, receipt) == "one two"
        await until(lambda: not files(home))


async def test_what_a_node_could_not_write_before_it_died_is_above_the_marker_after_the_next_start(
    open_it: Open, tmp_path: Path
) -> None:
    """J2 J4: of a call whose result was only on disk, it is the result that stands in the transcript."""
    agent, line, home, tool = Puppet(), Line(), tmp_path / "home", HeldTool(Effect.EFFECTFUL)
    async with opened(open_it) as store:
        async with running_engine(line.through(store), agent, tuning=SETTINGS, spool=Spool(home)) as engine:
            receipt = await engine.inbox.accept(message())
            await agent.say("one ")
            agent.order(lambda stage: stage.use(tool, CallId("1"), {"of": "it"}))
            await until(lambda: tool.keys)
            line.cut = True
            tool.let_go()
            await agent.say("two ")
            await on_disk(home, "two ")
        line.cut = False
        await store.nodes.leave(engine.node_id)
        async with running_engine(store, Puppet(), tuning=SETTINGS, spool=Spool(home)):
            await until(lambda: not list((home / "spool").iterdir()))
            user, one, card, two, marker = await transcript(store, receipt)
        assert (user.role, one.text, two.text) == (Role.USER, "one ", "two ")
        assert (card.name, card.args, card.outcome, card.result) == ("tool", {"of": "it"}, "ok", "result 1")
        assert [item.recovered for item in (user, one, card, two, marker)] == [False, True, True, True, False]
        assert (marker.kind, "recovered from the run journal" in marker.text) == ("interrupted", True)


async def test_what_the_turn_said_after_it_was_taken_away_arrives_late(open_it: Open, tmp_path: Path) -> None:
    """J4 J9: the words that nobody had seen stand above the marker, and change nothing else."""
    agent, line, home = Puppet(), Line(), tmp_path / "home"
    async with (
        opened(open_it) as store,
        running_engine(line.through(store), agent, tuning=SETTINGS, spool=Spool(home)) as engine,
    ):
        receipt = await engine.inbox.accept(message())
        await agent.say("one ")
        await until(lambda: text_of(store, receipt))
        line.cut = True
        await agent.say("two ")
        await on_disk(home, "two ")
        turn = await store.turns.get(receipt.turn_id)
        await store.settlement.interrupt(engine.node_id, [turn.id], Cause.CRASH, Policy(), START)
        line.cut = False
        await until(lambda: not files(home))
        assert [item.text for item in await transcript(store, receipt)][1:-1] == ["one two "]
        assert (await store.turns.get(receipt.turn_id)).fence == turn.fence + 1


async def test_a_turn_that_is_cancelled_shows_none_of_the_words_that_wait_on_disk(open_it: Open, tmp_path: Path) -> None:
    """J1 J9: their file goes, what was spent counts, and whoever follows the session reads the next answer undisturbed."""
    agent, line, home, spent = Puppet(), Line(), tmp_path / "home", Usage(model="small", input_tokens=3)
    async with (
        opened(open_it) as store,
        running_engine(line.through(store), agent, tuning=SETTINGS, spool=Spool(home)) as engine,
    ):
        receipt = await engine.inbox.accept(message())
        await agent.say("one ")
        await until(lambda: text_of(store, receipt))
        line.cut = True
        await agent.say("two ")
        await agent.do(lambda stage: stage.spend(spent))
        await agent.say("three ")
        await on_disk(home, "two three ")
        turn = await store.settlement.cancel(receipt.turn_id, Cause.USER, START)
        following = await engine.inbox.accept(message("and now?"))
        line.cut = False
        follower = Follower(engine, receipt.session_id)
        await until(lambda: len(agent.work) == 2)
        await agent.say("next")
        await until(lambda: not files(home))
        await agent.finish("next")
        assert (await settled(store, following)).state is TurnState.COMPLETED
        seen = await follower.until(EntryKind.TURN_COMPLETED)
        await follower.leave()
        after = seen[[entry.kind for entry in seen].index(EntryKind.TURN_CANCELLED) + 1 :]
        assert [entry.data["text"] for entry in seen if entry.kind is EntryKind.TEXT] == ["one ", "next"]
        assert [entry.kind for entry in after if entry.turn_id == receipt.turn_id] == [EntryKind.USAGE]
        assert (await store.spending.spent(turn, "local", 0)).turn.input_tokens == 3
        assert [item.text for item in await transcript(store, receipt)][1:] == ["one ", "Cancelled.", "and now?", "next"]


async def test_words_that_the_store_took_before_a_cancel_are_shown_before_it(open_it: Open, tmp_path: Path) -> None:
    """J1 J9: also when their worker never hears that they were taken, and has said more since."""
    agent, home, held = Puppet(), tmp_path / "home", Hang()
    async with opened(open_it) as store:

        async def append(*args: Any, **kwargs: Any) -> Any:
            answer = await store.journal.append(*args, **kwargs)
            await held.wait()
            return answer

        mute = Altered(store, journal=Altered(store.journal, append=append))
        async with running_engine(mute, agent, tuning=SETTINGS, spool=Spool(home)) as engine:
            receipt = await engine.inbox.accept(message())
            follower = Follower(engine, receipt.session_id)
            await agent.say("one")
            await until(lambda: text_of(store, receipt))
            await agent.say(" two")
            await engine.cancel(receipt.turn_id)
            await until(lambda: engine.running == 0 and (home / "spool").exists() and not files(home))
            await follower.until(EntryKind.TURN_CANCELLED)
            seen = await follower.leave()
        assert [entry.kind for entry in seen][-2:] == [EntryKind.TEXT, EntryKind.TURN_CANCELLED]
        assert seen == await journal_of(store, receipt.session_id)
        assert await text_of(store, receipt) == "one"


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
async def test_a_node_that_finds_itself_given_up_leaves_what_it_has_for_the_next_one(open_it: Open, tmp_path: Path) -> None:
    """J4 T4: it stood still for longer than its lease, with words that it had not even tried to write."""
    agent, line, home = Puppet(), Line(), tmp_path / "home"
    async with opened(open_it) as store:
        receipts: list[Receipt] = []

        async def live() -> None:
            async with running_engine(line.through(store), agent, tuning=SETTINGS, spool=Spool(home)) as engine:
                receipts.append(receipt := await engine.inbox.accept(message()))
                await agent.say("one ")
                await until(lambda: text_of(store, receipt))
                line.cut = True
                await store.nodes.leave(engine.node_id)
                await store.nodes.sweep(Cause.CRASH, Policy(), START)
                await agent.say("two ")
                await agent.say("three ")
                line.cut = False
                await until(lambda: not [task for task in asyncio.all_tasks() if task.get_name() == "engine"])

        with pytest.raises(NodeLost):
            await live()
        async with running_engine(store, Puppet(), tuning=SETTINGS, spool=Spool(home)):
            await until(lambda: not files(home))
        assert [item.text for item in await transcript(store, receipts[0])][1:-1] == ["one two three "]


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
async def test_a_neighbour_in_the_same_home_leaves_the_files_of_a_living_node_alone(open_it: Open, tmp_path: Path) -> None:
    """J4: who lives hands in for itself, because only it knows what it is going to write next."""
    agent, line, home, rounds = Puppet(), Line(), tmp_path / "home", itertools.count()
    async with opened(open_it) as store, opened(open_it) as beside:

        async def of_home(home_id: str) -> list[PendingRecovery]:
            next(rounds)
            return await beside.recoveries.of_home(home_id)

        watched = Altered(beside, recoveries=Altered(beside.recoveries, of_home=of_home))
        async with (
            running_engine(line.through(store), agent, tuning=SETTINGS, spool=Spool(home)) as engine,
            running_engine(
                watched, Puppet(), tuning=SETTINGS, config=Config(gateway=GatewayConfig(max_running=0)), spool=Spool(home)
            ),
        ):
            receipt = await engine.inbox.accept(message())
            await until(lambda: agent.work)
            line.cut = True
            await agent.say("one ")
            await on_disk(home, "one ")
            await store.settlement.interrupt(engine.node_id, [receipt.turn_id], Cause.CRASH, Policy(), START)
            seen = next(rounds)
            await until(lambda: next(rounds) > seen + 10)
            assert kept(home) == "one "
            line.cut = False
            await until(lambda: not files(home))
        assert [item.text for item in await transcript(store, receipt)][1:-1] == ["one "]


def entry_line(nth: int, text: str, kind: str = "text") -> str:
    return json.dumps({"nth": nth, "kind": kind, "at": 1, "data": {"text": text}}) + "\n"


TORN = {
    "cut": entry_line(4, "lost")[:-5],
    "without its end": entry_line(4, "lost").rstrip(),
    "zeros": "\0" * 40 + "\n",
    "no entry": '{"nth": 4}\n',
    "nothing that is kept": entry_line(4, "lost", "tool.started"),
}


@pytest.mark.parametrize("tail", TORN.values(), ids=TORN.keys())
async def test_a_torn_tail_is_dropped_and_what_is_above_it_is_kept(open_it: Open, tmp_path: Path, tail: str) -> None:
    """J2: a power cut in the middle of a line costs that line."""
    home = tmp_path / "home"
    async with opened(open_it) as store:
        async with running_engine(store, agent := Puppet(), tuning=SETTINGS) as engine:
            receipt = await engine.inbox.accept(message())
            await until(lambda: agent.work)
        folder = home / "spool" / engine.node_id
        folder.mkdir(parents=True)
        content = entry_line(2, "one ") + entry_line(3, "two ") + tail + entry_line(5, "after")
        (folder / f"{receipt.turn_id}.1.jsonl").write_text(content)
        async with running_engine(store, Puppet(), tuning=SETTINGS, spool=Spool(home)):
            await until(lambda: not files(home))
        assert await text_of(store, receipt) == "one two "


async def test_the_file_of_a_turn_that_is_gone_is_removed(open_it: Open, tmp_path: Path) -> None:
    """W7: what was pruned stays pruned, and leaves nothing behind; a day later, as the home may know another store today."""
    home = tmp_path / "home"
    spool = Spool(home)
    gone, elsewhere = home / "spool" / "nod_gone", home / "spool" / "nod_elsewhere"
    for folder in (gone, elsewhere):
        folder.mkdir(parents=True)
        (folder / "trn_gone.1.jsonl").write_text(entry_line(2, "one "))
        (folder / "trn_gone.2.tmp").write_text("torn")
    os.utime(gone / "trn_gone.1.jsonl", (0, 0))
    async with opened(open_it) as store, running_engine(store, Puppet(), tuning=SETTINGS, spool=spool):
        await until(lambda: not gone.exists())
    assert (elsewhere / "trn_gone.1.jsonl").exists()


async def test_only_the_gateway_can_read_what_is_on_disk_and_no_secret_is_in_it(open_it: Open, tmp_path: Path) -> None:
    """K1."""
    agent, line, home, secret = Puppet(), Line(), tmp_path / "home", "sk-live-0123456789"
    parts = {"tuning": SETTINGS, "spool": Spool(home), "redaction": Redaction([secret])}
    async with opened(open_it) as store, running_engine(line.through(store), agent, **parts) as engine:
        receipt = await engine.inbox.accept(message())
        await until(lambda: agent.work)
        line.cut = True
        await agent.say(f"it is {secret} and no more")
        await until(lambda: MASK in kept(home))
        (file,) = files(home)
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent, file.parent.parent, home / "home.id")]
        assert modes == [0o600, 0o700, 0o700, 0o600]
        assert secret not in file.read_text()
        line.cut = False
        await agent.finish()
        await settled(store, receipt)


async def test_a_disk_that_takes_nothing_makes_the_turn_wait_and_nothing_is_lost(open_it: Open, tmp_path: Path) -> None:
    """J1: without its own disk a node is where it would be without a spool."""
    agent, line, home = Puppet(), Line(), tmp_path / "home"
    spool = Spool(home)
    (home / "spool").write_text("not a folder")
    async with opened(open_it) as store:
        async with running_engine(line.through(store), agent, tuning=SETTINGS, spool=spool) as engine:
            receipt = await engine.inbox.accept(message())
            await until(lambda: agent.work)
            line.cut = True
            await agent.say("one ")
            await line.refusals(3)
            line.cut = False
            await agent.finish("one ")
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert await text_of(store, receipt) == "one "


async def test_a_home_keeps_its_name(tmp_path: Path) -> None:
    """J4: by it the others know whose journal may still arrive."""
    names = await asyncio.gather(*(asyncio.to_thread(lambda: Spool(tmp_path / "home").home_id) for _ in range(8)))
    assert len(set(names)) == 1
    assert Spool(tmp_path / "other").home_id not in names
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["home.id"]


@pytest.mark.parametrize("off_ms", [0, 2 * GIVE_UP_AGE_MS, -2 * GIVE_UP_AGE_MS])
def test_a_clock_that_is_off_makes_no_file_old(tmp_path: Path, off_ms: int) -> None:
    """C1: files have the time of the machine, everything else has that of the store."""
    file = Left(path=tmp_path / "left", turn_id=TurnId("t"), attempt=1)
    file.path.touch()
    now = SystemClock().now_ms()
    assert file.age_ms(now + off_ms) <= GIVE_UP_AGE_MS
    os.utime(file.path, (0, 0))
    assert file.age_ms(now) > GIVE_UP_AGE_MS
