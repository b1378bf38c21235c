"""The settings of a bot of Telegram."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlsplit

from holdfast.channels.chat.config import ChatSettings

# As @BotFather writes it.
TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{3,100}")
# Groups and channels have negative numbers, and many people write in their name.
_USER_ID = re.compile(r"[1-9][0-9]{0,19}")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramSettings(ChatSettings):
    """A bot of Telegram."""

    token: Annotated[str, "The token of the bot, from @BotFather.  If empty, `token_env` holds it."] = ""
    token_env: Annotated[str, "The environment variable that holds the token."] = "TELEGRAM_BOT_TOKEN"  # noqa: S105 - The name of a variable.
    api_base: Annotated[str, "The URL of the Bot API."] = "https://api.telegram.org"
    mode: Annotated[
        Literal["poll", "webhook"], "Whether the gateway asks Telegram for messages, or Telegram sends them to `public_url`."
    ] = "poll"
    public_url: Annotated[str, "The URL at which Telegram reaches this gateway, for webhook mode."] = ""

    def problems(self) -> Mapping[str, str]:
        found = {
            "token": ""
            if not self.token or TOKEN.fullmatch(self.token)
            else "is not a token of @BotFather, like 123456:ABC…",
            "api_base": ""
            if _place(self.api_base)
            else "must be an http or https URL without a user name, query or fragment",
            "public_url": self._wrong_with_public_url(),
            "allow": self._wrong_with_allow(),
        }
        return {key: problem for key, problem in found.items() if problem}

    def _wrong_with_allow(self) -> str:
        wrong = [each for each in self.allow if not _USER_ID.fullmatch(each)]
        if not wrong:
            return ""
        return f"has {wrong[0]!r}, which is not the number of a user, like 123456; a name can change its owner"

    def _wrong_with_public_url(self) -> str:
        if not self.public_url:
            return (
                'is needed for mode = "webhook": the https URL at which Telegram reaches this gateway' if self._posts else ""
            )
        place = _place(self.public_url)
        is_private = place is not None and (place[0] == "https" or place[1] in _LOOPBACK)
        return "" if is_private else "must be an https URL, because Telegram sends to no other"

    @property
    def _posts(self) -> bool:
        return self.mode == "webhook"


def _place(url: str) -> tuple[str, str] | None:
    """Return the scheme and the host of a URL that paths can be added to."""
    try:
        place = urlsplit(url)
        _ = place.port
    except ValueError:
        return None
    is_plain = not (place.query or place.fragment or place.username or place.password)
    return (place.scheme, place.hostname) if place.scheme in ("http", "https") and place.hostname and is_plain else None
