"""The schema: it refuses by itself what must never be, and it is brought up to date without being hurt."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from itertools import chain
from pathlib import Path
from types import ModuleType

import apsw
import asyncpg
import pytest

from holdfast.core import (
    delivery,
    effects,
    events,
    facts,
    journal,
    keys,
    people,
    processes,
    questions,
    segments,
    sessions,
    showing,
    turns,
)
from holdfast.core.chats import AccountState, ChatMoved
from holdfast.errors import Owned, Stale, StoreRefused
from holdfast.ids import MemoryId, SessionId, TurnId, new_node_id
from holdfast.store import access as access_sql
from holdfast.store import cancellation as cancellation_sql
from holdfast.store import catalog as catalog_sql
from holdfast.store import channels as channels_sql
from holdfast.store import claims as claims_sql
from holdfast.store import closing as closing_sql
from holdfast.store import continuations as continuations_sql
from holdfast.store import deliveries as deliveries_sql
from holdfast.store import forks as forks_sql
from holdfast.store import intake as intake_sql
from holdfast.store import jobs as jobs_sql
from holdfast.store import journal as journal_sql
from holdfast.store import locks, migrations, opening
from holdfast.store import memories as memories_sql
from holdfast.store import news as news_sql
from holdfast.store import nodes as nodes_sql
from holdfast.store import passages as passages_sql
from holdfast.store import people as people_sql
from holdfast.store import processes as processes_sql
from holdfast.store import questions as questions_sql
from holdfast.store import recoveries as recoveries_sql
from holdfast.store import removal as removal_sql
from holdfast.store import segments as segments_sql
from holdfast.store import sessions as sessions_sql
from holdfast.store import settlement as settlement_sql
from holdfast.store import showing as showing_sql
from holdfast.store import spending as spending_sql
from holdfast.store import turns as turns_sql
from holdfast.store import webhooks as webhooks_sql
from holdfast.store.audit import CHECKS, audit
from holdfast.store.audit import _audit as audit_rows
from holdfast.store.database import POSTGRES, SQLITE, Dialect, Lock, Run, Transaction
from holdfast.store.migrations import migrate
from holdfast.store.opening import open_store, store_path
from holdfast.store.retention import TABLES
from holdfast.store.store import Store
from tests.conformance.scenes import PICTURE, START, TARGET, Scene, on_postgres, on_sqlite
from tests.conformance.test_access import key, login
from tests.conformance.test_channels import chat_message
from tests.conformance.test_jobs import job
from tests.conformance.test_people import approved, asked
from tests.conformance.test_webhooks import ALERTS
from tests.postgres import FreshDatabases, Server

Opener = Callable[[], Awaitable[Store]]


@pytest.fixture
def databases(postgres: Server) -> FreshDatabases:
    """Here databases are migrated."""
    return FreshDatabases(postgres)


async def tables(scene: Scene) -> set[str]:
    if scene.postgres:
        found = await scene.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return {name for (name,) in found}
    found = await scene.sql("SELECT name FROM sqlite_schema WHERE type = 'table'")
    # An index of words keeps its own tables, which come and go with it.
    return {name for (name,) in found if not name.startswith(("sqlite_", "passages_"))}


async def test_every_table_has_a_declared_retention(scene: Scene) -> None:
    """W7"""
    assert await tables(scene) | {"passages"} == set(TABLES)


async def populate(scene: Scene) -> None:
    """Put at least one row into every table."""
    turn, _ = await scene.use(await scene.running(dedupe_key="k", images=(PICTURE,)))
    await scene.store.processes.add(scene.process(turn))
    await scene.store.memories.add(scene.fact())
    await scene.store.memories.add(scene.fact("a tea merchant", kind=facts.MemoryKind.PROFILE))
    turn = await scene.park((await scene.store.journal.append(turn, [scene.usage()]))[0], question=scene.approval())
    await scene.answer(turn, "always")
    turn = await scene.claim_and_start(turn.id)
    await scene.store.status_lines.begin(turn.id, TARGET, showing.LineKind.STATUS)
    await scene.store.status_lines.show(turn.id, "7")
    await scene.finish(turn, deliveries=scene.parts(turn, "hi"))
    await scene.sql("INSERT INTO cards SELECT id, turn_id, 'q', target, NULL FROM deliveries")
    await scene.store.kept_files.keep(b"content", scene.now)
    (segment,) = await scene.store.segments.of_session(turn.session_id)
    await scene.store.memories.absorb("local", segment.id, facts.MemoryChanges(), scene.now)
    await scene.store.segments.replayed(segment.id, "memory:new", "1 fact added", scene.now)
    await scene.store.jobs.save(job())
    await scene.store.jobs.miss("report", START + 1)
    await scene.sql("INSERT INTO cursors (channel, position) VALUES ('telegram', '1')")
    await scene.store.keys.add(key(scene))
    await scene.store.logins.add(login(scene))
    await scene.store.webhooks.save(ALERTS)
    await scene.store.secrets.get_or_add("url", "secret")
    await approved(scene)
    await asked(scene, "8")
    await scene.store.sessions.change(turn.session_id, title="a harbour")
    await scene.store.passages.index(1)
    await populate_chats(scene)


async def populate_chats(scene: Scene) -> None:
    """Let an account have received two messages, one of which became a turn."""
    lease = await scene.store.channels.claim("telegram", "telegram", scene.node)
    assert lease
    await scene.store.channels.stage(lease, [chat_message("1")], None, scene.now)
    await scene.sql("INSERT INTO chat_messages VALUES ('telegram', '7', '2', '5', 't', 's', 0, 5, 1)")
    await scene.store.channels.move("telegram", ChatMoved(from_chat_id="7", to_chat_id="8"), scene.now)


LISTS: dict[tuple[str, str], type[StrEnum] | set[str]] = {
    ("nodes", "state"): {"alive", "dead"},
    ("sessions", "state"): sessions.SessionState,
    ("turns", "state"): turns.TurnState,
    ("turns", "mode"): turns.Mode,
    ("tool_calls", "state"): effects.CallState,
    ("tool_calls", "effect"): effects.Effect,
    ("deliveries", "state"): delivery.DeliveryState,
    ("status_lines", "state"): showing.LineState,
    ("status_lines", "kind"): showing.LineKind,
    ("segments", "state"): segments.SegmentState,
    ("memories", "kind"): facts.MemoryKind,
    ("questions", "about"): questions.About,
    ("processes", "state"): processes.ProcessState,
    ("logins", "purpose"): keys.Purpose,
    ("channel_accounts", "state"): AccountState,
    ("people", "role"): people.Role,
}
FLAGS = [
    ("sessions", "one_shot"),
    ("sessions", "pinned"),
    ("sessions", "archived"),
    ("turns", "delivers_later"),
    ("turns", "remembers"),
    ("turns", "steers"),
    ("turns", "verbatim"),
    ("deliveries", "repeats"),
    ("jobs", "paused"),
    ("processes", "notifies"),
]


async def test_every_list_of_states_refuses_garbage(scene: Scene) -> None:
    """T3: whoever writes it."""
    await populate(scene)
    before = await scene.snapshot()
    for table, column in LISTS:
        for garbage in ("garbage", "", "OPEN"):
            with pytest.raises(Stale, match=r"(?i)check"):
                await scene.sql(f"UPDATE {table} SET {column} = :garbage", garbage=garbage)
        with pytest.raises(Stale, match=r"(?i)null"):
            await scene.sql(f"UPDATE {table} SET {column} = NULL")
    for table, column in FLAGS:
        with pytest.raises(Stale, match=r"(?i)check"):
            await scene.sql(f"UPDATE {table} SET {column} = 2")
    assert await scene.snapshot() == before


def schema(dialect: Dialect) -> list[str]:
    """Return the statements of every migration, in their order."""
    return migrations.statements(dialect, chain(*migrations.known(dialect).values()))


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRES], ids=lambda dialect: dialect.name)
def test_the_lists_of_the_schema_are_the_lists_of_the_core(dialect: Dialect) -> None:
    """T3: a state that one knows and the other does not would be a bug in waiting."""
    found: dict[tuple[str, str], set[str]] = {}
    for statement in schema(dialect):
        table = re.match(r"CREATE TABLE (\w+)", statement)
        for column, values in re.findall(r"(\w+) TEXT[^,]*?CHECK \(\1 IN\s*\(([^)]*)\)\)", statement):
            assert table
            # What is made anew in a migration takes the name of what it replaces.
            found[table[1].removesuffix("_anew"), column] = set(re.findall(r"'([^']*)'", values))
    assert found == {place: {str(value) for value in values} for place, values in LISTS.items()}


@pytest.mark.parametrize(
    ("index", "states"),
    [
        ("turns_one_live_per_session", turns.LIVE),
        ("turns_in_flight", turns.IN_FLIGHT),
        ("segments_dirty", segments.DIRTY),
        ("segments_owing", segments.DIRTY),
        ("turns_unanswered", turns.FINAL - {turns.TurnState.COMPLETED}),
        ("sessions_in_use", frozenset(sessions.SessionState) - {sessions.SessionState.ENDED}),
        ("unsearched_added", journal.SEARCHED),
        ("unsearched_removed", journal.SEARCHED),
        ("passages_removed", journal.SEARCHED),
    ],
)
def test_the_sets_in_indexes_are_the_sets_of_the_core(index: str, states: frozenset[StrEnum]) -> None:
    """T1"""
    script = "\n".join(text for dialect in (SQLITE, POSTGRES) for text in schema(dialect))
    found = re.search(rf"{index}\b[^;]*?(?:WHERE|WHEN) \(?(?:new\.|old\.)?(?:state|kind) IN \(([^)]*)\)", script)
    assert found
    assert set(re.findall(r"'([^']*)'", found[1])) == {str(state) for state in states}


COPY_TURN = """
    INSERT INTO turns (id, session_id, ordinal, accepted_at, mode, delivers_later, remembers, state, node_id)
    SELECT 'other', session_id, ordinal + 1, accepted_at, mode, delivers_later, remembers, {state}, {node} FROM turns
