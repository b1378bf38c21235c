"""The shared commands on the page: offered while one is typed, and doing there what they do everywhere."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.page.browser import needs_browser, say
from tests.page.model import a_model, call
from tests.page.test_agent import answers_with

pytestmark = needs_browser


async def told(page: Page, text: str) -> None:
    await expect(page.locator(".command-reply").last).to_contain_text(text)


async def test_commands_are_offered_and_the_model_is_chosen() -> None:
    async with a_model() as visit:
        page = await visit.sign_in()
        await say(page, "one")
        await answers_with(page, "one")
        field = page.get_by_role("textbox", name="Message")
        await field.fill("/mod")
        offered = page.get_by_role("listbox", name="Commands").get_by_role("option")
        await expect(offered).to_have_count(1)
        await expect(offered).to_contain_text("/model [NAME]")
        await field.press("Tab")
        await expect(field).to_have_value("/model ")
        await say(page, "/model tokenz")
        await told(page, "did you mean openai:tokens?")
        await say(page, "/model tokens")
        await told(page, "openai:tokens answers in this conversation")
        await expect(page.locator(".chosen-model")).to_have_text("openai:tokens")
        await page.reload()
        await expect(page.locator(".chosen-model")).to_have_text("openai:tokens")


async def test_a_conversation_is_resumed_by_name_and_left_again() -> None:
    async with a_model() as visit:
        page = await visit.sign_in()
        await say(page, "about herons")
        await answers_with(page, "about herons")
        herons = page.url
        await say(page, "/new")
        await expect(page.get_by_role("heading", name="about herons")).to_have_count(0)
        await say(page, "/sessions")
        await told(page, "“about herons”")
        await say(page, "/resume herons")
        # It is over, so a copy of it goes on.
        await answers_with(page, "about herons")
        assert page.url != herons
        await say(page, "and storks")
        await answers_with(page, "and storks")


async def test_permission_is_given_by_a_command_to_who_is_signed_in() -> None:
    async with a_model(f"{call('terminal', command='rm -rf build')} | say It is clean.") as visit:
        page = await visit.sign_in()
        await say(page, "clean up, please")
        await expect(page.get_by_role("region", name="Approval needed")).to_be_visible()
        await say(page, "/approve")
        await told(page, "Allowed this once")
        await answers_with(page, "It is clean.")
