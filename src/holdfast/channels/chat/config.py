"""The settings that every account of a chat platform has.  Each kind adds its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSettings:
    """An account of a chat platform."""

    kind: Annotated[str, "The platform of the account.  If empty, the name of the account is the platform."] = ""
    enabled: Annotated[bool, "Whether the account receives and sends."] = True
    allow: Annotated[tuple[str, ...], "The user ids of the operator.  Their chats belong to the operator."] = ()
    groups: Annotated[
        Literal["mention", "all", "off"], "Which messages in groups are answered: those that mention the bot, all, or none."
    ] = "mention"
    sessions: Annotated[
        Literal["chat", "person"], "Whether the people of a group share one session, or have one for each person."
    ] = "chat"
    stream: Annotated[
        Literal["status", "edit", "off"],
        "What a chat shows while the agent works: a line about it, the growing answer, or typing only.",
    ] = "status"
    home: Annotated[str, "The chat for notices, as <chat> or <chat>:<thread>.  If empty, there are no notices."] = ""
