"""A browser that keeps nothing for the page: it says so, and works for as long as it is open."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.async_api import async_playwright, expect

from tests.blackbox.gateway import gateways
from tests.page.browser import ARGUMENTS, found, needs_browser, say

pytestmark = needs_browser
# As in the settings of a browser: no site may keep anything.
BLOCKED = {"profile": {"default_content_setting_values": {"cookies": 2}}}


async def test_where_the_browser_keeps_nothing_a_message_is_sent_all_the_same(tmp_path: Path) -> None:
    preferences = tmp_path / "Default" / "Preferences"
    preferences.parent.mkdir()
    preferences.write_text(json.dumps(BLOCKED))
    with gateways() as (gateway,):
        await gateway.start()
        async with async_playwright() as playwright:
            context = await playwright.chromium.launch_persistent_context(
                tmp_path, executable_path=found(), args=list(ARGUMENTS)
            )
            page = context.pages[0]
            await page.goto(gateway.url)
            await expect(page.get_by_text("This browser keeps no messages")).to_be_visible()
            await say(page, "count to 3")
            await expect(page.locator("[data-role=assistant]")).to_contain_text("1 2 3.")
            await context.close()
