"""S2: a program that takes the gateway's port while it is down learns nothing useful from the open page."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from playwright.async_api import async_playwright, expect

from holdfast.core.keys import Purpose
from tests.blackbox.gateway import gateways, until
from tests.machine import browser
from tests.page.browser import ARGUMENTS, at_home, needs_browser, say

pytestmark = needs_browser
PROOF = "x-holdfast-proof"
CLOSED = {"server__api_key": "a-key-that-programs-need"}
# Reads all stores of the page's browser as text.
_STORED = """
async () => {
  const found = [JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage }), document.cookie];
  for (const { name } of await indexedDB.databases()) {
    const database = await new Promise((resolve) => {
      indexedDB.open(name).onsuccess = ({ target }) => resolve(target.result);
    });
    for (const store of database.objectStoreNames) {
      const all = await new Promise((resolve) => {
        database.transaction(store).objectStore(store).getAll().onsuccess = ({ target }) => resolve(target.result);
      });
      for (const each of all) {
        if (!(each instanceof CryptoKey)) found.push(JSON.stringify(each));
        else found.push(await crypto.subtle.exportKey("raw", each).then(() => "readable", () => "unreadable"));
      }
    }
  }
  return found;
}
"""


class Impostor:
    """Accepts every request, and answers so that the page sends more."""

    def __init__(self, nonces: tuple[str, ...]) -> None:
        self.requests: list[httpx2.Request] = []
        self._nonces = nonces

    @property
    def signed(self) -> list[httpx2.Request]:
        return [each for each in self.requests if PROOF in each.headers]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            method, target, _ = first.split(" ")
            self.requests.append(httpx2.Request(method, f"http://{headers['host']}{target}", headers=headers, content=body))
            nonce = self._nonces[len(self.requests) % len(self._nonces)]
            status = f"401 Unauthorized\r\nx-holdfast-nonce: {nonce}" if nonce else "503 Service Unavailable"
            writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}".encode())
            await writer.drain()
        writer.close()

    @contextlib.asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[None]:
        async with await asyncio.start_server(self.answer, "127.0.0.1", port):
            yield


@pytest.mark.parametrize("nonces", [("",), ("one", "two", "")], ids=["silent", "asks for more"])
async def test_what_the_open_page_tells_an_impostor_opens_nothing(nonces: tuple[str, ...]) -> None:
    async with at_home(CLOSED) as (visit, web):
        page = await visit.sign_in()
        await say(page, "count to 3")
        await expect(page.locator("[data-role=assistant]")).to_contain_text("1 2 3.")
        await visit.gateway.kill()
        impostor = Impostor(nonces)
        async with impostor.listening(visit.gateway.port):
            await say(page, "count to 4")
            await until(lambda: len(impostor.signed) > 5, "the page talks to the impostor")
        await visit.gateway.start()
        fresh = await _nonce(web, impostor.requests)
        assert all("cookie" not in each.headers and "authorization" not in each.headers for each in impostor.requests)
        for request in impostor.requests:
            if not request.url.path.startswith(("/api/", "/v1/")) or request.url.path == "/api/sign-in":
                continue
            for proof in _variations(request.headers.get(PROOF, ""), fresh):
                request.headers[PROOF] = proof
                answer = await web.send(request)
                assert answer.status_code == 401, (request.method, request.url, answer.text)
                # Nor what it requested under other names.
                for path in ("/api/sessions", "/api/settings", "/api/keys"):
                    assert (await web.get(path, headers={PROOF: proof})).status_code == 401


async def _nonce(web: httpx2.AsyncClient, requests: list[httpx2.Request]) -> str:
    """Return the gateway's current nonce: replaying a true signature reveals it."""
    for request in requests:
        if nonce := (await web.send(request)).headers.get("x-holdfast-nonce"):
            return nonce
    raise AssertionError("no request was signed by the page")


def _variations(proof: str, fresh: str) -> list[str]:
    """Return a proof unchanged, and with every part changed in turn."""
    parts = proof.split(".")
    return [proof, *([".".join([parts[0], fresh, *parts[2:]])] if len(parts) == 5 else [])]


