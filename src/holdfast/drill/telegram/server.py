"""A Bot API server on loopback: the wire protocol of Telegram, people who write to the bot, and every way to fail.

`telegram()` runs one.  Methods named after what people do (`says`, `edits`, `presses`, …) play the phones; `draw()` returns
what the phones show.  `tests/channels/telegram/test_server.py` checks it with two libraries that talk to the real one.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import random
import re
import socket
import struct
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx2

from holdfast.drill.telegram.chats import Chat, Person, Shown, entities_of
from holdfast.drill.telegram.markup import Unreadable, read_html, trimmed, units

TOKEN = "7000001:AAExampleTokenOfTheScriptedServer_0"  # noqa: S105 - It is valid nowhere else.
TEXT_MAX = 4_096
CAPTION_MAX = 1_024
DOWNLOAD_MAX = 20 * 1024 * 1024
CALLBACK_MAX_BYTES = 64
HOLD_MAX_S = 50
_TOKEN = re.compile(r"[0-9]+:[A-Za-z0-9_-]{30,}")
_REACTIONS = frozenset("👍👎❤🔥🥰👏😁🤔🤯😱🤬😢🎉🤩🙏👌🕊🤡🥱😍🐳💯🤣⚡🏆💔👀🤝✍🤗🫡🆒")
_DEFAULT_UPDATES = ("message", "edited_message", "callback_query", "my_chat_member", "channel_post")


class Failure(Exception):
    """An answer that is no success."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters


class Way(Enum):
    """How a call goes wrong."""

    # It is answered with the status, and nothing was done.
    STATUS = auto()
    # The connection is cut before anything was done, or after it was done.
    CUT_BEFORE = auto()
    CUT_AFTER = auto()
    # Nothing is done, or it is done; and nothing is ever answered.
    SILENT_BEFORE = auto()
    SILENT_AFTER = auto()
    # The answer breaks off in its middle, is no JSON, or comes byte by byte.
    TRUNCATED = auto()
    GARBAGE = auto()
    DRIP = auto()


class Moment(Enum):
    """Where a call is: nothing was done yet, it was done, or its answer has left."""

    ARRIVED = auto()
    DONE = auto()
    ANSWERED = auto()


@dataclass
class Fault:
    way: Way
    method: str = ""
    times: int = 1
    status: int = 502
    description: str = ""
    retry_after: int | None = None


@dataclass(frozen=True)
class Call:
    """One call as it arrived."""

    method: str
    parameters: dict[str, Any]
    files: dict[str, UploadedFile]
    at: float


# Is told of each call at each moment; False cuts the connection there.
Watch = Callable[[Call, Moment], bool]


def _goes_on(_call: Call, _moment: Moment) -> bool:
    return True


@dataclass(frozen=True)
class UploadedFile:
    name: str
    media_type: str
    content: bytes


@dataclass
class Bot:
    """A bot, and the updates that wait for it."""

    token: str
    person: Person
    reads_all: bool = False
    updates: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    next_update: int = 500_000_001
    # When each update was first handed out, by `time.monotonic`.
    handed_out: dict[int, float] = field(default_factory=dict[int, float])
    allowed: tuple[str, ...] = _DEFAULT_UPDATES
    webhook: str = ""
    secret: str = ""
    webhook_error: tuple[int, str] = (0, "")
    poll: asyncio.Future[None] | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    commands: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    pushing: asyncio.Task[None] | None = None

    @property
    def is_polled(self) -> bool:
        """Whether a request for updates is held."""
        return self.poll is not None

    # When updates were last asked for, by `time.monotonic`.
    polled_at: list[float] = field(default_factory=list[float])
    # How many requests for updates were ended by another one.
    conflicts: int = 0


@dataclass(frozen=True)
class Press:
    id: str
    data: str
    chat: Chat
    message: Shown


