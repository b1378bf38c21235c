"""The Telegram channel: what it can do, and how an account of it is opened."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from holdfast.channels.chat.account import ChatContext, ChatKind
from holdfast.channels.chat.port import Platform
from holdfast.channels.port import Capabilities
from holdfast.channels.telegram.calls import BotApi
from holdfast.channels.telegram.client import TelegramPlatform, Webhook, webhook_secret
from holdfast.channels.telegram.config import TelegramSettings
from holdfast.channels.telegram.render import SIZE


@contextlib.asynccontextmanager
async def opened(settings: TelegramSettings, context: ChatContext) -> AsyncGenerator[Platform]:
    token = settings.token or context.environment.get(settings.token_env, "").strip()
    api = BotApi(settings.api_base, token, f"put it into channels.{context.name}.token, or into {settings.token_env}")
    try:
        yield TelegramPlatform(api, _webhook(settings, context, token))
    finally:
        await api.close()


def _webhook(settings: TelegramSettings, context: ChatContext, token: str) -> Webhook | None:
    if settings.mode == "poll":
        return None
    base = (settings.public_url or context.public_url).rstrip("/")
    return Webhook(url=f"{base}/channels/{context.name}", secret=webhook_secret(token, context.name))


TELEGRAM = ChatKind(
    name="telegram",
    settings=TelegramSettings,
    capabilities=Capabilities(
        delivers_later=True,
        edits=True,
        deletes=True,
        buttons=True,
        reactions=True,
        threads=True,
        typing=True,
        files_in=True,
        files_out=True,
        menu=True,
        message_size=SIZE,
        # As many as Telegram takes in a group.
        edits_per_minute=20,
    ),
    open=opened,
)
