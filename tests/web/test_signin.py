"""People at a browser: links that are good once, the password, what requests are signed with, and the page."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.core.keys import digest
from holdfast.home_files import OPENING
from holdfast.operations.caller import OPERATOR
from holdfast.operations.logins import BROWSER_MS, CODE_MS, Logins, reachable
from holdfast.operations.sessions import Message, Opening
from holdfast.passwords import hashed, is_usable, matches
from holdfast.store.opening import open_store
from holdfast.web.guard import NONCE, PROOF
from holdfast.web.page import ASKED_AGAIN, FOR_EVER, POLICY, built
from holdfast.web.signin import GUESSES_PER_MINUTE
from tests.engine.world import ManualClock
from tests.web.house import House, open_house
from tests.web.signing import Signing

PASSWORD = "tide and time"
SALT = bytes(range(16))
HASH = hashed(PASSWORD, SALT)


def own(house: House) -> dict[str, str]:
    return {"origin": house.url}


async def enter(house: House, **credentials: str) -> httpx2.Response:
    return await house.web.post("/api/sign-in", json=credentials, headers=own(house))


async def code(house: House) -> str:
    return (await house.services.logins.link()).url.partition("#code=")[2]


async def signed_in(house: House) -> Signing:
    """Sign the client in as a browser would be."""
    answer = await enter(house, code=await code(house))
    assert answer.status_code == 200, answer.text
    signing = Signing(answer.json())
    house.web.auth = signing
    return signing


async def error(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def test_a_gateway_that_starts_shows_a_link_that_signs_one_browser_in_once(home: Path) -> None:
    """SECURITY 2: the code is in the fragment; what comes back is told once, and never shown again."""
    async with open_house(home) as house:
        assert house.log.link
        address, _, shown = house.log.link.url.partition("#code=")
        assert (address, "?" in house.log.link.url) == (f"{house.url}/", False)
        answer = await enter(house, code=shown)
        told = answer.json()
        assert (told["signed_in"], "set-cookie" in answer.headers, len(told["secret"]) >= 43) == (True, False, True)
        house.web.auth = Signing(told)
        assert await house.get("/api/me") == {"owner": "local", "scopes": ["admin", "api"], "how": "browser"}
        # Admin, unlike the guest that this machine was before.
        assert (await house.get("/api/keys"))["items"] == []
        house.web.auth = None
        assert await error(await enter(house, code=shown)) == (401, "wrong_code")


async def test_nobody_chooses_the_login_of_a_browser(home: Path) -> None:
    """Session fixation: a login that an attacker knows stays the attacker's, whatever is shown beside the code."""
    async with open_house(home) as house:
        known = await signed_in(house)
        shown = {"login": known.login, "secret": "known", "nonce": "known"}
        answer = await enter(house, code=await code(house), **shown)
        told = answer.json()
        assert answer.status_code == 200, answer.text
        assert (told["login"] != known.login, told["secret"] != "known", told["nonce"] != "known") == (True, True, True)
        # A login is known to its browser alone, and the code of a link is none.
        assert await error(await enter(house, code=told["login"])) == (401, "wrong_code")


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
async def test_what_opens_nothing_is_refused(home: Path, body: dict[str, Any], status: int, problem: str) -> None:
    async with open_house(home) as house:
        headers = {**own(house), "content-type": "application/json"}
        answer = await house.web.post("/api/sign-in", content=json.dumps(body), headers=headers)
        assert await error(answer) == (status, problem)
        assert (await house.get("/api/sign-in")) == {"password": False}


