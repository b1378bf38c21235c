"""What a platform posts is durable before it is answered, and once however often it is posted."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.channels.chat.account import ChatAccount
from holdfast.channels.chat.port import Posted
from holdfast.channels.telegram.calls import BotApi
from holdfast.channels.telegram.channel import TELEGRAM
from holdfast.channels.telegram.client import SECRET_HEADER, TelegramPlatform, Webhook
from holdfast.channels.telegram.config import TelegramSettings
from holdfast.clock import SystemClock
from holdfast.core.chats import ChatMessage
from holdfast.drill.telegram.server import TOKEN, telegram
from holdfast.errors import NotFound, NotTrusted
from holdfast.operations.chat_requests import ChatRequests
from tests.channels.chat.test_receiver import joined
from tests.engine.world import Open, opened

SECRET = "the-secret-of-the-webhook"


async def test_a_post_is_durable_once_and_only_if_the_platform_sent_it(open_it: Open) -> None:
    async with telegram() as there, opened(open_it) as store:
        api = BotApi(there.url, TOKEN)
        platform = TelegramPlatform(api, Webhook(url="https://agent.example/channels/telegram", secret=SECRET))
        account = ChatAccount(
            name="telegram",
            kind="telegram",
            settings=TelegramSettings(),
            capabilities=TELEGRAM.capabilities,
            platform=platform,
        )
        requests = ChatRequests(store=store, clock=SystemClock(), accounts={"telegram": account})
        await store.channels.claim("telegram", "telegram", await joined(store))
        person = there.person(1001, "Ann")
        there.says(there.private(person), person, "hi")
        (update,) = there.bot.updates.values()
        body = msgspec.json.encode(update)
        posted = Posted(headers={SECRET_HEADER: SECRET}, body=body)
        for _ in range(2):
            await requests.receive("telegram", posted)
        (staged,) = await store.channels.staged("telegram")
        assert isinstance(staged.event, ChatMessage)
        assert staged.event.text == "hi"
        with pytest.raises(NotTrusted):
            await requests.receive("telegram", Posted(headers={}, body=body))
        with pytest.raises(NotFound):
            await requests.receive("other", posted)
        await api.close()
