"""Chat accounts and people on the page: a bot is set up, and whoever writes to it is let in or not."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

from playwright.async_api import Locator, Page, expect

from holdfast.drill.telegram.server import TOKEN, BotApiServer, telegram
from tests.blackbox.gateway import until
from tests.page.browser import PHONE, Visit, at_home, needs_browser, say
from tests.page.scene import operator
from tests.page.test_access import examine
from tests.page.test_phone import fits

pytestmark = needs_browser
OTHER_TOKEN = "7000002:AAAnotherTokenOfTheScriptedServer_0"


@contextlib.asynccontextmanager
async def a_bot(**options: Any) -> AsyncIterator[tuple[Visit, BotApiServer]]:
    """Open a browser at a gateway with a bot."""
    async with telegram() as server:
        account = {"token": TOKEN, "api_base": server.url, "allow": '["1"]'}
        settings = {f"channels__telegram__{name}": value for name, value in account.items()}
        async with at_home(settings, **options) as (visit, _):
            yield visit, server


async def control(visit: Visit, page: Page, name: str) -> Locator:
    """Open a control page."""
    await page.goto(f"{visit.url}/#/control/{name}")
    main = page.get_by_role("main")
    await expect(main.get_by_role("heading", level=1)).to_be_visible()
    return main


async def test_a_person_who_wrote_to_the_bot_is_let_in_and_revoked() -> None:
    """SECURITY 13: without a reload, and never with the code."""
    async with a_bot() as (visit, server):
        page = await visit.sign_in()
        main = await control(visit, page, "people")
        await expect(main).to_contain_text("No open requests")
        ann = server.person(7, "Ann")
        chat = server.private(ann)
        server.says(chat, ann, "hello, may I?")
        request = main.get_by_role("article", name="Request of Ann")
        await expect(request).to_contain_text("hello, may I?")
        await expect(page.get_by_role("link", name="People")).to_contain_text("1 waiting for you")
        await until(lambda: chat.texts, "the person has a code")
        code = chat.texts[0].partition("code: ")[2].split()[0]
        assert code not in await page.content()
        assert await examine(page) == []
        await request.get_by_role("button", name="Guest").click()
        dialog = page.get_by_role("dialog", name="Let Ann in as a guest?")
        await expect(dialog).to_contain_text("no files, no commands")
        assert await examine(page) == []
        await dialog.get_by_role("button", name="Let in as a guest").click()
        await expect(request).to_have_count(0)
        await until(lambda: len(chat.texts) > 1, "what she wrote is answered")
        role = main.get_by_role("combobox", name="Role of Ann")
        await expect(role).to_have_value("guest")
        await role.select_option("Trusted")
        await page.get_by_role("button", name="Change to Trusted").click()
        await expect(role).to_have_value("trusted")
        assert await examine(page) == []
        # One whom the configuration names is changed there.
        await expect(main.get_by_role("row").filter(has_text="allow")).to_have_count(1)
        await expect(main.get_by_role("link", name="in the settings")).to_be_visible()
        await expect(main.get_by_role("button", name=re.compile("Revoke"))).to_have_count(1)
        await main.get_by_role("button", name="Revoke Ann").click()
        await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        await expect(main.get_by_role("row").filter(has_text="Ann")).to_have_count(0)


async def test_a_bot_is_set_up_by_its_token() -> None:
    """From nothing to the first answer: a wrong token and a name that is reserved say so, and the token is shown nowhere."""
    async with telegram() as server, at_home() as (visit, _):
        page = await visit.sign_in()
        await say(page, "count to 2")
        await expect(page.locator("[data-role=assistant]").last).to_contain_text("1 2")
        main = await control(visit, page, "channels")
        await main.get_by_role("link", name="Add a Telegram bot").click()
        assert await examine(page) == []
        await main.get_by_role("button", name="I have the token").click()
        token = main.get_by_label("Token")
        await token.fill(OTHER_TOKEN)
        await main.get_by_text("More options").click()
        await main.get_by_label("Address of the Bot API").fill("http://127.0.0.1:1")
        await token.press("Enter")
        await expect(main.get_by_role("alert")).to_contain_text("127.0.0.1 cannot be reached")
        await main.get_by_role("button", name="Back").click()
        await main.get_by_text("More options").click()
        await main.get_by_label("Address of the Bot API").fill(server.url)
        assert await examine(page) == []
        await token.press("Enter")
        await expect(main.get_by_role("alert")).to_contain_text("What to do: see that the token is copied whole")
        assert await examine(page) == []
        await main.get_by_role("button", name="Back").click()
        await main.get_by_text("More options").click()
        await main.get_by_label("Name of the account").fill("web")
        await token.fill(TOKEN)
        await token.press("Enter")
        await expect(main.get_by_role("alert")).to_contain_text("web cannot be the name of an account")
        await main.get_by_role("button", name="Back").click()
        await main.get_by_text("More options").click()
        await main.get_by_label("Name of the account").fill("harbour")
        await token.press("Enter")
        await expect(main).to_contain_text("t.me/holdfast_bot")
        assert await examine(page) == []
        await main.get_by_role("button", name="Use this bot").click()
        await main.get_by_role("button", name="Restart now").click()
        await page.get_by_role("dialog").get_by_role("button", name="Restart").click()
        await expect(main).to_contain_text("Waiting for your message")
        me = server.person(5, "Grace")
        chat = server.private(me)
        server.says(chat, me, "It is me.")
        request = main.get_by_role("article", name="Request of Grace")
        await request.get_by_role("button", name="This is me").click()
        await page.get_by_role("button", name="Yes, this is me").click()
        await expect(main).to_contain_text("You are let in")
        await until(lambda: len(chat.texts) > 1, "the first message is answered")
        await main.get_by_role("link", name="Done").click()
        account = main.get_by_role("article", name="harbour")
        await expect(account).to_contain_text("Connected")
        await account.get_by_role("button", name="Test").click()
        await expect(account).to_contain_text("It works: the platform knows this account as Holdfast")
        assert await examine(page) == []
        await account.get_by_role("button", name="Conversations").click()
        listed = page.get_by_role("complementary", name="Sessions")
        await expect(listed).to_contain_text("Harbour· Grace")
        await expect(listed).not_to_contain_text("count to 2")
        config = visit.gateway.home / "holdfast.toml"
        assert f'token = "{TOKEN}"' in config.read_text()
        assert config.stat().st_mode & 0o077 == 0
        async with operator(visit.gateway) as web:
            assert TOKEN not in (await web.get("/api/settings")).text


async def test_accounts_and_people_fit_on_a_phone() -> None:
    async with a_bot(viewport=PHONE, has_touch=True, is_mobile=True) as (visit, server):
        page = await visit.sign_in()
        name = "Wolfeschlegelsteinhausenbergerdorff"
        person = server.person(7, name)
        server.says(server.private(person), person, f"May I? {'https://harbour.example/' * 6}")
        main = await control(visit, page, "people")
        request = main.get_by_role("article", name=f"Request of {name}")
        await expect(request).to_be_visible()
        await fits(page)
        await request.get_by_role("button", name="Trusted").tap()
        await fits(page)
        await page.get_by_role("button", name="Let in as trusted").tap()
        await expect(main.get_by_role("combobox")).to_be_visible()
        await fits(page)
        main = await control(visit, page, "channels")
        await expect(main.get_by_role("article", name="telegram")).to_contain_text("Connected")
        await fits(page)
        await main.get_by_role("link", name="Add a Telegram bot").tap()
        await fits(page)
        await main.get_by_role("button", name="I have the token").tap()
        # The first bot has the name of its platform.
        await expect(main.get_by_label("Name of the account")).to_have_value("telegram-2")
        await fits(page)
        await main.get_by_label("Token").fill(TOKEN)
        await main.get_by_text("More options").tap()
        await main.get_by_label("Address of the Bot API").fill(server.url)
        await main.get_by_role("button", name="Try it", exact=True).tap()
        await expect(main.get_by_role("alert")).to_contain_text("This is the bot of the account telegram")
        await expect(main.get_by_role("button", name="Use this bot")).to_have_count(0)
        await fits(page)


async def test_only_the_operator_sees_people_and_accounts() -> None:
    """SECURITY 13"""
    async with a_bot() as (visit, server):
        person = server.person(7, "Ann")
        server.says(server.private(person), person, "hello, may I?")
        page = await visit.tab()
        for name in ("people", "channels", "channels/add"):
            main = await control(visit, page, name)
            await expect(main).to_contain_text("Only the operator can do this")
            await expect(main).not_to_contain_text("Ann")
            await expect(main.get_by_role("link", name="Add a Telegram bot")).to_have_count(0)