"""


@pytest.mark.parametrize("state", ["running", "waiting"])
@pytest.mark.parametrize("live", ["running", "waiting"])
async def test_the_schema_refuses_a_second_live_turn(scene: Scene, live: str, state: str) -> None:
    """T1: even to an operator with a shell."""
    await (scene.running() if live == "running" else scene.parked())
    node = "'node'" if state == "running" else "NULL"
    with pytest.raises(Stale, match=r"(?i)unique"):
        await scene.sql(COPY_TURN.format(state=f"'{state}'", node=node))


async def test_the_schema_refuses_a_second_open_session_of_a_key(scene: Scene) -> None:
    first = await scene.finished()
    await scene.store.settlement.end_session(first.session_id, "user", scene.now)
    await scene.accept()
    with pytest.raises(Stale, match=r"(?i)unique"):
        await scene.sql(
            "UPDATE sessions SET state = 'open', ended_at = NULL, end_reason = NULL WHERE id = :id", id=first.session_id
        )


SECOND = [
    "INSERT INTO dedupe (key, body_hash, turn_id, session_id, accepted_at) VALUES ('k', '', '', '', 0)",
    "INSERT INTO slots (job, instant) SELECT job, instant FROM slots",
    "UPDATE turns SET ordinal = 1",
    "UPDATE turns SET generation = 1 WHERE state = 'completed'",
    "UPDATE entries SET seq = 1",
    "UPDATE entries SET nth = 1, attempt = 1, turn_id = 't'",
    "UPDATE deliveries SET part = 1",
    "UPDATE segments SET state = 'open'",
    "UPDATE segments SET state = 'committing', node_id = 'n'",
    "UPDATE segments SET first_generation = 1",
    "INSERT INTO nodes (id, state, joined_at) SELECT id, state, joined_at FROM nodes",
    "INSERT INTO jobs (name, owner, schedule, prompt, created_at, last_instant) VALUES ('report', '', '', '', 0, 0)",
    "INSERT INTO cursors (channel, position) VALUES ('telegram', '2')",
    """INSERT INTO questions (turn_id, id, session_id, owner, about, text, choices, detail, fingerprint, asked_at)
       SELECT turn_id, 'other', session_id, owner, about, text, choices, detail, fingerprint, asked_at
         FROM questions WHERE answer IS NULL""",
    "INSERT INTO questions SELECT * FROM questions",
    "INSERT INTO grants SELECT * FROM grants",
    "INSERT INTO images SELECT * FROM images",
    "INSERT INTO processes SELECT * FROM processes",
    "INSERT INTO spending SELECT * FROM spending",
    "INSERT INTO memories SELECT * FROM memories",
    "INSERT INTO memories SELECT 'other', owner, kind, text, folded, 0, 0, NULL, NULL FROM memories WHERE kind = 'fact'",
    "INSERT INTO memories SELECT 'other', owner, kind, text, 'other', 0, 0, NULL, NULL FROM memories WHERE kind = 'profile'",
    "INSERT INTO memory_words SELECT * FROM memory_words",
    "INSERT INTO absorbed SELECT * FROM absorbed",
    "INSERT INTO replays SELECT * FROM replays",
    "INSERT INTO keys SELECT * FROM keys",
    "INSERT INTO keys SELECT 'other', name, owner, digest, scopes, created_at, rate_limit, revoked_at FROM keys",
    "INSERT INTO logins SELECT * FROM logins",
    "INSERT INTO webhooks SELECT * FROM webhooks",
    "INSERT INTO secrets SELECT * FROM secrets",
    "INSERT INTO channel_accounts SELECT * FROM channel_accounts",
    "INSERT INTO chat_inbox SELECT * FROM chat_inbox",
    "INSERT INTO chat_inbox SELECT account, 9, key, chat_id, thread_id, event, received_at, holder FROM chat_inbox",
    "INSERT INTO chat_messages SELECT * FROM chat_messages",
    "INSERT INTO people SELECT * FROM people",
    "INSERT INTO pairings SELECT * FROM pairings",
    "UPDATE pairings SET user_id = '7'",
    "INSERT INTO chat_moves SELECT * FROM chat_moves",
    "INSERT INTO chat_moves SELECT account, '9', to_chat_id, at FROM chat_moves",
]


async def test_the_schema_refuses_a_second_of_what_there_is_once(scene: Scene) -> None:
    """A3, C1, D1, J2, M1, Q1, T2"""
    await populate(scene)
    await scene.parked(conversation="chat:3")
    await scene.finish(await scene.running(), memory_owner="memory:other")
    turn = await scene.running(conversation="chat:2")
    await scene.finish(turn, deliveries=scene.parts(turn, "one", "two"), memory_owner=None)
    before = await scene.snapshot()
    for forgery in SECOND:
        with pytest.raises(Stale, match=r"(?i)unique"):
            await scene.sql(forgery)
    assert await scene.snapshot() == before


CONTRADICTIONS = [
    "UPDATE sessions SET state = 'ended'",
    "UPDATE sessions SET end_reason = 'why'",
    "UPDATE sessions SET ended_at = 1",
    "UPDATE sessions SET generation = turns + 1",
    "UPDATE sessions SET strikes = -1",
    "UPDATE turns SET state = 'running' WHERE node_id IS NULL",
    "UPDATE turns SET node_id = 'node' WHERE state = 'completed'",
    "UPDATE turns SET state = 'interrupted', generation = NULL",
    "UPDATE turns SET state = 'cancelled', generation = NULL",
    "UPDATE turns SET answered_at = NULL",
    "UPDATE turns SET state = 'queued'",
    "UPDATE turns SET ordinal = 0",
    "UPDATE entries SET seq = 0",
    "UPDATE tool_calls SET effect = 'effectful', starts = 2",
    "UPDATE deliveries SET state = 'sending'",
    "UPDATE deliveries SET node_id = 'node'",
    "UPDATE deliveries SET part = 0",
    "UPDATE segments SET state = 'committing'",
    "UPDATE segments SET node_id = 'node'",
    "UPDATE segments SET first_generation = 0",
    "UPDATE segments SET last_generation = 0",
    "UPDATE segments SET state = 'committed'",
    "UPDATE segments SET state = 'waived'",
    "UPDATE segments SET settled_at = 1",
    "UPDATE questions SET answer = NULL",
    "UPDATE questions SET answered_at = NULL",
    "UPDATE grants SET fingerprint = ''",
    "UPDATE processes SET state = 'lost'",
    "UPDATE processes SET ended_at = 1",
    "UPDATE processes SET state = 'exited', ended_at = 1",
    "UPDATE processes SET watched = -1",
    "UPDATE images SET number = 0",
    "UPDATE spending SET input_tokens = -1",
    "UPDATE spending SET cost_micros = -1",
    "UPDATE keys SET rate_limit = -1",
    "UPDATE secrets SET value = ''",
    "UPDATE people SET owner = 'local'",
    "UPDATE people SET role = 'operator'",
    "UPDATE pairings SET decided = 'maybe', decided_at = 1, decided_by = 'local'",
    "UPDATE pairings SET decided = NULL WHERE decided IS NOT NULL",
    "UPDATE pairings SET decided_by = NULL WHERE decided IS NOT NULL",
    "UPDATE pairings SET expires_at = asked_at",
]


async def test_the_schema_refuses_what_contradicts_itself(scene: Scene) -> None:
    """A1, D2, M2, T3, X1"""
    await populate(scene)
    before = await scene.snapshot()
    for forgery in CONTRADICTIONS:
        with pytest.raises(Stale, match=r"(?i)check"):
            await scene.sql(forgery)
    assert await scene.snapshot() == before


ORPHANS = [
    "INSERT INTO entries (session_id, seq, turn_id, attempt, kind, at, data) VALUES ('x', 1, 'x', 0, 'text', 0, '{}')",
    "UPDATE turns SET session_id = 'x'",
    "UPDATE deliveries SET turn_id = 'x'",
    "UPDATE tool_calls SET turn_id = 'x'",
    "UPDATE segments SET session_id = 'x'",
    "UPDATE slots SET job = 'x'",
    "UPDATE questions SET turn_id = 'x'",
    "UPDATE images SET turn_id = 'x'",
    "UPDATE processes SET session_id = 'x'",
    "UPDATE grants SET session_id = 'x'",
    "UPDATE memory_words SET memory_id = 'x' WHERE word = 'likes'",
    "UPDATE absorbed SET segment_id = 'x'",
    "UPDATE replays SET segment_id = 'x'",
]


async def test_nothing_belongs_to_what_does_not_exist(scene: Scene) -> None:
    await populate(scene)
    for forgery in ORPHANS:
        with pytest.raises(Stale, match=r"(?i)foreign key"):
            await scene.sql(forgery)


BROKEN = {
    "A1 accepted turns have an entry": "DELETE FROM entries WHERE kind = 'turn.accepted'",
    "A1 a settled turn has its visible outcome": "UPDATE entries SET kind = 'note' WHERE kind = 'turn.completed'",
    "A1 nothing in flight is left": "UPDATE sessions SET state = 'ended', ended_at = 1, end_reason = 'over'",
    "A3": "INSERT INTO dedupe SELECT 'other', body_hash, turn_id, session_id, accepted_at FROM dedupe",
    "T2 turns run": "UPDATE turns SET state = 'queued', generation = NULL, attempt = 1",
    "T2 ordinals": "UPDATE turns SET ordinal = ordinal + 1 WHERE state = 'queued'",
    "T3 a final": "UPDATE entries SET kind = 'turn.failed' WHERE kind = 'turn.started'",
    "T3 nothing in flight": "UPDATE turns SET state = 'queued', generation = NULL WHERE state = 'completed'",
    "J1": "DELETE FROM recoveries",
    "J2 the journal": "UPDATE sessions SET seq = seq + 1",
    "J2 the entries": "UPDATE turns SET nth = nth + 1 WHERE state = 'completed'",
    "T3 nothing works": "UPDATE turns SET parent_turn_id = (SELECT id FROM turns WHERE state = 'cancelled')",
    "Q1 a turn": "DELETE FROM questions",
    "Q1 an open": "UPDATE turns SET state = 'queued' WHERE state = 'waiting'",
    "Q2 a question": "UPDATE questions SET owner = 'somebody'",
    "Q2 what": "UPDATE grants SET session_id = (SELECT MAX(session_id) FROM turns WHERE state = 'interrupted')",
    "S3": "UPDATE processes SET owner = 'somebody'",
    "D2": "UPDATE deliveries SET state = 'sending', node_id = 'nobody'",
    "D3 parts leave in order": "UPDATE deliveries SET attempt = 1 WHERE part = 2",
    "D3 parts are gapless": "UPDATE deliveries SET part = 9 WHERE part = 2",
    "M1 each": "DELETE FROM segments",
    "M1 generations": "UPDATE sessions SET generation = 0",
    "M2 no segment": "UPDATE segments SET state = 'committed', settled_at = 1 WHERE first_generation = 2",
    "M2 a provider": "UPDATE replays SET owner = (SELECT m.owner FROM segments m WHERE m.id = segment_id)",
    "M4 what was": "UPDATE absorbed SET receipt = ''",
    "S4 a delivery": "UPDATE deliveries SET owner = 'somebody'",
    "S4 a segment": "UPDATE segments SET person = 'somebody'",
    "S4 a word is": "UPDATE memory_words SET owner = 'somebody'",
    "S4 a word of a title": "UPDATE title_words SET owner = 'somebody'",
    "F1 what can be found": "UPDATE entries SET kind = 'note'",
    "F1 what can be searched": "DELETE FROM unsearched",
    "F1 what waits": "UPDATE unsearched SET id = -id",
    "V1": "UPDATE turns SET verbatim = 1",
    "S1": "UPDATE sessions SET one_shot = 1, state = 'suspended' WHERE key = 'chat:2'",
    "S2": "UPDATE sessions SET strikes = 3",
    "X1 no tool": "UPDATE tool_calls SET state = 'started' WHERE state = 'planned'",
    "CONSERVATION": "UPDATE sessions SET turns = turns + 1",
}


# What the schema does refuse; the audit looks all the same.
REFUSED = {
    "T1 one live turn per session",
    "D1 at most one resend, labelled",
    "M2 nothing is waived or committed without saying when",
    "M4 what is remembered is there once",
    "X1 no effectful tool starts twice",
}


async def await_more(scene: Scene, turn: turns.Turn) -> None:
    """Lose a turn with a home from which more of it may come."""
    assert turn.node_id
    node, how = turn.node_id, (turns.Cause.CRASH, turns.Policy())
    dialect = scene.store.database.dialect
    await scene.store.database.write(
        lambda: locks.locked(
            Lock([locks.turn(turn.id)]),
            settlement_sql.interrupt(dialect, node, [turn.id], *how, scene.now, home="elsewhere"),
        )
    )


class Undone(Exception):
    """Takes a forgery back, and carries what the audit said of it."""


def forge(dialect: Dialect, sql: str) -> Transaction[None]:
    yield Run(sql)
    raise Undone(*(yield from audit_rows(dialect)))


async def test_the_audit_sees_what_the_schema_cannot_refuse(scene: Scene) -> None:
    """CONSERVATION: an audit that finds nothing is worth something only if it finds this."""
    await populate(scene)
    turn = await scene.running(conversation="chat:2")
    await scene.finish(turn, deliveries=scene.parts(turn, "one", "two"))
    await scene.finish(await scene.running(conversation="chat:2"), memory_owner="memory:other")
    await scene.accept("one more")
    await await_more(scene, await scene.running(conversation="chat:3"))
    await scene.parked(conversation="chat:4")
    await scene.store.settlement.cancel((await scene.accept(conversation="chat:5")).turn_id, turns.Cause.USER, scene.now)
    assert {check for check in CHECKS if not check.startswith(tuple(BROKEN))} == REFUSED
    for check, forgery in BROKEN.items():
        with pytest.raises(Undone) as undone:
            await scene.store.database.write(lambda forgery=forgery: forge(scene.store.database.dialect, forgery))
        assert any(violation.startswith(check) for violation in undone.value.args), check


async def test_migrating_again_is_no_work(scene: Scene) -> None:
    """P1"""
    await populate(scene)
    before = await scene.snapshot()
    assert await migrate(scene.store.database, scene.now) == max(migrations.known(scene.store.database.dialect))
    await scene.reopen()
    assert await scene.snapshot() == before


OLD_ROWS = (
    """INSERT INTO sessions (id, key, channel, owner, one_shot, source, created_at, updated_at, seq, turns, generation)
       VALUES ('s', 'chat:1', 'telegram', 'local', 0, '{}', 1, 1, 2, 1, 0)""",
    """INSERT INTO turns (id, session_id, ordinal, accepted_at, mode, delivers_later, remembers, state, attempt, answered_at)
       VALUES ('t', 's', 1, 1, 'conversation', 1, 1, 'completed', 1, 2)""",
    """INSERT INTO entries (session_id, seq, turn_id, attempt, kind, at, data)
       VALUES ('s', 1, 't', 0, 'turn.accepted', 1, '{"text": "hello"}'), ('s', 2, 't', 1, 'turn.completed', 2, '{}')""",
    """INSERT INTO deliveries (id, turn_id, session_id, target, part, text, created_at, due_at, state, attempt, settled_at)
       VALUES ('d', 't', 's', 'chat:1', 1, 'hi', 1, 1, 'delivered', 1, 2)""",
    "INSERT INTO nodes (id, state, joined_at) VALUES ('n', 'dead', 1)",
)


def apply_first(dialect: Dialect) -> Transaction[None]:
    """Make a store as the first version of this program left it, with rows in it."""
    yield Run("CREATE TABLE schema_versions (version BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL)")
    for statement in (*migrations.statements(dialect, migrations.known(dialect)[1]), *OLD_ROWS):
        yield Run(statement)
    yield Run("INSERT INTO schema_versions VALUES (1, 0)")


async def test_a_store_of_the_first_version_is_brought_up_to_date(store_url: str, tmp_path: Path) -> None:
    """R11: what is older than a field has its default."""
    first = await opening._connect(store_url, tmp_path)
    await first.write(lambda: apply_first(first.dialect))
    await first.close()
    store = await open_store(store_url, tmp_path)
    try:
        session, turn = await store.sessions.get(SessionId("s")), await store.turns.get(TurnId("t"))
        (sent,) = await store.deliveries.of_turn(turn.id)
        assert (session.key, turn.steers, turn.joined_to) == ("chat:1", False, None)
        assert (sent.id, sent.state, sent.part) == ("d", delivery.DeliveryState.DELIVERED, 1)
        assert [entry.data for entry in await store.journal.read(session.id)] == [{"text": "hello"}, {}]
        assert await audit(store.database) == []
    finally:
        await store.close()


PARKED_ROWS = (
    """INSERT INTO sessions (id, key, channel, owner, one_shot, source, created_at, updated_at, seq, turns, generation)
       VALUES ('p', 'chat:2', 'telegram', 'ann', 0, '{}', 1, 1, 3, 1, 0)""",
    """INSERT INTO turns (id, session_id, ordinal, accepted_at, mode, delivers_later, remembers, state, attempt, nth)
       VALUES ('w', 'p', 1, 1, 'conversation', 1, 1, 'waiting', 1, 2)""",
    """INSERT INTO entries (session_id, seq, turn_id, attempt, nth, kind, at, data)
       VALUES ('p', 1, 'w', 0, NULL, 'turn.accepted', 1, '{"text": "hello"}'),
              ('p', 2, 'w', 1, 1, 'approval.asked', 2, '{"text": "before?", "question_id": "q1"}'),
              ('p', 3, 'w', 1, 2, 'approval.asked', 3, '{"text": "may I?", "question_id": "q2"}')""",
)


def apply_third(dialect: Dialect) -> Transaction[None]:
    """Make a store as it was before questions had a table, with a turn that waits for an answer."""
    yield from apply_first(dialect)
    for version in (2, 3):
        for statement in migrations.statements(dialect, migrations.known(dialect)[version]):
            yield Run(statement)
        yield Run("INSERT INTO schema_versions VALUES (:version, 0)", {"version": version})
    for statement in PARKED_ROWS:
        yield Run(statement)


async def test_a_turn_that_waits_through_an_update_can_still_be_answered(store_url: str, tmp_path: Path) -> None:
    """A1, Q1, R11: what was asked before there was a table for it has its row."""
    old = await opening._connect(store_url, tmp_path)
    await old.write(lambda: apply_third(old.dialect))
    await old.close()
    store = await open_store(store_url, tmp_path)
    try:
        (asked,) = await store.questions.open("ann")
        assert (asked.question, asked.asked_at) == (questions.Question(id="q2", text="may I?"), 3)
        assert (await store.turns.get(TurnId("w"))).parent_turn_id is None
        assert await audit(store.database) == []
        reply = events.ApprovalAnswered(question_id="q2", text="yes")
        assert (await store.turns.answer(TurnId("w"), reply, 4)).state is turns.TurnState.QUEUED
        assert await audit(store.database) == []
    finally:
        await store.close()


LEDGER_ROWS = (
    """INSERT INTO sessions (id, key, channel, owner, one_shot, source, created_at, updated_at, seq, turns, generation)
       VALUES ('m', 'chat:3', 'telegram', 'ann', 0, '{}', 1, 1, 6, 3, 3)""",
    """INSERT INTO turns
           (id, session_id, ordinal, accepted_at, mode, delivers_later, remembers, state, attempt, answered_at, generation)
       VALUES ('m1', 'm', 1, 1, 'conversation', 1, 1, 'completed', 1, 2, 1),
              ('m2', 'm', 2, 1, 'conversation', 1, 1, 'completed', 1, 2, 2),
              ('m3', 'm', 3, 1, 'conversation', 1, 1, 'completed', 1, 2, 3)""",
    """INSERT INTO entries (session_id, seq, turn_id, attempt, kind, at, data)
       VALUES ('m', 1, 'm1', 0, 'turn.accepted', 1, '{}'), ('m', 2, 'm1', 1, 'turn.completed', 2, '{}'),
              ('m', 3, 'm2', 0, 'turn.accepted', 1, '{}'), ('m', 4, 'm2', 1, 'turn.completed', 2, '{}'),
              ('m', 5, 'm3', 0, 'turn.accepted', 1, '{}'), ('m', 6, 'm3', 1, 'turn.completed', 2, '{}')""",
    """INSERT INTO segments
           (id, session_id, owner, first_generation, last_generation, created_at, due_at, state, attempt, fence, error)
       VALUES ('paid', 'm', 'http-a', 1, 1, 1, 7, 'committed', 2, 4, NULL),
              ('owed', 'm', 'http-a', 2, 2, 2, 8, 'sealed', 1, 2, 'the provider is down'),
              ('open', 'm', 'builtin', 3, 3, 3, 3, 'open', 0, 0, NULL)""",
    """INSERT INTO memories (id, owner, text, created_at, updated_at, turn_id)
       VALUES ('one', 'ann', 'Likes tea.', 1, 2, 'm1'), ('two', 'ann', 'likes tea', 3, 4, NULL),
              ('other', 'bob', 'likes tea', 5, 6, NULL)""",
)


def apply_fifth(dialect: Dialect) -> Transaction[None]:
    """Make a store as it was before debts could be waived and memories had words, with some of both."""
    yield from apply_third(dialect)
    for version in (4, 5):
        for statement in migrations.statements(dialect, migrations.known(dialect)[version]):
            yield Run(statement)
        yield Run("INSERT INTO schema_versions VALUES (:version, 0)", {"version": version})
    for statement in LEDGER_ROWS:
        yield Run(statement)


async def test_debts_and_memories_outlive_an_update(store_url: str, tmp_path: Path) -> None:
    """M2, M6, R11: every row is kept, also two that say the same by the new rule, and all of it goes on."""
    old = await opening._connect(store_url, tmp_path)
    await old.write(lambda: apply_fifth(old.dialect))
    await old.close()
    store = await open_store(store_url, tmp_path)
    try:
        paid, owed, unsealed = await store.segments.of_session(SessionId("m"))
        assert (paid.id, paid.state, paid.settled_at, paid.attempt, paid.fence) == (
            "paid",
            segments.SegmentState.COMMITTED,
            7,
            2,
            4,
        )
        assert (owed.id, owed.state, owed.error, owed.due_at) == (
            "owed",
            segments.SegmentState.SEALED,
            "the provider is down",
            8,
        )
        assert (unsealed.id, unsealed.state, unsealed.owner) == ("open", segments.SegmentState.OPEN, "builtin")
        assert {each.state: each.count for each in await store.segments.unpaid("ann")} == {
            segments.SegmentState.SEALED: 1, segments.SegmentState.OPEN: 1
        }  # fmt: skip
        assert (await store.segments.settled("ann"))[segments.SegmentState.COMMITTED] == 1
        first, second = await store.memories.list("ann")
        assert (first.text, first.turn_id, first.updated_at) == ("Likes tea.", "m1", 2)
        assert (second.text, second.kind) == ("likes tea", facts.MemoryKind.FACT)
        assert await store.memories.search("ann", "TEA") == [second, first]
        assert [each.id for each in await store.memories.recall("bob", "Some tea?")] == ["other"]
        assert await store.memories.add(facts.Memory(
            id=MemoryId("again"), owner="ann", text="LIKES tea!", created_at=9, updated_at=9
        )) == first  # fmt: skip
        assert await store.memories.replace("ann", second.id, "likes coffee", 9)
        assert await audit(store.database) == []
    finally:
        await store.close()


def apply_eighth(dialect: Dialect) -> Transaction[None]:
    """Make a store as it was before words were found by how they begin, with a title."""
    yield from apply_first(dialect)
    for version in range(2, 9):
        for statement in migrations.statements(dialect, migrations.known(dialect)[version]):
            yield Run(statement)
        yield Run("INSERT INTO schema_versions VALUES (:version, 0)", {"version": version})
    yield Run("UPDATE sessions SET title = 'Überfahrt'")


async def test_what_was_said_before_an_update_is_found_by_the_new_search(store_url: str, tmp_path: Path) -> None:
    """R11: at once while it waits to be indexed, and when it is."""
    old = await opening._connect(store_url, tmp_path)
    await old.write(lambda: apply_eighth(old.dialect))
    await old.close()
    store = await open_store(store_url, tmp_path)
    try:
        for step in (2, 0):
            assert [hit.text for hit in (await store.passages.find("local", "uberf")).hits] == ["Überfahrt"]
            assert [hit.text for hit in (await store.passages.find("local", "hel")).hits] == ["hello"]
            assert await audit(store.database) == []
            assert await store.passages.index() == step
    finally:
        await store.close()


@on_postgres
async def test_a_migration_may_take_longer_than_any_other_write(scene: Scene) -> None:
    """P1: a large store is brought up to date in one go, while ordinary work that takes long is cut off."""

    def limit() -> Transaction[int]:
        ((setting,),) = yield Run("SELECT setting FROM pg_settings WHERE name = 'transaction_timeout'")
        return int(setting)

    database = scene.store.database
    assert await database.write(limit) > 0
    async with database.unhurried():
        assert await database.write(limit) == 0
    assert await database.write(limit) > 0


@asynccontextmanager
async def opened(open_it: Opener) -> AsyncIterator[Store]:
    store = await open_it()
    try:
        yield store
    finally:
        await store.close()


def stored(home: Path) -> dict[str, bytes]:
    """Return what is in a home, except the lock, the ballast and SQLite's scratch memory, which hold nothing of a user's."""
    files = [path for path in home.rglob("*") if path.is_file() and not path.name.endswith((".lock", ".ballast", "-shm"))]
    return {path.name: path.read_bytes() for path in files if path.stat().st_size}


async def beside(url: str, home: Path, statement: str) -> None:
    """Run a statement as another program would."""
    if url == "sqlite":
        connection = apsw.Connection(str(store_path(home)))
        connection.execute(statement)
        connection.close()
        return
    other = await asyncpg.connect(url)
    await other.execute(statement)
    await other.close()


async def test_a_newer_schema_is_refused_and_left_alone(open_it: Opener, store_url: str, tmp_path: Path) -> None:
    scene = Scene(open_it, store_url)
    async with opened(open_it) as scene.store:
        scene.node = await scene.joined()
        await scene.finished()
        before = await scene.snapshot()
    await beside(store_url, tmp_path, "INSERT INTO schema_versions VALUES (1000, 0)")
    files = stored(tmp_path)
    for _ in range(2):
        with pytest.raises(StoreRefused, match="1000"):
            await open_it()
    assert stored(tmp_path) == files
    await beside(store_url, tmp_path, "DELETE FROM schema_versions WHERE version = 1000")
    async with opened(open_it) as scene.store:
        assert await scene.snapshot() == before


def foreign_database(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')")
    connection.close()


def foreign_database_in_use(path: Path) -> None:
    """Leave a database whose last change is still in its WAL, as a program that was killed leaves it."""
    connection = apsw.Connection(str(path))
    for statement in ("PRAGMA journal_mode = WAL", "CREATE TABLE notes (text)", "INSERT INTO notes VALUES ('mine')"):
        connection.execute(statement).fetchall()
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()
    assert path.with_name(f"{path.name}-wal").stat().st_size


def text_file(path: Path) -> None:
    path.write_text("Dear diary, this is not a database, however long it may be.\n" * 100)


def short_text_file(path: Path) -> None:
    path.write_text("Dear diary\n")


@on_sqlite
async def test_a_folder_where_the_store_would_be_is_refused(open_it: Opener, store_url: str, tmp_path: Path) -> None:
    store_path(tmp_path).mkdir()
    with pytest.raises(StoreRefused, match="is a folder"):
        await open_it()
    with pytest.raises(StoreRefused, match="is a folder"):
        await opening.open_readonly(store_url, tmp_path)


@on_sqlite
@pytest.mark.parametrize("make", [foreign_database, foreign_database_in_use, text_file, short_text_file])
async def test_what_is_not_ours_is_refused_and_left_untouched(
    open_it: Opener, store_url: str, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """Byte for byte, with its mode, and as often as we are asked."""
    path = store_path(tmp_path)
    make(path)
    path.chmod(0o644)
    before = stored(tmp_path)
    for _ in range(2):
        with pytest.raises(StoreRefused, match="move it away"):
            await open_it()
        gc.collect()  # A connection that was only dropped would write when it is collected.
        assert stored(tmp_path) == before
        assert path.stat().st_mode & 0o777 == 0o644


def start(*arguments: str, code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


OWNING = """
import asyncio, pathlib, sys
from holdfast.store.opening import open_store

