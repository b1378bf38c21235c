"""What happened, in the order in which it became durable."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from holdfast.core import effects
from holdfast.core.effects import Effect
from holdfast.core.events import EntryKind, Text, ToolFinished, UnknownEvent, content
from holdfast.core.intake import Busy
from holdfast.core.journal import DraftEntry, Entry
from holdfast.core.redaction import MASK, Redaction
from holdfast.core.segments import messages
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import Cause, Mode, Resume, Turn, TurnEvent
from holdfast.errors import NotFound, Stale
from holdfast.ids import CallId, SessionId, TurnId
from holdfast.store.store import Store
from tests.conformance.scenes import OWNER, START, Scene


async def test_what_is_appended_is_read_back_the_same(scene: Scene) -> None:
    """J1, J3: the entry that is shown live is the entry that is replayed."""
    turn = await scene.running()
    drafts = [
        scene.text("Grüße, 世界 🌍"),
        scene.draft(EntryKind.TOOL_STARTED, args={"n": 1, "deep": [{"a": None}]}, name="look"),
    ]
    appended, entries = await scene.store.journal.append(turn, drafts)
    assert [(entry.seq, entry.nth, entry.attempt) for entry in entries] == [(3, 2, 1), (4, 3, 1)]
    assert [entry.event for entry in entries] == [draft.event for draft in drafts]
    assert appended == replace(turn, nth=3)
    assert await scene.store.turns.get(turn.id) == appended
    assert await scene.store.journal.read(turn.session_id, after=2) == entries


async def test_text_that_is_no_text_is_shown_live_as_it_is_replayed(scene: Scene) -> None:
    """J3: in values and keys, however deep."""
    for bad in ("a\0b", "a\ud800b", "\udfff", "\\u0000", "\0" * 10_000):
        turn = await scene.running(bad)
        cursor = len(await scene.entries(turn.session_id))
        data = {"text": bad, bad: [bad, {bad: {"deeper": [bad]}}]}
        turn, live = await scene.store.journal.append(turn, [scene.draft(EntryKind.TEXT, **data)])
        finished, closing = await scene.store.settlement.finish(turn, scene.ending(turn, text=bad))
        replayed = await scene.store.journal.read(turn.session_id, after=cursor)
        assert replayed == [*live, *closing]
        assert "\0" not in str(replayed[0].data)
        assert await scene.store.turns.get(turn.id) == finished


VALUES = [(1, 2), {"t": ("a", ("b",))}, float("nan"), float("inf"), 10**30, -(2**63), 1e308, 0.1, True, None, {1: "a"}]


async def test_any_value_is_shown_live_as_it_is_replayed(scene: Scene) -> None:
    """J3: what JSON cannot tell apart is not told apart in the live entry either."""
    turn = await scene.running()
    _, live = await scene.store.journal.append(turn, [scene.draft(EntryKind.TOOL_STARTED, args=value) for value in VALUES])
    replayed = await scene.store.journal.read(turn.session_id, after=2)
    assert [(type(entry.data["args"]), entry) for entry in replayed] == [(type(entry.data["args"]), entry) for entry in live]


async def test_text_that_is_no_text_is_kept_readable_in_a_tool_call(scene: Scene) -> None:
    """X1: the result of a call is never lost to a character that a database refuses."""
    turn = await scene.running()
    call = scene.call(turn, args='{"a": "\0"}', name="lo\0ok", id=CallId("call\0\ud800"))
    started = call.on(effects.CallEvent.START)
    ended = replace(started.on(effects.CallEvent.SUCCEED), result="a\0b\ud800")
    turn = await scene.move(turn, (call, started))
    await scene.move(turn, (started, ended))
    (stored,) = await scene.store.journal.calls(turn.id)
    assert (stored.state, stored.result) == (effects.CallState.OK, "a\ufffdb?")


async def test_the_journal_of_a_session_is_gapless_across_its_turns(scene: Scene) -> None:
    """J2"""
    first = await scene.say(await scene.running("one"), "a", "b")
    await scene.accept("two")
    first = await scene.say(first, "c")
    await scene.accept("three")
    await scene.finish(first)
    second = await scene.store.turns.list(first.session_id, after=1, limit=1)
    await scene.interrupt(await scene.claim_and_start(second[0].id))
    entries = await scene.entries(first.session_id)
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert [entry.kind for entry in entries] == [
        EntryKind.TURN_ACCEPTED,
        EntryKind.TURN_STARTED,
        EntryKind.TEXT,
        EntryKind.TEXT,
        EntryKind.TURN_ACCEPTED,
        EntryKind.TEXT,
        EntryKind.TURN_ACCEPTED,
        EntryKind.TURN_COMPLETED,
        EntryKind.TURN_STARTED,
        EntryKind.TURN_INTERRUPTED,
    ]


async def test_a_reader_with_a_cursor_gets_exactly_what_is_missing(scene: Scene) -> None:
    """J3, J8: none twice, none lost, whatever the page size and across a restart."""
    turn = await scene.say(await scene.running(), *(str(number) for number in range(10)))
    everything = await scene.entries(turn.session_id)
    await scene.reopen()
    for limit in (1, 3, 5, 100):
        seen: list[Entry] = []
        while page := await scene.store.journal.read(turn.session_id, after=seen[-1].seq if seen else 0, limit=limit):
            assert len(page) <= limit
            seen += page
        assert seen == everything
    assert await scene.store.journal.read(turn.session_id, after=everything[-1].seq) == []


async def test_a_reader_of_one_turn_gets_that_turn_alone(scene: Scene) -> None:
    first = await scene.finished("one")
    second = await scene.finished("two")
    kinds = [EntryKind.TURN_ACCEPTED, EntryKind.TURN_STARTED, EntryKind.TURN_COMPLETED]
    for turn in (first, second):
        entries = await scene.store.journal.read_turn(turn.id)
        assert [(entry.turn_id, entry.kind) for entry in entries] == [(turn.id, kind) for kind in kinds]


async def test_a_segment_is_read_with_exactly_its_own_turns(scene: Scene) -> None:
    """M2: a commit carries the completed turns of its segment, and no failed, cut off or later one."""
    first = await scene.finished("one")
    await scene.finish(await scene.running("broken"), event=TurnEvent.FAIL)
    second = await scene.finished("two")
    await scene.store.segments.seal(first.session_id, scene.now)
    await scene.finished("three")
    sealed, _ = await scene.store.segments.of_session(first.session_id)
    entries = await scene.store.journal.read_segment(sealed)
    assert [entry.turn_id for entry in entries] == [first.id] * 2 + [second.id] * 2
    assert [entry.seq for entry in entries] == sorted(entry.seq for entry in entries)


async def test_of_a_segment_only_what_was_said_is_read(scene: Scene) -> None:
    """M2: it is all that a commit carries, and what a turn did on its way there may be far too much to be held at once."""
    turn = await scene.say(await scene.running("hello"), *(f"piece {number} " for number in range(20)))
    turn, _ = await scene.use(turn, Effect.PURE, effects.CallEvent.SUCCEED)
    done = await scene.finish(turn, text="hi")
    (segment,) = await scene.store.segments.of_session(done.session_id)
    entries = await scene.store.journal.read_segment(segment)
    assert [entry.kind for entry in entries] == [EntryKind.TURN_ACCEPTED, EntryKind.TURN_COMPLETED]
    assert messages(entries) == messages(await scene.store.journal.read_turn(done.id)) != []


@pytest.mark.parametrize("stale", ["fence", "place ahead", "place behind"])
async def test_an_append_by_anyone_but_the_holder_is_refused(scene: Scene, stale: str) -> None:
    """T4, J2"""
    turn = await scene.say(await scene.running(), "a", "b")
    old = {
        "fence": replace(turn, fence=turn.fence - 1),
        "place ahead": replace(turn, nth=turn.nth + 1),
        "place behind": replace(turn, nth=turn.nth - 2),
    }[stale]
    call = scene.call(turn)
    before = await scene.snapshot()
    with pytest.raises(Stale):
        await scene.move(old, (call, call.on(effects.CallEvent.START)))
    assert await scene.snapshot() == before


async def test_only_a_running_turn_takes_entries(scene: Scene) -> None:
    """T3, T4"""
    queued = await scene.claimed(conversation="a")
    waiting = await scene.parked(conversation="b")
    completed = await scene.finished(conversation="c")
    cancelled = await scene.store.settlement.cancel((await scene.running(conversation="d")).id, Cause.USER, scene.now)
    interrupted = await scene.interrupted(conversation="e")
    before = await scene.snapshot()
    for turn in (queued, waiting, completed, cancelled, interrupted):
        with pytest.raises(Stale):
            await scene.say(turn, "too late")
    assert await scene.snapshot() == before


async def test_a_repeated_append_after_a_lost_answer_returns_the_same_entries(scene: Scene) -> None:
    """J1: with its tool-call moves, which are not made twice."""
    turn = await scene.running()
    call = scene.call(turn, Effect.EFFECTFUL)
    drafts, moves = [scene.text("a"), scene.text("b")], [(call, call.on(effects.CallEvent.START))]
    first = await scene.store.journal.append(turn, drafts, moves)
    before = await scene.snapshot()
    assert await scene.store.journal.append(turn, drafts, moves) == first
    assert await scene.snapshot() == before
    await scene.say(first[0], "c")
    with pytest.raises(Stale):
        await scene.store.journal.append(turn, drafts, moves)


async def test_a_repeated_append_of_a_secret_that_the_store_masks_is_the_same_append(scene: Scene) -> None:
    """J1: what is stored differs from what was sent, and is not taken for something else."""
    secret = "sk-4f9c2b7e1d6a8053"
    masked = Store(scene.store.database, Redaction([secret]))
    turn = await scene.running()
    drafts = [scene.text("a"), scene.text(f"the key is {secret}")]
    stands, _ = await masked.journal.append(turn, drafts)
    again, entries = await masked.journal.append(turn, drafts)
    assert again == stands
    assert [entry.data["text"] for entry in entries] == ["a", f"the key is {MASK}"]
    with pytest.raises(Stale):
        await masked.journal.append(turn, [scene.text("a"), scene.text("the key is lost")])


async def test_a_repeated_append_of_another_length_is_refused(scene: Scene) -> None:
    """J2"""
    turn = await scene.running()
    await scene.say(turn, "a", "b")
    with pytest.raises(Stale):
        await scene.say(turn, "a", "b", "c")


async def test_appends_of_many_sessions_at_once_stay_apart(scene: Scene) -> None:
    """J2, T1: the turns of many sessions share commits, not numbers."""
    turns = [await scene.running(conversation=f"chat:{number}") for number in range(20)]

    async def speak(turn: Turn) -> Turn:
        for number in range(10):
            turn = await scene.say(turn, f"{turn.id} {number}")
        return await scene.finish(turn)

    await asyncio.gather(*map(speak, turns))
    for turn in turns:
        said = [entry.data["text"] for entry in await scene.entries(turn.session_id) if entry.kind is EntryKind.TEXT]
        assert said == [f"{turn.id} {number}" for number in range(10)]


async def test_a_call_moves_only_from_the_state_it_was_read_in(scene: Scene) -> None:
    """X1: compare-and-set."""
    turn, started = await scene.use(await scene.running())
    ended = replace(started.on(effects.CallEvent.SUCCEED), result="42")
    planned = replace(started, state=effects.CallState.PLANNED)
    before = await scene.snapshot()
    with pytest.raises(Stale):
        await scene.move(turn, (planned, planned.on(effects.CallEvent.START)))
    assert await scene.snapshot() == before
    turn = await scene.move(turn, (started, ended))
    with pytest.raises(Stale):
        await scene.move(turn, (started, ended))
    (stored,) = await scene.store.journal.calls(turn.id)
    assert stored == replace(ended, starts=1)


async def test_an_entry_and_its_call_move_together_or_not_at_all(scene: Scene) -> None:
    """J1, X1: one of two moves is stale, so nothing of the append stays."""
    turn, stale = await scene.use(await scene.running(), Effect.PURE, effects.CallEvent.SUCCEED)
    fresh = scene.call(turn)
    before = await scene.snapshot()
    with pytest.raises(Stale):
        await scene.move(
            turn, (fresh, fresh.on(effects.CallEvent.START)), (replace(stale, state=effects.CallState.STARTED), stale)
        )
    assert await scene.snapshot() == before


async def test_the_schema_refuses_the_second_start_of_an_effect(scene: Scene) -> None:
    """X1: even by a worker that believes it may."""
    turn, started = await scene.use(await scene.running(), Effect.EFFECTFUL)
    with pytest.raises(Stale):
        await scene.move(turn, (started, started))
    with pytest.raises(Stale):
        await scene.sql("UPDATE tool_calls SET starts = 2 WHERE id = :id", id=started.id)
    assert [call.starts for call in await scene.store.journal.calls(turn.id)] == [1]


async def test_a_call_keeps_what_it_was_planned_with(scene: Scene) -> None:
    """X1: a later move cannot turn an effect into something that may be repeated."""
    turn, started = await scene.use(await scene.running(), Effect.EFFECTFUL)
    disguised = replace(started.on(effects.CallEvent.SUCCEED), effect=Effect.PURE, name="other", args="[]", result="ok")
    await scene.move(turn, (started, disguised))
    (stored,) = await scene.store.journal.calls(turn.id)
    assert (stored.effect, stored.name, stored.args) == (Effect.EFFECTFUL, "look", "{}")


async def test_a_call_can_wait_for_approval(scene: Scene) -> None:
    turn = await scene.running()
    call = scene.call(turn, Effect.EFFECTFUL)
    asked = call.on(effects.CallEvent.ASK)
    turn = await scene.move(turn, (call, asked))
    assert [each.state for each in await scene.store.journal.calls(turn.id)] == [effects.CallState.AWAITING_APPROVAL]
    turn = await scene.move(turn, (asked, asked.on(effects.CallEvent.START)))
    assert [(each.state, each.starts) for each in await scene.store.journal.calls(turn.id)] == [
        (effects.CallState.STARTED, 1)
    ]


async def cut(scene: Scene, *texts: str) -> tuple[Turn, list[Entry]]:
    """Interrupt a turn of which some entries did not arrive; returns them as their writer would have."""
    turn = await scene.say(await scene.running(mode=Mode.DETACHED), "one")
    await scene.interrupt(turn)
    lost = [
        Entry.read(
            session_id=turn.session_id,
            seq=0,
            turn_id=turn.id,
            attempt=turn.attempt,
            nth=turn.nth + 1 + number,
            kind=EntryKind.TEXT,
            at=scene.now,
            data={"text": text},
        )
        for number, text in enumerate(texts)
    ]
    return turn, lost


async def test_late_entries_land_once(scene: Scene) -> None:
    """J4, J2: however often they are offered, and in whatever pieces."""
    turn, lost = await cut(scene, "two", "three", "four")
    assert await scene.store.journal.append_late(lost[:2]) == 2
    assert await scene.store.journal.append_late(lost) == 1
    before = await scene.snapshot()
    assert await scene.store.journal.append_late(lost) == 0
    assert await scene.snapshot() == before
    items = fold(await scene.entries(turn.session_id))
    assert [(item.role, item.text) for item in items[:2]] == [(Role.USER, "hello"), (Role.ASSISTANT, "onetwothreefour")]
    assert items[2].role is Role.MARKER


async def test_words_that_the_next_attempt_did_not_know_are_not_said_twice(scene: Scene) -> None:
    """J1, J4: before it begins they are heard; afterwards it says them itself.  A result is news all the same."""
    turn, lost = await cut(scene, "two", "three")
    assert await scene.store.journal.append_late(lost[:1]) == 1
    again = await scene.claim_and_start(turn.id)
    result = replace(lost[1], event=ToolFinished(call_id="c", name="tool", outcome="ok"))
    assert await scene.store.journal.append_late(lost) == 0
    assert await scene.store.journal.append_late([result]) == 1
    await scene.finish(await scene.say(again, "three"))
    said = [item.text for item in fold(await scene.entries(turn.session_id)) if item.role is Role.ASSISTANT]
    assert "".join(said) == "onetwothree"


def left(turn: Turn, kind: EntryKind, nth: int, **data: object) -> Entry:
    """Return an entry that the worker of a turn left on its disk."""
    return Entry.read(
        session_id=turn.session_id, seq=0, turn_id=turn.id, attempt=turn.attempt, nth=nth, kind=kind, at=START, data=data
    )


async def called_off(scene: Scene, how: str) -> Turn:
    """Cancel a turn that has said something; returns it as its first worker knew it."""
    turn = await scene.say(await scene.running(), "one")
    if how != "while it ran":
        await scene.interrupt(turn, resume=Resume.AUTO)
    if how == "when it ran again":
        await scene.claim_and_start(turn.id)
    await scene.store.settlement.cancel(turn.id, Cause.USER, scene.now)
    return turn


@pytest.mark.parametrize("how", ["while it ran", "before it ran again", "when it ran again"])
async def test_a_cancelled_turn_shows_nothing_more_and_what_it_spent_is_counted_once(scene: Scene, how: str) -> None:
    """J1 J2 J9: what was not in the journal when the cancel was is never shown; money that was spent is."""
    turn = await called_off(scene, how)
    shown = fold(await scene.entries(turn.session_id))
    before = await scene.snapshot()
    words = [left(turn, EntryKind.TEXT, 3, text="two"), left(turn, EntryKind.REASONING, 4, text="hm")]
    result = left(turn, EntryKind.TOOL_FINISHED, 5, call_id="c", name="look", outcome="ok", result="found")
    assert await scene.store.journal.append_late([*words, result]) == 0
    assert await scene.snapshot() == before
    spent = left(turn, EntryKind.USAGE, 6, **content(scene.usage(10).event))
    assert await scene.store.journal.append_late([*words, result, spent]) == 1
    assert await scene.store.journal.append_late([*words, result, spent]) == 0
    entries = await scene.entries(turn.session_id)
    assert fold(entries) == shown
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert (await scene.store.spending.spent(turn, "local", 0)).turn.input_tokens == 10


async def test_entries_of_an_attempt_that_still_runs_do_not_come_in_by_the_back_door(scene: Scene) -> None:
    """T4, J2: they would take the numbers that its holder writes next."""
    turn = await scene.running()
    forged = (await scene.store.journal.read_turn(turn.id))[-1]
    before = await scene.snapshot()
    assert await scene.store.journal.append_late([replace(forged, nth=2, event=Text(text="forged"))]) == 0
    assert await scene.snapshot() == before
    await scene.finish(await scene.say(turn, "genuine"))
    assert await scene.store.journal.append_late([replace(forged, nth=9)]) == 0


async def test_late_entries_that_no_worker_numbered_are_refused(scene: Scene) -> None:
    """J4: without a number nothing could tell that they came before."""
    _, lost = await cut(scene, "two")
    assert await scene.store.journal.append_late([replace(lost[0], nth=None)]) == 0


async def test_late_entries_of_a_pruned_session_are_dropped(scene: Scene) -> None:
    _, lost = await cut(scene, "two")
    gone = replace(lost[0], session_id=SessionId("pruned"), turn_id=TurnId("pruned"))
    assert await scene.store.journal.append_late([gone]) == 0


async def test_an_unreadable_entry_does_not_hide_its_neighbours(scene: Scene) -> None:
    """R11"""
    turn = await scene.finished()
    await scene.sql("UPDATE entries SET data = :data WHERE turn_id = :id AND nth = 1", data="[1]", id=turn.id)
    entries = await scene.entries(turn.session_id)
    assert [entry.data for entry in entries] == [{"text": "hello"}, {"unreadable": True}, {"text": "hi"}]


async def test_the_journal_of_an_unknown_session_is_empty(scene: Scene) -> None:
    """R12"""
    assert await scene.entries(SessionId("nothing")) == []
    assert await scene.store.journal.read_turn(TurnId("nothing")) == []
    assert await scene.store.journal.calls(TurnId("nothing")) == []


async def test_a_long_answer_is_kept_whole(scene: Scene) -> None:
    """J1"""
    turn = await scene.running()
    text = "word " * 200_000
    turn = await scene.say(turn, text)
    await scene.finish(turn, text=text)
    assert [len(str(entry.data["text"])) for entry in (await scene.entries(turn.session_id))[2:]] == [1_000_000] * 2


async def test_what_was_shown_before_an_interruption_is_in_the_recovered_transcript(scene: Scene) -> None:
    """J1, J2 (contract): the user's message, what was shown in order, then one marker."""
    turn = await scene.say(await scene.running("question"), "a", "b")
    turn, _ = await scene.use(turn, Effect.EFFECTFUL)
    await scene.interrupt(turn, resume=Resume.ON_MESSAGE)
    items = fold(await scene.entries(turn.session_id))
    assert [(item.role, item.text) for item in items][:2] == [(Role.USER, "question"), (Role.ASSISTANT, "ab")]
    assert [item.role for item in items].count(Role.MARKER) == 1
    assert items[-1].role is Role.MARKER


