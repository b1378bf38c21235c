"""One bot of Telegram, behind the port of all chat platforms."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from holdfast.channels.chat.port import (
    Batch,
    Bot,
    ChatEvent,
    ChatMoved,
    LocalFile,
    MenuEntry,
    Outgoing,
    Place,
    Posted,
    Pressed,
    RemoteFile,
)
from holdfast.channels.telegram.calls import BadRequest, BotApi, decoded
from holdfast.channels.telegram.parse import UPDATES, Me, parse
from holdfast.channels.telegram.render import CAPTION_SIZE, Shown, shown
from holdfast.errors import AccountRefused, AccountTaken, BadParameter, NotTrusted, Rejected, Unavailable

log = logging.getLogger(__name__)

# How long Telegram holds a request for updates that finds none.
POLL_S = 25
# A connection that says nothing for this long after that is dead.
POLL_GRACE_S = 15.0
UPDATES_MAX = 100
# A Bot API that holds no request would be asked without a pause.
POLL_PAUSE_S = 1.0
# How often Telegram is asked whether its posts arrive here.
WEBHOOK_CHECK_S = 30.0
SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105 - The name of a header.
MENU_MAX = 100
MENU_TEXT_MAX = 256
TOAST_MAX_CHARS = 200
PHOTO_MAX_BYTES = 10 * 1024 * 1024
FILE_MAX_BYTES = 50 * 1024 * 1024
_PHOTOS = frozenset({"image/jpeg", "image/png"})
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_PAGE_URL = "https://t.me/"

_NO_THREAD = "message thread not found"
# Telegram takes no number for the topic that every forum has, but reports one now and then.
_GENERAL_TOPIC = "1"
# Stands between the number of a message and its chat, where that is not the one it was sent to, because the chat had moved.
_IN_CHAT = "@"
# Telegram fetches each page that it shows a preview of, and an answer can name pages that the model was told to name.
_NO_PREVIEW: Mapping[str, object] = MappingProxyType({"link_preview_options": {"is_disabled": True}})

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Where Telegram posts updates, for an account that does not poll, and what proves that Telegram sent them."""

    url: str
    secret: str


class _Self(msgspec.Struct):
    id: int
    first_name: str = ""
    username: str = ""
    can_read_all_group_messages: bool = False


class _SentIn(msgspec.Struct):
    id: int


class _Sent(msgspec.Struct):
    message_id: int
    chat: _SentIn


class _RemotePath(msgspec.Struct):
    file_path: str = ""
    file_size: int = 0


class _WebhookInfo(msgspec.Struct):
    url: str = ""
    pending_update_count: int = 0
    last_error_date: int = 0
    last_error_message: str = ""


