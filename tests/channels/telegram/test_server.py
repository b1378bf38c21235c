"""The scripted Bot API server, checked with two libraries that talk to the real one."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiogram
import aiogram.exceptions
import pytest
import telegram as ptb
import telegram.error
import telegram.ext
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.types import BufferedInputFile, InlineKeyboardButton, InlineKeyboardMarkup, ReactionTypeEmoji, ReplyParameters

from holdfast.drill.telegram.chats import Chat, Person
from holdfast.drill.telegram.server import TOKEN, BotApiServer, Way, telegram
from tests.engine.world import until

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
KEYBOARD = InlineKeyboardMarkup(inline_keyboard=[[InlineKeyboardButton(text="Yes", callback_data="q:1")]])


@asynccontextmanager
async def aiogram_bot(there: BotApiServer, token: str = TOKEN) -> AsyncIterator[aiogram.Bot]:
    session = AiohttpSession(api=TelegramAPIServer.from_base(there.url))
    async with aiogram.Bot(token, session=session) as bot:
        yield bot


@asynccontextmanager
async def ptb_bot(there: BotApiServer, token: str = TOKEN) -> AsyncIterator[ptb.Bot]:
    async with ptb.Bot(token, base_url=f"{there.url}/bot", base_file_url=f"{there.url}/file/bot") as bot:
        yield bot


def ann(there: BotApiServer) -> tuple[Person, Chat]:
    person = there.person(1001, "Ann", "ann")
    return person, there.private(person)


async def test_aiogram_polls_answers_and_edits() -> None:
    async with telegram() as there, aiogram_bot(there) as bot:
        person, chat = ann(there)
        dispatcher = aiogram.Dispatcher()
        pressed = asyncio.Event()

        @dispatcher.message()
        async def answer(message: aiogram.types.Message) -> None:
            sent = await message.answer(f"<b>{message.text}</b>", parse_mode="HTML", reply_markup=KEYBOARD)
            await sent.edit_text("<i>edited</i>", parse_mode="HTML", reply_markup=KEYBOARD)

        @dispatcher.callback_query()
        async def press(query: aiogram.types.CallbackQuery) -> None:
            await query.answer(f"took {query.data}")
            pressed.set()

        polling = asyncio.create_task(dispatcher.start_polling(bot, handle_signals=False, polling_timeout=5))
        there.says(chat, person, "hello")
        await until(lambda: chat.of_bot() and chat.of_bot()[0].earlier)
        shown = chat.of_bot()[0]
        assert (shown.text, shown.earlier, shown.entities) == (
            "edited",
            ["hello"],
            [{"type": "italic", "offset": 0, "length": 6}],
        )
        pressing = there.presses(shown, person, "Yes")
        await pressed.wait()
        assert there.toasts == {pressing.id: "took q:1"}
        await dispatcher.stop_polling()
        await polling
        assert "Ann" in there.draw()
        assert "[ Yes ]" in there.draw()


async def test_python_telegram_bot_polls_answers_and_fetches_a_file() -> None:
    async with telegram() as there:
        person, chat = ann(there)
        application = ptb.ext.ApplicationBuilder().token(TOKEN)
        application = application.base_url(f"{there.url}/bot").base_file_url(f"{there.url}/file/bot").build()
        got: list[bytes] = []

        async def answer(update: ptb.Update, _: Any) -> None:
            assert update.message
            file = await update.message.photo[-1].get_file()
            got.append(bytes(await file.download_as_bytearray()))
            await update.message.reply_text(f"got {update.message.caption}", do_quote=True)

        application.add_handler(ptb.ext.MessageHandler(ptb.ext.filters.PHOTO, answer))
        async with application:
            assert application.updater
            await application.updater.start_polling(poll_interval=0, timeout=5)
            await application.start()
            sent = there.attaches(chat, person, "photo", PNG, "a plan")
            await until(chat.of_bot)
            await application.updater.stop()
            await application.stop()
        assert got == [PNG]
        assert (chat.texts, chat.of_bot()[0].reply_to) == (["got a plan"], sent.id)


@pytest.mark.filterwarnings("ignore:.*retry_after")
@pytest.mark.parametrize("library", ["aiogram", "ptb"])
async def test_errors_are_those_that_the_libraries_know(library: str) -> None:
    async with telegram() as there:
        person, chat = ann(there)
        bots: Any = aiogram_bot if library == "aiogram" else ptb_bot
        error: Any = aiogram.exceptions if library == "aiogram" else ptb.error
        bad = error.TelegramBadRequest if library == "aiogram" else error.BadRequest
        forbidden = error.TelegramForbiddenError if library == "aiogram" else error.Forbidden
        async with bots(there) as bot:
            there.says(chat, person, "hi")
            with pytest.raises(bad, match=r"(?i)chat not found"):
                await bot.send_message(5, "x")
            with pytest.raises(bad, match=r'(?i)can.t parse entities: unsupported start tag "x" at byte offset 0'):
                await bot.send_message(chat.id, "<x>", parse_mode="HTML")
            with pytest.raises(bad, match=r"(?i)message is too long"):
                await bot.send_message(chat.id, "😀" * 2049)
            with pytest.raises(bad, match=r"(?i)message text is empty"):
                await bot.send_message(chat.id, " ")
            with pytest.raises(bad, match=r"(?i)query is too old"):
                await bot.answer_callback_query("1")
            sent = await bot.send_message(chat.id, "x")
            with pytest.raises(bad, match=r"(?i)message is not modified"):
                await bot.edit_message_text("x", chat_id=chat.id, message_id=sent.message_id)
            person.has_blocked = True
            with pytest.raises(forbidden, match=r"(?i)bot was blocked by the user"):
                await bot.send_message(chat.id, "x")
            person.has_blocked = False
            group = there.group(-5, "Crew")
            moved = there.migrates(group)
            migrated = error.TelegramMigrateToChat if library == "aiogram" else error.ChatMigrated
            with pytest.raises(migrated) as told:
                await bot.send_message(group.id, "x")
            assert moved.id in (getattr(told.value, "migrate_to_chat_id", 0), getattr(told.value, "new_chat_id", 0))
            there.flood(chat, 7)
            flooded = error.TelegramRetryAfter if library == "aiogram" else error.RetryAfter
            with pytest.raises(flooded) as told:
                await bot.send_message(chat.id, "x")
            wait: Any = told.value.retry_after
            assert getattr(wait, "seconds", wait) == 7
            there.fail(Way.STATUS, "getMe", status=502, description="Bad Gateway")
            with pytest.raises(error.TelegramServerError if library == "aiogram" else error.NetworkError):
                await bot.get_me()


async def test_tokens_are_told_apart() -> None:
    async with telegram() as there:
        unknown = "7000002:AAExampleTokenOfTheScriptedServer_0"
        async with aiogram_bot(there, unknown) as bot:
            with pytest.raises(aiogram.exceptions.TelegramUnauthorizedError):
                await bot.get_me()
        async with aiogram_bot(there, "1:x") as bot:
            with pytest.raises(aiogram.exceptions.TelegramNotFound):
                await bot.get_me()
        with pytest.raises(ptb.error.InvalidToken):
            async with ptb_bot(there, unknown):
                pass


async def test_an_offset_confirms_what_is_before_it() -> None:
    async with telegram() as there, aiogram_bot(there) as bot:
        person, chat = ann(there)
        for text in "abc":
            there.says(chat, person, text)
        first, second, third = await bot.get_updates()
        assert [each.update_id for each in await bot.get_updates()] == [first.update_id, second.update_id, third.update_id]
        assert [each.update_id for each in await bot.get_updates(offset=second.update_id, limit=1)] == [second.update_id]
        assert [each.update_id for each in await bot.get_updates(offset=-1)] == [third.update_id]
        assert await bot.get_updates(offset=third.update_id + 1) == []
        assert await bot.get_updates() == []


async def test_a_request_is_held_until_something_happens_and_a_second_one_ends_it() -> None:
    async with telegram() as there, aiogram_bot(there) as bot, aiogram_bot(there) as second:
        person, chat = ann(there)
        held = asyncio.create_task(bot.get_updates(timeout=5))
        await until(lambda: there.bot.is_polled)
        there.says(chat, person, "now")
        (update,) = await held
        assert update.message
        assert update.message.text == "now"
        held = asyncio.create_task(bot.get_updates(offset=update.update_id + 1, timeout=5))
        await until(lambda: there.bot.is_polled)
        other = asyncio.create_task(second.get_updates(offset=update.update_id + 1, timeout=1))
        with pytest.raises(aiogram.exceptions.TelegramConflictError, match="terminated by other getUpdates request"):
            await held
        assert await other == []


async def test_a_webhook_ends_polling_and_gets_updates_until_it_takes_them() -> None:
    posts: list[tuple[str, bytes]] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
        posts.append((head, await reader.readexactly(length)))
        status = "200 OK" if len(posts) > 1 else "503 Not Now"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    hook = await asyncio.start_server(take, "127.0.0.1", 0)
    async with telegram() as there, aiogram_bot(there) as bot, aiogram_bot(there) as second, hook:
        person, chat = ann(there)
        held = asyncio.create_task(bot.get_updates(timeout=5))
        await until(lambda: there.bot.is_polled)
        url = f"http://127.0.0.1:{hook.sockets[0].getsockname()[1]}/x"
        await second.set_webhook(url, secret_token="s3")
        with pytest.raises(aiogram.exceptions.TelegramConflictError, match="terminated by setWebhook request"):
            await held
        with pytest.raises(aiogram.exceptions.TelegramConflictError, match="while webhook is active"):
            await bot.get_updates()
        there.says(chat, person, "pushed")
        await until(lambda: len(posts) == 2)
        assert posts[0][1] == posts[1][1]
        assert "x-telegram-bot-api-secret-token: s3" in posts[0][0].lower()
        info = await bot.get_webhook_info()
        assert (info.url, info.last_error_message) == (url, "Wrong response from the webhook: 503 Not Now")
        await bot.delete_webhook()
        assert await bot.get_updates() == []


async def test_files_go_both_ways() -> None:
    async with telegram() as there, aiogram_bot(there) as bot, ptb_bot(there) as other:
        person, chat = ann(there)
        there.says(chat, person, "hi")
        sent = await bot.send_document(
            chat.id, BufferedInputFile(b"one", "one.txt"), caption="<b>here</b>", parse_mode="HTML"
        )
        assert sent.document
        assert sent.document.file_name == "one.txt"
        target = io.BytesIO()
        await bot.download(sent.document, target)
        assert target.getvalue() == b"one"
        await other.send_photo(chat.id, PNG, caption="pic")
        assert [(each.text, each.content) for each in chat.of_bot()] == [("here", b"one"), ("pic", PNG)]
        with pytest.raises(aiogram.exceptions.TelegramBadRequest, match="IMAGE_PROCESS_FAILED"):
            await bot.send_photo(chat.id, BufferedInputFile(b"text", "x.png"))


async def test_replies_topics_reactions_typing_deletion_and_commands() -> None:
    async with telegram() as there, aiogram_bot(there) as bot:
        person, _ = ann(there)
        forum = there.group(-1005, "Crew", "supergroup", {9: "Roof"})
        said = there.says(forum, person, "/roof", thread=9)
        (update,) = await bot.get_updates()
        assert update.message
        assert (update.message.message_thread_id, update.message.is_topic_message) == (9, True)
        sent = await bot.send_message(
            forum.id, "ok", message_thread_id=9, reply_parameters=ReplyParameters(message_id=said.id)
        )
        assert sent.reply_to_message
        with pytest.raises(aiogram.exceptions.TelegramBadRequest, match="message thread not found"):
            await bot.send_message(forum.id, "ok", message_thread_id=8)
        await bot.set_message_reaction(forum.id, said.id, [ReactionTypeEmoji(emoji="👀")])
        assert list(said.reactions.values()) == ["👀"]
        with pytest.raises(aiogram.exceptions.TelegramBadRequest, match="REACTION_INVALID"):
            await bot.set_message_reaction(forum.id, said.id, [ReactionTypeEmoji(emoji="✅")])
        await bot.send_chat_action(forum.id, "typing", message_thread_id=9)
        assert len(forum.typing) == 1
        await bot.delete_message(forum.id, sent.message_id)
        assert forum.texts == []
        with pytest.raises(aiogram.exceptions.TelegramBadRequest, match="message to delete not found"):
            await bot.delete_message(forum.id, sent.message_id)
        await bot.set_my_commands([aiogram.types.BotCommand(command="new", description="New")])
        assert [each.command for each in await bot.get_my_commands()] == ["new"]


async def test_in_a_group_a_bot_sees_what_is_meant_for_it_unless_it_may_read_all() -> None:
    async with telegram() as there, aiogram_bot(there) as bot:
        person, _ = ann(there)
        group = there.group(-5, "Crew")
        for text in ("hello", "hello @holdfast_bot", "/status", "/status@other_bot"):
            there.says(group, person, text)
        texts = [each.message.text for each in await bot.get_updates() if each.message]
        assert texts == ["hello @holdfast_bot", "/status"]
        there.bot.reads_all = True
        there.says(group, person, "hello")
        assert len(await bot.get_updates()) == 3


@pytest.mark.parametrize("way", [Way.CUT_BEFORE, Way.CUT_AFTER])
async def test_a_connection_that_is_cut_leaves_what_was_done_before(way: Way, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    async with telegram() as there, aiogram_bot(there) as bot:
        person, chat = ann(there)
        there.says(chat, person, "hi")
        there.fail(way, "sendMessage")
        with pytest.raises(aiogram.exceptions.TelegramNetworkError):
            await bot.send_message(chat.id, "x")
        assert chat.texts == (["x"] if way is Way.CUT_AFTER else [])