async def test_after_an_impostor_the_page_goes_on_where_it_was() -> None:
    async with at_home(CLOSED) as (visit, _):
        page = await visit.sign_in()
        await say(page, "count to 3")
        await expect(page.locator("[data-role=assistant]")).to_contain_text("1 2 3.")
        await visit.gateway.kill()
        impostor = Impostor(("",))
        async with impostor.listening(visit.gateway.port):
            await say(page, "count to 4")
            await until(lambda: any(each.method == "POST" for each in impostor.requests), "it was sent the message")
        await visit.gateway.start()
        await expect(page.locator("[data-role=assistant]").last).to_contain_text("1 2 3 4.")


async def test_nothing_that_the_browser_keeps_can_be_carried_away() -> None:
    """The key is usable but unreadable, even for the page; there is no cookie."""
    async with at_home(CLOSED) as (visit, web):
        async with visit.context.expect_event("response", lambda each: each.request.method == "POST") as signing_in:
            page = await visit.sign_in()
        secret = (await (await signing_in.value).json())["secret"]
        await expect(page.get_by_role("textbox", name="Message")).to_be_visible()
        found = await page.evaluate(_STORED)
        assert "unreadable" in found
        assert "readable" not in found
        assert not any(secret in each for each in found)
        assert await visit.context.cookies() == []
        login = json.loads(found[0])["holdfast.login"]
        for headers in ({PROOF: login}, {"cookie": f"holdfast={login}"}, {"authorization": f"Bearer {login}"}):
            assert (await web.get("/api/me", headers=headers)).status_code == 401


async def test_a_page_that_came_without_tls_from_elsewhere_signs_as_well(tmp_path: Path) -> None:
    """Without TLS browsers store no unreadable keys; the gateway still gets signatures."""
    with gateways(1, **CLOSED, server__allowed_hosts='["gateway.example"]') as (gateway,):
        await gateway.start()
        await gateway.says("#code=")
        (code,) = re.findall(r"#code=\S+", gateway.log.read_text())
        async with async_playwright() as playwright:
            elsewhere = "--host-resolver-rules=MAP gateway.example 127.0.0.1"
            context = await playwright.chromium.launch_persistent_context(
                tmp_path, executable_path=browser(), args=[*ARGUMENTS, elsewhere]
            )
            page = context.pages[0]
            await page.goto(f"http://gateway.example:{gateway.port}/")
            await expect(page.get_by_text("This address is not encrypted")).to_be_visible()
            await page.goto(f"http://gateway.example:{gateway.port}/{code}")
            await say(page, "count to 3")
            await expect(page.locator("[data-role=assistant]")).to_contain_text("1 2 3.")
            assert not await page.evaluate("isSecureContext")
            await page.reload()
            await expect(page.locator("[data-role=assistant]")).to_contain_text("1 2 3.")
            await context.close()


@pytest.mark.long
async def test_a_second_sign_in_ends_the_first_and_every_tab_goes_on() -> None:
    """Session fixation: a copy of a replaced login is worthless."""
    async with at_home(CLOSED) as (visit, _):
        page = await visit.sign_in()
        await expect(page.get_by_role("textbox", name="Message")).to_be_visible()
        other = await visit.tab()
        await expect(other.get_by_role("textbox", name="Message")).to_be_visible()
        (code,) = re.findall(r"#code=\S+", await visit.gateway.run("link"))
        async with visit.context.expect_event("response", lambda each: each.url.endswith("/api/sign-out")) as leaving:
            await page.evaluate("code => { location.hash = code }", code)
        assert (await leaving.value).status == 200
        for each in (page, other):
            await expect(each.get_by_role("textbox", name="Message")).to_be_visible()
            await each.reload()
            await expect(each.get_by_role("textbox", name="Message")).to_be_visible()
        with contextlib.closing(sqlite3.connect(visit.gateway.home / "holdfast.db")) as store:
            count = store.execute("SELECT COUNT(*) FROM logins WHERE purpose = ?", [Purpose.BROWSER.value])
            assert count.fetchall() == [(1,)]
