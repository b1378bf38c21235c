"""The client against the scripted Bot API server: every call, and what each way to fail means."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from holdfast.agent.tools.send_file import CAPTION_MAX_CHARS
from holdfast.channels.chat.port import Batch, Button, LocalFile, MenuEntry, Outgoing, Posted
from holdfast.channels.telegram import client
from holdfast.channels.telegram.calls import BotApi, decoded
from holdfast.channels.telegram.client import SECRET_HEADER, TelegramPlatform, Webhook, webhook_secret
from holdfast.core.chats import ChatMessage, ChatMoved, MessageEdited, Place, Pressed
from holdfast.core.delivery import REPEAT_LABEL
from holdfast.drill.telegram.chats import Chat, Person
from holdfast.drill.telegram.server import TOKEN, BotApiServer, Way, telegram
from holdfast.errors import (
    AccountRefused,
    AccountTaken,
    BadParameter,
    HoldfastError,
    NotTrusted,
    OutcomeUnknown,
    Rejected,
    Unavailable,
)
from tests.engine.world import until

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
HOOK = Webhook(url="https://agent.example/channels/telegram", secret=webhook_secret(TOKEN, "telegram"))


@asynccontextmanager
async def an_api(there: BotApiServer, token: str = TOKEN) -> AsyncIterator[BotApi]:
    api = BotApi(there.url, token)
    try:
        yield api
    finally:
        await api.close()


@asynccontextmanager
async def a_platform(
    there: BotApiServer, token: str = TOKEN, webhook: Webhook | None = None
) -> AsyncIterator[TelegramPlatform]:
    async with an_api(there, token) as api:
        yield TelegramPlatform(api, webhook)


def ann(there: BotApiServer) -> tuple[Person, Chat, Place]:
    person = there.person(1001, "Ann", "ann")
    chat = there.private(person)
    return person, chat, Place(chat_id=str(chat.id))


def text(said: str, **more: Any) -> Outgoing:
    return Outgoing(text=said, **more)


async def next_of(batches: Any) -> Batch:
    async with asyncio.timeout(10):
        return await anext(batches)


async def test_the_bot_says_who_it_is() -> None:
    async with telegram() as there, a_platform(there) as bot:
        found = await bot.identify()
        assert (found.user_id, found.name, found.url) == ("7000001", "Holdfast", "https://t.me/holdfast_bot")


async def test_one_connection_carries_many_messages() -> None:
    async with telegram() as there, a_platform(there) as bot:
        _, chat, place = ann(there)
        for number in range(5):
            await bot.send(place, text(f"part {number}"), str(number))
        assert chat.texts == [f"part {number}" for number in range(5)]
        assert there.connections == 1


async def test_updates_come_in_order_and_are_confirmed_by_the_next_request() -> None:
    async with telegram() as there, a_platform(there) as bot:
        person, chat, place = ann(there)
        first = there.says(chat, person, "one")
        there.says(chat, person, "two")
        there.edits(first, "one!")
        batches = bot.listen(None)
        batch = await next_of(batches)
        kinds = [(type(each), getattr(each, "text", "")) for each in batch.events]
        assert kinds == [(ChatMessage, "one"), (ChatMessage, "two"), (MessageEdited, "one!")]
        # Nothing is confirmed before the batch is durable.
        assert len(there.bot.updates) == 3
        asking = asyncio.ensure_future(next_of(batches))
        await until(lambda: not there.bot.updates)
        there.says(chat, person, "three")
        assert [each.text for each in (await asking).events if isinstance(each, ChatMessage)] == ["three"]
        assert place == Place(chat_id="1001")
        await batches.aclose()


async def test_a_restart_goes_on_at_its_position() -> None:
    async with telegram() as there, a_platform(there) as bot:
        person, chat, _ = ann(there)
        there.says(chat, person, "one")
        batches = bot.listen(None)
        batch = await next_of(batches)
        await batches.aclose()
        there.says(chat, person, "two")
        batches = bot.listen(batch.position)
        assert [each.text for each in (await next_of(batches)).events if isinstance(each, ChatMessage)] == ["two"]
        await batches.aclose()


async def test_an_empty_answer_is_a_batch_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "POLL_S", 1)
    async with telegram() as there, a_platform(there) as bot:
        batches = bot.listen("500000009")
        batch = await next_of(batches)
        assert (batch.events, batch.position) == ((), "500000009")
        await batches.aclose()


async def test_updates_that_say_nothing_are_passed_over() -> None:
    async with telegram() as there, a_platform(there) as bot:
        last = [
            there.report(there.bot, kind, content) for kind, content in (("poll", {}), ("message", {"x": 1}), ("story", 5))
        ]
        batches = bot.listen(None)
        batch = await next_of(batches)
        assert (batch.events, batch.position) == ((), str(last[-1] + 1))
        await batches.aclose()


async def test_a_second_consumer_is_named() -> None:
    async with telegram() as there, a_platform(there) as bot, a_platform(there) as other:
        batches, theirs = bot.listen(None), other.listen(None)
        asking = asyncio.ensure_future(next_of(batches))
        await until(lambda: there.bot.is_polled)
        second = asyncio.ensure_future(next_of(theirs))
        with pytest.raises(AccountTaken, match="terminated by other getUpdates request"):
            await asking
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)


async def test_polling_ends_a_webhook_from_before_and_one_that_comes_later_is_another_consumer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with telegram() as there, a_platform(there) as bot:
        there.bot.webhook = "http://old.example/secret-path"
        batches = bot.listen(None)
        asking = asyncio.ensure_future(next_of(batches))
        await until(lambda: there.bot.is_polled)
        assert there.bot.webhook == ""
        assert "old.example" in caplog.text
        assert "secret-path" not in caplog.text
        async with an_api(there) as other:
            await other.ask("setWebhook", {"url": "http://127.0.0.1:9/"}, bool)
        with pytest.raises(AccountTaken, match="setWebhook"):
            await asking


async def test_a_message_with_everything() -> None:
    async with telegram() as there, a_platform(there) as bot:
        person, chat, place = ann(there)
        asked = there.says(chat, person, "hi")
        buttons = ((Button(label="Yes", value="q:1"), Button(label="No", value="q:2")),)
        number = await bot.send(place, text("**a** & b", buttons=buttons, is_quiet=True, reply_to=str(asked.id)), "k")
        (shown,) = chat.of_bot()
        assert (str(shown.id), shown.text, shown.entities) == (number, "a & b", [{"type": "bold", "offset": 0, "length": 1}])
        assert (shown.is_quiet, shown.reply_to) == (True, asked.id)
        assert [[each["callback_data"] for each in row] for row in shown.buttons] == [["q:1", "q:2"]]
        assert there.calls_of("sendMessage")[0].parameters["link_preview_options"] == {"is_disabled": True}


async def test_a_reply_to_a_message_that_is_gone_is_a_message() -> None:
    async with telegram() as there, a_platform(there) as bot:
        _, chat, place = ann(there)
        await bot.send(place, text("x", reply_to="77"), "k")
        assert chat.texts == ["x"]


async def test_html_that_telegram_does_not_take_is_sent_plain_and_nothing_else_is() -> None:
    async with telegram() as there, a_platform(there) as bot:
        _, chat, place = ann(there)
        said = "Bad Request: can't parse entities: Unsupported start tag"
        there.fail(Way.STATUS, "sendMessage", status=400, description=said)
        await bot.send(place, text("**a**"), "k")
        assert (chat.texts, chat.of_bot()[0].entities) == (["a"], [])
        there.flood(chat, 9)
        before = len(there.calls)
        with pytest.raises(Unavailable):
            await bot.send(place, text("**b**"), "k")
        assert len(there.calls) == before + 1


async def test_an_edit_that_changes_nothing_and_a_deletion_of_what_is_gone_are_no_errors() -> None:
    async with telegram() as there, a_platform(there) as bot:
        _, chat, place = ann(there)
        number = await bot.send(place, text("one", buttons=((Button(label="Yes", value="q"),),)), "k")
        await bot.edit(place, number, text("two"))
        await bot.edit(place, number, text("two"))
        (shown,) = chat.of_bot()
        assert (shown.text, shown.earlier, shown.buttons) == ("two", ["one"], [])
        await bot.delete(place, number)
        await bot.delete(place, number)
        assert chat.texts == []
        with pytest.raises(Rejected, match="message to edit not found"):
            await bot.edit(place, number, text("three"))


async def test_presses_reactions_typing_and_the_menu() -> None:
    async with telegram() as there, a_platform(there) as bot:
        person, chat, place = ann(there)
        said = there.says(chat, person, "hi")
        await bot.send(place, text("?", buttons=((Button(label="Yes", value="q:1"),),)), "k")
        pressed = there.presses(chat.of_bot()[0], person, "Yes")
        batches = bot.listen(None)
        press = (await next_of(batches)).events[-1]
        await batches.aclose()
        assert isinstance(press, Pressed)
        assert (press.value, press.press_id) == ("q:1", pressed.id)
        await bot.settle(press, "done")
        assert there.toasts == {pressed.id: "done"}
        # Too old: that is no error.
        await bot.settle(press, "done")
        await bot.react(place, str(said.id), "👀")
        assert list(said.reactions.values()) == ["👀"]
        await bot.react(place, str(said.id), "")
        assert not said.reactions
        await bot.type(place)
        assert len(chat.typing) == 1
        menu = [MenuEntry(name=f"c{number}", text="x") for number in range(150)]
        await bot.offer([MenuEntry(name="Not-A-Name", text="x"), *menu])
        assert [each["command"] for each in there.bot.commands] == [f"c{number}" for number in range(100)]


async def test_a_file_is_fetched_up_to_a_limit() -> None:
    async with telegram() as there, a_platform(there) as bot:
        person, chat, _ = ann(there)
        there.attaches(chat, person, "photo", PNG, "look")
        there.attaches(chat, person, "document", b"x" * 1000, file={"file_name": "a.txt", "file_size": 10})
        batches = bot.listen(None)
        photo, document = [each.files[0] for each in (await next_of(batches)).events if isinstance(each, ChatMessage)]
        await batches.aclose()
        assert await bot.fetch(photo, 1000) == PNG
        assert await bot.fetch(document, 1000) == b"x" * 1000
        with pytest.raises(Rejected, match="larger than 999 bytes"):
            await bot.fetch(document, 999)
        there.hides_sizes = True
        with pytest.raises(Rejected, match="larger than 999 bytes"):
            await bot.fetch(document, 999)
        calls = len(there.calls)
        with pytest.raises(Rejected, match="larger than 5 bytes"):
            await bot.fetch(photo, 5)
        assert len(there.calls) == calls
        for way in (Way.STATUS, Way.TRUNCATED):
            there.fail(way, "download", status=502)
            with pytest.raises(Unavailable) as failed:
                await bot.fetch(photo, 1000)
            assert TOKEN not in str(failed.value)


async def test_a_picture_is_shown_and_another_file_is_attached() -> None:
    async with telegram() as there, a_platform(there) as bot:
        _, chat, place = ann(there)
        await bot.send(place, text("a **pic**", file=LocalFile(name="p.png", media_type="image/png", content=PNG)), "k")
        broken = LocalFile(name='b"\r\n.png', media_type="image/png", content=b"no picture")
        await bot.send(place, text("", file=broken), "k")
        longest = f"{REPEAT_LABEL} {chr(0x1F600) * CAPTION_MAX_CHARS}"
        plan = LocalFile(name="plan ü.pdf", media_type="application/pdf", content=b"%PDF")
        await bot.send(place, text(longest, file=plan), "k")
        picture, attached, document = chat.of_bot()
        assert (list(picture.attached), picture.text, picture.content) == (["photo"], "a pic", PNG)
        assert (list(attached.attached), attached.attached["document"]["file_name"]) == (["document"], "b%22__.png")
        assert (document.attached["document"]["file_name"], document.text) == ("plan ü.pdf", longest)


async def test_a_topic_is_written_to_and_one_that_is_gone_only_matters_in_groups() -> None:
    async with telegram() as there, a_platform(there) as bot:
        forum = there.group(-1005, "Crew", "supergroup", {9: "Roof"})
        await bot.send(Place(chat_id="-1005", thread_id="9"), text("x"), "k")
        assert forum.of_bot()[0].thread == 9
        with pytest.raises(Rejected, match="message thread not found"):
            await bot.send(Place(chat_id="-1005", thread_id="8"), text("x"), "k")
        _, chat, _ = ann(there)
        await bot.send(Place(chat_id="1001", thread_id="8"), text("y"), "k")
        assert chat.texts == ["y"]


async def test_the_topic_that_every_forum_has_is_written_to_without_its_number() -> None:
    async with telegram() as there, a_platform(there) as bot:
        forum = there.group(-1005, "Crew", "supergroup", {9: "Roof"})
        await bot.send(Place(chat_id="-1005", thread_id="1"), text("x"), "k")
        assert (forum.texts, forum.of_bot()[0].thread) == (["x"], None)


async def test_a_message_of_a_group_that_moved_is_never_taken_for_one_with_its_number() -> None:
    """The new chat counts its messages anew."""
    async with telegram() as there, a_platform(there) as bot:
        old = there.group(-5, "Crew")
        place = Place(chat_id="-5")
        _, before = [await bot.send(place, text("old"), "k") for _ in range(2)]
        new = there.migrates(old)
        kept = [await bot.send(place, text(f"new {number}", reply_to=before), "k") for number in range(int(before) + 1)]
        assert before in {each.partition("@")[0] for each in kept}
        with pytest.raises(Rejected):
            await bot.edit(place, before, text("edited"))
        with pytest.raises(Rejected):
            await bot.delete(place, before)
        with pytest.raises(Rejected):
            await bot.react(place, before, "👀")
        assert new.texts == [f"new {number}" for number in range(len(kept))]
        assert not any(each.reply_to for each in new.of_bot())
        # What was sent there by the old name is found again.
        await bot.edit(place, kept[0], text("edited"))
        await bot.delete(place, kept[-1])
        assert new.texts == ["edited", *[f"new {number}" for number in range(1, len(kept) - 1)]]


async def test_a_group_that_moved_is_written_to_where_it_is_now_and_that_is_reported() -> None:
    async with telegram() as there, a_platform(there) as bot:
        old = there.group(-5, "Crew")
        new = there.migrates(old)
        there.bot.updates.clear()
        await bot.send(Place(chat_id="-5"), text("x"), "k")
        await bot.type(Place(chat_id="-5"))
        assert (new.texts, len(new.typing)) == (["x"], 1)
        assert len(there.calls_of("sendChatAction")) == 1
        ann(there)
        there.says(new, there.people[1001], "/now")
        batches = bot.listen(None)
        moved, message = (await next_of(batches)).events
        await batches.aclose()
        assert moved == ChatMoved(from_chat_id="-5", to_chat_id=str(new.id))
        assert isinstance(message, ChatMessage)


@pytest.mark.parametrize(
    ("status", "description", "expected"),
    [
        (400, "Bad Request: chat not found", Rejected),
        (403, "Forbidden: bot was blocked by the user", Rejected),
        (403, "Forbidden: user is deactivated", Rejected),
        (403, "Forbidden: bot was kicked from the supergroup chat", Rejected),
        (401, "Unauthorized", AccountRefused),
        (404, "Not Found", AccountRefused),
        (404, "Not Found: method not found", Rejected),
        (409, "Conflict: terminated by other getUpdates request", AccountTaken),
        (413, "Request Entity Too Large", Rejected),
        (500, "Internal Server Error: restart", Unavailable),
        (500, "", Unavailable),
        (502, "", Unavailable),
        (503, "", Unavailable),
        (504, "", OutcomeUnknown),
        (302, "", Rejected),
    ],
)
async def test_what_a_refusal_means(status: int, description: str, expected: type[HoldfastError]) -> None:
    async with telegram() as there, a_platform(there) as bot:
        _, chat, place = ann(there)
        there.fail(Way.STATUS, "sendMessage", status=status, description=description)
        with pytest.raises(expected) as refused:
            await bot.send(place, text("x"), "k")
        assert type(refused.value) is expected or (expected is Rejected and not isinstance(refused.value, AccountRefused))
        assert TOKEN not in str(refused.value)
        assert chat.texts == []


async def test_a_flood_names_its_wait_exactly() -> None:
    async with telegram() as there, a_platform(there) as bot:
        _, _, place = ann(there)
        there.fail(Way.STATUS, "sendMessage", status=429, retry_after=217)
        with pytest.raises(Unavailable) as refused:
            await bot.send(place, text("x"), "k")
        assert refused.value.retry_after_s == 217


@pytest.mark.parametrize(("asked", "waited"), [(0, 30), (-5, 30), (0.5, 0.5), (1e300, 86_400)])
async def test_a_flood_that_names_no_sensible_wait_has_one(asked: float, waited: float) -> None:
    async with telegram() as there, a_platform(there) as bot:
        _, _, place = ann(there)
        there.fail(Way.STATUS, "sendMessage", status=429, retry_after=asked)
        with pytest.raises(Unavailable) as refused:
            await bot.send(place, text("x"), "k")
        assert refused.value.retry_after_s == waited


def test_half_a_surrogate_pair_does_not_spoil_the_updates_around_it() -> None:
    body = b'[{"update_id": 1, "message": {"text": "\\ud83d"}}, {"update_id": 2}]'
    assert decoded(body, list[object]) == [{"update_id": 1, "message": {"text": "?"}}, {"update_id": 2}]
    assert decoded(b"[" * 100_000, object) is None


@pytest.mark.parametrize("way", [Way.CUT_BEFORE, Way.CUT_AFTER, Way.TRUNCATED, Way.GARBAGE])
async def test_a_message_whose_answer_is_lost_may_have_been_sent(way: Way) -> None:
    async with telegram() as there, a_platform(there) as bot:
        _, _, place = ann(there)
        there.fail(way, "sendMessage")
        with pytest.raises(OutcomeUnknown) as lost:
            await bot.send(place, text("x"), "k")
        assert TOKEN not in str(lost.value)


async def test_a_server_that_says_nothing_may_have_sent_the_message() -> None:
    async with telegram() as there, a_platform(there) as bot:
        _, chat, place = ann(there)
        there.fail(Way.SILENT_AFTER, "sendMessage")
        with pytest.raises(OutcomeUnknown, match="no answer in time"):
            await bot._api.do("sendMessage", {"chat_id": place.chat_id, "text": "x"}, object, timeout_s=3)
        assert chat.texts == ["x"]


async def test_a_server_that_cannot_be_reached_was_sent_nothing() -> None:
    async with telegram() as there:
        place = ann(there)[2]
        port = there.port
    there.port = port
    async with a_platform(there) as bot:
        with pytest.raises(Unavailable) as failed:
            await bot.send(place, text("x"), "k")
        assert TOKEN not in str(failed.value)


async def test_what_may_be_done_twice_is_never_of_unknown_outcome() -> None:
    async with telegram() as there, a_platform(there) as bot:
        _, _, place = ann(there)
        number = await bot.send(place, text("one"), "k")
        there.fail(Way.CUT_AFTER, "editMessageText")
        with pytest.raises(Unavailable):
            await bot.edit(place, number, text("two"))
        await bot.edit(place, number, text("two"))
        there.fail(Way.CUT_BEFORE, "getUpdates")
        with pytest.raises(Unavailable):
            await next_of(bot.listen(None))


async def test_an_answer_that_drips_is_read() -> None:
    async with telegram() as there, a_platform(there) as bot:
        person, chat, _ = ann(there)
        there.says(chat, person, "hi")
        there.fail(Way.DRIP, "getUpdates")
        batches = bot.listen(None)
        assert len((await next_of(batches)).events) == 1
        await batches.aclose()


async def test_a_token_that_is_not_known_is_refused() -> None:
    async with telegram() as there:
        for token in ("7000009:AAExampleTokenOfTheScriptedServer_0", "7:short"):
            async with a_platform(there, token) as bot:
                with pytest.raises(AccountRefused) as refused:
                    await next_of(bot.listen(None))
                assert token not in str(refused.value)


async def test_the_token_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with telegram() as there, a_platform(there) as bot:
        person, chat, place = ann(there)
        there.attaches(chat, person, "photo", PNG)
        batches = bot.listen(None)
        batch = await next_of(batches)
        await batches.aclose()
        (message,) = batch.events
        assert isinstance(message, ChatMessage)
        await bot.fetch(message.files[0], 1000)
        await bot.send(place, text("x"), "k")
        for way in (Way.CUT_BEFORE, Way.GARBAGE):
            there.fail(way, "sendMessage")
            with contextlib.suppress(HoldfastError):
                await bot.send(place, text("x"), "k")
    assert TOKEN.partition(":")[2] not in caplog.text


async def test_a_webhook_is_set_up_and_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "WEBHOOK_CHECK_S", 0.01)
    async with telegram() as there, a_platform(there, webhook=HOOK) as bot:
        batches = bot.listen(None)
        assert (await next_of(batches)).events == ()
        assert (there.bot.webhook, there.bot.secret) == (HOOK.url, HOOK.secret)
        assert (await next_of(batches)).position is None
        there.bot.webhook = "https://other.example/x"
        with pytest.raises(AccountTaken, match=r"other\.example"):
            await next_of(batches)


async def test_a_webhook_that_telegram_cannot_reach_is_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "WEBHOOK_CHECK_S", 0.01)
    async with telegram() as there, a_platform(there, webhook=HOOK) as bot:
        batches = bot.listen(None)
        await next_of(batches)
        person, chat, _ = ann(there)
        there.says(chat, person, "hi")
        there.bot.webhook_error = (5_000_000_000, "Connection refused")
        with pytest.raises(Unavailable, match=r"agent\.example: Connection"):
            await next_of(batches)


async def test_a_post_is_read_if_it_has_the_secret() -> None:
    async with telegram() as there, a_platform(there, webhook=HOOK) as bot:
        person, chat, _ = ann(there)
        there.says(chat, person, "hi")
        (update,) = there.bot.updates.values()
        headers = {SECRET_HEADER: HOOK.secret}
        batch = await bot.receive(Posted(headers=headers, body=msgspec.json.encode(update)))
        assert [each.text for each in batch.events if isinstance(each, ChatMessage)] == ["hi"]
        for wrong in ({}, {SECRET_HEADER: "x"}, {SECRET_HEADER: "é"}):
            with pytest.raises(NotTrusted):
                await bot.receive(Posted(headers=wrong, body=b"{}"))
        for body in (b"", b"{", b"[]", b'{"x": 1}', b"\xff", b"[" * 100_000):
            with pytest.raises(BadParameter):
                await bot.receive(Posted(headers=headers, body=body))
        assert (await bot.receive(Posted(headers=headers, body=b'{"update_id": 5, "poll": {}}'))).events == ()


async def test_an_account_that_polls_takes_no_posts() -> None:
    async with telegram() as there, a_platform(there) as bot:
        with pytest.raises(BadParameter, match='set mode = "webhook"'):
            await bot.receive(Posted(headers={}, body=b"{}"))


def test_each_account_has_a_secret_of_its_own_that_telegram_takes() -> None:
    one, two = webhook_secret(TOKEN, "telegram"), webhook_secret(TOKEN, "work")
    assert one != two
    assert len(one) == 43
    assert one.replace("-", "").replace("_", "").isalnum()


async def test_an_address_that_telegram_does_not_take_is_told() -> None:
    async with telegram() as there, a_platform(there, webhook=Webhook(url="ftp://agent.example/x", secret="s")) as bot:
        with pytest.raises(AccountRefused, match="An HTTPS URL must be provided"):
            await next_of(bot.listen(None))


async def test_a_connection_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "POLL_S", 0)
    monkeypatch.setattr(client, "POLL_GRACE_S", 0.3)
    async with telegram() as there, a_platform(there) as bot:
        there.fail(Way.SILENT_BEFORE, "getUpdates")
        with pytest.raises(Unavailable, match="no answer in time"):
            await next_of(bot.listen(None))
