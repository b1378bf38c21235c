"""The shared commands on the page: offered while one is typed, and doing there what they do everywhere."""

from __future__ import annotations

from playwright.async_api import Page, expect

from holdfast.core.commands import COMMANDS
from tests.page.browser import at_home, needs_browser, say
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
        offered = page.get_by_role("listbox", name="Commands").get_by_role("option")
        await field.fill("/")
        assert [(await each.inner_text()).split("\n")[0] for each in await offered.all()] == [
            each.usage for each in COMMANDS
        ]
        await field.fill("/mod")
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


async def test_permission_is_refused_by_a_command_with_a_reason() -> None:
    async with a_model(f"{call('terminal', command='rm -rf build')} | result") as visit:
        page = await visit.sign_in()
        await say(page, "clean up, please")
        await expect(page.get_by_role("region", name="Approval needed")).to_be_visible()
        await say(page, "/deny it is needed tomorrow")
        await told(page, "Denied: ")
        await expect(page.locator("[data-role=assistant]").last).to_contain_text("it is needed tomorrow")


async def test_a_message_joins_waits_or_goes_to_the_background_by_a_command() -> None:
    async with at_home() as (visit, _):
        page = await visit.tab()
        await say(page, "/background count to 3")
        await told(page, "At work in the background")
        await expect(page.locator("[data-role=assistant]").last).to_contain_text("1 2 3")
        await say(page, "count to 200 slowly")
        await expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
        await say(page, "/steer faster")
        await expect(page.get_by_text("sent while running")).to_be_visible()
        await say(page, "/queue count to 5")
        queued = page.locator("[data-role=user]").filter(has_text="count to 5")
        await expect(queued).to_be_visible()
        await expect(queued).not_to_contain_text("/queue")
        await page.get_by_role("button", name="Stop", exact=True).click()
        await expect(page.locator("[data-role=assistant]").last).to_contain_text("1 2 3 4 5")


async def test_an_open_conversation_is_resumed_where_it_is() -> None:
    async with a_model() as visit:
        page = await visit.sign_in()
        await say(page, "about herons")
        await answers_with(page, "about herons")
        herons = page.url
        await page.get_by_role("link", name="New chat", exact=True).click()
        await say(page, "about storks")
        await answers_with(page, "about storks")
        await say(page, "/resume herons")
        await expect(page).to_have_url(herons)
        await told(page, "Going on with “about herons”")
