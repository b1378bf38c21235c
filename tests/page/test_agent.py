"""A working agent: its tools are shown, it is answered in place, and a denied action is not done."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.page.browser import at_home, needs_browser, say
from tests.page.model import a_model, call

pytestmark = needs_browser
COMMAND = "echo kept > kept.txt && rm -rf build && echo all-gone"


async def answers_with(page: Page, text: str) -> None:
    await expect(page.locator("[data-role=assistant]").last).to_have_text(text)
    await expect(page.get_by_role("button", name="Copy the answer").last).to_be_visible()


async def test_an_answer_streams_with_tools_and_an_approval_in_place() -> None:
    """The question survives a reload, consent is good for one command, and its card has the output."""
    script = f"think I should clean up; say First a look.; {call('terminal', command=COMMAND)} | say It is clean."
    async with a_model(script) as visit:
        page = await visit.sign_in()
        await say(page, "clean up, please")
        asked = page.get_by_role("region", name="Approval needed")
        await expect(asked).to_contain_text(COMMAND)
        await page.reload()
        await expect(page.get_by_text("Waiting for you").first).to_be_visible()
        await asked.get_by_role("button", name="Allow once").click()
        await answers_with(page, "It is clean.")
        await expect(asked).to_have_count(0)
        await page.get_by_role("button", name="Allowed once").click()
        await page.get_by_role("button", name="Terminal").click()
        await expect(page.get_by_role("group", name="Output")).to_contain_text("all-gone")
        await page.get_by_role("button", name="Thought for").click()
        await expect(page.get_by_text("I should clean up")).to_be_visible()
        assert (visit.gateway.home / "workspace" / "kept.txt").exists()


@pytest.mark.long
async def test_what_is_denied_is_not_done_and_the_agent_is_told() -> None:
    async with a_model(f"{call('terminal', command=COMMAND)} | result") as visit:
        page = await visit.sign_in()
        await say(page, "clean up, please")
        await page.get_by_role("region", name="Approval needed").get_by_role("button", name="Deny").click()
        await expect(page.locator("[data-role=assistant]").last).to_contain_text("denied")
        assert not (visit.gateway.home / "workspace" / "kept.txt").exists()


async def test_whoever_is_not_signed_in_can_read_a_question_of_consent_but_not_answer_it() -> None:
    async with a_model(f"{call('terminal', command=COMMAND)} | result") as visit:
        page = await visit.tab("#code=of-a-link-that-was-used")
        await expect(page.get_by_text("this link has been used, or is too old")).to_be_visible()
        await say(page, "clean up, please")
        asked = page.get_by_role("region", name="Approval needed")
        await expect(asked).to_contain_text("holdfast link")
        await expect(asked.get_by_role("button", name="Allow once")).to_have_count(0)
        await page.goto(f"{visit.url}/#/control/status")
        await expect(page.get_by_role("heading", name="Every message accounted for")).to_be_visible()
        await expect(page.get_by_role("button", name="Restart")).to_have_count(0)


async def test_a_question_is_answered_in_the_field_and_what_runs_can_be_steered_and_stopped() -> None:
    async with at_home() as (visit, _):
        page = await visit.tab()
        await say(page, "ask me for a harbour; count to 200 slowly")
        await expect(page.get_by_role("region", name="Question")).to_contain_text("for a harbour")
        await say(page, "Genoa")
        await expect(page.locator("[data-role=assistant]").last).to_contain_text("You answered: “Genoa”. 1 2")
        field = page.get_by_role("textbox", name="Message")
        await field.fill("faster")
        await field.press("Control+Enter")
        await expect(page.get_by_text("sent while running")).to_be_visible()
        stop = page.get_by_role("button", name="Stop", exact=True)
        await expect(stop).to_be_visible()
        await field.press("Escape")
        await expect(page.get_by_text("The answer so far is kept.")).to_be_visible()
        await say(page, "count to 200 slowly")
        await stop.click()
        await expect(page.get_by_text("The answer so far is kept.")).to_have_count(2)


async def test_an_answer_is_asked_for_anew_and_a_conversation_goes_two_ways() -> None:
    """The last message can be edited or answered again in place; a fork leaves the conversation as it is."""
    async with a_model() as visit:
        page = await visit.tab()
        await say(page, "first")
        await answers_with(page, "first")
        await say(page, "second")
        await answers_with(page, "second")
        await page.get_by_role("article").last.get_by_role("button", name="Edit and send again").click()
        edit = page.get_by_role("textbox", name="Edit the message")
        # Focusing moves the cursor to the end, where text filled in meanwhile would be.
        await expect(edit).to_be_focused()
        await edit.fill("third")
        await page.get_by_role("button", name="Send", exact=True).first.click()
        await answers_with(page, "third")
        await expect(page.get_by_role("article")).to_have_count(2)
        answered = await page.get_by_role("article").last.get_attribute("data-turn") or ""
        # The button of this answer: until the turn has ended, the last button on the page belongs to the answer before.
        await page.get_by_role("article").last.get_by_role("button", name="Try again").click()
        await expect(page.get_by_role("article").last).not_to_have_attribute("data-turn", answered)
        await answers_with(page, "third")
        await expect(page.get_by_role("article")).to_have_count(2)
        before = page.url
        await page.get_by_role("button", name="Fork from here").first.click()
        await expect(page.get_by_role("article")).to_have_count(1)
        assert page.url != before
        await say(page, "another way")
        await answers_with(page, "another way")
        await page.goto(before)
        await answers_with(page, "third")


async def test_a_turn_that_waits_for_its_model_says_so_and_can_be_stopped() -> None:
    """A1: in the conversation with the next try, above it and in the list; a reload shows the same."""
    async with a_model("status 429 retry-after 900") as visit:
        page = await visit.tab()
        await say(page, "is anybody there?")
        waits = page.get_by_text("Waiting for the model. Next try at")
        await expect(waits).to_be_visible()
        await page.reload()
        await expect(waits).to_be_visible()
        await expect(page.get_by_text("cannot answer now (HTTP 429)")).to_have_count(1)
        await expect(page.locator(".session-facts")).to_contain_text("Waiting for the model")
        await expect(page.locator(".session-row .state-mark")).to_contain_text("Waiting for the model")
        await page.get_by_role("button", name="Stop waiting").click()
        await expect(waits).to_have_count(0)
        await expect(page.get_by_role("button", name="Try again").first).to_be_visible()
        await expect(page.locator(".session-row .state-mark")).to_have_count(0)
