"""Keys, logins and secrets: what is kept of whoever may come in."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from holdfast.core.keys import Key, Login, Purpose, digest
from holdfast.errors import NotFound, Stale
from holdfast.ids import KeyId, new_key_id
from tests.conformance.scenes import MINUTE, Scene, on_postgres
from tests.conformance.test_wakes import listen


def key(scene: Scene, name: str = "ci", **changes: Any) -> Key:
    facts = {"id": new_key_id(scene.now), "owner": "local", "digest": digest(name), "scopes": ("api",)}
    return Key(**{"name": name, "created_at": scene.now, **facts, **changes})


def login(scene: Scene, secret: str = "s", **changes: Any) -> Login:
    facts = {"purpose": Purpose.BROWSER, "owner": "local", "created_at": scene.now, "expires_at": scene.now + MINUTE}
    return Login(**{"digest": digest(secret), **facts, **changes})


async def test_keys_are_listed_as_they_were_given_out(scene: Scene) -> None:
    first = key(scene, "ci", scopes=("api", "webhook:alerts"), rate_limit=60, owner="ann")
    scene.now += MINUTE
    second = key(scene, "backup", scopes=("admin",))
    await scene.store.keys.add(second)
    await scene.store.keys.add(first)
    assert await scene.store.keys.list() == [first, second]


async def test_a_key_is_revoked_once_and_stays_so(scene: Scene) -> None:
    """The first revocation is the one that counts, whoever repeats it."""
    given = key(scene)
    await scene.store.keys.add(given)
    revoked = replace(given, revoked_at=scene.now)
    assert await scene.store.keys.revoke(given.id, scene.now) == revoked
    assert await scene.store.keys.revoke(given.id, scene.now + MINUTE) == revoked
    assert await scene.store.keys.list() == [revoked]
    with pytest.raises(NotFound):
        await scene.store.keys.revoke(KeyId("key_none"), scene.now)


async def test_two_keys_never_share_a_digest(scene: Scene) -> None:
    await scene.store.keys.add(key(scene))
    with pytest.raises(Stale):
        await scene.store.keys.add(key(scene))
    assert len(await scene.store.keys.list()) == 1


async def test_whoever_judges_keys_hears_of_every_change(scene: Scene) -> None:
    heard, _ = listen(scene.store)
    given = key(scene)
    await scene.store.keys.add(given)
    assert heard == ["keys"]
    await scene.store.keys.revoke(given.id, scene.now)
    assert heard == ["keys", "keys"]


@on_postgres
async def test_other_nodes_hear_of_a_key_too(scene: Scene) -> None:
    """A key that was revoked on one node must not open another one.

    A hint may be lost while the listener connects, so keys are added until one is heard of.
    """
    heard: set[str] = set()
    (await scene.another_store()).wakes.listen(heard.add)
    async with asyncio.timeout(10):
        for number in count():
            await scene.store.keys.add(key(scene, f"ci{number}"))
            if "keys" in heard:
                return


async def test_a_code_is_good_once(scene: Scene) -> None:
    code = login(scene, purpose=Purpose.CODE)
    await scene.store.logins.add(code)
    assert await scene.store.logins.take(code.digest, scene.now) == code
    assert await scene.store.logins.take(code.digest, scene.now) is None


async def test_of_many_who_come_with_one_code_one_gets_in(scene: Scene) -> None:
    code = login(scene, purpose=Purpose.CODE)
    await scene.store.logins.add(code)
    other = await scene.another_store() if scene.postgres else scene.store
    stores = [scene.store, other] * 5
    taken = await asyncio.gather(*(store.logins.take(code.digest, scene.now) for store in stores))
    assert [each for each in taken if each] == [code]


async def test_a_code_is_no_browser_and_a_browser_no_code(scene: Scene) -> None:
    code, browser = login(scene, "code", purpose=Purpose.CODE), login(scene, "browser")
    await scene.store.logins.add(code)
    await scene.store.logins.add(browser)
    assert await scene.store.logins.find(code.digest, scene.now) is None
    assert await scene.store.logins.take(browser.digest, scene.now) is None
    assert await scene.store.logins.find(browser.digest, scene.now) == browser


@pytest.mark.parametrize("purpose", list(Purpose))
async def test_a_login_is_good_until_it_expires(scene: Scene, purpose: Purpose) -> None:
    made = login(scene, purpose=purpose)
    await scene.store.logins.add(made)
    ask = scene.store.logins.take if purpose is Purpose.CODE else scene.store.logins.find
    assert await ask(made.digest, made.expires_at) is None
    assert await ask(made.digest, made.expires_at - 1) == made


async def test_a_browser_that_signs_out_is_unknown(scene: Scene) -> None:
    browser = login(scene)
    await scene.store.logins.add(browser)
    assert await scene.store.logins.remove(browser.digest)
    assert not await scene.store.logins.remove(browser.digest)
    assert await scene.store.logins.find(browser.digest, scene.now) is None


async def test_logins_are_forgotten_when_they_have_expired(scene: Scene) -> None:
    """W7"""
    await scene.store.logins.add(login(scene, "short"))
    long = login(scene, "long", expires_at=scene.now + 10 * MINUTE)
    await scene.store.logins.add(long)
    await scene.store.enforce_retention({}, scene.now + MINUTE)
    assert await scene.sql("SELECT digest FROM logins") == [(long.digest,)]
    assert await scene.store.logins.forget(long.expires_at) == 1


async def test_a_secret_stays_what_it_was_first(scene: Scene) -> None:
    assert await scene.store.secrets.get_or_add("url", "first") == "first"
    assert await scene.store.secrets.get_or_add("url", "second") == "first"
    await scene.reopen()
    assert await scene.store.secrets.get_or_add("url", "third") == "first"
    assert await scene.store.secrets.get_or_add("other", "second") == "second"


async def test_all_who_make_up_a_secret_at_once_get_the_same(scene: Scene) -> None:
    other = await scene.another_store() if scene.postgres else scene.store
    stores = [scene.store, other] * 5
    made = await asyncio.gather(
        *(store.secrets.get_or_add("url", f"secret {number}") for number, store in enumerate(stores))
    )
    assert len(set(made)) == 1