async def test_memory_owners_are_kept_as_given(scene: Scene) -> None:
    """M3"""
    turn = await scene.finished()
    (segment,) = await scene.store.segments.of_session(turn.session_id)
    assert segment.owner == OWNER


async def test_an_entry_of_an_unknown_kind_is_a_note_among_readable_neighbours(scene: Scene) -> None:
    """What a later version wrote does not make a session unreadable."""
    turn = await scene.running()
    turn, (entry,) = await scene.store.journal.append(turn, [DraftEntry(at=1, event=Text(text="old"))])
    rename = "UPDATE entries SET kind = 'hologram' WHERE session_id = :id AND seq = :seq"
    await scene.sql(rename, id=turn.session_id, seq=entry.seq)
    read = await scene.store.journal.read(turn.session_id)
    assert [each.kind for each in read] == [EntryKind.TURN_ACCEPTED, EntryKind.TURN_STARTED, "hologram"]
    assert (read[-1].event, read[-1].data) == (UnknownEvent(kind="hologram", data={"text": "old"}), {"text": "old"})
    assert [(item.role, item.text) for item in fold(read)][-1] == (Role.NOTE, "old")


async def test_a_context_begins_at_the_start_until_it_is_compacted(scene: Scene) -> None:
    turn = await scene.say(await scene.running(), "hi")
    assert (await scene.store.journal.brief(turn)).after == 0
    for after in (2, 3):
        summary = scene.draft(EntryKind.CONTEXT_COMPACTED, text="so far", through=turn.id, after=after)
        turn, _ = await scene.store.journal.append(turn, [summary])
    other = await scene.running(conversation="chat:2")
    assert (await scene.store.journal.brief(turn)).after == 3
    assert (await scene.store.journal.brief(other)).after == 0