class TelegramPlatform:
    """Receives updates by long poll or by webhook, and sends messages."""

    def __init__(self, api: BotApi, webhook: Webhook | None = None) -> None:
        self._api = api
        self._webhook = webhook
        self._me: Me | None = None
        # Groups that became supergroups, by the id that they had.
        self._moved: dict[str, str] = {}
        # What is not reported yet.
        self._news: list[ChatMoved] = []

    async def identify(self) -> Bot:
        found = await self._api.ask("getMe", {}, _Self)
        self._me = Me(id=found.id, username=found.username, reads_all=found.can_read_all_group_messages)
        return Bot(
            user_id=str(found.id),
            name=found.first_name or found.username,
            url=f"{_PAGE_URL}{found.username}" if found.username else "",
            facts={"username": found.username, "reads_all_group_messages": str(found.can_read_all_group_messages).lower()},
        )

    async def listen(self, position: str | None) -> AsyncGenerator[Batch]:
        me = await self._known()
        batches = self._poll(position, me) if self._webhook is None else self._watch(self._webhook)
        async with contextlib.aclosing(batches):
            async for each in batches:
                yield each

    async def receive(self, posted: Posted) -> Batch:
        if self._webhook is None:
            raise BadParameter('this account polls; set mode = "webhook" for requests to this address')
        shown_secret = posted.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(shown_secret.encode("utf-8", "replace"), self._webhook.secret.encode()):
            raise NotTrusted("the request has not the secret token that Telegram was given")
        update = decoded(posted.body, object)
        if _number_of(update) is None:
            raise BadParameter("the body is not an update of Telegram: it is not JSON, or has no update_id")
        event = parse(update, await self._known())
        return Batch(events=(*self._unreported(), *([event] if event else [])))

    async def send(self, place: Place, message: Outgoing, key: str) -> str:  # noqa: ARG002 - Telegram knows no keys.
        if message.file:
            return await self._send_file(place, message, message.file)
        return await self._send_text(place, message, shown(message.text))

    async def edit(self, place: Place, message_id: str, message: Outgoing) -> None:
        parameters = {"reply_markup": _keyboard(message), **_NO_PREVIEW}
        try:
            await self._written(
                shown(message.text),
                lambda text: self._ask_about(place, message_id, "editMessageText", {**parameters, **text}),
            )
        except BadRequest as error:
            # What it says already needs no edit.
            if not error.says("message is not modified"):
                raise

    async def delete(self, place: Place, message_id: str) -> None:
        try:
            await self._ask_about(place, message_id, "deleteMessage")
        except BadRequest as error:
            if not error.says("message to delete not found", "message_id_invalid"):
                raise

    async def type(self, place: Place) -> None:
        async def call(chosen: Mapping[str, object]) -> object:
            return await self._api.ask("sendChatAction", chosen, object)

        await self._in_chat(place, {"action": "typing", **_thread(place)}, call)

    async def react(self, place: Place, message_id: str, emoji: str) -> None:
        reaction = [{"type": "emoji", "emoji": emoji}] if emoji else []
        await self._ask_about(place, message_id, "setMessageReaction", {"reaction": reaction})

    async def settle(self, press: Pressed, text: str) -> None:
        """Show a line to the person who pressed a button.  Failing is no error: Telegram takes it for some seconds only."""
        parameters = {"callback_query_id": press.press_id, "text": text[:TOAST_MAX_CHARS]}
        try:
            await self._api.ask("answerCallbackQuery", parameters, bool)
        except (Rejected, Unavailable) as error:
            log.debug("a press was not answered: %s", error)

    async def fetch(self, file: RemoteFile, bytes_max: int) -> bytes:
        too_large = Rejected(f"{file.name} is larger than {bytes_max} bytes")
        if file.bytes > bytes_max:
            raise too_large
        found = await self._api.ask("getFile", {"file_id": file.id}, _RemotePath)
        if found.file_size > bytes_max:
            raise too_large
        if not found.file_path or found.file_path.startswith("/") or ".." in found.file_path.split("/"):
            raise Rejected(f"the Bot API names no address of {file.name}; start it without --local")
        content, is_longer = await self._api.download(found.file_path, bytes_max)
        if is_longer:
            raise too_large
        return content

    async def offer(self, menu: Sequence[MenuEntry]) -> None:
        entries = [{"command": each.name, "description": each.text[:MENU_TEXT_MAX]} for each in menu if _is_command(each)]
        await self._api.ask("setMyCommands", {"commands": entries[:MENU_MAX]}, bool)

    async def _known(self) -> Me:
        if self._me is None:
            await self.identify()
        if self._me is None:
            raise AccountRefused("Telegram does not say who this bot is")
        return self._me

    async def _poll(self, position: str | None, me: Me) -> AsyncGenerator[Batch]:
        """Yield what each request for updates returned.  Asking for what comes next confirms what came before."""
        offset = int(position) if position and position.lstrip("-").isdecimal() else None
        await self._leave_webhook()
        while True:
            began = asyncio.get_running_loop().time()
            updates = await self._updates(offset)
            numbers = [number for each in updates if (number := _number_of(each)) is not None]
            if numbers:
                offset = max(numbers) + 1
            elif updates:
                raise Unavailable("the updates of the Bot API have no numbers")
            events: list[ChatEvent] = [event for each in updates if (event := parse(each, me))]
            yield Batch(events=(*self._unreported(), *events), position=None if offset is None else str(offset))
            if not updates and asyncio.get_running_loop().time() - began < POLL_PAUSE_S:
                await asyncio.sleep(POLL_PAUSE_S)

    async def _updates(self, offset: int | None) -> list[object]:
        parameters = {"timeout": POLL_S, "limit": UPDATES_MAX, "allowed_updates": UPDATES}
        begin = {} if offset is None else {"offset": offset}
        return await self._api.ask("getUpdates", {**parameters, **begin}, list[object], timeout_s=POLL_S + POLL_GRACE_S)

    async def _leave_webhook(self) -> None:
        """End a webhook from before, because Telegram sends updates one way only."""
        info = await self._api.ask("getWebhookInfo", {}, _WebhookInfo)
        if info.url:
            log.warning("Telegram posted the updates of this bot to %s; they are polled from now on", _host(info.url))
            await self._api.ask("deleteWebhook", {}, bool)

    async def _watch(self, webhook: Webhook) -> AsyncGenerator[Batch]:
        """Have Telegram post updates, and yield an empty batch each time that it confirms that it does."""
        parameters = {"url": webhook.url, "secret_token": webhook.secret, "allowed_updates": UPDATES}
        try:
            await self._api.ask("setWebhook", parameters, bool)
        except BadRequest as error:
            raise AccountRefused(f"Telegram does not post to {_host(webhook.url)}: {error}") from error
        failed_at: int | None = None
        while True:
            info = await self._api.ask("getWebhookInfo", {}, _WebhookInfo)
            if info.url != webhook.url:
                where = f"posted to {_host(info.url)}" if info.url else "polled by another program"
                raise AccountTaken(f"the messages of this bot are now {where}")
            if failed_at is not None and info.pending_update_count and info.last_error_date > failed_at:
                raise Unavailable(f"Telegram cannot post to {_host(webhook.url)}: {info.last_error_message}")
            failed_at = info.last_error_date
            yield Batch(events=self._unreported())
            await asyncio.sleep(WEBHOOK_CHECK_S)

    def _unreported(self) -> tuple[ChatMoved, ...]:
        found = tuple(self._news)
        self._news.clear()
        return found

    async def _send_text(self, place: Place, message: Outgoing, text: Shown) -> str:
        parameters = {**_options(place, message), **_NO_PREVIEW}
        return await self._written(text, lambda said: self._send(place, "sendMessage", {**parameters, **said}))

    async def _send_file(self, place: Place, message: Outgoing, file: LocalFile) -> str:
        if len(file.content) > FILE_MAX_BYTES:
            raise Rejected(f"{file.name} has more than {FILE_MAX_BYTES} bytes, the most that a bot may send")
        caption, options = shown(message.text, CAPTION_SIZE), _options(place, message)
        if file.media_type in _PHOTOS and len(file.content) <= PHOTO_MAX_BYTES:
            try:
                return await self._send_with(place, "sendPhoto", "photo", file, options, caption)
            except BadRequest as error:
                # Telegram shows no picture that is very long or very large; it is a file then.
                if not error.says("photo_invalid_dimensions", "image_process_failed", "photo_ext_invalid"):
                    raise
        return await self._send_with(place, "sendDocument", "document", file, options, caption)

    async def _send_with(
        self, place: Place, method: str, field: str, file: LocalFile, options: Mapping[str, object], caption: Shown
    ) -> str:
        return await self._written(
            caption, lambda said: self._send(place, method, {**options, **said}, (field, file)), "caption"
        )

    async def _written(
        self, text: Shown, call: Callable[[Mapping[str, object]], Awaitable[Result]], field: str = "text"
    ) -> Result:
        """Make a call with HTML, and with plain text if Telegram does not take the HTML."""
        if text.html is not None:
            try:
                return await call({field: text.html, "parse_mode": "HTML"})
            except BadRequest as error:
                if not error.says("can't parse entities", "text must be non-empty", "is too long", "is empty"):
                    raise
                log.warning("Telegram does not take the HTML of a message: %s", error)
        return await call({field: text.plain})

    async def _send(
        self, place: Place, method: str, parameters: Mapping[str, object], file: tuple[str, LocalFile] | None = None
    ) -> str:
        async def call(chosen: Mapping[str, object]) -> _Sent:
            return await self._api.do(method, chosen, _Sent, file=file)

        try:
            sent = await self._in_chat(place, parameters, call)
        except BadRequest as error:
            # A topic of a private chat can be gone while the chat with the same person is still there.
            if "message_thread_id" not in parameters or place.chat_id.startswith("-") or not error.says(_NO_THREAD):
                raise
            rest = {name: value for name, value in parameters.items() if name != "message_thread_id"}
            sent = await self._in_chat(place, rest, call)
        number, chat_id = str(sent.message_id), str(sent.chat.id)
        return number if chat_id == place.chat_id else f"{number}{_IN_CHAT}{chat_id}"

    async def _ask_about(
        self, place: Place, message_id: str, method: str, parameters: Mapping[str, object] = MappingProxyType({})
    ) -> None:
        """Make a call about one message.  A chat that has moved counts anew, so the call does not follow it there."""
        number, _, chat_id = message_id.partition(_IN_CHAT)
        about = {"chat_id": chat_id or place.chat_id, "message_id": _integer(number)}
        await self._api.ask(method, {**about, **parameters}, object)

    async def _in_chat(
        self, place: Place, parameters: Mapping[str, object], call: Callable[[Mapping[str, object]], Awaitable[Result]]
    ) -> Result:
        """Make a call to a chat, and once more to its new id if it has moved."""
        chat_id = self._moved.get(place.chat_id, place.chat_id)
        # What it replies to has another number in the new chat, if it is there at all.
        there = {name: value for name, value in parameters.items() if name != "reply_parameters"}
        try:
            return await call({"chat_id": chat_id, **(parameters if chat_id == place.chat_id else there)})
        except BadRequest as error:
            if error.moved_to is None:
                raise
            now_id = str(error.moved_to)
            self._moved[place.chat_id] = now_id
            self._news.append(ChatMoved(from_chat_id=chat_id, to_chat_id=now_id))
            return await call({"chat_id": now_id, **there})


