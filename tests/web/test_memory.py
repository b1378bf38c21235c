"""Memory over HTTP, on a real server: what is remembered, what is owed, and the receipts of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.config import MemoryConfig
from holdfast.core.segments import SegmentState
from holdfast.errors import NotFound, Rejected
from holdfast.ids import MemoryId, SegmentId, SessionId
from holdfast.operations.forgetting import Forgetting
from holdfast.operations.keys import KeyPlan
from holdfast.operations.memories import COMMITS_MAX, Edit, Remembered
from holdfast.operations.replay import Replaying
from holdfast.store.opening import open_store
from tests.conformance.scenes import Scene
from tests.engine.world import until
from tests.operations.asking import paid
from tests.web.house import House, open_house
from tests.web.rememberer import Rememberer, remembering
from tests.web.test_metrics import metrics


@asynccontextmanager
async def remembered_by(home: Path, server: Rememberer, **more: Any) -> AsyncIterator[House]:
    async with open_house(home, memory=MemoryConfig(provider="http", url=server.url), **more) as house:
        yield house


async def talk(house: House, *texts: str) -> SessionId:
    session_id = await house.session()
    for text in texts:
        await house.settled((await house.send(session_id, text))["turn_id"])
    return SessionId(session_id)


async def refused(house: House, method: str, path: str, body: object = None) -> tuple[int, str]:
    answer = await house.web.request(method, path, json=body)
    return answer.status_code, answer.json()["error"]["code"]


async def parked(home: Path) -> tuple[str, str]:
    """Leave a debt to a provider that nobody here is."""
    scene = Scene(lambda: open_store("sqlite", home), "sqlite")
    found: list[str] = []

    async def play() -> None:
        segment = await scene.sealed(owner="local")
        found.extend((segment.id, segment.session_id))

    await scene.play(play)
    return found[0], found[1]


async def test_what_is_owed_is_committed_when_somebody_asks_and_has_a_receipt(home: Path) -> None:
    """M4 M12: paid once, then nothing is owed; no session owes nothing."""
    with remembering() as server:
        async with remembered_by(home, server) as house:
            session_id = await talk(house, "count to 1", "count to 2")
            (segment,) = (await house.get("/api/memory/segments"))["items"]
            assert (segment["state"], segment["generations"], segment["owner"]) == ("open", [1, 2], server.owner)
            assert len(segment["turns"]) == 2
            assert await house.post("/api/memory/commit", {"session_id": session_id}) == {"committed": True}
            assert await house.post("/api/memory/commit", {"session_id": session_id}) == {"committed": False}
            for nothing in ({}, {"session_id": ""}, {"session_id": "", "wait": False}):
                assert await house.post("/api/memory/commit", nothing) == {"committed": False}
            assert server.told() == ["count to 1", "count to 2"]
            (segment,) = (await house.get("/api/memory/segments", session=session_id, state="committed"))["items"]
            assert (segment["receipt"], segment["attempt"], segment["parked"]) == ("4 messages taken", 1, False)
            status = await house.get("/api/memory/status")
            assert (status["provider"]["owner"], status["provider"]["healthy"]) == (server.owner, True)
            assert (status["counts"]["committed"], status["owing"]) == (1, [])
            # The command line reads and asks the same.
            memories = house.services.memories
            assert [each.id for each in (await memories.segments(session_id=session_id)).items] == [segment["id"]]
            assert (await memories.segments(unpaid=True)).items == []
            assert not await paid(memories, session_id, wait=False)
            assert not await paid(memories, SessionId(""))
            with pytest.raises(NotFound):
                await paid(memories, SessionId("ses_none"))


async def test_a_commit_that_fails_is_shown_with_its_reason(home: Path) -> None:
    """M6: it answers False, and the debt stays."""
    with remembering() as server:
        server.refuses = "count"
        async with remembered_by(home, server) as house:
            session_id = await talk(house, "count to 1")
            assert await house.post("/api/memory/commit", {"session_id": session_id}) == {"committed": False}
            status = await house.services.memories.status()
            assert (status.counts.owed, status.counts.failed, status.owing_sessions) == (1, 1, 1)
            (owing,) = status.owing
            assert "503" in (owing.next.error or "")
            assert (await house.get("/api/status"))["obligations"]["segments"] == 1
            server.refuses = None
            assert await paid(house.services.memories, session_id) or server.commits


async def test_a_debt_to_nobody_is_parked_until_the_operator_waives_it(home: Path) -> None:
    """M3: it is given to nobody else."""
    segment_id, session_id = await parked(home)
    async with open_house(home, api_key="a-key-for-the-operator") as house:
        (segment,) = (await house.get("/api/memory/segments", session=session_id))["items"]
        assert (segment["state"], segment["parked"], segment["next_try_at"]) == ("sealed", True, None)
        assert (await house.get("/api/memory/status"))["counts"]["parked"] == 1
        assert await house.post("/api/memory/commit", {"session_id": session_id}) == {"committed": False}
        found = await metrics(house)
        assert found['holdfast_memory_segments{state="sealed"}'] == 1
        assert found["holdfast_memory_parked"] == 1
        assert found['holdfast_memory_unpaid{binding="memory:main"}'] == 1
        assert found["holdfast_memory_facts"] == 0
        waived = await house.post(f"/api/memory/segments/{segment_id}/waive")
        assert (waived["state"], waived["parked"]) == ("waived", False)
        assert await refused(house, "POST", f"/api/memory/segments/{segment_id}/waive") == (409, "illegal_move")
        with pytest.raises(NotFound):
            await house.services.memories.waive(SegmentId("seg_none"))
        assert (await metrics(house))["holdfast_memory_parked"] == 0


async def owe(store: str, home: Path) -> None:
    """Leave debts of several kinds, to a provider that is here and to one that is gone, of the operator and of alice."""
    scene = Scene(lambda: open_store(store, home), store)
    # What is long past would be closed off as idle.
    scene.now = SystemClock().now_ms()

    async def play() -> None:
        for number, (owner, binding, sealed) in enumerate(
            [("local", "builtin", False)] * 3
            + [("local", "gone:1", True), ("local", "gone:1", False), ("alice", "gone:1", True), ("alice", "gone:2", True)]
        ):
            turn = await scene.running(conversation=f"chat:{number}", owner=owner)
            await scene.finish(turn, memory_owner=binding)
            if sealed:
                await scene.store.segments.seal(turn.session_id, scene.now)

    await scene.play(play)


async def test_every_answer_and_every_metric_counts_the_same_debt(home: Path, store_url: str) -> None:
    """What `holdfast status`, the memory page, Prometheus and the doctor say of one store can be compared."""
    await owe(store_url, home)
    # The doctor reads the file.
    (home / "holdfast.toml").write_text(f'[store]\nurl = "{store_url}"\n[memory]\nprovider = "none"\n')
    async with open_house(
        home, store=store_url, memory=MemoryConfig(provider="none"), api_key="a-key-for-the-operator"
    ) as house:
        debt = {"unpaid": 7, "open": 4, "owed": 0, "failed": 0, "parked": 3, "committing": 0}
        status, memory = await house.get("/api/status"), await house.get("/api/memory/status")
        assert (status["memory"], status["obligations"]["segments"], memory["everyone"]) == (debt, 7, debt)
        own = {**debt, "unpaid": 5, "parked": 1, "committed": 0, "waived": 0, "facts": 0, "profile": False}
        assert memory["counts"] == own
        found = await metrics(house)
        kinds = {kind: found[f'holdfast_memory_debt{{kind="{kind}"}}'] for kind in ("open", "owed", "parked", "committing")}
        assert kinds == {kind: debt[kind] for kind in kinds}
        states = {"open": 4, "sealed": 3, "committing": 0, "committed": 0, "waived": 0}
        assert {state: found[f'holdfast_memory_segments{{state="{state}"}}'] for state in states} == states
        bindings = {"builtin": 3, "gone:1": 3, "gone:2": 1}
        assert {each: found[f'holdfast_memory_unpaid{{binding="{each}"}}'] for each in bindings} == bindings
        assert (found["holdfast_memory_parked"], found["holdfast_memory_failed"]) == (3, 0)
        assert found['holdfast_obligations{kind="segments"}'] == sum(kinds.values())
        told = [each["found"] for each in (await house.get("/api/doctor"))["checks"] if each["name"] == "debts"]
        assert told == [
            "builtin: 0 waiting, 3 in progress",
            "gone:1: 0 waiting, 2 on hold, 1 in progress; it cannot be opened here",
            "gone:2: 0 waiting, 1 on hold; it cannot be opened here",
        ]


async def test_waiving_and_replaying_are_the_operators(home: Path) -> None:
    segment_id, session_id = await parked(home)
    async with open_house(home) as house:
        made = await house.services.keys.create(KeyPlan(name="program"))
        house.web.headers["authorization"] = f"Bearer {made.key}"
        await until(lambda: known(house))
        assert await refused(house, "POST", f"/api/memory/segments/{segment_id}/waive") == (403, "wrong_scope")
        assert await refused(house, "POST", "/api/memory/replay", {"provider": "builtin"}) == (403, "wrong_scope")
        assert await house.post("/api/memory/commit", {"session_id": session_id}) == {"committed": False}
        assert (await house.services.memories.waive(SegmentId(segment_id))).state is SegmentState.WAIVED


async def test_a_tenant_has_only_so_many_commits_made_at_once(home: Path) -> None:
    """Each is a call of a model, and past every limit of the gateway's own."""
    with remembering() as server:
        server.hold = 1
        async with remembered_by(home, server) as house:
            made = await house.services.keys.create(KeyPlan(name="alice", owner="alice"))
            house.web.headers["authorization"] = f"Bearer {made.key}"
            await until(lambda: known(house))
            sessions = await asyncio.gather(*(talk(house, "count to 1") for _ in range(COMMITS_MAX + 1)))
            asked = [
                asyncio.create_task(house.web.post("/api/memory/commit", json={"session_id": each}))
                for each in sessions[:COMMITS_MAX]
            ]
            await until(lambda: len(server.commits) == COMMITS_MAX)
            last = {"session_id": sessions[-1]}
            assert await refused(house, "POST", "/api/memory/commit", last) == (429, "too_many_commits")
            server.release()
            assert [(await each).json() for each in asked] == [{"committed": True}] * COMMITS_MAX
            assert await house.post("/api/memory/commit", last) == {"committed": True}


