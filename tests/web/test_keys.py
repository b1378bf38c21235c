"""Keys over HTTP: shown once, good for what they say, and refused a moment after they were revoked."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.clock import SystemClock
from holdfast.core.keys import digest
from holdfast.errors import NotFound, Rejected
from holdfast.operations.keys import KeyPlan
from holdfast.operations.sessions import Message, Opening
from holdfast.store.opening import open_readonly, open_store
from holdfast.web.guard import FAILURES_PER_MINUTE
from holdfast.web.keyring import Keyring
from tests.engine.world import until
from tests.web.house import House, open_house
from tests.web.test_guard import key

KEY = "a-key-for-the-operator"


async def made(house: House, *scopes: str, **plan: Any) -> str:
    return (await house.services.keys.create(KeyPlan(scopes=scopes or ("api",), **plan))).key


async def status_with(house: House, shown: str, path: str = "/api/status", method: str = "GET") -> int:
    answer = await house.web.request(method, path, headers={"authorization": f"Bearer {shown}"})
    return answer.status_code


async def test_a_key_is_shown_once_and_kept_as_a_digest(home: Path) -> None:
    """SECURITY 3"""
    async with open_house(home) as house:
        new = await house.services.keys.create(KeyPlan(name="script", scopes=("api",)))
        assert (new.first, new.made.owner, new.key.startswith(f"{new.made.prefix}_")) == (True, "local", True)
        (listed,) = (await house.services.keys.list()).items
        assert (listed, new.key in str(listed)) == (new.made, False)
        assert (await house.web.get("/api/status")).status_code == 401
        assert await status_with(house, new.key) == 200
        assert not (await house.services.keys.create(KeyPlan(scopes=("admin",)))).first
        await house.stop()
    secret = new.key.removeprefix(f"{new.made.prefix}_").encode()
    kept = b"".join(file.read_bytes() for file in home.iterdir() if file.name.startswith("holdfast.db"))
    assert (secret in kept, digest(new.key).encode() in kept) == (False, True)


async def test_a_key_opens_what_its_scopes_say(home: Path) -> None:
    async with open_house(home) as house:
        api, admin, hook = await made(house), await made(house, "admin"), await made(house, "webhook:alerts")
        assert (await house.web.get("/api/status")).status_code == 401
        for shown, read, keys in ((api, 200, 403), (admin, 200, 200), (hook, 403, 403)):
            assert (await status_with(house, shown), await status_with(house, shown, "/api/keys")) == (read, keys)
        answer = await house.web.post("/api/stop", json={}, headers={"authorization": f"Bearer {api}"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "wrong_scope")
        assert "holdfast keys create --scope admin" in answer.json()["error"]["hint"]


@pytest.mark.parametrize("parameter", ["key", "api_key", "apikey", "token", "access_token", "authorization", "code"])
async def test_no_key_is_taken_from_an_address(home: Path, parameter: str) -> None:
    """SECURITY 2: what stands in an address stands in logs and histories."""
    async with open_house(home, api_key=KEY) as house:
        house.web.headers.pop("authorization")
        for value in (KEY, f"Bearer {KEY}"):
            answer = await house.web.get("/api/status", params={parameter: value})
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert (await house.web.post("/api/sessions", params={parameter: value}, json={})).status_code == 401


async def test_whoever_revokes_its_own_key_is_told_that_it_is_done(home: Path) -> None:
    """What the key has opened is closed in the same moment, so that one time would prove little."""
    async with open_house(home) as house:
        for number in range(40):
            new = await house.services.keys.create(KeyPlan(name=f"own {number}", scopes=("api", "admin")))
            assert await status_with(house, new.key, f"/api/keys/{new.made.id}", "DELETE") == 200
        assert {each.revoked_at is None for each in (await house.services.keys.list()).items} == {False}


async def test_a_revoked_key_is_refused_at_once_and_its_open_stream_ends(home: Path) -> None:
    """SECURITY 3: whoever holds a stolen key must not go on reading with what it opened before."""
    async with open_house(home) as house:
        shown = await made(house, name="script")
        session = await house.services.sessions.open(Opening())
        async with house.events(session.id, authorization=f"Bearer {shown}") as entries:
            gone = await house.services.keys.revoke("script")
            assert (gone.last, gone.revoked.revoked_at is not None) == (True, True)
            refused = await house.web.get("/api/status", headers={"authorization": f"Bearer {shown}"})
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
            assert "not valid" in refused.json()["error"]["message"]
            await house.services.sessions.send(session.id, Message(text="echo: not for you"))
            async with asyncio.timeout(5):
                with contextlib.suppress(httpx2.TransportError):
                    assert [entry async for entry in entries] == []
        # It was the only one, so this machine needs none again.
        assert (await house.web.get("/api/status")).status_code == 200


async def test_another_node_hears_of_a_revoked_key_without_being_told(home: Path) -> None:
    """A hint may be lost: the keyring looks by itself as well."""
    store = await open_store("sqlite", home)
    other = await open_readonly("sqlite", home)
    keyring = Keyring(other.keys, other.wakes, SystemClock(), refresh_s=0.02)
    running = asyncio.create_task(keyring.run())
    try:
        made = key("hf_secret")
        await store.keys.add(made)
        found = await until(lambda: keyring.find("hf_secret"))
        assert (found.owner, keyring.closes) == ("alice", True)
        await store.keys.revoke(made.id, 1)
        await until(lambda: keyring.find("hf_secret") is None)
        assert not keyring.closes
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await other.close()
        await store.close()


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
async def test_what_one_node_is_told_of_keys_all_of_them_know_a_moment_later(
    home: Path, tmp_path: Path, store_url: str
) -> None:
    async with open_house(home, store=store_url) as one, open_house(tmp_path / "other", store=store_url) as other:
        shown = await made(one, name="script")
        await until(lambda: answers(other, shown, 200))
        assert (await other.web.get("/api/status")).status_code == 401
        await one.services.keys.revoke("script")
        await until(lambda: answers(other, shown, 401))


async def answers(house: House, shown: str, status: int) -> bool:
    try:
        return await status_with(house, shown) == status
    except httpx2.RemoteProtocolError:
        # The key was revoked while this request was in progress, which closes its connection.
        return False


async def test_a_key_over_its_rate_waits_exactly_as_long_as_it_is_told(home: Path) -> None:
    async with open_house(home) as house:
        slow, other = await made(house, rate_limit=2), await made(house)
        assert (await house.web.get("/api/status")).status_code == 401
        assert [await status_with(house, slow) for _ in range(3)] == [200, 200, 429]
        answer = await house.web.get("/api/status", headers={"authorization": f"Bearer {slow}"})
        assert (answer.json()["error"]["code"], int(answer.headers["retry-after"])) == ("rate_limited", 30)
        assert await status_with(house, other) == 200


async def test_a_burst_of_wrong_keys_is_slowed_down_and_the_right_one_is_not(home: Path) -> None:
    async with open_house(home, api_key=KEY) as house:
        tried = [await status_with(house, f"guess-{number}") for number in range(FAILURES_PER_MINUTE + 5)]
        assert (tried[0], tried[-1]) == (401, 429)
        answer = await house.web.get("/api/status", headers={"authorization": "Bearer guess"})
        assert (answer.json()["error"]["code"], int(answer.headers["retry-after"]) > 0) == ("too_many_failures", True)
        assert await status_with(house, KEY) == 200
        # Whoever watches over it needs none, and is not kept waiting by those who guess.
        assert await status_with(house, "guess", "/health") == 200


@pytest.mark.parametrize(
    "plan",
    [
        {"scopes": []},
        {"scopes": ["root"]},
        {"scopes": ["webhook:"]},
        {"scopes": ["webhook:a\nb"]},
        {"scopes": ["api"] * 21},
        {"scopes": "api"},
        {"owner": ""},
        {"owner": "a:b"},
        {"owner": "a b"},
        {"owner": "x" * 65},
        {"owner": "alice", "scopes": ["admin"]},
        {"rate_limit": -1},
        {"rate_limit": 1_000_001},
        {"rate_limit": 1.5},
        {"name": "x" * 101},
        {"name": "a\x00b"},
    ],
)
async def test_a_key_that_nobody_could_mean_is_refused(home: Path, plan: dict[str, Any]) -> None:
    async with open_house(home, api_key=KEY) as house:
        answer = await house.web.post("/api/keys", json=plan)
        assert answer.status_code == 400, answer.text
        assert (await house.services.keys.list()).items == []


async def test_keys_are_found_by_id_by_name_and_by_what_they_begin_with(home: Path) -> None:
    async with open_house(home, api_key=KEY) as house:
        keys = house.services.keys
        made = [(await keys.create(KeyPlan(name=name))).made for name in ("a", "b", "twice", "twice")]
        assert (await keys.revoke(made[0].id)).revoked.id == made[0].id
        assert (await keys.revoke("b")).revoked.id == made[1].id
        with pytest.raises(Rejected, match="2 keys"):
            await keys.revoke("twice")
        assert (await keys.revoke(made[2].prefix)).revoked.id == made[2].id
        assert (await keys.revoke("twice")).revoked.id == made[3].id
        for nobody in ("twice", "none"):
            with pytest.raises(NotFound):
                await keys.revoke(nobody)
        # Revoked is revoked: since then, and however often.
        before = (await keys.list()).items[0].revoked_at
        assert (await keys.revoke(made[0].id)).revoked.revoked_at == before
