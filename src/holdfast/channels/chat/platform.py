"""What the package of a platform imports: its port, its kind, its settings, and the errors that it raises."""

from __future__ import annotations

from holdfast.channels.chat.account import ChatContext, ChatKind
from holdfast.channels.chat.config import ChatSettings
from holdfast.channels.chat.port import (
    Batch,
    Bot,
    Button,
    ChatEvent,
    ChatMessage,
    ChatMoved,
    ChatType,
    LocalFile,
    Member,
    MenuEntry,
    MessageEdited,
    Outgoing,
    Place,
    Platform,
    Posted,
    Pressed,
    RemoteFile,
)
from holdfast.channels.port import Capabilities, MessageSize, Unit
from holdfast.errors import (
    AccountRefused,
    AccountTaken,
    BadParameter,
    ConfigInvalid,
    NotTrusted,
    OutcomeUnknown,
    Rejected,
    Unavailable,
)

__all__ = [
    "AccountRefused",
    "AccountTaken",
    "BadParameter",
    "Batch",
    "Bot",
    "Button",
    "Capabilities",
    "ChatContext",
    "ChatEvent",
    "ChatKind",
    "ChatMessage",
    "ChatMoved",
    "ChatSettings",
    "ChatType",
    "ConfigInvalid",
    "LocalFile",
    "Member",
    "MenuEntry",
    "MessageEdited",
    "MessageSize",
    "NotTrusted",
    "OutcomeUnknown",
    "Outgoing",
    "Place",
    "Platform",
    "Posted",
    "Pressed",
    "Rejected",
    "RemoteFile",
    "Unavailable",
    "Unit",
]