async def known(house: House) -> bool:
    return (await house.web.get("/api/me")).status_code == 200


async def test_what_is_remembered_is_changed_and_edited_over_http(home: Path) -> None:
    async with open_house(home) as house:
        added = await house.post("/api/memory", {"text": "likes the sea"}, 201)
        changed = await house.web.patch(f"/api/memory/{added['id']}", json={"text": "likes the hills"})
        assert (changed.status_code, changed.json()["text"]) == (200, "likes the hills")
        base = (await house.get("/api/memory/document"))["markdown"]
        assert added["id"] in base
        edit = {"base": base, "markdown": f"{base.rstrip()}\n- has a boat\n"}
        answer = await house.web.put("/api/memory/document", json=edit)
        assert (answer.status_code, answer.json()["added"]) == (200, 1)
        assert {each["text"] for each in (await house.get("/api/memory"))["items"]} == {"likes the hills", "has a boat"}
        memories = house.services.memories
        assert (await memories.change(MemoryId(added["id"]), Remembered(text="likes both"))).text == "likes both"
        now = (await memories.document()).markdown
        assert (await memories.edit(Edit(base=now, markdown=now))).changed == 0
        with pytest.raises(Rejected):
            await memories.edit(Edit(base=now, markdown=""))
        assert await refused(house, "PATCH", "/api/memory/mem_none", {"text": "x"}) == (404, "not_found")
        assert (await memories.forget(Forgetting(everything=True))).forgotten == 2


