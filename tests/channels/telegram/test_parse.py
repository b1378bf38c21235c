"""Updates become events: every kind of message, the names in it, and nothing that breaks the loop."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.channels.telegram.parse import QUOTE_MAX_CHARS, Me, parse
from holdfast.core import commands
from holdfast.core.chats import ChatMessage, ChatMoved, ChatType, Member, MessageEdited, Place, Pressed, RemoteFile

ME = Me(id=7, username="Holdfast_Bot")
ANN = {"id": 1001, "is_bot": False, "first_name": "Ann", "last_name": "Lee", "username": "ann"}
BOT = {"id": 7, "is_bot": True, "first_name": "Holdfast", "username": "Holdfast_Bot"}
PRIVATE = {"id": 1001, "type": "private", "first_name": "Ann"}
GROUP = {"id": -100200, "type": "supergroup", "title": "Crew"}


def message(text: str | None = None, chat: Any = PRIVATE, **fields: Any) -> dict[str, Any]:
    said = {} if text is None else {"text": text}
    return {"message_id": 5, "date": 1_700_000_000, "chat": chat, "from": ANN, **said, **fields}


def said(text: str | None = None, *, me: Me = ME, **fields: Any) -> ChatMessage:
    found = parse({"update_id": 1, "message": message(text, **fields)}, me)
    assert isinstance(found, ChatMessage)
    return found


def mention(offset: int, length: int, kind: str = "mention", **more: Any) -> list[dict[str, Any]]:
    return [{"type": kind, "offset": offset, "length": length, **more}]


def test_a_private_message() -> None:
    assert said("hello") == ChatMessage(
        place=Place(chat_id="1001"),
        sender=Member(id="1001", name="Ann Lee"),
        message_id="5",
        text="hello",
        sent_at=1_700_000_000_000,
        chat_name="Ann Lee",
        addresses_bot=True,
    )


def test_a_message_in_a_group_addresses_the_bot_only_if_it_names_it() -> None:
    found = said("hello all", chat=GROUP)
    assert (found.chat_type, found.chat_name, found.addresses_bot) == (ChatType.GROUP, "Crew", False)
    found = said("hello @holdfast_BOT!", chat=GROUP, entities=mention(6, 13))
    assert (found.text, found.addresses_bot) == ("hello @holdfast_BOT!", True)
    assert not said("hello @other", chat=GROUP, entities=mention(6, 6)).addresses_bot
    assert said("hello Bot", chat=GROUP, entities=mention(6, 3, "text_mention", user=BOT)).addresses_bot


def test_the_name_of_the_bot_before_the_words_is_left_out() -> None:
    found = said("@holdfast_bot, what now?", chat=GROUP, entities=mention(0, 13))
    assert (found.text, found.addresses_bot) == ("what now?", True)


def test_offsets_count_utf16_units() -> None:
    text = "😀😀 @holdfast_bot hi"
    assert said(text, chat=GROUP, entities=mention(5, 13)).addresses_bot
    assert not said(text, chat=GROUP, entities=mention(3, 13)).addresses_bot


def test_a_command_that_names_the_bot_is_one_for_it_and_one_for_another_bot_is_nothing() -> None:
    found = said("/status@Holdfast_bot now", chat=GROUP, entities=mention(0, 20, "bot_command"))
    assert (found.text, found.addresses_bot) == ("/status now", True)
    assert parse({"message": message("/status@other", chat=GROUP, entities=mention(0, 13, "bot_command"))}, ME) is None


def test_a_command_without_a_name_is_for_the_bot_unless_it_reads_everything() -> None:
    command = {"chat": GROUP, "entities": mention(0, 7, "bot_command")}
    assert said("/status", **command).addresses_bot
    assert not said("/status", me=Me(id=7, username="holdfast_bot", reads_all=True), **command).addresses_bot


def test_a_reply_to_the_bot_addresses_it() -> None:
    found = said("and then?", chat=GROUP, reply_to_message=message("first", chat=GROUP, message_id=4, **{"from": BOT}))
    assert (found.addresses_bot, found.reply_to, found.text) == (True, "4", "and then?")


def test_a_reply_to_another_person_quotes_what_it_is_about() -> None:
    first = message("the roof\nleaks", chat=GROUP, message_id=4)
    found = said("@holdfast_bot how bad?", chat=GROUP, entities=mention(0, 13), reply_to_message=first)
    assert found.text == "> Ann Lee: the roof\n> leaks\n\nhow bad?"
    first["text"] = "x" * 1000
    assert len(said("so?", chat=GROUP, reply_to_message=first).text) < QUOTE_MAX_CHARS + 50


def test_the_part_that_a_person_quotes_is_quoted() -> None:
    first = message("a b c", message_id=4, **{"from": BOT})
    assert said("why?", reply_to_message=first, quote={"text": "b", "position": 2}).text == "> b\n\nwhy?"


def test_a_message_of_a_topic_belongs_to_the_topic_and_a_thread_of_replies_is_none() -> None:
    opening = message(chat=GROUP, message_id=9, forum_topic_created={"name": "Roof"}, **{"from": BOT})
    found = said("hi", chat=GROUP, message_thread_id=9, is_topic_message=True, reply_to_message=opening)
    assert (found.place, found.addresses_bot, found.reply_to) == (Place(chat_id="-100200", thread_id="9"), False, "")
    assert said("hi", chat=GROUP, message_thread_id=9).place == Place(chat_id="-100200")
    assert said("hi", chat=GROUP, message_thread_id=1, is_topic_message=True).place == Place(chat_id="-100200")


def test_an_edited_message() -> None:
    edited = message("hello again", edit_date=1_700_000_009)
    assert parse({"edited_message": edited}, ME) == MessageEdited(
        place=Place(chat_id="1001"),
        sender=Member(id="1001", name="Ann Lee"),
        message_id="5",
        text="hello again",
        edited_at=1_700_000_009_000,
    )


def test_a_location_that_moves_is_no_edit() -> None:
    moving = message(location={"latitude": 1.5, "longitude": 2}, edit_date=1)
    assert parse({"edited_message": moving}, ME) is None


def test_the_largest_size_of_a_photo_is_taken_with_its_caption() -> None:
    sizes = [
        {"file_id": "s", "width": 90, "height": 60},
        {"file_id": "l", "width": 1280, "height": 960, "file_size": 70_000},
    ]
    found = said(photo=sizes, caption="see", media_group_id="A1")
    assert found.files == (RemoteFile(id="l", name="photo-5.jpg", media_type="image/jpeg", bytes=70_000),)
    assert (found.text, found.album) == ("see", "A1")


@pytest.mark.parametrize(
    ("kind", "fields", "name", "media_type"),
    [
        ("document", {"file_name": "plan.pdf", "mime_type": "application/pdf"}, "plan.pdf", "application/pdf"),
        ("document", {}, "file-5", "application/octet-stream"),
        ("voice", {"duration": 2}, "voice-5.ogg", "audio/ogg"),
        ("audio", {"file_name": "song.mp3", "mime_type": "audio/mpeg"}, "song.mp3", "audio/mpeg"),
        ("video", {"mime_type": "video/mp4"}, "video-5.mp4", "video/mp4"),
        ("video_note", {}, "video-5.mp4", "video/mp4"),
    ],
)
def test_files(kind: str, fields: dict[str, Any], name: str, media_type: str) -> None:
    found = said(**{kind: {"file_id": "F", "file_size": 12, **fields}})
    assert found.files == (RemoteFile(id="F", name=name, media_type=media_type, bytes=12),)


def test_an_animation_is_one_file_although_it_is_reported_twice() -> None:
    both = {"file_id": "F", "file_name": "cat.mp4", "mime_type": "video/mp4"}
    assert len(said(animation=both, document=both).files) == 1


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"sticker": {"file_id": "S", "emoji": "😀"}}, "[Sticker 😀]"),
        ({"location": {"latitude": 52.5, "longitude": 13.4}}, "[Location: 52.5, 13.4]"),
        (
            {
                "location": {"latitude": 1, "longitude": 2},
                "venue": {"location": {"latitude": 1, "longitude": 2}, "title": "Pier", "address": "Quay 1"},
            },
            "[Location: Pier, Quay 1 (1.0, 2.0)]",
        ),
        ({"contact": {"phone_number": "+49 1", "first_name": "Bo"}}, "[Contact: Bo, +49 1]"),
        ({"poll": {"question": "When?", "options": [{"text": "now"}, {"text": "later"}]}}, "[Poll: When? now / later]"),
        ({"dice": {"emoji": "🎲", "value": 4}}, "[🎲 4]"),
    ],
)
def test_what_is_neither_words_nor_a_file_becomes_words(fields: dict[str, Any], text: str) -> None:
    assert said(**fields).text == text


def test_the_address_behind_a_link_and_the_source_of_a_forwarded_message_are_told() -> None:
    link = mention(4, 4, "text_link", url="https://a.example/x")
    assert said("see this", entities=link).text == "see this (https://a.example/x)"
    assert said("news", forward_origin={"type": "user", "sender_user": ANN}).text == "[Forwarded from Ann Lee]\nnews"


def test_a_command_that_is_forwarded_is_not_given() -> None:
    """SECURITY: an authorised sender relays hostile content."""
    found = said("/approve always", forward_origin={"type": "hidden_user", "sender_user_name": "Bo"})
    assert found.text == "[Forwarded from Bo]\n/approve always"
    assert commands.parse(found.text) is None


def test_a_group_that_becomes_a_supergroup_is_reported_by_both() -> None:
    moved = ChatMoved(from_chat_id="-5", to_chat_id="-1005")
    old = message(chat={"id": -5, "type": "group"}, migrate_to_chat_id=-1005)
    new = message(chat={"id": -1005, "type": "supergroup"}, migrate_from_chat_id=-5)
    assert (parse({"message": old}, ME), parse({"message": new}, ME)) == (moved, moved)


def test_an_admin_without_a_name_is_the_group_and_not_a_bot() -> None:
    placeholder = {"id": 1_087_968_824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
    found = said("hi", chat=GROUP, sender_chat=GROUP, **{"from": placeholder})
    assert found.sender == Member(id="-100200", name="Crew")


def test_posts_of_channels_and_the_bots_own_messages_are_nothing() -> None:
    channel = {"id": -1009, "type": "channel", "title": "News"}
    assert parse({"channel_post": message("hi", chat=channel)}, ME) is None
    assert parse({"message": message("hi", chat=channel)}, ME) is None
    assert parse({"message": message("hi", chat=GROUP, sender_chat=channel, is_automatic_forward=True)}, ME) is None
    assert parse({"message": message("hi", **{"from": BOT})}, ME) is None


def test_another_bot_is_named_as_one() -> None:
    assert said("hi", chat=GROUP, **{"from": {"id": 9, "is_bot": True, "first_name": "Other"}}).sender.is_bot


def test_a_press() -> None:
    pressed = {"id": "99", "from": ANN, "chat_instance": "1", "data": "q:1:2", "message": message("ok?", **{"from": BOT})}
    assert parse({"callback_query": pressed}, ME) == Pressed(
        place=Place(chat_id="1001"), sender=Member(id="1001", name="Ann Lee"), message_id="5", press_id="99", value="q:1:2"
    )
    assert parse({"callback_query": {**pressed, "message": None}}, ME) is None


@pytest.mark.parametrize(
    "update",
    [
        {"message": message(new_chat_members=[ANN])},
        {"message": message(pinned_message=message("x"))},
        {"my_chat_member": {"chat": PRIVATE}},
        {"a_kind_of_next_year": {"x": 1}},
        {"message": {"message_id": "five"}},
        {},
        [],
        None,
        7,
    ],
)
def test_what_says_nothing_is_nothing(update: Any) -> None:
    assert parse(update, ME) is None


def test_characters_that_no_store_takes_are_left_out() -> None:
    assert said("a\0b\ud800").text == "ab\ufffd"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
_FIELDS = [
    "message_id",
    "chat",
    "date",
    "edit_date",
    "from",
    "sender_chat",
    "message_thread_id",
    "is_topic_message",
    "text",
    "entities",
    "caption",
    "caption_entities",
    "reply_to_message",
    "quote",
    "forward_origin",
    "media_group_id",
    "photo",
    "animation",
    "document",
    "voice",
    "audio",
    "video",
    "video_note",
    "sticker",
    "location",
    "venue",
    "contact",
    "poll",
    "dice",
    "migrate_to_chat_id",
    "migrate_from_chat_id",
    "is_automatic_forward",
]


@given(_JSON)
def test_no_json_breaks_the_loop(update: Any) -> None:
    parse(update, ME)


@given(st.dictionaries(st.sampled_from(_FIELDS), _JSON, max_size=4), st.sampled_from(["message", "edited_message"]))
def test_no_wrong_field_breaks_the_loop(fields: dict[str, Any], kind: str) -> None:
    parse({"update_id": 1, kind: {**message("hello"), **fields}}, ME)


_ENTITIES = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["mention", "bot_command", "text_link", "text_mention", "bold"]),
            "offset": st.integers(-5, 30),
            "length": st.integers(-5, 30),
            "url": st.text(max_size=5),
        }
    ),
    max_size=5,
)


@given(st.text(max_size=20), _ENTITIES)
def test_no_entity_breaks_a_text(text: str, entities: list[dict[str, Any]]) -> None:
    found = parse({"message": message(text, entities=entities)}, ME)
    assert not isinstance(found, ChatMessage) or found.text.encode()
