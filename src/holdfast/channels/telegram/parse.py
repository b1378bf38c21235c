"""One update of Telegram becomes an event, or nothing.

Only the fields that are used are declared, so other fields that Telegram adds to an update change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from holdfast.channels.chat.port import (
    ChatEvent,
    ChatMessage,
    ChatMoved,
    ChatType,
    Member,
    MessageEdited,
    Place,
    Pressed,
    RemoteFile,
)

# What the bot asks Telegram for.
UPDATES = ("message", "edited_message", "callback_query")
QUOTE_MAX_CHARS = 300
# A date beyond this is no date.
_SECONDS_MAX = 1 << 40
_GENERAL_TOPIC = 1
_GROUPS = frozenset({"group", "supergroup"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """The bot, as Telegram knows it."""

    id: int
    username: str = ""
    # Whether it sees every message of its groups.  Otherwise Telegram sends it only what is meant for it.
    reads_all: bool = False


class _User(msgspec.Struct):
    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}".strip() or self.username


class _Chat(msgspec.Struct):
    id: int
    type: str = "private"
    title: str = ""


class _Entity(msgspec.Struct):
    type: str
    offset: int
    length: int
    url: str = ""
    user: _User | None = None


class _File(msgspec.Struct):
    """A photo in one size, a document, a recording or a video: they share these fields."""

    file_id: str
    file_size: int = 0
    width: int = 0
    height: int = 0
    file_name: str = ""
    mime_type: str = ""


class _Sticker(msgspec.Struct):
    emoji: str = ""


class _Location(msgspec.Struct):
    latitude: float
    longitude: float

    def __str__(self) -> str:
        return f"{self.latitude}, {self.longitude}"


class _Venue(msgspec.Struct):
    location: _Location
    title: str = ""
    address: str = ""


class _Contact(msgspec.Struct):
    phone_number: str = ""
    first_name: str = ""
    last_name: str = ""


class _Option(msgspec.Struct):
    text: str = ""


class _Poll(msgspec.Struct):
    question: str = ""
    options: list[_Option] = []


class _Dice(msgspec.Struct):
    emoji: str = ""
    value: int = 0


class _Quote(msgspec.Struct):
    text: str = ""


class _Origin(msgspec.Struct):
    sender_user: _User | None = None
    sender_user_name: str = ""
    sender_chat: _Chat | None = None
    chat: _Chat | None = None

    @property
    def name(self) -> str:
        chat = self.sender_chat or self.chat
        return (self.sender_user.name if self.sender_user else self.sender_user_name) or (chat.title if chat else "")


class _Message(msgspec.Struct):
    message_id: int
    chat: _Chat
    date: int = 0
    edit_date: int = 0
    sender: _User | None = msgspec.field(default=None, name="from")
    # The group or channel in whose name the message was written.
    sender_chat: _Chat | None = None
    author_signature: str = ""
    is_automatic_forward: bool = False
    message_thread_id: int = 0
    is_topic_message: bool = False
    text: str = ""
    entities: list[_Entity] = []
    caption: str = ""
    caption_entities: list[_Entity] = []
    reply_to_message: _Message | None = None
    forum_topic_created: object = None
    quote: _Quote | None = None
    forward_origin: _Origin | None = None
    media_group_id: str = ""
    photo: list[_File] = []
    animation: _File | None = None
    document: _File | None = None
    voice: _File | None = None
    audio: _File | None = None
    video: _File | None = None
    video_note: _File | None = None
    sticker: _Sticker | None = None
    location: _Location | None = None
    venue: _Venue | None = None
    contact: _Contact | None = None
    poll: _Poll | None = None
    dice: _Dice | None = None
    migrate_to_chat_id: int | None = None
    migrate_from_chat_id: int | None = None

    @property
    def place(self) -> Place:
        # A reply outside of a topic has the number of a thread too, which cannot be written to.
        # The topic that every forum has is written to without a number.
        is_topic = self.is_topic_message and self.message_thread_id not in (0, _GENERAL_TOPIC)
        thread = str(self.message_thread_id) if is_topic else ""
        return Place(chat_id=str(self.chat.id), thread_id=thread)

    @property
    def written(self) -> tuple[str, list[_Entity]]:
        return (self.text, self.entities) if self.text else (self.caption, self.caption_entities)


class _Press(msgspec.Struct):
    id: str
    sender: _User = msgspec.field(name="from")
    message: _Message | None = None
    data: str = ""


class _Update(msgspec.Struct):
    message: _Message | None = None
    edited_message: _Message | None = None
    callback_query: _Press | None = None


def parse(update: object, me: Me) -> ChatEvent | None:
    """Return what an update reports; None if it is nothing that a person said or did here."""
    try:
        found = msgspec.convert(update, _Update)
    except (msgspec.ValidationError, RecursionError):
        return None
    if found.message:
        return _moved(found.message) or _message(found.message, me)
    if found.edited_message:
        return _edited(found.edited_message, me)
    return _pressed(found.callback_query) if found.callback_query else None


def _moved(said: _Message) -> ChatMoved | None:
    """Return that a group became a supergroup.  Both of them report it."""
    here = str(said.chat.id)
    if said.migrate_to_chat_id is not None:
        return ChatMoved(from_chat_id=here, to_chat_id=str(said.migrate_to_chat_id))
    if said.migrate_from_chat_id is not None:
        return ChatMoved(from_chat_id=str(said.migrate_from_chat_id), to_chat_id=here)
    return None


def _message(said: _Message, me: Me) -> ChatMessage | None:
    if (sender := _member(said, me)) is None:
        return None
    words = _words(said, me)
    files = tuple(_files(said))
    text = "\n".join(filter(None, (words.text, *_described(said))))
    if words.for_another_bot or not (text or files):
        return None
    is_private = said.chat.type == "private"
    return ChatMessage(
        place=said.place,
        sender=sender,
        message_id=str(said.message_id),
        text=_clean(_introduced(said, me, text)),
        sent_at=_milliseconds(said.date),
        chat_type=ChatType.PRIVATE if is_private else ChatType.GROUP,
        chat_name=_clean(said.chat.title) or (sender.name if is_private else ""),
        addresses_bot=is_private or words.names_me or _answers(said, me),
        files=files,
        album=said.media_group_id,
        reply_to=str(said.reply_to_message.message_id) if _has_reply(said) and said.reply_to_message else "",
    )


def _edited(said: _Message, me: Me) -> MessageEdited | None:
    sender = _member(said, me)
    words = _words(said, me)
    # A location that is shared live is edited each few seconds, and has no words.
    if sender is None or words.for_another_bot or not words.text:
        return None
    return MessageEdited(
        place=said.place,
        sender=sender,
        message_id=str(said.message_id),
        text=_clean(_introduced(said, me, words.text)),
        edited_at=_milliseconds(said.edit_date),
    )


def _pressed(press: _Press) -> Pressed | None:
    if press.message is None or not press.data:
        return None
    return Pressed(
        place=press.message.place,
        sender=_person(press.sender),
        message_id=str(press.message.message_id),
        press_id=press.id,
        value=_clean(press.data),
    )


def _person(user: _User) -> Member:
    return Member(id=str(user.id), name=_clean(user.name), is_bot=user.is_bot)


def _member(said: _Message, me: Me) -> Member | None:
    """Return who wrote a message; None for posts of channels and for the bot's own messages."""
    if said.chat.type not in _GROUPS | {"private"} or said.is_automatic_forward:
        return None
    if said.sender_chat is not None:
        # An admin without a name, or a channel that takes part in a group: `from` is a placeholder then.
        name = said.sender_chat.title or said.author_signature
        return Member(id=str(said.sender_chat.id), name=_clean(name))
    if said.sender is None or said.sender.id == me.id:
        return None
    return _person(said.sender)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """The words of a message, without the name of the bot before them."""

    text: str
    names_me: bool = False
    for_another_bot: bool = False