async def test_what_is_kept_elsewhere_is_recalled_and_forgotten_there(home: Path) -> None:
    with remembering() as server:
        server.memories = {"m1": "likes tea", "m2": "likes the sea"}
        async with remembered_by(home, server) as house:
            session_id = await talk(house, "count to 1")
            own = await house.post("/api/memory", {"text": "has a boat at sea"}, 201)
            recalled = await house.get("/api/memory/recall", q="sea")
            assert recalled["items"] == [{"text": "likes the sea", "id": "m2", "turn_id": None}]
            assert [each.id for each in (await house.services.memories.recall("tea")).items] == ["m1"]
            forgotten = await house.post("/api/memory/forget", {"ids": [own["id"], "m2", "m3"]})
            assert (forgotten["forgotten"], forgotten["elsewhere"], forgotten["missing"]) == (1, 1, ["m3"])
            assert (await house.web.delete("/api/memory/m1")).json() == {"removed": True}
            assert await refused(house, "DELETE", "/api/memory/m1") == (404, "not_found")
            gone = await house.post("/api/memory/forget", {"session_id": session_id})
            assert (gone["elsewhere"], gone["owed"]) == (2, 1)
            assert server.forgets[-1] == {"session_id": session_id, "person": "local"}


async def test_everything_is_replayed_into_another_provider_in_steps(home: Path) -> None:
    """M3: only what was committed; a debt stays whom it is owed to."""
    with remembering() as old, remembering() as new:
        new.refuses = "count to 2"
        async with remembered_by(home, old, api_key="a-key-for-the-operator") as house:
            for n in range(1, 5):
                session_id = await talk(house, f"count to {n}")
                if n < 4:
                    assert await paid(house.services.memories, session_id)
            plan = {"provider": "http", "url": new.url, "limit": 2}
            step = await house.post("/api/memory/replay", plan)
            assert (step["provider"], step["replayed"], step["failed"], step["left"]) == (new.owner, 1, 1, 2)
            (failure,) = step["failures"]
            assert "503" in failure["error"]
            step = await house.post("/api/memory/replay", {**plan, "skip": [failure["segment_id"]]})
            assert (step["replayed"], step["left"]) == (1, 1)
            new.refuses = None
            done = await house.services.memories.replay(Replaying(provider="http", url=new.url))
            assert (done.replayed, done.left) == (1, 0)
            assert new.told() == ["count to 1", "count to 3", "count to 2"]
            assert {each["owner"] for each in new.commits} == {new.owner}
            (owed,) = (await house.services.memories.segments(unpaid=True)).items
            assert owed.owner == old.owner