async def test_a_code_and_a_sign_in_end_by_themselves(home: Path) -> None:
    """Codes after fifteen minutes, browsers after thirty days; and neither does what the other is for."""
    store, clock = await open_store("sqlite", home), ManualClock()
    logins = Logins(
        store=store,
        caller=OPERATOR,
        clock=clock,
        password="",
        url="http://127.0.0.1:8420",
        process="this",
        opening=home / OPENING,
    )
    try:
        first, second = [(await logins.link()).url.partition("#code=")[2] for _ in range(2)]
        await clock.advance(CODE_MS - 1)
        admitted = await logins.by_code(first, 8420)
        assert admitted
        assert await store.logins.find(digest(f"this.{second}"), clock.now_ms()) is None
        assert await logins.by_code(admitted.login, 8420) is None
        await clock.advance(1)
        assert await logins.by_code(second, 8420) is None
        await clock.advance(BROWSER_MS - 2)
        assert await store.logins.find(digest(admitted.login), clock.now_ms())
        await clock.advance(1)
        assert await store.logins.find(digest(admitted.login), clock.now_ms()) is None
        assert await store.logins.forget(clock.now_ms()) == 2
    finally:
        await store.close()


async def test_a_link_is_good_until_the_gateway_restarts(home: Path) -> None:
    """S2: a program that took the port meanwhile may have been shown its code."""
    async with open_house(home) as house:
        shown = await code(house)
        await house.stop()
    async with open_house(home) as house:
        assert await error(await enter(house, code=shown)) == (401, "wrong_code")


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
    """CSRF: another site could not sign, and is refused before that is looked at."""
    async with open_house(home) as house:
        await signed_in(house)
        for headers, status in (
            ({"origin": "https://evil.example"}, 403),
            ({"origin": "null"}, 403),
            ({**own(house), "sec-fetch-site": "cross-site"}, 403),
            ({"origin": "http://127.0.0.1:3000", "sec-fetch-site": "same-site"}, 403),
            ({**own(house), "sec-fetch-site": "same-origin"}, 201),
        ):
            answer = await house.web.post("/api/sessions", json={}, headers=headers)
            assert answer.status_code == status, headers
        # What can be read is refused to other sites as well, streams included.
        (session,) = (await house.get("/api/sessions"))["items"]
        for path in ("/api/sessions", f"/api/sessions/{session['id']}/events", "/api/me"):
            answer = await house.web.get(path, headers={"sec-fetch-site": "same-site"})
            assert answer.status_code == 403


async def test_whoever_signs_out_is_out_for_good(home: Path) -> None:
    async with open_house(home, api_key="a-key-for-the-operator") as house:
        house.web.headers.pop("authorization")
        signing = await signed_in(house)
        assert (await house.get("/api/me"))["how"] == "browser"
        assert (await house.post("/api/sign-out"))["signed_in"] is False
        assert (await house.web.get("/api/me")).status_code == 401
        # Signed anew, with a nonce that is good.
        signing.nonce = (await enter(house, code=await code(house))).json()["nonce"]
        stolen = await house.web.get("/api/me")
        assert (stolen.status_code, stolen.headers["www-authenticate"]) == (401, "Bearer")


async def test_what_a_browser_has_open_ends_when_it_signs_out(home: Path) -> None:
    async with open_house(home, api_key="a-key-for-the-operator") as house:
        house.web.headers.pop("authorization")
        await signed_in(house)
        session = await house.services.sessions.open(Opening())
        async with house.events(session.id) as entries:
            await house.post("/api/sign-out")
            await house.services.sessions.send(session.id, Message(text="echo: not for you"))
            async with asyncio.timeout(5):
                with contextlib.suppress(httpx2.TransportError):
                    assert [entry async for entry in entries] == []


async def test_what_was_recorded_of_a_browser_opens_nothing_again(home: Path) -> None:
    """S2: neither in this process nor in the next one, whatever is changed about it."""
    async with open_house(home, api_key="a-key-for-the-operator") as house:
        house.web.headers.pop("authorization")
        signing = await signed_in(house)
        recorded = signing.proof("POST", "/api/sessions", b"{}")
        unsent = signing.proof("POST", "/api/sessions", b"{}")
        house.web.auth = None
        headers = {PROOF: recorded, **own(house), "content-type": "application/json"}
        assert (await house.web.post("/api/sessions", content=b"{}", headers=headers)).status_code == 201
        for method, path, body in (
            ("POST", "/api/sessions", b"{}"),
            ("POST", "/api/sessions", b'{"title":"x"}'),
            ("POST", "/api/keys", b"{}"),
            ("GET", "/api/sessions", b""),
        ):
            answer = await house.web.request(method, path, content=body, headers=headers)
            assert answer.status_code == 401, (method, path)
        await house.stop()
    async with open_house(home, api_key="a-key-for-the-operator") as house:
        house.web.headers.pop("authorization")
        for proof in (recorded, unsent):
            headers = {PROOF: proof, "content-type": "application/json"}
            assert (await house.web.post("/api/sessions", content=b"{}", headers=headers)).status_code == 401


