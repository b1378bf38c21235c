"""Sent messages: stored in the browser until the gateway has them, and accepted once."""

from __future__ import annotations

import httpx2
from playwright.async_api import Page, expect

from tests.blackbox.gateway import gateways, until
from tests.line import line
from tests.page.browser import at_home, needs_browser, say, visiting
from tests.page.words import messages

pytestmark = needs_browser


async def _in_a_session(page: Page) -> None:
    """Start a conversation, and wait until the page is cached."""
    await say(page, "count to 1")
    await expect(page.get_by_role("button", name="Copy the answer")).to_be_visible()
    await page.evaluate("navigator.serviceWorker.ready")


async def test_what_is_sent_while_the_gateway_is_away_is_sent_once_in_its_order() -> None:
    """Across a reload, a second tab and a restart; each message shows its status."""
    async with at_home() as (visit, web):
        page = await visit.tab()
        await _in_a_session(page)
        await visit.gateway.kill()
        for text in ("count to 2", "count to 3"):
            await say(page, text)
        waiting = page.get_by_role("log", name="Outgoing messages").get_by_role("article")
        await expect(waiting).to_have_count(2)
        await expect(waiting.first).to_contain_text("Will be sent when the gateway is back")
        await page.reload()
        await expect(waiting).to_have_count(2)
        await visit.tab(page.url.removeprefix(f"{visit.url}/"))
        await visit.gateway.start()
        await expect(waiting).to_have_count(0)
        await expect(page.locator("[data-role=assistant]").last).to_contain_text("1 2 3.")
        assert await messages(web) == ["count to 1", "count to 2", "count to 3"]


async def test_a_conversation_that_is_begun_while_the_gateway_is_away_is_begun_once() -> None:
    async with at_home() as (visit, web):
        page = await visit.tab()
        await page.evaluate("navigator.serviceWorker.ready")
        await visit.gateway.kill()
        await say(page, "count to 2")
        # The next message belongs to the conversation that is shown.
        await expect(page.get_by_role("article").last).to_contain_text("count to 2")
        await say(page, "count to 3")
        await expect(page.get_by_text("Will be sent when the gateway is back").last).to_be_visible()
        await page.reload()
        await visit.gateway.start()
        await expect(page.locator("[data-role=assistant]").last).to_contain_text("1 2 3.")
        assert await messages(web) == ["count to 2", "count to 3"]


async def test_a_message_whose_answer_was_lost_is_unconfirmed_and_one_turn() -> None:
    """The gateway has it and the browser cannot know: it is sent again with the same key, and nothing is doubled."""
    with gateways() as (gateway,):
        await gateway.start()
        async with (
            line(gateway) as cable,
            httpx2.AsyncClient(base_url=gateway.url, verify=False, trust_env=False) as web,
            visiting(gateway, cable.url) as visit,
        ):
            page = await visit.tab()
            await _in_a_session(page)
            cable.lose_answer(b"POST /api/sessions/")
            await say(page, "note: only once")
            await until(lambda: _has_messages(web, 2), "the gateway has the message")
            cable.hang_up()
            await expect(page.get_by_text("Delivery unconfirmed")).to_be_visible()
            cable.mend()
            await expect(page.locator("[data-role=assistant]").last).to_have_text("I kept your note.")
            await expect(page.get_by_text("Delivery unconfirmed")).to_have_count(0)
            assert await messages(web) == ["count to 1", "note: only once"]
            assert len(gateway.notes.read_text().splitlines()) == 1


async def _has_messages(web: httpx2.AsyncClient, count: int) -> bool:
    return len(await messages(web)) == count
