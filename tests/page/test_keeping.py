"""What a browser stores for the page, and what works if it stores nothing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from playwright.async_api import async_playwright, expect

from tests.blackbox.gateway import gateways
from tests.machine import browser
from tests.page.browser import ARGUMENTS, at_home, needs_browser, say

pytestmark = needs_browser
# As in the settings of a browser: no site may store anything.
BLOCKED = {"profile": {"default_content_setting_values": {"cookies": 2}}}


async def test_where_the_browser_keeps_nothing_a_message_is_sent_all_the_same(tmp_path: Path) -> None:
    preferences = tmp_path / "Default" / "Preferences"
    preferences.parent.mkdir()
    preferences.write_text(json.dumps(BLOCKED))
    with gateways() as (gateway,):
        await gateway.start()
        async with async_playwright() as playwright:
            context = await playwright.chromium.launch_persistent_context(
                tmp_path, executable_path=browser(), args=list(ARGUMENTS)
            )
            page = context.pages[0]
            await page.goto(gateway.url)
            await expect(page.get_by_text("This browser cannot store messages")).to_be_visible()
            await say(page, "count to 3")
            await expect(page.locator("[data-role=assistant]")).to_contain_text("1 2 3.")
            await context.close()


async def _break_off(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer with half a header, which browsers turn into an empty page."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-ty")
    await writer.drain()
    writer.close()


@pytest.mark.long
async def test_half_an_answer_takes_the_place_of_no_page() -> None:
    async with at_home() as (visit, _):
        page = await visit.tab()
        await page.evaluate("navigator.serviceWorker.ready")
        await visit.gateway.kill()
        async with await asyncio.start_server(_break_off, "127.0.0.1", visit.gateway.port):
            await page.reload()
            await expect(page.get_by_role("textbox", name="Message")).to_be_visible()
        await page.reload()
        await say(page, "count to 3")
        await visit.gateway.start()
        await expect(page.locator("[data-role=assistant]")).to_contain_text("1 2 3.")
