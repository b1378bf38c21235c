"""Opening an account from its settings, and what is wrong with settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.channels.chat.account import ChatContext
from holdfast.channels.chat.port import Outgoing, Place
from holdfast.channels.telegram.channel import TELEGRAM, opened
from holdfast.channels.telegram.config import TelegramSettings
from holdfast.clock import SystemClock
from holdfast.drill.telegram.server import TOKEN, telegram
from holdfast.errors import AccountRefused


def context(name: str = "telegram", **environment: str) -> ChatContext:
    return ChatContext(name=name, home=Path("/nowhere"), environment=environment, clock=SystemClock())


@pytest.mark.parametrize("where", ["token", "environment"])
async def test_the_token_is_a_setting_or_a_variable(where: str) -> None:
    async with telegram() as there:
        chat = there.private(there.person(1001, "Ann"))
        settings = TelegramSettings(api_base=f"{there.url}/", token=TOKEN if where == "token" else "", token_env="MY_BOT")
        async with opened(settings, context(MY_BOT=f" {TOKEN}\n") if where == "environment" else context()) as platform:
            await platform.send(Place(chat_id="1001"), Outgoing(text="hi"), "k")
        assert chat.texts == ["hi"]


@pytest.mark.parametrize("token", ["", "no token", "1:../x"])
async def test_a_missing_token_says_where_to_put_it(token: str) -> None:
    async with opened(TelegramSettings(), context("work", TELEGRAM_BOT_TOKEN=token)) as platform:
        with pytest.raises(AccountRefused, match=r"channels\.work\.token, or into TELEGRAM_BOT_TOKEN"):
            await platform.identify()


async def test_webhook_mode_posts_to_the_address_of_the_account() -> None:
    async with telegram() as there:
        settings = TelegramSettings(
            api_base=there.url, token=TOKEN, mode="webhook", public_url="https://agent.example/base/"
        )
        async with opened(settings, context("work")) as platform:
            await anext(platform.listen(None))
        assert there.bot.webhook == "https://agent.example/base/channels/work"
        assert len(there.bot.secret) == 43


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        ({}, []),
        ({"token": TOKEN, "api_base": "http://127.0.0.1:8081"}, []),
        ({"token": "123"}, ["token"]),
        ({"api_base": "api.telegram.org"}, ["api_base"]),
        ({"api_base": "https://user@host/"}, ["api_base"]),
        ({"api_base": "https://host:port/"}, ["api_base"]),
        ({"mode": "webhook"}, ["public_url"]),
        ({"allow": ("123456",)}, []),
        ({"allow": ("123456", "@ann")}, ["allow"]),
        ({"allow": ("-1001234",)}, ["allow"]),
        ({"mode": "webhook", "public_url": "http://agent.example"}, ["public_url"]),
        ({"mode": "webhook", "public_url": "https://agent.example"}, []),
        ({"mode": "webhook", "public_url": "http://127.0.0.1:8080"}, []),
    ],
)
def test_what_is_wrong_with_settings(settings: dict[str, Any], keys: list[str]) -> None:
    assert list(TelegramSettings(**settings).problems()) == keys


def test_a_message_of_the_declared_size_fits() -> None:
    size = TELEGRAM.capabilities.message_size
    assert size
    assert size.fits("😀" * 2048)
    assert not size.fits("😀" * 2048 + "x")
