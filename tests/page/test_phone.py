"""The page on a phone: one column, a drawer, and a field above the keyboard."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.page.browser import PHONE, needs_browser
from tests.page.model import a_model
from tests.page.scene import furnish
from tests.page.test_access import control_pages

pytestmark = needs_browser
# The minimum size of a touch target (WCAG 2.2, 2.5.8).
TARGET_MIN_PX = 24
# A table and a code block may scroll by themselves; an element with a heading or a turn may not.
_WIDER = """
() => {
  const isPart = (each) => !each.querySelector("h1, article");
  const scrolls = (each) => /auto|scroll/.test(getComputedStyle(each).overflowX) && isPart(each);
  const isInside = (each) => each !== null && (scrolls(each) || isInside(each.parentElement));
  const isWider = (each) => each.getBoundingClientRect().width > 0 && each.getBoundingClientRect().right > innerWidth + 1;
  const found = [...document.querySelectorAll("body *")].filter((each) => isWider(each) && !isInside(each));
  return found.map((each) => each.outerHTML.slice(0, 200));
}
"""


async def fits(page: Page) -> None:
    """Nothing is wider than the screen, except content that scrolls by itself."""
    # A browser on a phone makes room for what is wider, and shows a part of the page only.
    assert await page.evaluate("innerWidth") == PHONE["width"]
    assert await page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0
    assert await page.evaluate(_WIDER) == []


async def test_everything_fits_on_a_phone() -> None:
    async with a_model(viewport=PHONE, has_touch=True, is_mobile=True) as visit:
        page = await visit.sign_in()
        await fits(page)
        sessions = await furnish(visit.gateway)
        for session in sessions.values():
            await page.goto(f"{visit.url}/#/s/{session}")
            await expect(page.get_by_role("article").first).to_be_visible()
            await fits(page)
        for name in await control_pages(page):
            await page.goto(f"{visit.url}/#/control/{name}")
            await expect(page.get_by_role("main").get_by_role("heading", level=1)).to_be_visible()
            await expect(page.get_by_role("status", name="Loading")).to_have_count(0)
            await fits(page)


async def test_a_finger_is_enough() -> None:
    """The drawer opens over the page, navigates and closes; the button sends, and Enter starts a new line."""
    async with a_model(viewport=PHONE, has_touch=True, is_mobile=True) as visit:
        page = await visit.tab()
        field = page.get_by_role("textbox", name="Message")
        await field.tap()
        await page.keyboard.type("one")
        await page.keyboard.press("Enter")
        await page.keyboard.type("two")
        await page.get_by_role("button", name="Send", exact=True).tap()
        await expect(page.locator("[data-role=assistant]")).to_contain_text("one")
        await page.get_by_role("button", name="Show the sidebar").tap()
        drawer = page.get_by_role("complementary", name="Sessions")
        await expect(drawer).to_be_visible()
        await drawer.get_by_role("link", name="Gateway").tap()
        await expect(drawer).to_be_hidden()
        await expect(page.get_by_role("heading", name="Status", level=1)).to_be_visible()
        await page.get_by_role("button", name="Show the sidebar").tap()
        await drawer.get_by_role("link", name="one").first.tap()
        await expect(page.locator("[data-role=user]")).to_contain_text("one\ntwo")
        box = await page.get_by_role("button", name="Send", exact=True).bounding_box()
        assert box
        assert box["y"] + box["height"] <= PHONE["height"]
        assert min(box["width"], box["height"]) >= TARGET_MIN_PX
