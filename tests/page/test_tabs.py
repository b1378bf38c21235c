"""Two tabs of one person show the same."""

from __future__ import annotations

from playwright.async_api import Locator, Page, expect

from tests.page.browser import at_home, needs_browser, say
from tests.page.words import Reader, answers

pytestmark = needs_browser
COUNT = 12


async def test_two_tabs_agree() -> None:
    """What streams in one tab streams in the other; renaming, a new conversation and a deletion appear too."""
    async with at_home() as (visit, web):
        one = await visit.tab()
        await say(one, "count to 1")
        await expect(one.get_by_role("button", name="Copy the answer")).to_be_visible()
        other = await visit.tab(one.url.removeprefix(f"{visit.url}/"))
        readers = Reader(one), Reader(other)
        for each in readers:
            await each.begin()
        # Browsers do not draw a tab in the background.
        await say(other, f"count to {COUNT}")
        for each in readers:
            await each.page.bring_to_front()
            await each.has_read(f"{COUNT}.")
            each.check(await answers(web))
        await _rename(one, "Counting")
        await expect(other.get_by_role("heading", name="Counting")).to_be_visible()
        await expect(_listed(other, "Counting")).to_be_visible()
        await _listed(one, "Counting").press("Delete")
        await expect(_listed(one, "Counting")).to_have_count(0)
        await expect(_listed(other, "Counting")).to_have_count(0)
        await one.close()
        await expect(other.get_by_text("Session not found")).to_be_visible()


def _listed(page: Page, label: str) -> Locator:
    return page.get_by_role("navigation", name="Sessions").get_by_role("link", name=label)


async def _rename(page: Page, label: str) -> None:
    await page.get_by_role("main").get_by_role("heading", level=1).get_by_role("button").click()
    field = page.get_by_role("textbox", name="Name of the session")
    await field.fill(label)
    await field.press("Enter")
