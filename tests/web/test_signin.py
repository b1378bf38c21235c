"""People at a browser: links that are good once, the password, the cookie, and the page."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from holdfast import app
from holdfast.core.keys import digest
from holdfast.desk.logins import CODE_MS, COOKIE_MS, LocalLogins, reachable
from holdfast.desk.plans import Opening
from holdfast.passwords import hashed, is_usable, matches
from holdfast.web.guard import PROOF
from holdfast.web.page import ASKED_AGAIN, FOR_EVER, POLICY, built
from holdfast.web.signin import GUESSES_PER_MINUTE
from tests.engine.world import ManualClock
from tests.web.house import House, open_house

PASSWORD = "tide and time"
SALT = bytes(range(16))


def own(house: House) -> dict[str, str]:
    return {"origin": house.url}


def name_of(house: House) -> str:
    return f"holdfast_{urlsplit(house.url).port}"


async def enter(house: House, **credentials: str) -> httpx2.Response:
    return await house.web.post("/api/sign-in", json=credentials, headers=own(house))


async def code(house: House) -> str:
    return (await house.desk.logins.link()).url.partition("#code=")[2]


async def signed_in(house: House) -> str:
    """Sign the client in as a browser would be, and return its cookie."""
    answer = await enter(house, code=await code(house))
    assert answer.status_code == 200, answer.text
    house.web.headers[PROOF] = answer.json()["proof"]
    return house.web.cookies[name_of(house)]


async def error(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def test_a_gateway_that_starts_shows_a_link_that_signs_one_browser_in_once(home: Path) -> None:
    """SECURITY 2: the code is in the fragment, and what comes back no script can read."""
    async with open_house(home) as house:
        assert house.log.link
        address, _, shown = house.log.link.url.partition("#code=")
        assert (address, "?" in house.log.link.url) == (f"{house.url}/", False)
        answer = await enter(house, code=shown)
        proof = answer.json()["proof"]
        assert (answer.json(), len(proof) >= 43) == ({"signed_in": True, "proof": proof}, True)
        (cookie,) = SimpleCookie(answer.headers["set-cookie"]).values()
        assert (cookie.key, cookie["httponly"], cookie["samesite"].lower(), cookie["path"], cookie["secure"]) == (
            name_of(house), True, "strict", "/", "",
        )  # fmt: skip
        assert (int(cookie["max-age"]), cookie["domain"], len(cookie.value) >= 43) == (COOKIE_MS // 1000, "", True)
        house.web.headers[PROOF] = proof
        assert await house.get("/api/me") == {"owner": "local", "scopes": ["admin", "api"], "how": "cookie"}
        # Admin, unlike the guest that this machine was before.
        assert (await house.get("/api/keys"))["items"] == []
        assert await error(await enter(house, code=shown)) == (401, "wrong_code")


async def test_behind_a_proxy_with_tls_the_cookie_is_never_sent_without(home: Path) -> None:
    async with open_house(home) as house:
        secure = {"origin": house.url.replace("http:", "https:")}
        answer = await house.web.post("/api/sign-in", json={"code": await code(house)}, headers=secure)
        (cookie,) = SimpleCookie(answer.headers["set-cookie"]).values()
        assert cookie["secure"] is True


async def test_of_two_browsers_with_the_same_link_only_one_gets_in(home: Path) -> None:
    async with open_house(home) as house:
        shared = await code(house)
        answers = await asyncio.gather(*(enter(house, code=shared) for _ in range(5)))
        assert sorted(each.status_code for each in answers) == [200, 401, 401, 401, 401]


@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        ({}, 400, "bad_sign_in"),
        ({"code": "", "password": ""}, 400, "bad_sign_in"),
        ({"code": "a", "password": "b"}, 400, "bad_sign_in"),
        ({"code": "wrong"}, 401, "wrong_code"),
        ({"code": digest("wrong")}, 401, "wrong_code"),
        ({"code": "x" * 100_000}, 401, "wrong_code"),
        ({"code": "\ud800"}, 400, "bad_json"),
        ({"code": 7}, 400, "bad_json"),
        ({"password": PASSWORD}, 401, "no_password"),
    ],
)
async def test_what_opens_nothing_is_refused_and_leaves_no_cookie(
    home: Path, body: dict[str, Any], status: int, problem: str
) -> None:
    async with open_house(home) as house:
        headers = {**own(house), "content-type": "application/json"}
        answer = await house.web.post("/api/sign-in", content=json.dumps(body), headers=headers)
        assert (*await error(answer), "set-cookie" in answer.headers) == (status, problem, False)
        assert (await house.get("/api/sign-in")) == {"password": False}


async def test_a_code_and_a_cookie_end_by_themselves(home: Path) -> None:
    """Codes after fifteen minutes, cookies after thirty days; and neither does what the other is for."""
    store, clock = await app.open_store("sqlite", home), ManualClock()
    logins = LocalLogins(store, "local", clock, "", "http://127.0.0.1:8420")
    try:
        first, second = [(await logins.link()).url.partition("#code=")[2] for _ in range(2)]
        await clock.advance(CODE_MS - 1)
        token = await logins.by_code(first)
        assert token
        assert await store.logins.find(digest(second), clock.now_ms()) is None
        assert await logins.by_code(token) is None
        await clock.advance(1)
        assert await logins.by_code(second) is None
        await clock.advance(COOKIE_MS - 2)
        assert await store.logins.find(digest(token), clock.now_ms())
        await clock.advance(1)
        assert await store.logins.find(digest(token), clock.now_ms()) is None
        assert await store.logins.forget(clock.now_ms()) == 3
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("bound", "opened"),
    [
        ("http://127.0.0.1:8420", "http://127.0.0.1:8420"),
        ("http://0.0.0.0:8420", "http://127.0.0.1:8420"),
        ("http://[::]:8420", "http://[::1]:8420"),
        ("http://10.0.0.7:80", "http://10.0.0.7:80"),
    ],
)
def test_a_link_leads_to_where_a_browser_can_go(bound: str, opened: str) -> None:
    assert reachable(bound) == opened


async def test_a_signed_in_browser_writes_only_from_the_page_of_the_gateway(home: Path) -> None:
    """CSRF: the cookie comes along whoever made the browser ask."""
    async with open_house(home) as house:
        await signed_in(house)
        for headers, status in (
            ({}, 403),
            ({"origin": "https://evil.example"}, 403),
            ({"origin": "null"}, 403),
            ({**own(house), "sec-fetch-site": "cross-site"}, 403),
            ({"origin": "http://127.0.0.1:3000", "sec-fetch-site": "same-site"}, 403),
            ({**own(house), "sec-fetch-site": "same-origin"}, 201),
        ):
            answer = await house.web.post("/api/sessions", json={}, headers=headers)
            assert answer.status_code == status, headers
        # What can be read with a cookie is refused to other sites as well, streams included.
        (session,) = (await house.get("/api/sessions"))["items"]
        for path in ("/api/sessions", f"/api/sessions/{session['id']}/events", "/api/me"):
            answer = await house.web.get(path, headers={"sec-fetch-site": "same-site"})
            assert answer.status_code == 403


async def test_whoever_signs_out_is_out_for_good(home: Path) -> None:
    async with open_house(home, api_key="a-key-for-the-operator") as house:
        house.web.headers.pop("authorization")
        token = await signed_in(house)
        assert (await house.get("/api/me"))["how"] == "cookie"
        assert await house.post("/api/sign-out", **own(house)) == {"signed_in": False, "proof": None}
        assert name_of(house) not in house.web.cookies
        proof = house.web.headers.pop(PROOF)
        for shown in ({}, {PROOF: proof}):
            stolen = await house.web.get("/api/me", headers={"cookie": f"{name_of(house)}={token}", **shown})
            assert (stolen.status_code, stolen.headers["www-authenticate"]) == (401, "Bearer")


async def test_what_a_browser_has_open_ends_when_it_signs_out(home: Path) -> None:
    """SECURITY 3: whoever holds a stolen cookie must not go on reading with what it opened before."""
    async with open_house(home, api_key="a-key-for-the-operator") as house:
        house.web.headers.pop("authorization")
        token = await signed_in(house)
        session = await house.desk.open(Opening())
        async with house.events(session.id, cookie=f"{name_of(house)}={token}") as entries:
            await house.post("/api/sign-out", **own(house))
            await house.desk.send(session.id, "echo: not for you")
            async with asyncio.timeout(5):
                with contextlib.suppress(httpx2.TransportError):
                    assert [entry async for entry in entries] == []


async def test_a_cookie_that_another_port_was_shown_changes_nothing_and_consents_to_nothing(home: Path) -> None:
    """Browsers show it to every server of this machine, and the agent may well run one; none of them is told the proof."""
    async with open_house(home, api_key="a-key-for-the-operator") as house:
        house.web.headers.pop("authorization")
        await signed_in(house)
        proof = house.web.headers.pop(PROOF)
        assert await house.get("/api/me") == {"owner": "local", "scopes": ["api"], "how": "cookie"}
        for method, path in (("POST", "/api/sessions"), ("POST", "/api/keys"), ("DELETE", "/api/grants/x")):
            assert (await house.web.request(method, path, headers=own(house))).status_code == 401
        assert await error(await house.web.get("/api/keys")) == (403, "wrong_scope")
        for wrong in ("", proof[:-1], "x" * len(proof)):
            assert (await house.web.get("/api/me", headers={PROOF: wrong})).status_code == 401
        # Neither is the proof of any use without the cookie, and whoever has lost it can sign in again.
        fresh = await code(house)
        assert (await enter(house, code=fresh)).status_code == 200
        house.web.cookies.clear()
        assert (await house.web.get("/api/me", headers={PROOF: proof})).status_code == 401


async def test_a_browser_stays_signed_in_over_a_restart(home: Path) -> None:
    async with open_house(home) as house:
        token = await signed_in(house)
        await house.stop()
    async with open_house(home) as house:
        answer = await house.web.get("/api/me", headers={"cookie": f"{name_of(house)}={token}"})
        assert answer.json()["how"] == "cookie"


async def test_what_one_gateway_gave_opens_no_other_on_the_same_machine(home: Path, tmp_path: Path) -> None:
    """Browsers show the cookies of a host to all of its ports."""
    async with open_house(home, api_key="a-key-for-the-operator") as one, open_house(tmp_path, password=PASSWORD) as other:
        token = await signed_in(one)
        for name in (name_of(one), name_of(other)):
            answer = await other.web.get("/api/me", headers={"cookie": f"{name}={token}"})
            assert answer.status_code == 401
        # And the other way round: nobody there can put one in the place of ours.
        mixed = f"{name_of(other)}=theirs; {name_of(one)}={token}"
        assert (await one.web.get("/api/me", headers={"cookie": mixed, "authorization": ""})).status_code == 401
        one.web.headers.pop("authorization")
        one.web.cookies.clear()
        assert (await one.web.get("/api/me", headers={"cookie": mixed})).status_code == 200


@pytest.mark.parametrize("kept", [PASSWORD, hashed(PASSWORD, SALT)], ids=["text", "hash"])
async def test_the_password_signs_in_and_closes_the_gateway_to_guests(home: Path, kept: str) -> None:
    async with open_house(home, password=kept) as house:
        assert (await house.web.get("/api/me")).status_code == 401
        assert await house.get("/api/sign-in") == {"password": True}
        wrong = await enter(house, password="time and tide")
        assert (*await error(wrong), wrong.headers["www-authenticate"]) == (401, "wrong_password", "Bearer")
        # What stands in the configuration is not what opens.
        if kept != PASSWORD:
            assert await error(await enter(house, password=kept)) == (401, "wrong_password")
        assert (await enter(house, password=PASSWORD)).status_code == 200
        assert (await house.get("/api/me"))["how"] == "cookie"
        as_key = await house.web.get("/api/me", headers={"authorization": f"Bearer {PASSWORD}"})
        assert as_key.status_code == 401


async def test_whoever_guesses_passwords_has_to_wait_and_a_link_still_works(home: Path) -> None:
    async with open_house(home, password=PASSWORD) as house:
        tried = await asyncio.gather(*(enter(house, password=f"guess {n}") for n in range(GUESSES_PER_MINUTE + 3)))
        assert sorted(each.status_code for each in tried) == [401] * GUESSES_PER_MINUTE + [429] * 3
        # Not even the right one is looked at now: an answer would tell that it is.
        waiting = await enter(house, password=PASSWORD)
        assert await error(waiting) == (429, "too_many_failures")
        assert 0 < int(waiting.headers["retry-after"]) <= 60 // GUESSES_PER_MINUTE
        await signed_in(house)
        assert (await house.get("/api/me"))["how"] == "cookie"


@pytest.mark.parametrize(
    "kept",
    ["scrypt$", "scrypt$32768$$", "scrypt$1$AAAA$AAAA", "scrypt$1048576$" + "A" * 24 + "$" + "A" * 44, "scrypt$32769$a$b"],
)
def test_a_hash_that_cannot_be_checked_is_no_password(kept: str) -> None:
    assert (is_usable(kept), matches(kept, ""), matches(kept, kept)) == (False, False, False)


def test_the_same_password_has_another_hash_with_another_salt() -> None:
    assert hashed(PASSWORD, SALT) != hashed(PASSWORD, SALT[::-1])
    assert matches(hashed("clé \N{KEY}", SALT), "clé \N{KEY}")


async def test_the_page_is_there_for_everybody_and_asks_for_nothing_from_elsewhere(home: Path) -> None:
    async with open_house(home, api_key="a-key-for-the-operator") as house:
        house.web.headers.pop("authorization")
        files = built()
        assert {"/", "/icon.svg", "/manifest.webmanifest"} < {file.path for file in files}
        for file in files:
            answer = await house.web.get(file.path)
            assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, file.kind)
            assert answer.content == file.plain
            assert answer.headers["cache-control"] == (FOR_EVER if file.path.startswith("/assets/") else ASKED_AGAIN)
            assert answer.headers["content-security-policy"] == POLICY
            assert (answer.headers["x-content-type-options"], answer.headers["referrer-policy"]) == (
                "nosniff",
                "no-referrer",
            )
        page = (await house.web.get("/")).text
        # With such a policy the browser would refuse these; nobody should have to find that out there.
        assert not re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:", page)
        # A module comes with its origin: where a proxy's name is not known it is refused, and the rest says why.
        assert re.search(r'<link rel="stylesheet" href=', page)
        assert "server.allowed_hosts" in page
        assert set(re.findall(r'(?:src|href)="([^"]+)"', page)) <= {file.path for file in files}
        for part in ("default-src 'none'", "frame-ancestors 'none'", "script-src 'self'", "base-uri 'none'"):
            assert part in POLICY
        assert "unsafe" not in POLICY
        for path in ("/index.html", "/static/index.html", "/icon.svg/", "/static", "/.built", "/assets", "/assets/"):
            assert (await house.web.get(path)).status_code == 404
        assert (await house.web.get("/..%2fpage.py")).status_code == 403
        assert (await house.web.post("/", json={})).status_code == 405


async def test_a_link_can_be_had_only_by_the_operator(home: Path) -> None:
    async with open_house(home) as house:
        assert await error(await house.web.post("/api/sign-in/link", json={})) == (403, "operator_only")
        await signed_in(house)
        link = await house.post("/api/sign-in/link", status=201, **own(house))
        assert link["url"].startswith(f"{house.url}/#code=")
