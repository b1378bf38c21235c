"""The page is accessible: with a screen reader, without a mouse, with low vision, in light and dark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Page, expect

from tests.page.browser import PHONE, WIDE, needs_browser
from tests.page.model import a_model, call
from tests.page.scene import furnish

pytestmark = needs_browser
AXE = Path(__file__).parents[2] / "page" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
DAY_AND_NIGHT: tuple[tuple[Literal["light", "dark"], dict[str, object]], ...] = (
    ("light", {"type": "tag", "values": RULES}),
    ("dark", {"type": "rule", "values": ["color-contrast"]}),
)
# From the message field back to the question above it.
STEPS_MAX = 12
_ASK = """
async (only) => {
  const { violations } = await axe.run(document, { runOnly: only, resultTypes: ["violations"] });
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.failureSummary} in ${node.html}`));
}
"""
# Elements that fade in have their final colours only at the end.
_REST = """
async () => {
  for (let frames = 0; frames < 2; frames += 1) await new Promise(requestAnimationFrame);
  const ends = (each) => each.effect.getComputedTiming().endTime !== Infinity;
  await Promise.all(document.getAnimations().filter(ends).map((each) => each.finished.catch(() => {})));
}
"""
# An animation of a millisecond is invisible; a delay moves nothing.
_MOVING = """
() => document.getAnimations()
  .filter((each) => each.effect.getComputedTiming().activeDuration > 1)
  .map((each) => each.transitionProperty ?? each.animationName)
"""


async def examine(page: Page) -> list[str]:
    """Return the findings of axe: all rules in light, the colours again in dark."""
    await expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.read_text())
    found: list[str] = []
    for scheme, only in DAY_AND_NIGHT:
        await page.emulate_media(color_scheme=scheme)
        await page.evaluate(_REST)
        found += await page.evaluate(_ASK, only)
    return found


async def control_pages(page: Page) -> list[str]:
    """Open a control page, and return the names of all, as their navigation has them."""
    await page.evaluate("location.hash = '#/control/status'")
    links = page.get_by_role("navigation", name="Control").get_by_role("link")
    await expect(links.first).to_be_visible()
    return [(await each.get_attribute("href") or "").rpartition("/")[2] for each in await links.all()]


@pytest.mark.parametrize("viewport", [WIDE, pytest.param(PHONE, marks=pytest.mark.long)], ids=["wide", "phone"])
async def test_axe_finds_nothing(viewport: dict[str, int]) -> None:
    """Conversations of every kind, the list, the dialogs, and every control page."""
    async with a_model(viewport=viewport, reduced_motion="reduce") as visit:
        page = await visit.sign_in()
        found = {"new": await examine(page)}
        for name, session in (await furnish(visit.gateway)).items():
            await page.goto(f"{visit.url}/#/s/{session}")
            await expect(page.get_by_role("article").first).to_be_visible()
            for card in await page.locator(".call > .unfolds[aria-expanded=false]").element_handles():
                await card.click()
            found[name] = await examine(page)
        for keys, name in ({"Control+k": "palette", "Control+b": "sidebar"}).items():
            await page.keyboard.press(keys)
            found[name] = await examine(page)
            await page.keyboard.press("Escape")
        for name in await control_pages(page):
            await page.goto(f"{visit.url}/#/control/{name}")
            await expect(page.get_by_role("main").get_by_role("heading", level=1)).to_be_visible()
            found[name] = await examine(page)
        assert not {name: each for name, each in found.items() if each}


async def test_nothing_moves_for_people_who_asked_for_that() -> None:
    """No colour fades and nothing pulses; delayed elements still appear."""
    async with a_model(reduced_motion="reduce") as visit:
        page = await visit.sign_in()
        await page.goto(f"{visit.url}/#/control/doctor")
        await expect(page.get_by_role("heading", name="Doctor", level=1)).to_be_visible()
        await page.evaluate(_REST)
        await page.emulate_media(color_scheme="dark")
        assert await page.evaluate(_MOVING) == []
        await page.evaluate("document.body.append(Object.assign(document.createElement('i'), { className: 'spinner' }))")
        assert await page.evaluate(_MOVING) == []


async def test_a_keyboard_is_enough() -> None:
    """Without a mouse: send, allow a command, return by the palette, open a control page, list the shortcuts."""
    async with a_model(f"{call('terminal', command='rm -rf build')} | say It is gone.") as visit:
        page = await visit.sign_in()
        keys = page.keyboard
        # The message field has the focus when the page opens.
        await expect(page.get_by_role("textbox", name="Message")).to_be_focused()
        await keys.type("clean up, please")
        await keys.press("Enter")
        allow = page.get_by_role("button", name="Allow once")
        await expect(allow).to_be_visible()
        for _ in range(STEPS_MAX):
            if await allow.evaluate("each => each === document.activeElement"):
                break
            await keys.press("Shift+Tab")
        await keys.press("y")
        await expect(page.locator("[data-role=assistant]").last).to_have_text("It is gone.")
        await keys.press("Control+Shift+O")
        await expect(page.get_by_role("heading", name=re.compile("Good|Hello"))).to_be_visible()
        await keys.press("Control+k")
        await keys.type("clean up")
        await expect(page.get_by_role("option").first).to_contain_text("clean up, please")
        await keys.press("Enter")
        await expect(page.locator("[data-role=assistant]").last).to_have_text("It is gone.")
        await keys.press("Control+k")
        await keys.type("doctor")
        await keys.press("Enter")
        await expect(page.get_by_role("heading", name="Doctor", level=1)).to_be_visible()
        await keys.press("?")
        await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        await keys.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