async def own() -> None:
    store = await open_store("sqlite", pathlib.Path(sys.argv[1]))
    print("open", flush=True)
    sys.stdin.readline()
    await store.close()

asyncio.run(own())
"""


@on_sqlite
async def test_a_second_process_is_told_who_owns_the_store(open_it: Opener, store_url: str, tmp_path: Path) -> None:
    with start(str(tmp_path), code=OWNING) as owner:
        assert owner.stdout
        assert owner.stdin
        assert owner.stdout.readline() == "open\n"
        for _ in range(2):
            with pytest.raises(Owned) as refused:
                await open_it()
            assert refused.value.pid == owner.pid
        owner.stdin.write("\n")
        owner.stdin.flush()
        assert owner.wait(30) == 0
    async with opened(open_it):
        with pytest.raises(Owned) as refused:
            await open_it()
        assert refused.value.pid == os.getpid()


@on_sqlite
async def test_a_store_whose_owner_was_killed_is_free(open_it: Opener, store_url: str, tmp_path: Path) -> None:
    """R9: ownership is a lock of the kernel, not a file that somebody must remove."""
    with start(str(tmp_path), code=OWNING) as owner:
        assert owner.stdout
        assert owner.stdout.readline() == "open\n"
        owner.kill()
    async with opened(open_it) as store:
        assert await audit(store.database) == []


KILLED = """
import asyncio, itertools, os, pathlib, signal, sys
from holdfast.store import opening
from holdfast.store.migrations import migrate