async def test_a_body_that_was_not_signed_is_not_taken(home: Path) -> None:
    async with open_house(home) as house:
        signing = await signed_in(house)
        house.web.auth = None
        headers = {PROOF: signing.proof("POST", "/api/sessions", b"{}"), "content-type": "application/json"}
        answer = await house.web.post("/api/sessions", content=b'{"title": "theirs"}', headers=headers)
        assert await error(answer) == (401, "wrong_body")
        assert (await house.get("/api/sessions"))["items"] == []


async def test_a_browser_stays_signed_in_over_a_restart(home: Path) -> None:
    """On its own port: the page is told what to sign now, and asks once more."""
    async with open_house(home) as house:
        signing = await signed_in(house)
        port = httpx2.URL(house.url).port
        await house.stop()
    async with open_house(home, port=port) as house:
        house.web.auth = signing
        assert (await house.get("/api/me"))["how"] == "browser"
        await house.stop()
    # On another port a program on the old one could pass requests on.
    async with open_house(home) as house:
        house.web.auth = None
        fresh = (await enter(house, code=await code(house))).json()["nonce"]
        signing.nonce = fresh
        answer = await house.web.get("/api/me", headers={PROOF: signing.proof("GET", "/api/me")})
        assert (answer.status_code, NONCE in answer.headers) == (401, False)


async def test_what_one_gateway_gave_opens_no_other_on_the_same_machine(home: Path, tmp_path: Path) -> None:
    async with open_house(home, api_key="a-key-for-the-operator") as one, open_house(tmp_path, password=HASH) as other:
        other.web.auth = await signed_in(one)
        assert (await other.web.get("/api/me")).status_code == 401


async def test_the_password_signs_in_and_closes_the_gateway_to_guests(home: Path) -> None:
    async with open_house(home, password=HASH) as house:
        assert (await house.web.get("/api/me")).status_code == 401
        assert await house.get("/api/sign-in") == {"password": True}
        wrong = await enter(house, password="time and tide")
        assert (*await error(wrong), wrong.headers["www-authenticate"]) == (401, "wrong_password", "Bearer")
        # What stands in the configuration is not what opens.
        assert await error(await enter(house, password=HASH)) == (401, "wrong_password")
        entered = await enter(house, password=PASSWORD)
        assert entered.status_code == 200
        house.web.auth = Signing(entered.json())
        assert (await house.get("/api/me"))["how"] == "browser"
        house.web.auth = None
        as_key = await house.web.get("/api/me", headers={"authorization": f"Bearer {PASSWORD}"})
        assert as_key.status_code == 401


async def test_whoever_guesses_passwords_has_to_wait_and_a_link_still_works(home: Path) -> None:
    async with open_house(home, password=HASH) as house:
        tried = await asyncio.gather(*(enter(house, password=f"guess {n}") for n in range(GUESSES_PER_MINUTE + 3)))
        assert sorted(each.status_code for each in tried) == [401] * GUESSES_PER_MINUTE + [429] * 3
        # Not even the right one is looked at now: an answer would tell that it is.
        waiting = await enter(house, password=PASSWORD)
        assert await error(waiting) == (429, "too_many_failures")
        assert 0 < int(waiting.headers["retry-after"]) <= 60 // GUESSES_PER_MINUTE
        await signed_in(house)
        assert (await house.get("/api/me"))["how"] == "browser"


@pytest.mark.parametrize(
    "kept",
    [
        "",
        "a password as it is",
        "scrypt$",
        "scrypt$32768$$",
        "scrypt$1$AAAA$AAAA",
        "scrypt$1048576$" + "A" * 24 + "$" + "A" * 44,
        "scrypt$32769$a$b",
    ],
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
