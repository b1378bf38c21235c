"""Removal: a session is gone at once, and its rows go in steps that keep no other write waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.core.sessions import NO_OWNER
from holdfast.errors import NotFound
from holdfast.ids import SessionId
from holdfast.store.audit import audit
from holdfast.store.database import Database, Run, Transaction, Work
from holdfast.store.removal import CHUNK, ROWS_MAX
from holdfast.store.retention import TABLES
from holdfast.store.store import Store
from tests.conformance.scenes import Scene

LONG = 3 * ROWS_MAX
# A write may end with a chunk more than it may delete, and words of the index go with their entries.
DELETED_MAX = ROWS_MAX + 2 * CHUNK
_NOTES = """
    INSERT INTO entries (session_id, seq, turn_id, attempt, nth, kind, at, data)
    WITH RECURSIVE n (i) AS (SELECT CAST(:first AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST(:last AS BIGINT))
    SELECT CAST(:session_id AS TEXT), i, CAST(:turn_id AS TEXT), 1, NULL, 'note', 1, '{"text":"a word"}' FROM n
"""


class Weighed:
    """A database that counts the rows of the whole store around each of its writes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.deleted: list[int] = []

    def __getattr__(self, name: str) -> Any:  # All else is as it is.
        return getattr(self._database, name)

    async def write(self, work: Work[Any], **how: Any) -> Any:
        result, deleted = await self._database.write(lambda: _weighed(work), wakes=lambda _: ())
        self.deleted.append(deleted)
        return result


def _weighed(work: Work[Any]) -> Transaction[tuple[Any, int]]:
    before = yield from _rows()
    result = yield from work()
    return result, before - (yield from _rows())


def _rows() -> Transaction[int]:
    tables = [table for table in TABLES if table != "passages"]
    ((rows,),) = yield Run("SELECT " + " + ".join(f"(SELECT COUNT(*) FROM {table})" for table in tables))
    return rows


async def long_session(scene: Scene, conversation: str = "long", entries: int = LONG) -> SessionId:
    """Return an ended session with that many entries."""
    turn = await scene.finished(conversation=conversation, channel="webhook", one_shot=True, remembers=False)
    seq = (await scene.store.sessions.get(turn.session_id)).seq
    which = {"session_id": turn.session_id, "turn_id": turn.id}
    await scene.sql(_NOTES, first=seq + 1, last=seq + entries, **which)
    await scene.sql("UPDATE sessions SET seq = seq + :count WHERE id = :id", count=entries, id=turn.session_id)
    return turn.session_id


async def left(scene: Scene, session_id: SessionId) -> int:
    ((entries,),) = await scene.sql("SELECT COUNT(*) FROM entries WHERE session_id = :id", id=session_id)
    return entries


async def test_no_write_of_a_prune_deletes_more_than_a_few_rows(scene: Scene) -> None:
    """W6: whatever the sessions hold, other writes wait for little."""
    for number in range(40):
        await long_session(scene, str(number), entries=60)
    await long_session(scene)
    weighed = Weighed(scene.store.database)
    assert await Store(weighed).sessions.prune("webhook", scene.now) == 41
    assert max(weighed.deleted) <= DELETED_MAX
    assert sum(weighed.deleted) > LONG + 40 * 60


async def test_no_write_of_a_deletion_deletes_more_than_a_few_rows(scene: Scene) -> None:
    """W6"""
    session_id = await long_session(scene)
    weighed = Weighed(scene.store.database)
    store = Store(weighed)
    assert await store.sessions.delete(session_id, scene.now)
    while await store.sessions.sweep():
        pass
    assert max(weighed.deleted) <= DELETED_MAX
    assert await left(scene, session_id) == 0


async def test_no_write_of_retention_deletes_more_than_a_few_rows(scene: Scene) -> None:
    """W7"""
    await scene.sql("""
        INSERT INTO dedupe (key, body_hash, turn_id, session_id, accepted_at)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
        SELECT 'key' || i, '', 'trn' || i, 'ses', 1 FROM n
    """)
    weighed = Weighed(scene.store.database)
    assert await Store(weighed).sessions.forget_keys(1) == 2500
    assert max(weighed.deleted) <= DELETED_MAX


async def test_nobody_sees_half_a_session_while_its_rows_go(scene: Scene) -> None:
    """W6: it is there as a whole, or not at all; and what is left of it breaks no promise."""
    session_id = await long_session(scene)
    turn = await scene.store.turns.last(session_id)
    assert turn
    whole = (await scene.store.sessions.get(session_id)).seq
    seen = set[int]()
    async for _ in scene.store.sessions.pruning("webhook", scene.now):
        entries = len(await scene.store.journal.read(session_id, limit=10 * LONG))
        assert entries in (0, whole)
        assert len(await scene.store.journal.read_turn(turn.id)) in (0, whole)
        assert len(await scene.store.journal.read_turns(session_id)) in (0, whole)
        seen.add(await left(scene, session_id))
        assert await audit(scene.store.database) == []
    assert len(seen - {0, whole}) > 1, "it went in one step, so that nothing was seen here"


async def test_what_is_removed_is_gone_at_once_for_everybody(scene: Scene) -> None:
    """W6"""
    session_id = await long_session(scene)
    steps = scene.store.sessions.pruning("webhook", scene.now)
    assert await anext(steps) == 1
    await steps.aclose()
    assert await left(scene, session_id) > 0
    with pytest.raises(NotFound):
        await scene.store.sessions.get(session_id)
    with pytest.raises(NotFound):
        await scene.store.journal.news(session_id, 0)
    assert await scene.store.sessions.glances([session_id]) == {}
    assert await scene.store.sessions.list("local") == []
    assert (await scene.store.passages.find("local", "hello")).hits == ()
    assert await scene.store.sessions.prune("webhook", scene.now) == 0
    assert await left(scene, session_id) == 0


async def test_what_a_crash_left_of_a_session_goes_with_the_next_round(scene: Scene) -> None:
    """W7, P1"""
    session_id = await long_session(scene)
    async for _ in scene.store.sessions.pruning("webhook", scene.now):
        break
    await scene.reopen()
    assert await left(scene, session_id) > 0
    await scene.store.enforce_retention({}, scene.now)
    assert await left(scene, session_id) == 0
    assert await scene.sql("SELECT id FROM sessions WHERE owner = :owner", owner=NO_OWNER) == []


async def test_nothing_of_a_deleted_session_acts_any_more(scene: Scene) -> None:
    """W6: not even where its rows are still there."""
    turn = await scene.running(conversation="deleted")
    await scene.finish(turn, deliveries=scene.parts(turn, "hi"))
    assert await unsettled(scene) == [1, 1]
    await _hidden_only(scene, turn.session_id)
    assert await unsettled(scene) == [0, 0]
    assert await scene.send() == []


async def _hidden_only(scene: Scene, session_id: SessionId) -> None:
    """Delete a session, and die before any of its rows is swept."""

    class Killed(Exception):
        pass

    class Mortal(Weighed):
        async def write(self, work: Work[Any], **how: Any) -> Any:
            if self.deleted:
                raise Killed
            return await super().write(work, **how)

    with pytest.raises(Killed):
        await Store(Mortal(scene.store.database)).sessions.delete(session_id, scene.now)


async def unsettled(scene: Scene) -> Sequence[int]:
    ((deliveries,),) = await scene.sql("SELECT COUNT(*) FROM deliveries WHERE state = 'pending'")
    ((segments,),) = await scene.sql("SELECT COUNT(*) FROM segments WHERE state <> 'committed'")
    return [deliveries, segments]