async def test_a_summary_that_cannot_be_read_hides_nothing(scene: Scene) -> None:
    """R11: the whole conversation is the context then."""
    turn = await scene.running()
    await scene.store.journal.append(turn, [scene.draft(EntryKind.CONTEXT_COMPACTED, text="so far", after="here")])
    assert (await scene.store.journal.brief(turn)).after == 0


async def test_a_conversation_is_read_by_its_turns_in_both_directions(scene: Scene) -> None:
    """J3: whole turns, so that pages put side by side are the transcript, and nothing of one is on another."""
    host = await scene.running("one")
    await scene.accept("two", busy=Busy.STEER)
    host, _ = await scene.store.steering.heed(host, scene.now)
    waiting = await scene.accept("three")
    await scene.finish(await scene.say(host, "said while three waited"))
    await scene.finish(await scene.say(await scene.claim_and_start(waiting.turn_id), "said"))
    for number in range(4, 8):
        await scene.finished(f"question {number}", f"answer {number}")
    await scene.finished(conversation="another")
    whole = await scene.entries(host.session_id)
    read = scene.store.journal.read_turns
    ordinals = {turn.id: turn.ordinal for turn in await scene.store.turns.list(host.session_id)}
    for limit in (1, 2, 3, 7, 50):
        onward = [await read(host.session_id, after=after, limit=limit) for after in range(0, 7, limit)]
        back = [await read(host.session_id, before=before, limit=limit) for before in range(8, 1, -limit)]
        for pages in (onward, back[::-1]):
            assert sorted((e for page in pages for e in page), key=lambda e: e.seq) == whole
            assert [item for page in pages for item in fold(page)] == fold(whole)
            for page in pages:
                assert [entry.seq for entry in page] == sorted(entry.seq for entry in page)
                assert len({ordinals[entry.turn_id] for entry in page}) <= limit
    assert await read(host.session_id, after=7) == await read(host.session_id, before=1) == []
    assert await read(SessionId("nothing")) == []


async def test_news_are_what_is_read_until_there_can_be_none(scene: Scene) -> None:
    """Who has read everything is told whether more may come: of a session that is deleted, nothing will."""
    turn = await scene.running()
    everything = await scene.store.journal.read(turn.session_id)
    assert await scene.store.journal.news(turn.session_id, 0) == everything
    assert await scene.store.journal.news(turn.session_id, 1, limit=1) == everything[1:2]
    assert await scene.store.journal.news(turn.session_id, everything[-1].seq) == []
    await scene.store.sessions.delete(turn.session_id, scene.now)
    with pytest.raises(NotFound):
        await scene.store.journal.news(turn.session_id, 0)