def _words(said: _Message, me: Me) -> _Words:
    text, entities = said.written
    units = text.encode("utf-16-le", "surrogatepass")
    is_named = for_another = False
    # From the end, so that the offsets before stay right.
    for each in sorted(entities, key=lambda entity: entity.offset, reverse=True):
        begin, end = 2 * each.offset, 2 * (each.offset + each.length)
        if not 0 <= begin < end <= len(units):
            continue
        part = _decoded(units[begin:end])
        match each.type:
            case "mention" if me.username and part.casefold() == f"@{me.username}".casefold():
                is_named = True
                units = units if begin else _without_separator(units[end:])
            case "text_mention" if each.user and each.user.id == me.id:
                is_named = True
            case "bot_command" if begin == 0:
                command, _, name = part.partition("@")
                is_mine = name.casefold() == me.username.casefold() if name else not me.reads_all
                is_named = is_named or is_mine
                for_another = bool(name) and not is_mine
                units = command.encode("utf-16-le", "surrogatepass") + units[end:] if name and is_mine else units
            case "text_link" if each.url and each.url != part:
                units = units[:end] + f" ({each.url})".encode("utf-16-le", "surrogatepass") + units[end:]
            case _:
                pass
    return _Words(text=_decoded(units), names_me=is_named, for_another_bot=for_another)