@dataclass(frozen=True)
class _Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class BotApiServer:
    """One Bot API server with its bots, chats and people."""

    def __init__(self) -> None:
        self.port = 0
        self.bots: dict[str, Bot] = {}
        self.chats: dict[int, Chat] = {}
        self.people: dict[int, Person] = {}
        self.calls: list[Call] = []
        # How many connections were opened.
        self.connections = 0
        self.faults: list[Fault] = []
        # What people who pressed a button were told, by press.
        self.toasts: dict[str, str] = {}
        self.watch: Watch = _goes_on
        # Whether `getFile` leaves out how large a file is, which it may.
        self.hides_sizes = False
        # How long at most the answer to a call is on its way after the call was done, in seconds.
        self.lag_s = 0.0
        self._presses: set[str] = set()
        self._files: dict[str, tuple[str, bytes]] = {}
        self._numbers = itertools.count(1)
        self.bot = self.add_bot(TOKEN, "Holdfast", "holdfast_bot")

    # What the operator does.

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add_bot(self, token: str, name: str, username: str, *, reads_all: bool = False) -> Bot:
        person = Person(int(token.partition(":")[0]), name, username, is_bot=True)
        self.bots[token] = Bot(token, person, reads_all)
        return self.bots[token]

    def fail(self, way: Way, method: str = "", times: int = 1, **how: Any) -> None:
        """Let the next calls of a method go wrong; without a name, those of any method but `getUpdates`."""
        self.faults.append(Fault(way, method, times, **how))

    def flood(self, chat: Chat, seconds: float) -> None:
        """Refuse all calls to a chat for a time."""
        chat.flooded_until = time.monotonic() + seconds

    def calls_of(self, method: str) -> list[Call]:
        return [each for each in self.calls if each.method.lower() == method.lower()]

    def draw(self) -> str:
        """Return what the phones show."""
        return "\n".join(chat.draw() for chat in self.chats.values()) or "(no chat)"

    # What people do.

    def person(self, number: int, name: str, username: str = "") -> Person:
        return self.people.setdefault(number, Person(number, name, username))

    def private(self, person: Person, *, started: bool = True) -> Chat:
        return self.chats.setdefault(person.id, Chat(person.id, "private", person=person, is_started=started))

    def group(self, number: int, title: str, kind: str = "group", topics: dict[int, str] | None = None) -> Chat:
        return self.chats.setdefault(number, Chat(number, kind, title, topics=topics or {}))

    def says(self, chat: Chat, person: Person, text: str = "", **fields: Any) -> Shown:
        """Let a person write.  `fields` are those of a `Shown`; `extra` those of the API that it does not model."""
        chat.is_started = True
        message = chat.add(person, text=text, entities=fields.pop("entities", entities_of(text)), **fields)
        for bot in self.bots.values():
            if _sees(bot, message):
                self.report(bot, "message", message.json)
        return message

    def attaches(self, chat: Chat, person: Person, kind: str, content: bytes, text: str = "", **fields: Any) -> Shown:
        """Let a person send a file: a `photo`, a `document`, a `voice`, …"""
        described: dict[str, Any] = self._keep(kind, content) | fields.pop("file", {})
        attached = {kind: [{**described, "width": 90, "height": 60}, described] if kind == "photo" else described}
        return self.says(chat, person, text, attached=attached, content=content, **fields)

    def edits(self, message: Shown, text: str) -> None:
        message.earlier.append(message.text)
        message.text, message.entities, message.edit_date = text, entities_of(text), int(time.time())
        for bot in self.bots.values():
            if _sees(bot, message):
                self.report(bot, "edited_message", message.json)

    def presses(self, message: Shown, person: Person, label: str) -> Press:
        """Let a person press the button with a label."""
        pressed = next(each for row in message.buttons for each in row if each["text"] == label)
        press = Press(str(9_000_000_000 + next(self._numbers)), pressed["callback_data"], message.chat, message)
        self._presses.add(press.id)
        query = {
            "id": press.id,
            "from": person.json,
            "chat_instance": "1",
            "data": press.data,
            "message": message.json,
        }
        self.report(next(bot for bot in self.bots.values() if bot.person == message.sender), "callback_query", query)
        return press

    def forgets_presses(self) -> None:
        """Let all presses grow too old to be answered."""
        self._presses.clear()

    def migrates(self, group: Chat) -> Chat:
        """Let a group become a supergroup."""
        chat = self.group(-1_000_000_000_000 + group.id, group.title, "supergroup")
        group.moved_to = chat.id
        someone = Person(1_087_968_824, "Group", "GroupAnonymousBot", is_bot=True)
        old = group.add(someone, extra={"migrate_to_chat_id": chat.id, "sender_chat": group.json})
        new = chat.add(someone, extra={"migrate_from_chat_id": group.id, "sender_chat": chat.json})
        for bot in self.bots.values():
            self.report(bot, "message", old.json)
            self.report(bot, "message", new.json)
        return chat

    def report(self, bot: Bot, kind: str, content: Any) -> int:
        """Queue an update."""
        if kind not in bot.allowed and kind in ("message", "edited_message", "callback_query"):
            return 0
        number = bot.next_update
        bot.next_update += 1
        bot.updates[number] = {"update_id": number, kind: content}
        bot.news.set()
        return number

    # The wire.

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while request := await _read(reader):
                if not await self._respond(request, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def _respond(self, request: _Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        path = unquote(urlsplit(request.target).path)
        if path.startswith("/file/bot"):
            return await self._download(path.removeprefix("/file/bot"), writer)
        token, _, method = path.removeprefix("/bot").partition("/")
        parameters, files = _parameters(request)
        call = Call(method, parameters, files, time.monotonic())
        if method.lower() != "getupdates":
            self.calls.append(call)
        if not self.watch(call, Moment.ARRIVED):
            return await _vanish(Way.CUT_BEFORE, reader, writer)
        fault = self._fault(method)
        if fault and fault.way in (Way.CUT_BEFORE, Way.SILENT_BEFORE):
            return await _vanish(fault.way, reader, writer)
        status, body = await self._answered(token, method, _Arguments(parameters, files), fault, reader)
        if not self.watch(call, Moment.DONE):
            return await _vanish(Way.CUT_AFTER, reader, writer)
        if fault and fault.way in (Way.CUT_AFTER, Way.SILENT_AFTER):
            return await _vanish(fault.way, reader, writer)
        if self.lag_s:
            await asyncio.sleep(random.uniform(0, self.lag_s))  # noqa: S311 - Variety, not a secret.
        goes_on = await _write(writer, status, body, fault.way if fault else None)
        return self.watch(call, Moment.ANSWERED) and goes_on

    def _fault(self, method: str) -> Fault | None:
        for each in self.faults:
            named = each.method.lower() == method.lower() if each.method else method.lower() != "getupdates"
            if each.times > 0 and named:
                each.times -= 1
                return each
        return None

    async def _answered(
        self, token: str, method: str, arguments: _Arguments, fault: Fault | None, reader: asyncio.StreamReader
    ) -> tuple[int, bytes]:
        try:
            if fault and fault.way is Way.STATUS:
                return _fault_answer(fault)
            result = await self._run(token, method, arguments, reader)
        except Failure as failure:
            told = {"ok": False, "error_code": failure.code, "description": failure.description}
            return failure.code, json.dumps(
                {**told, **({"parameters": failure.parameters} if failure.parameters else {})}
            ).encode()
        return 200, json.dumps({"ok": True, "result": result}).encode()

    async def _run(self, token: str, method: str, arguments: _Arguments, reader: asyncio.StreamReader) -> Any:
        if not _TOKEN.fullmatch(token):
            raise Failure(404, "Not Found")
        if (bot := self.bots.get(token)) is None:
            raise Failure(401, "Unauthorized")
        if method.lower() == "getupdates":
            return await self._get_updates(bot, arguments, reader)
        called: Callable[[Bot, _Arguments], Any] | None = getattr(self, f"_do_{method.lower()}", None)
        if called is None:
            raise Failure(404, "Not Found: method not found")
        return called(bot, arguments)

    async def _download(self, rest: str, writer: asyncio.StreamWriter) -> bool:
        token, _, path = rest.partition("/")
        kept = [content for name, content in self._files.values() if name == path]
        if token not in self.bots or not kept:
            return await _write(writer, 404, b'{"ok":false,"error_code":404,"description":"Not Found"}')
        fault = self._fault("download")
        if fault and fault.way is Way.STATUS:
            return await _write(writer, *_fault_answer(fault))
        return await _write(writer, 200, kept[0], fault.way if fault else None, "application/octet-stream")

    # Updates.

    async def _get_updates(self, bot: Bot, arguments: _Arguments, reader: asyncio.StreamReader) -> list[dict[str, Any]]:
        bot.polled_at.append(time.monotonic())
        if bot.webhook:
            raise Failure(
                409,
                "Conflict: can't use getUpdates method while webhook is active; "
                "use deleteWebhook to delete the webhook first",
            )
        if bot.poll and not bot.poll.done():
            bot.conflicts += 1
            bot.poll.set_exception(
                Failure(
                    409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
                )
            )
        bot.poll = None
        allowed = arguments.value("allowed_updates")
        if allowed is not None:
            bot.allowed = tuple(allowed) or _DEFAULT_UPDATES
        offset = arguments.integer("offset", 0)
        limit = min(max(arguments.integer("limit", 100), 1), 100)
        _confirm(bot, offset)
        if not bot.updates:
            await self._hold(bot, min(arguments.integer("timeout", 0), HOLD_MAX_S), reader)
        found = dict(itertools.islice(bot.updates.items(), limit))
        for number in found:
            bot.handed_out.setdefault(number, time.monotonic())
        return list(found.values())

    async def _hold(self, bot: Bot, seconds: int, reader: asyncio.StreamReader) -> None:
        """Wait for an update, another request, or the end of the connection."""
        if seconds <= 0:
            return
        bot.news.clear()
        poll = bot.poll = asyncio.get_running_loop().create_future()
        news = asyncio.ensure_future(bot.news.wait())
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({poll, news, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if poll.done():
                poll.result()
            if gone.done():
                raise ConnectionResetError("the client left")
        finally:
            news.cancel()
            gone.cancel()
            if bot.poll is poll:
                bot.poll = None
            poll.cancel()
            await asyncio.gather(news, gone, return_exceptions=True)

    def _do_setwebhook(self, bot: Bot, arguments: _Arguments) -> bool:
        url = arguments.text("url")
        if url and urlsplit(url).scheme not in ("http", "https"):
            raise Failure(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
        secret = arguments.text("secret_token")
        if secret and not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", secret):
            raise Failure(400, "Bad Request: secret token contains unallowed characters")
        if bot.poll and not bot.poll.done():
            bot.poll.set_exception(Failure(409, "Conflict: terminated by setWebhook request"))
        if arguments.flag("drop_pending_updates"):
            bot.updates.clear()
        if (allowed := arguments.value("allowed_updates")) is not None:
            bot.allowed = tuple(allowed) or _DEFAULT_UPDATES
        bot.webhook, bot.secret, bot.webhook_error = url, secret, (0, "")
        self._push(bot)
        return True

    def _do_deletewebhook(self, bot: Bot, arguments: _Arguments) -> bool:
        bot.webhook = bot.secret = ""
        if arguments.flag("drop_pending_updates"):
            bot.updates.clear()
        self._push(bot)
        return True

    def _do_getwebhookinfo(self, bot: Bot, arguments: _Arguments) -> dict[str, Any]:
        at, said = bot.webhook_error
        failed = {"last_error_date": at, "last_error_message": said} if at else {}
        return {
            "url": bot.webhook,
            "has_custom_certificate": False,
            "pending_update_count": len(bot.updates),
            "allowed_updates": list(bot.allowed),
            **failed,
        }

    def _push(self, bot: Bot) -> None:
        if bot.pushing:
            bot.pushing.cancel()
        bot.pushing = asyncio.create_task(self._posting(bot)) if bot.webhook else None

    async def _posting(self, bot: Bot) -> None:
        """Post updates in order, each until it is taken."""
        async with httpx2.AsyncClient(timeout=10) as client:
            while True:
                if not bot.updates:
                    bot.news.clear()
                    await bot.news.wait()
                number, update = next(iter(bot.updates.items()))
                headers = {"X-Telegram-Bot-Api-Secret-Token": bot.secret} if bot.secret else {}
                try:
                    answer = await client.post(bot.webhook, json=update, headers=headers)
                except httpx2.TransportError as error:
                    said = f"Connection failed: {type(error).__name__}"
                else:
                    if answer.is_success:
                        bot.updates.pop(number, None)
                        continue
                    said = f"Wrong response from the webhook: {answer.status_code} {answer.reason_phrase}"
                bot.webhook_error = (int(time.time()), said)
                await asyncio.sleep(0.2)

    # Methods.

    def _do_getme(self, bot: Bot, arguments: _Arguments) -> dict[str, Any]:
        return {
            **bot.person.json,
            "can_join_groups": True,
            "can_read_all_group_messages": bot.reads_all,
            "supports_inline_queries": False,
        }

    def _do_sendmessage(self, bot: Bot, arguments: _Arguments) -> dict[str, Any]:
        chat = self._chat(arguments, "sendMessage")
        text, entities = arguments.words("text", TEXT_MAX)
        if not text:
            raise Failure(400, "Bad Request: message text is empty")
        return self._sent(bot, chat, arguments, text=text, entities=entities).json

    def _do_sendphoto(self, bot: Bot, arguments: _Arguments) -> dict[str, Any]:
        file = arguments.file("photo")
        if not file.content.startswith((b"\x89PNG", b"\xff\xd8", b"RIFF", b"GIF8")):
            raise Failure(400, "Bad Request: IMAGE_PROCESS_FAILED")
        return self._send_file(bot, arguments, "photo", file)

    def _do_senddocument(self, bot: Bot, arguments: _Arguments) -> dict[str, Any]:
        return self._send_file(bot, arguments, "document", arguments.file("document"))

    def _send_file(self, bot: Bot, arguments: _Arguments, kind: str, file: UploadedFile) -> dict[str, Any]:
        chat = self._chat(arguments, f"send{kind.title()}")
        text, entities = arguments.words("caption", CAPTION_MAX)
        if not file.content:
            raise Failure(400, "Bad Request: file must be non-empty")
        described = self._keep(kind, file.content)
        if kind == "document":
            described |= {"file_name": file.name, "mime_type": file.media_type}
        attached = {kind: [described] if kind == "photo" else described}
        return self._sent(bot, chat, arguments, text=text, entities=entities, attached=attached, content=file.content).json

    def _sent(self, bot: Bot, chat: Chat, arguments: _Arguments, **fields: Any) -> Shown:
        thread = arguments.optional_integer("message_thread_id")
        if thread is not None and thread not in chat.topics:
            raise Failure(400, "Bad Request: message thread not found")
        reply: dict[str, Any] = arguments.value("reply_parameters") or {}
        reply_to = int(reply["message_id"]) if "message_id" in reply else arguments.optional_integer("reply_to_message_id")
        if reply_to is not None and (reply_to not in chat.messages or chat.messages[reply_to].is_deleted):
            if not reply.get("allow_sending_without_reply"):
                raise Failure(400, "Bad Request: message to be replied not found")
            reply_to = None
        return chat.add(
            bot.person,
            thread=thread,
            reply_to=reply_to,
            buttons=arguments.keyboard(),
            is_quiet=arguments.flag("disable_notification"),
            **fields,
        )

    def _do_editmessagetext(self, bot: Bot, arguments: _Arguments) -> dict[str, Any]:
        chat = self._chat(arguments, "editMessageText")
        message = self._own(bot, chat, arguments)
        if not message.has_text:
            raise Failure(400, "Bad Request: there is no text in the message to edit")
        text, entities = arguments.words("text", TEXT_MAX)
        if not text:
            raise Failure(400, "Bad Request: message text is empty")
        buttons = arguments.keyboard()
        if (text, entities, buttons) == (message.text, message.entities, message.buttons):
            raise Failure(
                400,
                "Bad Request: message is not modified: specified new message content and reply markup are exactly the same "
                "as a current content and reply markup of the message",
            )
        message.earlier.append(message.text)
        message.text, message.entities, message.buttons = text, entities, buttons
        message.edit_date = int(time.time())
        return message.json

    def _own(self, bot: Bot, chat: Chat, arguments: _Arguments) -> Shown:
        message = chat.messages.get(arguments.integer("message_id", 0))
        if message is None or message.is_deleted:
            raise Failure(400, "Bad Request: message to edit not found")
        if message.sender is not bot.person:
            raise Failure(400, "Bad Request: message can't be edited")
        return message

    def _do_deletemessage(self, bot: Bot, arguments: _Arguments) -> bool:
        chat = self._chat(arguments, "deleteMessage")
        message = chat.messages.get(arguments.integer("message_id", 0))
        if message is None or message.is_deleted:
            raise Failure(400, "Bad Request: message to delete not found")
        old = time.time() - message.date > 48 * 3600
        if old or (message.sender is not bot.person and chat.type != "private"):
            raise Failure(400, "Bad Request: message can't be deleted")
        message.is_deleted = True
        return True

    def _do_sendchataction(self, bot: Bot, arguments: _Arguments) -> bool:
        chat = self._chat(arguments, "sendChatAction")
        if arguments.text("action") != "typing":
            raise Failure(400, "Bad Request: wrong parameter action in request")
        chat.typing.append(time.monotonic())
        return True

    def _do_setmessagereaction(self, bot: Bot, arguments: _Arguments) -> bool:
        chat = self._chat(arguments, "setMessageReaction")
        message = chat.messages.get(arguments.integer("message_id", 0))
        if message is None or message.is_deleted:
            raise Failure(400, "Bad Request: message to react not found")
        chosen: list[dict[str, Any]] = arguments.value("reaction") or []
        emojis: list[str] = [each["emoji"] for each in chosen]
        if any(each.rstrip("\ufe0f") not in _REACTIONS for each in emojis):
            raise Failure(400, "Bad Request: REACTION_INVALID")
        if len(emojis) > 1:
            raise Failure(400, "Bad Request: REACTIONS_TOO_MANY")
        message.reactions.pop(bot.person.id, None)
        if emojis:
            message.reactions[bot.person.id] = emojis[0]
        return True

    def _do_answercallbackquery(self, bot: Bot, arguments: _Arguments) -> bool:
        number = arguments.text("callback_query_id")
        if number not in self._presses:
            raise Failure(400, "Bad Request: query is too old and response timeout expired or query ID is invalid")
        if len(arguments.text("text")) > 200:
            raise Failure(400, "Bad Request: MESSAGE_TOO_LONG")
        self._presses.remove(number)
        self.toasts[number] = arguments.text("text")
        return True

    def _do_getfile(self, bot: Bot, arguments: _Arguments) -> dict[str, Any]:
        number = arguments.text("file_id")
        if number not in self._files:
            raise Failure(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        path, content = self._files[number]
        if len(content) > DOWNLOAD_MAX:
            raise Failure(400, "Bad Request: file is too big")
        size = {} if self.hides_sizes else {"file_size": len(content)}
        return {"file_id": number, "file_unique_id": f"u{number}", **size, "file_path": path}

    def _do_setmycommands(self, bot: Bot, arguments: _Arguments) -> bool:
        commands: list[dict[str, Any]] = arguments.value("commands") or []
        if len(commands) > 100:
            raise Failure(400, "Bad Request: BOT_COMMANDS_TOO_MUCH")
        for each in commands:
            if not re.fullmatch(r"[a-z0-9_]{1,32}", each["command"]):
                raise Failure(400, "Bad Request: BOT_COMMAND_INVALID")
            if not 1 <= len(each["description"]) <= 256:
                raise Failure(400, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID")
        bot.commands = commands
        return True

    def _do_getmycommands(self, bot: Bot, arguments: _Arguments) -> list[dict[str, Any]]:
        return bot.commands

    def _chat(self, arguments: _Arguments, method: str) -> Chat:
        """Return the chat of a call, or refuse it as Telegram would."""
        name = arguments.text("chat_id")
        chat = self.chats.get(int(name)) if re.fullmatch(r"-?[0-9]+", name) else None
        if chat is None:
            raise Failure(400, "Bad Request: chat not found" if name else "Bad Request: chat_id is empty")
        if chat.moved_to is not None:
            raise Failure(400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.moved_to)
        if chat.person and chat.person.is_deactivated:
            raise Failure(403, "Forbidden: user is deactivated")
        if chat.person and chat.person.has_blocked:
            raise Failure(403, "Forbidden: bot was blocked by the user")
        if not chat.is_started:
            raise Failure(403, "Forbidden: bot can't initiate conversation with a user")
        if chat.was_kicked:
            raise Failure(403, f"Forbidden: bot was kicked from the {chat.type} chat")
        if (left_s := chat.flooded_until - time.monotonic()) > 0:
            chat.calls_while_flooded.append(method)
            wait_s = math.ceil(left_s)
            raise Failure(429, f"Too Many Requests: retry after {wait_s}", retry_after=wait_s)
        return chat

    def _keep(self, kind: str, content: bytes) -> dict[str, Any]:
        """Keep a file and return its fields."""
        number = next(self._numbers)
        file_id = f"AgACAgIAAxk{number:06}"
        self._files[file_id] = (f"{kind}s/file_{number}", content)
        size = {"width": 1280, "height": 960} if kind in ("photo", "video", "animation") else {}
        length = {"duration": 3} if kind in ("voice", "audio", "video", "animation") else {}
        return {"file_id": file_id, "file_unique_id": f"u{file_id}", "file_size": len(content), **size, **length}


@dataclass(frozen=True)
class _Arguments:
    """The parameters of a call: each can come as JSON or as text, of any type."""

    parameters: dict[str, Any]
    files: dict[str, UploadedFile]

    def value(self, name: str) -> Any:
        found = self.parameters.get(name)
        if isinstance(found, str):
            try:
                return json.loads(found)
            except ValueError:
                raise Failure(400, f"Bad Request: can't parse {name} JSON object") from None
        return found

    def text(self, name: str) -> str:
        found = self.parameters.get(name, "")
        return found if isinstance(found, str) else "" if found is None else json.dumps(found)

    def optional_integer(self, name: str) -> int | None:
        return self.integer(name, 0) if self.text(name) else None

    def integer(self, name: str, default: int) -> int:
        try:
            return int(float(self.text(name) or default))
        except ValueError:
            raise Failure(400, f"Bad Request: {name} must be an integer") from None

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in ("true", "1", "yes")

    def file(self, name: str) -> UploadedFile:
        # A library can name a part that has the file.
        attached = self.text(name).removeprefix("attach://")
        found = self.files.get(name) or self.files.get(attached)
        if found is None:
            raise Failure(400, f"Bad Request: there is no {name} in the request")
        return found

    def words(self, name: str, most: int) -> tuple[str, list[dict[str, Any]]]:
        said, mode = self.text(name).replace("\r", ""), self.text("parse_mode").lower()
        try:
            if mode == "html":
                text, entities = read_html(said)
            elif mode in ("", "none"):
                text, entities = trimmed(said, self.value("entities") or [])
            else:
                raise Failure(400, "Bad Request: unsupported parse_mode")
        except Unreadable as error:
            raise Failure(400, f"Bad Request: can't parse entities: {error}") from None
        if units(text) > most:
            raise Failure(400, f"Bad Request: message {'caption ' if name == 'caption' else ''}is too long")
        return text, entities

    def keyboard(self) -> list[list[dict[str, Any]]]:
        markup: dict[str, Any] = self.value("reply_markup") or {}
        rows: list[list[dict[str, Any]]] = markup.get("inline_keyboard") or []
        for each in itertools.chain.from_iterable(rows):
            if not each.get("text"):
                raise Failure(400, 'Bad Request: can\'t parse inline keyboard button: Field "text" must be of type String')
            if not 1 <= len(each.get("callback_data", "").encode()) <= CALLBACK_MAX_BYTES:
                raise Failure(400, "Bad Request: BUTTON_DATA_INVALID")
        return [[{"text": each["text"], "callback_data": each["callback_data"]} for each in row] for row in rows if row]


@asynccontextmanager
async def telegram() -> AsyncGenerator[BotApiServer]:
    """Run a server.  An error inside shows what the phones show."""
    there = BotApiServer()
    talks: set[asyncio.Task[None]] = set()
    server = await asyncio.start_server(
        lambda reader, writer: talks.add(asyncio.create_task(there.converse(reader, writer))), "127.0.0.1", 0
    )
    there.port = server.sockets[0].getsockname()[1]
    try:
        yield there
    except BaseException as error:
        error.add_note(f"What the phones show:\n{there.draw()}")
        raise
    finally:
        server.close()
        await asyncio.sleep(0)
        pushing = [bot.pushing for bot in there.bots.values() if bot.pushing]
        for each in (*talks, *pushing):
            each.cancel()
        await asyncio.gather(*talks, *pushing, return_exceptions=True)


def _sees(bot: Bot, message: Shown) -> bool:
    """Return whether a bot gets a message: in groups it gets what is meant for it, unless it may read all."""
    if message.chat.type == "private" or bot.reads_all or message.extra:
        return True
    first = message.chat.messages.get(message.reply_to or 0)
    if first and first.sender is bot.person:
        return True
    named = f"@{bot.person.username}".lower()
    return any(
        (each["type"] in ("mention", "text_mention") and named in message.text.lower())
        or (each["type"] == "bot_command" and ("@" not in message.text or named in message.text.lower()))
        for each in message.entities
    )


def _confirm(bot: Bot, offset: int) -> None:
    """Forget the updates before an offset; a negative one counts from the end."""
    if offset < 0:
        offset = max(bot.next_update + offset, min(bot.updates, default=0))
    for number in [each for each in bot.updates if each < offset]:
        del bot.updates[number]


def _fault_answer(fault: Fault) -> tuple[int, bytes]:
    if fault.status >= 500 and not fault.description:
        return fault.status, b"<html><head><title>Bad Gateway</title></head><body>nginx</body></html>"
    said: dict[str, Any] = {"ok": False, "error_code": fault.status, "description": fault.description}
    if fault.retry_after is not None:
        said["description"] = fault.description or f"Too Many Requests: retry after {fault.retry_after}"
        said["parameters"] = {"retry_after": fault.retry_after}
    return fault.status, json.dumps(said).encode()


async def _vanish(way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    if way in (Way.SILENT_BEFORE, Way.SILENT_AFTER):
        # The client has to give up by itself.
        await reader.read()
        return False
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    return False


async def _write(
    writer: asyncio.StreamWriter, status: int, body: bytes, way: Way | None = None, media_type: str = "application/json"
) -> bool:
    if way is Way.GARBAGE:
        body = b"\x00\xff not what you asked for"
    head = f"HTTP/1.1 {status} {_REASONS.get(status, 'Error')}\r\nServer: nginx\r\nContent-Type: {media_type}\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: keep-alive\r\n\r\n".encode())
    if way is Way.TRUNCATED:
        writer.write(body[: len(body) // 2])
        await writer.drain()
        return False
    if way is Way.DRIP:
        for each in body:
            writer.write(bytes([each]))
            await writer.drain()
            await asyncio.sleep(0.002)
        return True
    writer.write(body)
    await writer.drain()
    return True


_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


async def _read(reader: asyncio.StreamReader) -> _Request | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b"".join([piece async for piece in _chunks(reader)])
    else:
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return _Request(method, target, headers, body)


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readline()).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readline()
    await reader.readline()


def _parameters(request: _Request) -> tuple[dict[str, Any], dict[str, UploadedFile]]:
    """Return the parameters of a call from its address and its body, and the files."""
    found: dict[str, Any] = dict(parse_qsl(urlsplit(request.target).query, keep_blank_values=True))
    kind = request.headers.get("content-type", "")
    if kind.startswith("application/json"):
        return {**found, **(json.loads(request.body) if request.body else {})}, {}
    if kind.startswith("multipart/form-data"):
        return _form(request.body, kind.partition("boundary=")[2].strip('"'), found)
    return {**found, **dict(parse_qsl(request.body.decode(), keep_blank_values=True))}, {}


def _form(body: bytes, boundary: str, found: dict[str, Any]) -> tuple[dict[str, Any], dict[str, UploadedFile]]:
    files: dict[str, UploadedFile] = {}
    for part in body.split(f"--{boundary}".encode())[1:-1]:
        head, _, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        lines = head.decode()
        name = re.search(r'[; ]name="?([^";\r\n]*)"?', lines)
        file = re.search(r'filename="?([^";\r\n]*)"?', lines)
        media = re.search(r"content-type:\s*([^\r\n]+)", lines, re.IGNORECASE)
        content = content.removesuffix(b"\r\n")
        if name and file:
            files[name[1]] = UploadedFile(file[1], media[1] if media else "application/octet-stream", content)
        elif name:
            found[name[1]] = content.decode()
    return found, files