async def test_what_cannot_be_meant_is_400(home: Path) -> None:
    async with open_house(home, api_key="a-key-for-the-operator") as house:
        for method, path, body in (
            ("POST", "/api/memory", {"text": " "}),
            ("POST", "/api/memory", {"text": "x" * 1_001}),
            ("POST", "/api/memory", {"text": "the password is hunter2hunter2"}),
            ("POST", "/api/memory", {"text": "likes \x1b[2J tea"}),
            ("POST", "/api/memory", {"text": "\u200b\u202e"}),
            ("POST", "/api/memory/commit", {"session_id": 7}),
            ("POST", "/api/memory/commit", {"session_id": "a\0b"}),
            ("POST", "/api/memory/commit", {"wait": "yes"}),
            ("POST", "/api/memory/forget", {}),
            ("POST", "/api/memory/forget", {"ids": ["a"], "everything": True}),
            ("POST", "/api/memory/forget", {"ids": "abc"}),
            ("POST", "/api/memory/replay", {}),
            ("POST", "/api/memory/replay", {"provider": "nobody"}),
            ("POST", "/api/memory/replay", {"provider": "http", "url": "ftp://x"}),
            ("POST", "/api/memory/replay", {"provider": "http", "limit": -1}),
            ("PUT", "/api/memory/document", {"markdown": "# Memory"}),
            ("PUT", "/api/memory/document", {"base": "", "markdown": "- a " + "<!--" * 200_000}),
            ("PUT", "/api/memory/document", {"base": "- a\n" * 5_000, "markdown": "- a"}),
            ("GET", "/api/memory/segments?state=lost", None),
            ("GET", "/api/memory/segments?unpaid=yes", None),
            ("GET", "/api/memory/segments?limit=0", None),
            ("GET", "/api/memory/segments?cursor=x", None),
            ("GET", "/api/memory/recall?limit=0", None),
        ):
            answer = await house.web.request(method, path, json=body)
            assert answer.status_code == 400, (method, path, body, answer.text)
            assert answer.json()["error"]["message"]
        for method, path, body in (
            ("POST", "/api/memory/commit", {"session_id": "ses_none"}),
            ("POST", "/api/memory/forget", {"session_id": "ses_none"}),
            ("GET", "/api/memory/segments?session=ses_none", None),
            ("POST", "/api/memory/segments/seg_none/waive", {}),
        ):
            assert await refused(house, method, path, body) == (404, "not_found")