url, home, last = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
count = itertools.count(1)

def dying(work):
    transaction = work()
    answer = None
    try:
        while True:
            statement = transaction.send(answer)
            if next(count) == last:
                os.kill(os.getpid(), signal.SIGKILL)
            answer = yield statement
            if last == 0 and statement.sql.startswith("INSERT INTO schema_versions"):
                os.kill(os.getpid(), signal.SIGKILL)
    except StopIteration as done:
        return done.value

class Dying:
    def __init__(self, database):
        self._database = database
        self.dialect = database.dialect

    async def write(self, work):
        return await self._database.write(lambda: dying(work))

    async def read(self, work):
        return await self._database.read(work)

    def unhurried(self):
        return self._database.unhurried()

async def main() -> None:
    await migrate(Dying(await opening._connect(url, home)), 0)

asyncio.run(main())
"""


@pytest.mark.parametrize("statement", [1, 4, 8, 30, 0], ids=lambda number: f"at-{number}" if number else "before-commit")
async def test_a_migration_that_was_killed_converges(
    open_it: Opener, store_url: str, tmp_path: Path, statement: int
) -> None:
    """P1: killed before the N-th statement, or after the last and before the commit."""
    with start(store_url, str(tmp_path), str(statement), code=KILLED) as killed:
        assert killed.wait(30) == -signal.SIGKILL
    scene = Scene(open_it, store_url)

    async def test() -> None:
        assert await tables(scene) | {"passages"} == set(TABLES)
        await scene.finished()

    await scene.play(test)


@on_postgres
async def test_nodes_that_start_together_migrate_once(open_it: Opener, store_url: str) -> None:
    """P1"""
    stores = await asyncio.gather(*(open_it() for _ in range(4)))
    scene = Scene(open_it, store_url)
    scene.store = stores[0]
    assert await scene.sql("SELECT COUNT(*) FROM schema_versions") == [(len(migrations.known(POSTGRES)),)]
    for store in stores:
        await store.close()


STATEMENT = re.compile(r"\s*(SELECT|UPDATE|DELETE|INSERT|WITH)\b")
MODULES = (
    intake_sql, turns_sql, settlement_sql, forks_sql, journal_sql, deliveries_sql, segments_sql, nodes_sql, jobs_sql,
    sessions_sql, recoveries_sql, questions_sql, processes_sql, spending_sql, memories_sql, cancellation_sql, closing_sql,
    access_sql, webhooks_sql, catalog_sql, passages_sql, removal_sql, claims_sql, continuations_sql,
    people_sql, channels_sql, showing_sql, news_sql,
)  # fmt: skip
# Indexes that hold only what is on its way, so that reading all of one is no scan of what has been.
SMALL = (
    "deliveries_due|deliveries_held|turns_claimable|turns_held|turns_waited_for|turns_in_flight|turns_interrupted|sessions_in_use"
    "|segments_one_committing_per_session|segments_one_open_per_session|segments_due|segments_idle|segments_dirty|segments_owing"
    "|questions_open|questions_one_open_per_turn|questions_of_session"
    "|cards_open|status_lines_open"
    "|nodes_crashed|nodes_found|channel_accounts_troubled|slots_untold|deliveries_untold"
)
# What a statement makes for itself, and what holds only what is on its way.
MADE = "u|unsearched|heads|owners|asked|hits|found|spreads|ranks|said|idle"
# Statements that may read a whole table: it is tiny, or they run once in a while.
WHOLE = {
    "nodes._BEATS",
    "nodes._BURY_OTHERS",
    "nodes._FORGET",
    "nodes._BOOT_CLOCK",
    "nodes._CLOCKS_OFF",
    "access._KEYS",
    "webhooks._ALL",
    "channels._ALL",
    "people._PEOPLE",
    "people._PAIRINGS",
    "people._TRUSTED",
    "jobs._ALL",
    "jobs._NOTE_FORGOTTEN",
    "turns._TALLY",
    "recoveries._SIGHT",
    "memories._OLD",
    "passages._TITLED",
    "memories._TALLY_OF_ALL",
    "segments._SETTLED_OF_ALL",
}


def statements(*modules: ModuleType) -> dict[str, str]:
    """Return every statement of the store, by where it stands."""
    return {
        f"{module.__name__.rpartition('.')[2]}.{name}": text
        for module in modules
        for name, text in vars(module).items()
        if isinstance(text, str) and STATEMENT.match(text)
    }


async def plan(scene: Scene, sql: str) -> list[str]:
    filled = sql.replace("{skip_locked}", "").replace("{come}", "TRUE").replace("{indexed}", passages_sql.INDEXED["sqlite"])
    filled = re.sub(r"\{(opening|text)\}", SQLITE.text("e.data", 1), filled)
    filled = filled.replace("{kind}", SQLITE.before_colon("d.target"))
    filled = re.sub(r"\{(ids|words|stems|turns|in_line|numbers)\}", lambda name: SQLITE.each(name[1]), filled)
    params = dict.fromkeys(re.findall(r"(?<!:):([a-z_]+)", filled))
    return [row[3] for row in await scene.sql(f"EXPLAIN QUERY PLAN {filled}", **params)]


@on_sqlite
async def test_no_statement_scans_a_table_that_grows(scene: Scene) -> None:
    """W7: what a store has seen does not slow down what it does."""
    scans = {}
    for name, sql in statements(*MODULES).items():
        steps = await plan(scene, sql)
        whole = [step for step in steps if re.match(rf"SCAN (?!CONSTANT ROW|json_each |passages |({MADE})$)", step)]
        if unwanted := [step for step in whole if not re.search(rf"USING (COVERING )?INDEX ({SMALL})\b", step)]:
            scans[name] = unwanted
    assert set(scans) == WHOLE, scans


@on_sqlite
async def test_a_search_of_what_is_not_indexed_yet_begins_with_that(scene: Scene) -> None:
    """W7: begun with the sessions of an owner, it took 0.1 s with 25,000 of them."""
    steps = await plan(scene, passages_sql._UNSEARCHED)
    assert [step.split()[1] for step in steps if step.startswith(("SCAN", "SEARCH"))] == ["unsearched", "u", "e", "s"]


@on_sqlite
async def test_a_search_of_titles_reads_only_the_sessions_that_it_found(scene: Scene) -> None:
    """W7: every search reads titles first."""
    steps = await plan(scene, passages_sql._TITLES)
    assert [step for step in steps if " s " in step] == ["SEARCH s USING INDEX sqlite_autoindex_sessions_1 (id=?)"]


@on_sqlite
async def test_sessions_are_hidden_by_their_ids(scene: Scene) -> None:
    """W7: found by their channel, a hundred are looked for among all that have ended, while every other write waits."""
    (step, *_) = await plan(scene, removal_sql._HIDE_PRUNABLE)
    assert step == "SEARCH s USING INDEX sqlite_autoindex_sessions_1 (id=?)"


@on_sqlite
@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("sessions._FIND", "sessions_one_open_per_key"),
        ("intake._HOLD", "sessions_one_open_per_key"),
        ("claims._CLAIM_OF_OWNER", "turns_claimable"),
        ("claims._CLAIM_OF_OWNER", "turns_in_flight"),
        ("claims._CLAIM_WAITED_FOR", "turns_waited_for"),
        ("claims._TAKE", "turns_claimable"),
        ("claims._TAKE_WAITED_FOR", "turns_waited_for"),
        ("turns._HELD", "turns_held"),
        ("deliveries._DUE", "deliveries_due"),
        ("segments._DUE", "segments_due"),
        ("segments._DUE", "segments_dirty"),
        ("segments._OWNERS_DUE", "segments_due"),
        ("segments._SEAL_IDLE", "segments_idle"),
        ("segments._SEAL_IDLE", "turns_in_flight"),
        ("segments._LIST", "segments_by_state"),
        ("segments._SETTLED", "segments_by_state"),
        ("segments._TO_REPLAY", "segments_by_state"),
        ("segments._OWING", "segments_owing"),
        ("segments._LONGEST_OWING", "segments_owing"),
        ("segments._UNPAID", "segments_by_state"),
        ("segments._UNPAID_OF_ALL", "segments_owing"),
        ("sessions._LIST", "sessions_by_update"),
        ("sessions._LIST_CHANNEL", "sessions_by_channel"),
        ("sessions._LIST_ARCHIVED", "sessions_archived"),
        ("sessions._LIST_PINNED", "sessions_pinned"),
        ("sessions._LIST_IN_USE", "sessions_in_use"),
        ("sessions._GLANCES", "turns_in_flight"),
        ("sessions._IDLE", "sessions_in_use"),
        ("catalog._DELIVERIES", "deliveries_by_owner"),
        ("catalog._OF_STATE", "deliveries_by_state"),
        ("memories._LIST", "memories_by_owner"),
        ("memories._RECENT", "memories_recent"),
        ("memories._PROFILE", "memories_one_profile"),
        ("memories._FORGET_WORDS", "memory_words_of_memory"),
        ("memories._SEARCH", "sqlite_autoindex_memory_words_1"),
        ("memories._RECALL", "sqlite_autoindex_memory_words_1"),
        ("jobs._OF_OWNER", "jobs_by_owner"),
        ("people._OLD", "pairings_by_expiry"),
        ("removal._PRUNABLE", "sessions_ended"),
        ("cancellation._WORKING_FOR", "turns_by_parent"),
        ("turns._AT_WORK_FOR", "turns_by_parent"),
        ("turns._UNREPORTED", "sessions_ended"),
        ("turns._TALLY", "turns_unanswered"),
        ("turns._TALLY", "turns_interrupted"),
        ("journal._COMPACTED", "entries_compacted"),
        ("intake._LAST_USED", "processes_running_by_session"),
        ("questions._OPEN", "questions_open"),
        ("questions._EXPIRED", "questions_expiring"),
        ("questions._IS_GRANTED", "grants_once"),
        ("processes._RUNNING", "processes_running"),
        ("spending._BY_OWNER", "spending_by_day"),
        ("spending._ALLOWED", "questions_of_budgets"),
        ("passages._TITLES", "sqlite_autoindex_title_words_1"),
        ("passages._UNTITLE", "title_words_of_session"),
    ],
)
async def test_what_runs_often_uses_its_index(scene: Scene, statement: str, index: str) -> None:
    steps = await plan(scene, statements(*MODULES)[statement])
    assert any(re.search(rf"USING (COVERING )?INDEX {index}\b", step) for step in steps), steps


async def test_search_uses_its_index(scene: Scene) -> None:
    """W7: neither reads all that was said, nor sorts all that was found where the index knows its order."""
    if scene.postgres:
        await scene.sql("SET enable_seqscan = off")
        found = await scene.sql(f"EXPLAIN {passages_sql._FIND['postgres']}", owner="local", terms="[\"'heron':*\"]", limit=1)
        assert "Bitmap Index Scan on passages_words" in "\n".join(row[0] for row in found)
        return
    steps = await plan(scene, passages_sql._FIND["sqlite"])
    assert [step.split(" USING")[0] for step in steps] == ["SCAN p VIRTUAL TABLE INDEX 192:M1", "SEARCH e", "SEARCH s"]


async def test_the_audit_names_its_offender(scene: Scene) -> None:
    turn = await scene.interrupted()
    await scene.sql("UPDATE sessions SET strikes = 3")
    assert await audit(scene.store.database) == [f"S2 three strikes suspend: {turn.session_id}"]
    await scene.sql("UPDATE sessions SET strikes = 1")


async def test_a_node_joins_once(scene: Scene) -> None:
    node = new_node_id(scene.now)
    await scene.store.nodes.join(node, scene.now)
    with pytest.raises(Stale):
        await scene.store.nodes.join(node, scene.now)


@on_sqlite
async def test_a_home_is_private(open_it: Opener, store_url: str, tmp_path: Path) -> None:
    """K1: what people say to their agent is for nobody else on the machine."""
    home = tmp_path / "new"
    store = await open_store(store_url, home)
    assert home.stat().st_mode & 0o777 == 0o700
    assert store_path(home).stat().st_mode & 0o777 == 0o600
    await store.close()


@on_sqlite
@pytest.mark.parametrize(("setting", "value"), [("synchronous", 2), ("journal_mode", "wal"), ("foreign_keys", 1)])
async def test_what_is_acknowledged_is_on_the_disk(scene: Scene, setting: str, value: str | int) -> None:
    """A2: with anything less than FULL a power cut takes acknowledged work."""
    assert await scene.sql(f"PRAGMA {setting}") == [(value,)]


@on_postgres
async def test_what_is_acknowledged_is_in_the_log(scene: Scene) -> None:
    """A2: no session of ours trades durability for speed."""
    assert [tuple(row) for row in await scene.sql("SHOW synchronous_commit")] == [("on",)]
