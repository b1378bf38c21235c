"""Sessions in a real browser: deleted with undo, found by search, and listed while the gateway is away."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from playwright.async_api import Page, expect

from tests.blackbox.gateway import gateways, until
from tests.page.browser import Visit, needs_browser, visiting

pytestmark = needs_browser


@contextlib.asynccontextmanager
async def a_visit(*titles: str) -> AsyncIterator[tuple[Visit, httpx2.AsyncClient]]:
    """A browser at a gateway with these sessions, and an HTTP client that sees the real state."""
    with gateways() as (gateway,):
        await gateway.start()
        async with (
            httpx2.AsyncClient(base_url=gateway.url, verify=False, trust_env=False) as web,
            visiting(gateway) as visit,
        ):
            for title in titles:
                (await web.post("/api/sessions", json={"title": title})).raise_for_status()
            yield visit, web


async def titles(web: httpx2.AsyncClient) -> set[str]:
    found: list[dict[str, Any]] = (await web.get("/api/sessions")).json()["items"]
    return {each["title"] for each in found}


async def delete(page: Page, title: str) -> None:
    await page.get_by_role("link", name=title).hover()
    await page.get_by_role("button", name=f"Actions for “{title}”").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await expect(page.get_by_role("link", name=title)).to_have_count(0)


async def test_what_is_deleted_can_be_brought_back_and_is_gone_when_the_page_is_closed() -> None:
    async with a_visit("First", "Second") as (visit, web):
        page = await visit.tab()
        await delete(page, "First")
        assert await titles(web) == {"First", "Second"}
        await page.get_by_role("button", name="Undo").click()
        await expect(page.get_by_role("link", name="First")).to_be_visible()
        await page.get_by_role("link", name="Second").press("Delete")
        await expect(page.get_by_role("link", name="Second")).to_have_count(0)
        await expect(page.get_by_role("link", name="First")).to_be_focused()
        await page.close()
        await until(lambda: _is(web, {"First"}), "the closed page has deleted it")


async def _is(web: httpx2.AsyncClient, wanted: set[str]) -> bool:
    return await titles(web) == wanted


async def test_the_page_opens_while_the_gateway_is_away_with_what_was_written() -> None:
    async with a_visit("First") as (visit, _):
        page = await visit.tab()
        await page.evaluate("navigator.serviceWorker.ready")
        await page.get_by_role("textbox", name="Message").fill("do not lose this")
        await visit.gateway.kill()
        await page.reload()
        await expect(page.get_by_role("textbox", name="Message")).to_have_value("do not lose this")
        await expect(page.get_by_text("Your messages are kept and will be sent")).to_be_visible()
        await visit.gateway.start()
        await expect(page.get_by_role("link", name="First")).to_be_visible()


@pytest.mark.long
async def test_whoever_must_sign_in_again_finds_what_they_wrote() -> None:
    async with a_visit("First") as (visit, _):
        page = await visit.tab()
        await page.get_by_role("textbox", name="Message").fill("do not lose this")
        await visit.gateway.run("keys", "create", "laptop")
        await page.get_by_role("link", name="First").click()
        await expect(page.get_by_role("heading", name="Sign in to Holdfast")).to_be_visible()
        link = (await visit.gateway.run("link")).split()[0]
        await page.evaluate("hash => { location.hash = hash; }", f"#{link.partition('#')[2]}")
        await page.get_by_role("link", name="New chat", exact=True).click()
        await expect(page.get_by_role("textbox", name="Message")).to_have_value("do not lose this")
        assert "code" not in page.url


async def test_whoever_signs_out_leaves_nothing_behind_in_any_tab() -> None:
    async with a_visit("First") as (visit, _):
        page, other = await visit.sign_in(), await visit.tab()
        await page.get_by_role("textbox", name="Message").fill("for nobody else")
        await expect(other.get_by_role("link", name="First")).to_be_visible()
        await visit.gateway.run("keys", "create", "laptop")
        await page.get_by_role("button", name="Theme, help and sign-in").click()
        await page.get_by_role("menuitem", name="Sign out").click()
        for each in (page, other):
            await expect(each.get_by_role("heading", name="Sign in to Holdfast")).to_be_visible()
            assert "First" not in await each.content()
        assert "for nobody else" not in await page.evaluate("JSON.stringify(localStorage)")


async def test_a_search_leads_to_the_turn_and_the_palette_to_everything_else() -> None:
    async with a_visit("First", "Second") as (visit, web):
        session: dict[str, Any] = (await web.get("/api/sessions")).json()["items"][0]
        await web.post(f"/api/sessions/{session['id']}/messages", json={"text": "note: the heron sleeps"})
        page = await visit.tab()
        await page.get_by_role("searchbox").fill("heron sleeps")
        hit = page.get_by_role("navigation", name="Search results").get_by_role("link").last
        await expect(hit.locator("mark")).to_have_text(["heron", "sleeps"])
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("main").get_by_text("note: the heron sleeps").first).to_be_visible()
        await page.get_by_role("searchbox").fill("hero")
        await expect(hit.locator("mark")).to_have_text(["hero"])
        await page.get_by_role("searchbox").fill("seco")
        await expect(hit.locator(".hit-label mark")).to_have_text("Seco")
        await expect(hit).to_contain_text("Second")
        await hit.click()
        await expect(page.get_by_role("main").get_by_role("heading", name="Second")).to_be_visible()
        await page.keyboard.press("Control+k")
        await page.keyboard.type("first")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("main").get_by_role("heading", name="First")).to_be_visible()
