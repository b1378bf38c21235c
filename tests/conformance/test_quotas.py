"""Quotas and fairness in the store: counted where it is used, and right however many come at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

import pytest

from holdfast.core.admission import Load
from holdfast.core.intake import Receipt
from holdfast.core.quotas import Quota
from holdfast.core.schedule import Job
from holdfast.core.sessions import Session
from holdfast.errors import OverQuota
from holdfast.ids import SessionId, new_session_id
from holdfast.store import quotas
from holdfast.store.database import Statement, Transaction
from holdfast.store.store import Store
from tests.conformance.scenes import PICTURE, Scene


def limited(scene: Scene, **quota: int) -> Store:
    """Return the store of a scene with a quota for tenants."""
    return Store(scene.store.database, quota=Quota(**quota))


async def flood(scene: Scene, owner: str, count: int) -> list[Receipt]:
    return [await scene.accept(conversation=f"{owner}:{nth}", owner=owner) for nth in range(count)]


async def test_many_turns_of_one_owner_keep_nobody_elses_waiting(scene: Scene) -> None:
    """S11: the operator's came last, and is taken with the first."""
    await flood(scene, "alice", 30)
    scene.now += 1
    await flood(scene, "local", 1)
    taken = await scene.store.turns.take(scene.node, 4, scene.now)
    assert sorted(turn.owner for turn, _ in taken) == ["alice", "alice", "alice", "local"]


async def test_what_runs_already_counts(scene: Scene) -> None:
    await flood(scene, "alice", 5)
    await flood(scene, "bob", 5)
    taken = await scene.store.turns.take(scene.node, 4, scene.now, load=Load(running={"alice": 10}))
    assert {turn.owner for turn, _ in taken} == {"bob"}


async def test_a_tenant_at_its_limit_waits_although_there_is_room(scene: Scene) -> None:
    await flood(scene, "alice", 5)
    load = Load(tenant_max=2)
    assert len(await scene.store.turns.take(scene.node, 10, scene.now, load=load)) == 2
    assert await scene.store.turns.take(scene.node, 10, scene.now, load=load.and_("alice", 2)) == []


async def test_what_one_owner_has_no_use_for_the_others_get(scene: Scene) -> None:
    await flood(scene, "alice", 1)
    await flood(scene, "bob", 9)
    assert len(await scene.store.turns.take(scene.node, 8, scene.now)) == 8


async def test_sessions_that_no_quota_limits_are_not_counted(scene: Scene) -> None:
    """W7: a tenant may have any number of them, and each message would wait for the count."""
    asked: list[Statement] = []
    message = scene.message(owner="alice")

    def watched() -> Transaction[None]:
        asked.clear()  # A driver may begin it more than once.
        checking = quotas.check_message(Quota(queued=3), message)
        with suppress(StopIteration):
            statement = next(checking)
            while True:
                asked.append(statement)
                statement = checking.send((yield statement))

    await scene.store.database.write(watched)
    assert len(asked) == 2, "the tenant is held, and what waits is counted"


async def test_only_so_many_messages_of_a_tenant_wait(scene: Scene) -> None:
    store = limited(scene, queued=3)
    for nth in range(3):
        await scene.accept(by=store, conversation=f"a:{nth}", owner="alice")
    with pytest.raises(OverQuota, match="3 messages wait"):
        await scene.accept(by=store, conversation="a:4", owner="alice")
    await scene.accept(by=store, conversation="b:1", owner="bob")
    for nth in range(5):
        await scene.accept(by=store, conversation=f"l:{nth}")


async def test_a_repeated_message_is_no_use_of_a_quota(scene: Scene) -> None:
    """A sender who repeats a message that was accepted gets its receipt, whatever the quota is by then."""
    store = limited(scene, queued=1)
    first = await scene.accept(by=store, owner="alice", dedupe_key="k")
    assert (await scene.accept(by=store, owner="alice", dedupe_key="k")).turn_id == first.turn_id


async def test_only_so_much_of_a_tenant_is_stored_and_deleting_makes_room(scene: Scene) -> None:
    store = limited(scene, bytes=1_000)
    first = await scene.accept("x" * 600, by=store, owner="alice", conversation="a:1")
    for conversation in ("a:1", "a:2"):
        with pytest.raises(OverQuota, match="600 of 1,000 bytes"):
            await scene.accept("x" * 401, by=store, owner="alice", conversation=conversation)
    with pytest.raises(OverQuota):
        await scene.accept("ü" * 201, by=store, owner="alice")
    await scene.accept("x" * (400 - len(PICTURE.data)), by=store, owner="alice", images=(PICTURE,))
    await store.sessions.delete(first.session_id, scene.now)
    await scene.accept("x" * 600, by=store, owner="alice", conversation="a:3")