def _decoded(units: bytes) -> str:
    return units.decode("utf-16-le", "replace")


def _without_separator(units: bytes) -> bytes:
    """Remove what stands between the bot's name and the words to it."""
    return _decoded(units).lstrip(" \t\n,:").encode("utf-16-le", "surrogatepass")


def _has_reply(said: _Message) -> bool:
    # In a topic every message replies to the one that began the topic.
    return said.reply_to_message is not None and said.reply_to_message.forum_topic_created is None


def _answers(said: _Message, me: Me) -> bool:
    """Return whether a message replies to one of the bot."""
    first = said.reply_to_message
    return _has_reply(said) and first is not None and first.sender is not None and first.sender.id == me.id


def _introduced(said: _Message, me: Me, text: str) -> str:
    """Put before a text what it refers to and where it comes from, because the model sees nothing else of the chat."""
    if said.forward_origin:
        # Before anything else: a command that another person wrote is not given by the one who forwards it.
        return f"[Forwarded from {said.forward_origin.name or 'a hidden user'}]\n{text}"
    if text.startswith("/"):
        return text
    if quoted := _quoted(said, me):
        lines = "\n".join(f"> {line}" for line in quoted.splitlines())
        return f"{lines}\n\n{text}"
    return text


def _quoted(said: _Message, me: Me) -> str:
    """Return what a message refers to: the part that was quoted, or another person's message that it replies to."""
    if said.quote and said.quote.text:
        return _short(said.quote.text)
    first = said.reply_to_message
    if first is None or not _has_reply(said) or _answers(said, me) or not first.written[0]:
        return ""
    name = first.sender_chat.title if first.sender_chat else first.sender.name if first.sender else ""
    return f"{name}: {_short(first.written[0])}" if name else _short(first.written[0])


def _short(text: str) -> str:
    return text if len(text) <= QUOTE_MAX_CHARS else f"{text[:QUOTE_MAX_CHARS]}…"


def _files(said: _Message) -> Iterator[RemoteFile]:
    number = said.message_id
    if said.photo:
        largest = max(said.photo, key=lambda size: (size.width * size.height, size.file_size))
        yield _file(largest, f"photo-{number}.jpg", "image/jpeg")
    # An animation is reported as a document too.
    if document := said.animation or said.document:
        yield _file(document, f"file-{number}", "application/octet-stream")
    if said.voice:
        yield _file(said.voice, f"voice-{number}.ogg", "audio/ogg")
    if said.audio:
        yield _file(said.audio, f"audio-{number}.mp3", "audio/mpeg")
    if video := said.video or said.video_note:
        yield _file(video, f"video-{number}.mp4", "video/mp4")


def _file(found: _File, name: str, media_type: str) -> RemoteFile:
    return RemoteFile(
        id=found.file_id,
        name=_clean(found.file_name) or name,
        media_type=_clean(found.mime_type) or media_type,
        bytes=max(0, found.file_size),
    )


def _described(said: _Message) -> Sequence[str]:
    """Return what is neither words nor a file, in words."""
    found: list[str] = []
    if said.sticker:
        found.append(f"[Sticker {said.sticker.emoji}]".replace(" ]", "]"))
    if said.venue:
        found.append(f"[Location: {said.venue.title}, {said.venue.address} ({said.venue.location})]")
    elif said.location:
        found.append(f"[Location: {said.location}]")
    if said.contact:
        name = f"{said.contact.first_name} {said.contact.last_name}".strip()
        found.append(f"[Contact: {name}, {said.contact.phone_number}]")
    if said.poll:
        found.append(f"[Poll: {said.poll.question} {' / '.join(option.text for option in said.poll.options)}]")
    if said.dice:
        found.append(f"[{said.dice.emoji} {said.dice.value}]")
    return found


def _milliseconds(seconds: int) -> int:
    return seconds * 1000 if 0 < seconds < _SECONDS_MAX else 0


def _clean(text: str) -> str:
    """Return a text that any database and any encoder takes."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()
