"""Owners: what belongs to one is not there for another, on any route, in any list and for any tool."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from holdfast.core.keys import ADMIN
from holdfast.operations.conversation import Search
from holdfast.operations.keys import KeyPlan
from holdfast.store.opening import open_store
from holdfast.web.application import endpoints
from holdfast.web.endpoints import Endpoint
from holdfast.web.events import Streams
from holdfast.web.metrics import Meter
from tests.conformance.scenes import Scene
from tests.engine.world import until
from tests.web.house import House, open_house

WORD = "heliotrope"
PICTURE = {"media_type": "image/png", "data": base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()}
# What is the same for everybody: models, and doors with locks of their own.
SHARED = frozenset({"/v1/models/{id:path}", "/webhooks/{id}", "/channels/{id}"})
# What a route has to be told before it looks for what it is about.
BODIES: Mapping[str, Mapping[str, object]] = {
    "Message": {"text": "hello"},
    "Answer": {"text": "yes"},
    "Change": {"title": "mine now"},
    "Remembered": {"text": "mine now"},
    "Verdict": {"text": "yes"},
}


def everything() -> list[Endpoint]:
    return endpoints(Streams(asyncio.Event()), Meter())


def about_one() -> list[Endpoint]:
    return [each for each in everything() if "{" in each.path and each.path not in SHARED]


def lists() -> list[Endpoint]:
    found = [
        each for each in everything() if each.method == "GET" and "{" not in each.path and each.scope not in (None, ADMIN)
    ]
    return [each for each in found if "Page[" in str(each.gives) or each.gives is Search]


@dataclass(frozen=True, slots=True, kw_only=True)
class Town:
    """A gateway on which alice has one of everything, and bob has a key."""

    house: House
    alice: httpx2.AsyncClient
    bob: httpx2.AsyncClient
    # By what comes before the id in the address.
    hers: Mapping[str, str]

    def address(self, endpoint: Endpoint) -> str:
        before, _, rest = endpoint.path.partition("{")
        # There is one thing of a kind wherever things are numbered.
        return f"{before}{self.hers[before]}{rest.partition('}')[2]}".replace("{number}", "0")


async def seed(home: Path) -> dict[str, str]:
    """Leave what only an agent can make."""
    found: dict[str, str] = {}
    scene = Scene(lambda: open_store("sqlite", home), "sqlite")

    async def play() -> None:
        (delivery,) = await scene.sent_for("an answer", owner="alice", conversation="sent", due_at=2**50)
        asked = await scene.running(owner="alice", conversation="asked")
        await scene.answer(await scene.park(asked, question=scene.approval()), "always")
        await scene.finish(await scene.claim_and_start(asked.id))
        process = scene.process(asked, owner="alice")
        await scene.store.processes.add(process)
        await scene.parked(owner="alice", conversation="waits")
        (grant,) = await scene.store.questions.grants("alice")
        segment, *_ = await scene.store.segments.list("alice")
        found.update({
            "/api/deliveries/": delivery.id, "/api/processes/": process.id, "/api/grants/": grant.fingerprint[:12],
            # Only the operator has these.
            "/api/channels/": "telegram", "/api/people/": "telegram:1", "/api/pairings/": "pair_1",
            "/api/keys/": "alice", "/api/webhooks/": "alerts", "/api/memory/segments/": segment.id,
        })  # fmt: skip

    await scene.play(play)
    return found


@asynccontextmanager
async def town(home: Path) -> AsyncIterator[Town]:
    hers = await seed(home)
    async with open_house(home) as house:
        made = {name: (await house.services.keys.create(KeyPlan(name=name, owner=name))).key for name in ("alice", "bob")}
        clients = [
            httpx2.AsyncClient(
                base_url=house.url, verify=False, timeout=20, headers={"authorization": f"Bearer {made[name]}"}
            )
            for name in ("alice", "bob")
        ]
        async with clients[0] as alice, clients[1] as bob:
            await until(lambda: known(bob))
            hers |= await begin(alice)
            yield Town(house=house, alice=alice, bob=bob, hers=hers)


async def known(client: httpx2.AsyncClient) -> bool:
    return (await client.get("/api/me")).status_code == 200


async def begin(alice: httpx2.AsyncClient) -> dict[str, str]:
    """Let alice make what anybody with a key can make."""

    async def post(path: str, body: object) -> Any:
        answer = await alice.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    session = (await post("/api/sessions", {"key": "hers"}))["id"]
    message = {"text": f"count to 1, {WORD}", "images": [PICTURE]}
    turn = (await post(f"/api/sessions/{session}/messages", message))["turn_id"]
    await until(lambda: finished(alice, turn))
    job = await post("/api/jobs", {"name": "hers", "schedule": "30 7 * * *", "prompt": WORD})
    response = await post("/v1/responses", {"model": "holdfast", "input": f"count to 1, {WORD}"})
    return {
        "/api/sessions/": session,
        "/api/turns/": turn,
        "/api/jobs/": job["name"],
        "/api/memory/": (await post("/api/memory", {"text": WORD}))["id"],
        "/v1/responses/": response["id"],
        "/v1/runs/": (await post("/v1/runs", {"input": f"count to 1, {WORD}"}))["run_id"],
    }


async def finished(client: httpx2.AsyncClient, turn_id: str) -> bool:
    return (await client.get(f"/api/turns/{turn_id}")).json()["state"] == "completed"


async def test_what_is_one_owners_is_not_there_for_another_on_any_route(home: Path) -> None:
    """SECURITY 14: every endpoint that there is, so that a new one cannot be forgotten."""
    async with town(home) as here:
        for endpoint in about_one():
            body = BODIES.get(endpoint.takes.__name__, {}) if endpoint.takes else None
            answer = await here.bob.request(endpoint.method, here.address(endpoint), json=body)
            wanted = 403 if endpoint.scope == ADMIN else 404
            assert answer.status_code == wanted, (endpoint.method, endpoint.path, answer.text)
            assert WORD not in answer.text
        # Nothing of it has changed, and for alice all of it is there.
        for endpoint in about_one():
            if endpoint.method == "GET" and endpoint.scope != ADMIN and not endpoint.path.endswith(("/events", "/log")):
                answer = await here.alice.get(here.address(endpoint))
                assert answer.status_code == 200, (endpoint.path, answer.text)
        session = (await here.alice.get(f"/api/sessions/{here.hers['/api/sessions/']}")).json()
        assert (session["title"], session["state"], session["turns"]) == (None, "open", 1)


async def test_lists_show_everybody_their_own_only(home: Path) -> None:
    async with town(home) as here:
        assert {each.path for each in lists()} >= {
            "/api/sessions", "/api/deliveries", "/api/approvals", "/api/grants", "/api/processes", "/api/jobs",
            "/api/memory", "/api/memory/segments", "/api/search",
        }  # fmt: skip
        for endpoint in lists():
            if endpoint.path == "/api/turns":
                continue
            looked_at = {*endpoint.query, *(each.name for each in endpoint.parameters)}
            query = {"q": WORD} if "q" in looked_at else {}
            his = await here.bob.get(endpoint.path, params=query)
            assert (his.status_code, his.json()["items"]) == (200, []), endpoint.path
            hers = await here.alice.get(endpoint.path, params=query)
            assert hers.json()["items"], endpoint.path
        # Nor by naming what is hers.
        session = here.hers["/api/sessions/"]
        for path in ("/api/approvals", "/api/processes"):
            assert (await here.bob.get(path, params={"session": session})).json()["items"] == []
        for path in ("/api/turns", "/api/deliveries", "/api/memory/segments"):
            assert (await here.bob.get(path, params={"session": session})).status_code == 404
        for path in ("/api/memory/commit", "/api/memory/forget"):
            assert (await here.bob.post(path, json={"session_id": session})).status_code == 404
        assert (await here.bob.get("/api/memory/status")).json()["counts"]["facts"] == 0
        assert WORD not in (await here.bob.get("/api/memory/document")).text
        assert (await here.bob.post("/api/memory/forget", json={"everything": True})).json()["forgotten"] == 0
        # A document says itself which memories it is about, and what it was before.
        fact = here.hers["/api/memory/"]
        named = f"## Facts\n\n- {WORD} <!-- {fact} -->\n"
        for edited in (f"## Facts\n\n- his now <!-- {fact} -->\n", "## Facts\n"):
            told = (await here.bob.put("/api/memory/document", json={"base": named, "markdown": edited})).json()
            assert (told["changed"], told["removed"]) == (0, 0)
        assert (await here.bob.post("/api/memory/forget", json={"ids": [fact]})).json()["missing"] == [fact]
        assert f"{WORD} <!-- {fact} -->" in (await here.alice.get("/api/memory/document")).text
        assert (await here.bob.get("/api/sessions", params={"key": "hers"})).json()["items"] == []
        # M12: what is hers he cannot have left, and he is not told whether it is there.
        opened = await here.bob.post("/api/sessions", json={"previous_session_id": session})
        unknown = await here.bob.post("/api/sessions", json={"previous_session_id": "ses_nobody"})
        assert opened.status_code == unknown.status_code == 201
        continued = {"model": "holdfast", "input": "and then?", "previous_response_id": here.hers["/v1/responses/"]}
        assert (await here.bob.post("/v1/responses", json=continued)).status_code in (400, 404)


async def test_whoever_shows_nothing_sends_no_conversation_anywhere(home: Path) -> None:
    """SECURITY 3: on this machine a guest may read and talk; to give all of it to some address takes the operator."""
    async with open_house(home) as house:
        plan = {"provider": "http", "url": "http://127.0.0.1:9", "person": "alice"}
        answer = await house.web.post("/api/memory/replay", json=plan)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "operator_only")


async def test_the_operator_sees_nothing_of_others_by_listing_either(home: Path) -> None:
    async with town(home) as here:
        assert (await here.house.services.sessions.list()).items == []
        assert (await here.house.services.sessions.search(WORD)).items == []


async def test_the_same_key_of_two_owners_is_two_messages_and_two_conversations(home: Path) -> None:
    """SECURITY 5"""
    async with town(home) as here:
        sent: list[tuple[str, str]] = []
        for client in (here.alice, here.bob):
            session = (await client.post("/api/sessions", json={"key": "same"})).json()["id"]
            headers = {"idempotency-key": "same"}
            answer = await client.post(f"/api/sessions/{session}/messages", json={"text": "echo: a"}, headers=headers)
            assert answer.status_code == 202, answer.text
            sent.append((session, answer.json()["turn_id"]))
        (first, one), (second, other) = sent
        assert (first != second, one != other) == (True, True)


async def test_a_tenant_learns_nothing_about_the_machine_or_how_much_others_ask(home: Path) -> None:
    async with town(home) as here:
        glance = (await here.bob.get("/api/status")).json()
        assert (glance["ready"], glance["home"], glance["store"], glance["boot"]) == (True, "", "", [])
        assert (glance["accepted"], glance["running"], glance["turns"], glance["obligations"]) == (0, 0, {}, None)
        assert glance["agent"]["tools"] == []
        assert (await here.bob.get("/metrics")).status_code == 403
        assert (await here.house.services.gateway.status()).accepted > 0


async def test_a_tenants_job_is_delivered_nowhere_and_takes_nobodys_place(home: Path) -> None:
    """What is delivered would be sent in the operator's name."""
    async with town(home) as here:
        plan = {"name": "his", "schedule": "30 7 * * *", "prompt": "hello"}
        for deliver in ("file:out.txt", "url:https://example.com/hook", "telegram:1"):
            assert (await here.bob.post("/api/jobs", json={**plan, "deliver": deliver})).status_code == 400
        assert (await here.bob.post("/api/jobs", json={**plan, "deliver": "log"})).status_code == 201
        assert (await here.bob.post("/api/jobs", json={**plan, "name": "hers"})).status_code == 400
        assert (await here.alice.get("/api/jobs/hers")).json()["prompt"] == WORD