async def test_only_so_many_sessions_of_a_tenant_are_there(scene: Scene) -> None:
    store = limited(scene, sessions=2)
    first = await scene.accept(by=store, owner="alice", conversation="a:1")
    await store.sessions.open("alice", "a:2", "api", new_session_id(scene.now), scene.now)
    with pytest.raises(OverQuota, match="2 sessions"):
        await scene.accept(by=store, owner="alice", conversation="a:3")
    with pytest.raises(OverQuota, match="2 sessions"):
        await store.sessions.open("alice", "a:3", "api", new_session_id(scene.now), scene.now)
    facts: dict[str, Any] = {"key": "fork", "channel": "api", "owner": "alice", "one_shot": False}
    copy = Session(id=new_session_id(scene.now), created_at=scene.now, updated_at=scene.now, **facts)
    with pytest.raises(OverQuota, match="2 sessions"):
        await store.sessions.fork(first.session_id, copy)
    # Those that are there go on.
    await scene.accept(by=store, owner="alice", conversation="a:1")
    await store.sessions.open("alice", "a:2", "api", new_session_id(scene.now), scene.now)


async def test_a_copy_counts_like_what_was_copied(scene: Scene) -> None:
    store = limited(scene, bytes=1_000)
    first = await scene.accept("x" * 600, by=store, owner="alice")
    facts: dict[str, Any] = {"key": "fork", "channel": "api", "owner": "alice", "one_shot": False}
    copy = Session(id=new_session_id(scene.now), created_at=scene.now, updated_at=scene.now, **facts)
    with pytest.raises(OverQuota, match="bytes"):
        await store.sessions.fork(first.session_id, copy)


async def test_only_so_many_jobs_of_a_tenant_are_there(scene: Scene) -> None:
    store = limited(scene, jobs=1)

    def job(name: str, owner: str = "alice") -> Job:
        return Job(name=name, owner=owner, schedule="@daily", prompt="x", created_at=scene.now, last_instant=scene.now)

    await store.jobs.save(job("one"))
    await store.jobs.save(job("one"))
    with pytest.raises(OverQuota, match="1 jobs"):
        await store.jobs.save(job("two"))
    for name in ("mine", "also mine"):
        await store.jobs.save(job(name, "local"))


async def test_many_at_once_take_no_more_than_the_quota(scene: Scene) -> None:
    """Counting and using are one: whoever comes at the same moment waits for the count."""
    other = await scene.another_store() if scene.postgres else scene.store
    stores = [limited(scene, queued=5), Store(other.database, quota=Quota(queued=5))]
    tries = [scene.accept(by=stores[nth % 2], conversation=f"a:{nth}", owner="alice") for nth in range(30)]
    found = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(each, Receipt) for each in found) == 5
    assert sum(isinstance(each, OverQuota) for each in found) == 25


@pytest.mark.parametrize("kind", ["sessions", "copies", "bytes", "jobs"])
async def test_many_at_once_take_no_more_of_any_quota(scene: Scene, kind: str) -> None:
    """S11: on PostgreSQL they come through two nodes, and none may count before another has used."""
    parent = await scene.accept("x" * 100, owner="alice", conversation="parent")
    quota = {"sessions": Quota(sessions=4), "copies": Quota(sessions=4), "bytes": Quota(bytes=400), "jobs": Quota(jobs=3)}
    other = await scene.another_store() if scene.postgres else scene.store
    stores = [Store(each.database, quota=quota[kind]) for each in (scene.store, other)]
    fresh = [new_session_id(scene.now) for _ in range(12)]

    def take(nth: int) -> Awaitable[object]:
        store = stores[nth % 2]
        match kind:
            case "sessions":
                return store.sessions.open("alice", f"a:{nth}", "api", fresh[nth], scene.now)
            case "copies":
                return store.sessions.fork(parent.session_id, session(fresh[nth], f"copy:{nth}", scene.now))
            case "bytes":
                return scene.accept("x" * 100, by=store, conversation=f"a:{nth}", owner="alice")
            case _:
                return store.jobs.save(job(f"job{nth}", scene.now))

    found = await asyncio.gather(*map(take, range(len(fresh))), return_exceptions=True)
    assert [each for each in found if isinstance(each, Exception) and not isinstance(each, OverQuota)] == []
    assert sum(isinstance(each, OverQuota) for each in found) == 9


def session(session_id: SessionId, key: str, now: int) -> Session:
    return Session(id=session_id, key=key, channel="api", owner="alice", one_shot=False, created_at=now, updated_at=now)


def job(name: str, now: int) -> Job:
    return Job(name=name, owner="alice", schedule="@daily", prompt="x", created_at=now, last_instant=now)