def webhook_secret(token: str, account: str) -> str:
    """Return the secret token of a webhook.

    It is derived from the token of the bot, so that every node knows it and nothing is stored.
    """
    digest = hmac.digest(token.encode(), f"holdfast webhook {account}".encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _options(place: Place, message: Outgoing) -> dict[str, object]:
    reply = {"message_id": _integer(message.reply_to), "allow_sending_without_reply": True} if message.reply_to else None
    chosen = {
        "disable_notification": message.is_quiet or None,
        "reply_parameters": reply,
        "reply_markup": _keyboard(message) if message.buttons else None,
    }
    return {**_thread(place), **{name: value for name, value in chosen.items() if value is not None}}


def _thread(place: Place) -> dict[str, object]:
    return {"message_thread_id": _integer(place.thread_id)} if place.thread_id not in ("", _GENERAL_TOPIC) else {}


def _keyboard(message: Outgoing) -> dict[str, object]:
    rows = [[{"text": each.label, "callback_data": each.value} for each in row] for row in message.buttons]
    return {"inline_keyboard": rows}


def _integer(number: str) -> int:
    if not number.isascii() or not number.isdecimal():
        raise Rejected(f"{number!r} is no number of a message or topic of Telegram")
    return int(number)


def _number_of(update: object) -> int | None:
    match update:
        case {"update_id": int(number)}:
            return number
        case _:
            return None


def _is_command(entry: MenuEntry) -> bool:
    return bool(_COMMAND.fullmatch(entry.name) and entry.text)


def _host(url: str) -> str:
    """Return the part of an address that is no secret."""
    try:
        return urlsplit(url).netloc or url
    except ValueError:
        return "an address that cannot be read"
