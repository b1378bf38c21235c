"""Sessions: found by key or id, listed, and pruned when they are over."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import product

import pytest

from holdfast.config import ONE_SHOT_DAYS
from holdfast.core import delivery
from holdfast.core.sessions import Activity, Session, SessionState, Source
from holdfast.core.turns import Cause, Mode, TurnEvent, TurnState
from holdfast.core.usage import Usage
from holdfast.errors import NotFound
from holdfast.ids import SessionId, new_session_id, new_turn_id
from holdfast.store import intake as intake_sql
from holdfast.store.database import POSTGRES
from holdfast.store.retention import DAY_MS, DEDUPE_DAYS, NODE_DAYS
from holdfast.store.sessions import EXPIRE_MAX
from tests.conformance.scenes import MINUTE, START, Scene, closed_gate, on_postgres, on_sqlite
from tests.conformance.test_wakes import listen


async def opened(scene: Scene, key: str, **changes: object) -> SessionId:
    return (await scene.accept(conversation=key, **changes)).session_id


async def test_a_session_is_found_by_owner_and_key(scene: Scene) -> None:
    session_id = await opened(scene, "chat:1", owner="ada")
    found = await scene.store.sessions.find("ada", "chat:1")
    assert found is not None
    assert found == await scene.store.sessions.get(session_id)
    assert await scene.store.sessions.find("ada", "chat:2") is None
    assert await scene.store.sessions.find("bob", "chat:1") is None


async def test_only_an_open_session_is_found_by_its_key(scene: Scene) -> None:
    first = await opened(scene, "chat:1")
    await scene.store.settlement.end_session(first, "user", scene.now)
    assert await scene.store.sessions.find("local", "chat:1") is None
    second = await opened(scene, "chat:1")
    found = await scene.store.sessions.find("local", "chat:1")
    assert found is not None
    assert found.id == second


async def test_an_unknown_key_answers_none(scene: Scene) -> None:
    """R12: never an exception of the database."""
    for key in ("", "nothing", "a\0b", "\ud800", "' OR 1=1 --"):
        assert await scene.store.sessions.find(key, key) is None
        assert await scene.store.sessions.resume_cause(SessionId(key)) is None
        with pytest.raises(NotFound):
            await scene.store.sessions.get(SessionId(key))
        with pytest.raises(NotFound):
            await scene.store.sessions.change(SessionId(key), title="title")


async def test_a_session_is_called_pinned_and_put_away_each_by_itself(scene: Scene) -> None:
    session_id = await opened(scene, "chat:1")
    before = await scene.store.sessions.get(session_id)
    named = await scene.store.sessions.change(session_id, title="Über\0 alles \ud800")
    assert named == replace(before, title="Über\ufffd alles ?")
    pinned = await scene.store.sessions.change(session_id, pinned=True)
    assert pinned == replace(named, pinned=True)
    away = await scene.store.sessions.change(session_id, archived=True, pinned=False)
    assert away == replace(named, archived=True)
    assert await scene.store.sessions.change(session_id) == away == await scene.store.sessions.get(session_id)
    assert await scene.store.sessions.change(session_id, title="", archived=False) == before


async def test_sessions_are_narrowed_by_channel_and_by_where_they_are_kept(scene: Scene) -> None:
    """A filter leaves out the same whatever other filter stands beside it, and pages end where they should."""
    made: list[Session] = []
    for number in range(24):
        channel, owner = ("web", "telegram", "webhook")[number % 3], ("local", "ann")[number // 3 % 2]
        session_id = await opened(scene, str(number), channel=channel, owner=owner)
        await scene.store.sessions.change(session_id, archived=number % 5 == 0, pinned=number % 7 == 0)
        scene.now += 1
        match number % 4:
            case 0:
                await scene.store.settlement.end_session(session_id, "done", scene.now)
            case 1:
                await scene.store.settlement.suspend_session(session_id, scene.now)
            case _:
                pass
        made.append(await scene.store.sessions.get(session_id))
    made.sort(key=lambda each: (each.updated_at, each.id), reverse=True)
    flags = [None, True, False]
    for state, channel, archived, pinned in product([None, *SessionState], [None, "web", "none"], flags, flags):
        wanted = [
            each
            for each in made
            if each.owner == "local" and state in (None, each.state) and channel in (None, each.channel)
            if archived in (None, each.archived) and pinned in (None, each.pinned)
        ]
        seen: list[Session] = []
        while page := await scene.store.sessions.list(
            "local",
            (seen[-1].updated_at, seen[-1].id) if seen else None,
            limit=2,
            state=state,
            channel=channel,
            archived=archived,
            pinned=pinned,
        ):
            seen += page
        assert seen == wanted, (state, channel, archived, pinned)


async def test_a_glance_says_what_a_session_is_at(scene: Scene) -> None:
    async def at(session_id: SessionId) -> Activity | None:
        return (await scene.store.sessions.glances([session_id]))[session_id].activity

    turn = await scene.running("first")
    session_id = turn.session_id
    assert await at(session_id) is Activity.RUNNING
    await scene.accept("second")
    assert await at(session_id) is Activity.RUNNING
    parked = await scene.park(turn)
    assert await at(session_id) is Activity.WAITING
    await scene.answer(parked)
    assert await at(session_id) is Activity.QUEUED
    await scene.finish(await scene.claim_and_start(turn.id))
    assert await at(session_id) is Activity.QUEUED
    (second,) = await scene.claim()
    await scene.finish(await scene.start(second))
    assert await at(session_id) is None


async def test_sessions_are_glanced_at_many_at_once_and_known_by_what_was_said_first(scene: Scene) -> None:
    named = await opened(scene, "named", text="## the first")
    await scene.accept("the second", conversation="named")
    long = await opened(scene, "long", text="\n \nA line\tthat goes on" + " and on" * 20_000 + "\nmore")
    empty = (await scene.store.sessions.open("local", "empty", "web", new_session_id(scene.now), scene.now)).id
    glances = await scene.store.sessions.glances([named, long, empty, SessionId("ses_nobody")])
    assert {each: glance.label for each, glance in glances.items()} == {
        named: "the first",
        long: "A line that goes on and on and on and on and on and on and on and on and on and…",
        empty: "empty",
    }
    for session_id, glance in glances.items():
        assert glance.session == await scene.store.sessions.get(session_id)
    await scene.store.sessions.change(named, title="Its title")
    assert (await scene.store.sessions.glances([named]))[named].label == "Its title"
    assert await scene.store.sessions.glances([]) == {}


async def test_a_glance_names_the_model_that_answered_last(scene: Scene) -> None:
    """What was used after a turn, as to remember it, is no answer; nor is what another session used."""

    async def model(session_id: SessionId) -> str | None:
        return (await scene.store.sessions.glances([session_id]))[session_id].model

    turn = await scene.running()
    assert await model(turn.session_id) is None
    turn, _ = await scene.store.journal.append(turn, [scene.usage(), scene.usage(model="large")])
    await scene.finish(turn)
    assert await model(turn.session_id) == "large"
    other = await scene.running(conversation="chat:2")
    await scene.store.journal.append(other, [scene.usage(model="other")])
    last = await scene.finished("no model is asked")
    session = await scene.store.sessions.get(last.session_id)
    await scene.store.spending.extra(session, last.id, 1, Usage(model="extracts"), scene.now)
    assert await model(turn.session_id) == "large"


@pytest.mark.parametrize("stored", ["{}", '{"chat_id": "c", "of_tomorrow": 1}', "[]"])
async def test_a_source_that_another_version_wrote_has_defaults_for_what_it_lacks(scene: Scene, stored: str) -> None:
    """R11"""
    session_id = await opened(scene, "chat:1")
    await scene.sql("UPDATE sessions SET source = :stored", stored=stored)
    assert (await scene.store.sessions.get(session_id)).source == Source(chat_id="c" if "chat_id" in stored else "")


@on_sqlite
async def test_a_session_that_begins_with_what_cannot_be_read_is_listed_by_its_key(scene: Scene) -> None:
    session_id = await opened(scene, "chat:1")
    await scene.sql("UPDATE entries SET data = '{' WHERE seq = 1")
    assert (await scene.store.sessions.glances([session_id]))[session_id].label == "chat:1"


async def test_a_conversation_that_nobody_goes_on_with_expires(scene: Scene) -> None:
    """M11, W6: it has ended when it was last used, and what it owes to memory is committed before it goes."""
    turn = await scene.finished(conversation="resp_1", channel="responses")
    scene.now += MINUTE
    fresh = await scene.finished(conversation="resp_2", channel="responses")
    other = await scene.finished(conversation="chat:1", channel="web")
    heard, _ = listen(scene.store)
    assert await scene.store.sessions.expire("responses", START) == 1
    assert {"segments", f"session:{turn.session_id}"} <= set(heard)
    assert await scene.store.sessions.expire("responses", START) == 0
    session = await scene.store.sessions.get(turn.session_id)
    assert (session.state, session.end_reason, session.ended_at) == (SessionState.ENDED, "expired", START)
    for kept in (fresh, other):
        assert (await scene.store.sessions.get(kept.session_id)).state is SessionState.OPEN
    (segment,) = await scene.store.segments.of_session(turn.session_id)
    assert await scene.store.sessions.prune("responses", START) == 0
    await scene.commit(segment)
    assert await scene.store.sessions.prune("responses", START) == 1


async def test_more_than_a_batch_expires_at_once(scene: Scene) -> None:
    for number in range(EXPIRE_MAX + 3):
        await scene.store.sessions.open("local", f"resp_{number}", "responses", new_session_id(START), START)
    assert await scene.store.sessions.expire("responses", START) == EXPIRE_MAX + 3


async def test_what_is_still_at_something_or_pinned_does_not_expire(scene: Scene) -> None:
    """A1"""
    queued = await opened(scene, "queued", channel="responses")
    waiting = await scene.parked(conversation="waiting", channel="responses")
    running = await scene.finished(conversation="process", channel="responses")
    await scene.store.processes.add(scene.process(running))
    errand = await scene.finished(conversation="errand", channel="responses")
    await scene.accept(conversation="child", channel="delegate", parent_turn_id=errand.id)
    pinned = await scene.finished(conversation="pinned", channel="responses")
    await scene.store.sessions.change(pinned.session_id, pinned=True)
    assert await scene.store.sessions.expire("responses", START + MINUTE) == 0
    for session_id in (queued, *(turn.session_id for turn in (waiting, running, errand, pinned))):
        assert (await scene.store.sessions.get(session_id)).state is SessionState.OPEN


async def test_a_suspended_conversation_expires_too(scene: Scene) -> None:
    """W7: nothing would ever come after it."""
    turn = await scene.finished(conversation="resp_1", channel="responses", remembers=False)
    await scene.store.settlement.suspend_session(turn.session_id, scene.now)
    assert await scene.store.sessions.expire("responses", scene.now) == 1
    assert await scene.store.sessions.prune("responses", scene.now) == 1


@on_postgres
async def test_a_message_that_comes_at_the_last_moment_keeps_a_conversation(scene: Scene) -> None:
    """A1: it is either answered in the old one or begins a new one, and is never cancelled with it."""
    await scene.finished(conversation="resp_1", channel="responses", remembers=False)
    other = await scene.another_store()
    scene.now += MINUTE
    async with closed_gate(scene.url) as gate:
        held = gate.pause(lambda: intake_sql.accept(POSTGRES, late, *ids, scene.now))
        late = scene.message(conversation="resp_1", channel="responses")
        ids = (new_turn_id(scene.now), new_session_id(scene.now))
        accepting = asyncio.create_task(other.database.write(held))
        await gate.waiting(1)
        # What somebody is at is passed over, and not waited for.
        assert await scene.store.sessions.expire("responses", START) == 0
        await gate.open()
        receipt = await accepting
    assert (await scene.store.sessions.get(receipt.session_id)).state is SessionState.OPEN
    assert await scene.state(receipt) is TurnState.QUEUED


async def test_sessions_are_listed_last_used_first(scene: Scene) -> None:
    first = await opened(scene, "a")
    scene.now += MINUTE
    second = await opened(scene, "b")
    await opened(scene, "c", owner="somebody else")
    scene.now += MINUTE
    await opened(scene, "a")
    assert [session.id for session in await scene.store.sessions.list("local")] == [first, second]


async def pages(scene: Scene, limit: int) -> list[Session]:
    seen: list[Session] = []
    while page := await scene.store.sessions.list(
        "local", before=(seen[-1].updated_at, seen[-1].id) if seen else None, limit=limit
    ):
        assert len(page) <= limit
        seen += page
    return seen


async def test_pages_of_sessions_neither_repeat_nor_skip_among_equal_times(scene: Scene) -> None:
    """J8: also where a page ends between sessions of the same millisecond."""
    made = set()
    for number in range(7):
        scene.now = START + number // 3
        made.add(await opened(scene, str(number)))
    for limit in (1, 2, 3, 7, 100):
        seen = await pages(scene, limit)
        assert len(seen) == len(made)
        assert {session.id for session in seen} == made
        times = [session.updated_at for session in seen]
        assert times == sorted(times, reverse=True)


async def test_an_interrupted_session_is_resume_pending_only_while_it_is_the_latest_word(scene: Scene) -> None:
    """R5, R7"""
    turn = await scene.interrupted()
    assert await scene.store.sessions.resume_cause(turn.session_id) == "crash"
    await scene.finished()
    assert await scene.store.sessions.resume_cause(turn.session_id) is None


async def test_a_turn_that_goes_on_by_itself_leaves_nothing_pending(scene: Scene) -> None:
    """R5, R10"""
    turn = await scene.running(mode=Mode.DETACHED)
    await scene.interrupt(turn)
    assert await scene.store.sessions.resume_cause(turn.session_id) is None


async def test_pruning_removes_ended_sessions_of_the_channel_and_counts_them(scene: Scene) -> None:
    """W6, S1"""
    gone = [
        (await scene.finished(conversation=str(number), channel="webhook", one_shot=True, remembers=False)).session_id
        for number in range(3)
    ]
    kept = [
        (await scene.running(conversation="running", channel="webhook", one_shot=True)).session_id,
        (await scene.finished(conversation="open", channel="webhook", remembers=False)).session_id,
        (await scene.finished(conversation="cron", channel="cron", one_shot=True, remembers=False)).session_id,
    ]
    assert await scene.store.sessions.prune("webhook", scene.now) == 3
    assert await scene.store.sessions.prune("webhook", scene.now) == 0
    for session_id in gone:
        with pytest.raises(NotFound):
            await scene.store.sessions.get(session_id)
    for session_id in kept:
        await scene.store.sessions.get(session_id)


async def test_pruning_leaves_no_row_behind(scene: Scene) -> None:
    """W7: everything that belongs to a session goes with it, and only its key stays."""
    before = await scene.snapshot()
    turn, _ = await scene.use(await scene.running(channel="webhook", one_shot=True, dedupe_key="k"))
    await scene.finish(turn, deliveries=scene.parts(turn, "hi"))
    (sent,) = await scene.send()
    await scene.settle(sent, delivery.DeliveryEvent.CONFIRM)
    (segment,) = await scene.store.segments.of_session(turn.session_id)
    await scene.commit(segment)
    assert await scene.store.sessions.prune("webhook", scene.now) == 1
    after = await scene.snapshot()
    assert len(after.pop("dedupe")) == 1
    assert after == {table: rows for table, rows in before.items() if table != "dedupe"}


async def test_pruning_waits_until_the_session_has_been_over_for_long_enough(scene: Scene) -> None:
    """W6"""
    await scene.finished(channel="webhook", one_shot=True, remembers=False)
    assert await scene.store.sessions.prune("webhook", scene.now - 1) == 0
    assert await scene.store.sessions.prune("webhook", scene.now) == 1


async def test_pruning_waits_for_deliveries(scene: Scene) -> None:
    """A1, W6: what is still to leave is not deleted; what has settled is."""
    refuse, lose, fail = delivery.DeliveryEvent.REFUSE, delivery.DeliveryEvent.LOSE, delivery.DeliveryEvent.FAIL
    for events, at_rest in (([], 0), ([None], 0), ([refuse], 0), ([lose], 0), ([lose, lose], 1), ([fail], 1)):
        made = await scene.sent_for("hi", conversation=str(events), channel="webhook", one_shot=True, remembers=False)
        for event in events:
            (sent,) = [each for each in await scene.send(limit=100) if each.id == made[0].id]
            if event:
                await scene.settle(sent, event)
        assert await scene.store.sessions.prune("webhook", scene.now) == at_rest, events


async def test_a_session_is_not_pruned_under_a_turn_that_goes_on(scene: Scene) -> None:
    """A1: a one-shot request that was resumed by its key runs in a session that has ended."""
    request = {"text": "hello", "dedupe_key": "k", "mode": Mode.SYNCHRONOUS, "channel": "api", "one_shot": True}
    turn = await scene.interrupted(**request)
    await scene.accept(**request)
    assert await scene.store.sessions.prune("api", scene.now) == 0
    await scene.finish(await scene.claim_and_start(turn.id), memory_owner=None)
    assert await scene.store.sessions.prune("api", scene.now) == 1


async def test_every_one_shot_session_ends_and_is_prunable(scene: Scene) -> None:
    """S1"""
    for way in ("complete", "fail", "cancel", "give up", "suspend"):
        turn = await scene.running(conversation=way, channel="webhook", one_shot=True, mode=Mode.DETACHED, remembers=False)
        match way:
            case "complete" | "fail":
                await scene.finish(turn, event=TurnEvent.FINISH if way == "complete" else TurnEvent.FAIL)
            case "cancel":
                await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
            case "give up":
                await scene.interrupt(turn)
                for _ in range(2):
                    await scene.interrupt(await scene.claim_and_start(turn.id))
            case _:
                await scene.store.settlement.suspend_session(turn.session_id, scene.now)
        assert (await scene.store.sessions.get(turn.session_id)).state is SessionState.ENDED, way
        assert await scene.store.sessions.prune("webhook", scene.now) == 1, way


async def test_retention_prunes_one_shot_sessions_by_channel_and_keeps_conversations(scene: Scene) -> None:
    """W6, W7"""
    for channel in ONE_SHOT_DAYS:
        await scene.finished(conversation=channel, channel=channel, one_shot=True, remembers=False)
    talk = await scene.finished(remembers=False)
    await scene.store.settlement.end_session(talk.session_id, "user", scene.now)
    assert await scene.store.enforce_retention(ONE_SHOT_DAYS, scene.now + 6 * DAY_MS) == 0
    assert await scene.store.enforce_retention(ONE_SHOT_DAYS, scene.now + 8 * DAY_MS) == 2
    assert await scene.store.enforce_retention(ONE_SHOT_DAYS, scene.now + 400 * DAY_MS) == len(ONE_SHOT_DAYS) - 2
    await scene.store.sessions.get(talk.session_id)


async def test_retention_prunes_stored_responses_by_their_last_use(scene: Scene) -> None:
    """W7"""
    days = ONE_SHOT_DAYS["responses"]
    for key in ("resp_1", "resp_2"):
        await scene.finished(conversation=key, channel="responses", remembers=False)
    scene.now += 2 * DAY_MS
    used = await scene.finished(conversation="resp_2", channel="responses", remembers=False)
    assert await scene.store.enforce_retention(ONE_SHOT_DAYS, START + days * DAY_MS - 1) == 0
    assert await scene.store.enforce_retention(ONE_SHOT_DAYS, START + days * DAY_MS) == 1
    assert (await scene.store.sessions.get(used.session_id)).state is SessionState.OPEN
    assert await scene.store.enforce_retention(ONE_SHOT_DAYS, scene.now + days * DAY_MS) == 1


async def test_retention_forgets_keys_and_nodes_when_their_time_has_come(scene: Scene) -> None:
    """W7"""
    await scene.accept(dedupe_key="k")
    await scene.store.nodes.leave(scene.node)
    await scene.store.enforce_retention({}, scene.now + (NODE_DAYS - 1) * DAY_MS)
    assert await scene.sql("SELECT COUNT(*) FROM nodes") == [(1,)]
    await scene.store.enforce_retention({}, scene.now + (DEDUPE_DAYS - 1) * DAY_MS)
    assert await scene.sql("SELECT COUNT(*) FROM nodes") == [(0,)]
    assert (await scene.accept(dedupe_key="k")).duplicate
    assert await scene.store.sessions.forget_keys(scene.now - 1) == 0
    assert await scene.store.sessions.forget_keys(scene.now) == 1


async def test_a_source_from_an_older_or_newer_version_loads_with_defaults(scene: Scene) -> None:
    """R11"""
    session_id = await opened(scene, "chat:1")
    for source in ('{"chat_id": "7", "colour": "red"}', "{", "[]", "null"):
        await scene.sql("UPDATE sessions SET source = :source WHERE id = :id", source=source, id=session_id)
        session = await scene.store.sessions.get(session_id)
        assert session.source.chat_id == ("7" if "7" in source else "")


async def test_an_old_interruption_that_an_answer_followed_is_not_pending_again(scene: Scene) -> None:
    """R5: whatever happens to a later turn, which goes on by itself."""
    await scene.interrupted("one")
    await scene.finished("two")
    third = await scene.running("three", mode=Mode.DETACHED)
    await scene.interrupt(third)
    assert await scene.state(third) == "queued"
    assert await scene.store.sessions.resume_cause(third.session_id) is None
    assert (await scene.store.sessions.standing()).resumable == 0
