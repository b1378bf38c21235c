"""The layout fits a phone, whatever texts a person or a model chooses."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.page.browser import PHONE, needs_browser, say
from tests.page.model import a_model, call

pytestmark = needs_browser
LONG = "the one behind the old lighthouse that is closed for most of the year"
# Elements that are cut off at the side and cannot be scrolled to.
_CUT_OFF = """
() => {
  const edge = document.documentElement.clientWidth + 1;
  const isRoomy = (each) => ["auto", "scroll"].includes(getComputedStyle(each).overflowX);
  const scrolls = (each) => each !== null && (isRoomy(each) || scrolls(each.parentElement));
  const out = [...document.querySelectorAll("main *")].filter((each) => each.getBoundingClientRect().right > edge);
  return out.filter((each) => !scrolls(each)).map((each) => each.outerHTML.slice(0, 120));
}
"""
# A phone zooms in when a field with smaller letters takes the focus.
LETTERS_MIN_PX = 16


async def cut_off(page: Page) -> list[str]:
    return await page.evaluate(_CUT_OFF)


async def test_long_names_and_choices_stay_within_a_phone() -> None:
    script = f"{call('ask_user', question='Which harbour?', choices=['North', LONG])} | result"
    async with a_model(script, viewport=PHONE, is_mobile=True, has_touch=True) as visit:
        page = await visit.sign_in()
        field = page.get_by_role("textbox", name="Message")
        size = await field.evaluate("(field) => parseFloat(getComputedStyle(field).fontSize)")
        assert size >= LETTERS_MIN_PX
        await field.fill(f"Look for a harbour, but not for {LONG}")
        await page.get_by_role("button", name="Send", exact=True).tap()
        await expect(page.get_by_role("button", name=LONG)).to_be_visible()
        assert not await cut_off(page)
        await page.goto(f"{visit.url}/#/control/approvals")
        await expect(page.get_by_role("button", name=LONG)).to_be_visible()
        assert not await cut_off(page)


async def test_the_field_stays_where_it_is_when_the_first_letter_is_written() -> None:
    async with a_model("stream 400 at 20") as visit:
        page = await visit.sign_in()
        await say(page, "tell me a story")
        stop = page.get_by_role("button", name="Stop", exact=True)
        await expect(stop).to_be_visible()
        before = await page.locator(".composer-box").bounding_box()
        await page.keyboard.type("a")
        await expect(page.get_by_role("button", name="Queue")).to_be_visible()
        assert await page.locator(".composer-box").bounding_box() == before
