"""A real gateway with a bot of Telegram, and everything that people do with it."""

from __future__ import annotations

import signal

from holdfast.drill.telegram.markup import units
from holdfast.drill.telegram.server import TEXT_MAX, BotApiServer
from tests.blackbox import phones
from tests.blackbox.gateway import until
from tests.blackbox.telegram import OPERATOR_ID, PATIENCE_S, bot, scene

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301010018dd8db0"
    "0000000049454e44ae426082"
)
OTHER_TOKEN = "7000002:AAExampleTokenOfTheScriptedServer_1"
SHORT_DRAIN = {"gateway__drain_timeout": "0.5"}


async def test_every_person_and_every_place_has_its_own_conversation() -> None:
    """The operator, a stranger who is let in, a group in which the bot is named, and the topics of a forum."""
    async with scene(home=str(OPERATOR_ID)) as here:
        eve = here.there.person(6006, "Eve")
        theirs, team = here.there.private(eve), here.there.group(-500, "Team")
        forum = here.there.group(-1_000_000_000_777, "Forum", "supergroup", topics={5: "Cats", 6: "Dogs"})
        await here.gateway.start()
        waiting = here.writes("may I?", theirs, eve)
        code = (await here.sees("with this code", theirs)).text.partition("code: ")[2].split()[0]
        asked = await here.sees("asks to be let in")
        here.there.says(team, here.ann, "this is between us")
        for text, chat, thread in (
            ("hello", here.hers, None),
            ("in the group", team, None),
            ("one", forum, 5),
            ("two", forum, 6),
        ):
            named = text if chat is here.hers else f"@holdfast_bot {text}"
            here.writes(named, chat, thread=thread)
        await here.answered(*(each for each in here.written if each is not waiting))
        assert not phones.answers(waiting)
        await here.gateway.run("pair", "approve", code)
        await here.verify()
        # The operator presses a button of a request that was decided elsewhere.
        here.there.presses(asked, here.ann, "Guest")
        await until(lambda: not asked.buttons, "the request says that it is settled", PATIENCE_S)
        assert len(here.model.requests) == len(here.written)


async def test_commands_are_answered_and_offered() -> None:
    async with scene() as here:
        await here.gateway.start()
        await here.answered(here.writes())
        for command, reply in (
            ("/status", "Its model is openai:scripted"),
            ("/model", "Choose with /model NAME"),
            ("/title Plans", "Plans"),
            ("/sessions", "Plans"),
            ("/new", "A new conversation begins"),
            ("/resume Plans", "Plans"),
            ("/nonsense", "/nonsense"),
        ):
            before = len(here.hers.texts)
            here.there.says(here.hers, here.ann, command)
            await until(lambda: len(here.hers.texts) > before, f"{command} is answered", PATIENCE_S)  # noqa: B023 - Awaited.
            assert reply in here.hers.texts[-1]
        assert {"new", "status", "resume"} <= {each["command"] for each in here.there.bot.commands}


async def test_what_the_agent_asks_is_decided_by_buttons() -> None:
    async with scene() as here:
        await here.gateway.start()
        colours = 'script: call ask_user {"question": "Which colour?", "choices": ["red", "blue"]} | say painted; result'
        here.there.says(here.hers, here.ann, colours)
        card = await here.sees("Which colour?")
        press = here.there.presses(card, here.ann, "blue")
        await here.sees("paintedblue")
        await until(lambda: not card.buttons, "the question says how it was settled", PATIENCE_S)
        assert card.text == "Which colour?\n\nblue"
        assert here.there.toasts[press.id] == "blue"
        command = 'script: call terminal {"command": "rm -rf nothing-here && echo done"} | result'
        here.there.says(here.hers, here.ann, command)
        asked = await here.sees("May I run this command")
        here.there.presses(asked, here.ann, "Once")
        await here.sees("Exit code 0")


async def test_a_message_that_waits_can_be_edited() -> None:
    async with scene() as here:
        await here.gateway.start()
        await here.begun(here.asks_to_count(30, 10))
        second = here.writes("as it was sent")
        await here.sees("Waiting behind another message…")
        here.there.edits(second.message, f"{second.nonce} as it was meant")
        await here.verify()
        assert "as it was meant" in phones.answers(second)[0].text


async def test_files_albums_and_long_texts_arrive_as_one_message_each() -> None:
    async with scene() as here:
        await here.gateway.start()
        attach, hers, ann = here.there.attaches, here.hers, here.ann
        attach(hers, ann, "photo", PNG, "a picture")
        attach(
            hers,
            ann,
            "document",
            b"what it says",
            "a file",
            file={"file_name": "a.txt", "mime_type": "text/plain"},
            extra={"media_group_id": "d"},
        )
        await here.sees("what it says")
        attach(hers, ann, "voice", b"OggS")
        await here.sees("voice-")
        for number in range(3):
            attach(hers, ann, "photo", PNG, f"album {number}", extra={"media_group_id": "a"})
        assert (await here.sees("album 2")).text.count("Attached: photo-") == 3
        # What people paste is cut by their own client at 4,096 units.
        pasted = " ".join(f"word{number:04d}" for number in range(700))
        here.there.says(hers, ann, pasted[:TEXT_MAX])
        here.there.says(hers, ann, pasted[TEXT_MAX:])
        await here.sees("word0699")
        assert here.model.requests[-1].body["messages"][-1]["content"].replace("\n", "") == pasted


async def test_a_long_answer_comes_in_parts_that_fit_with_whole_letters_and_code() -> None:
    """4,096 units of UTF-16 each; letters of two units stand at the border, and code goes on as code."""
    async with scene() as here:
        await here.gateway.start()
        code = "\n".join(f"print('😀 {number:04d}')" for number in range(300))
        written = here.writes(f"{'😀' * 3_000} and\n```python\n{code}\n```\nthe end")
        await here.sees("the end")
        parts = [each for each in here.hers.of_bot() if not phones.is_status(each)]
        assert len(parts) >= 3
        assert all(units(each.text) <= TEXT_MAX for each in parts)
        said = "".join(each.text for each in parts)
        assert said.startswith(written.nonce)
        assert said.count("😀") == 3_300
        assert "\ufffd" not in said
        with_code = [each for each in parts if "print(" in each.text]
        assert len(with_code) >= 2
        assert all(any(entity["type"] == "pre" for entity in each.entities) for each in with_code)


async def test_an_answer_that_was_cut_off_goes_on_by_its_button() -> None:
    """R1, R5, R9: after a crash the chat is told, after a stop it was told; the button works after any restart."""
    async with scene(settings=SHORT_DRAIN) as here:
        await here.gateway.start()
        first = here.asks_to_count(40, 20)
        await here.begun(first)
        await here.gateway.kill()
        await here.gateway.start()
        told = await here.sees("stopped while I was answering")
        here.there.presses(told, here.ann, "Go on")
        await here.answered(first)
        second = here.asks_to_count(80, 20)
        await here.begun(second)
        here.gateway.signal(signal.SIGTERM)
        assert await here.gateway.ended() == 0
        banner = await here.sees("shutting down")
        # Telegram keeps the press until the gateway is back.
        here.there.presses(banner, here.ann, "Go on")
        await here.gateway.start()
        await here.answered(second)
        await here.verify()
        assert (told.buttons, banner.buttons) == ([], [])
        assert sum("stopped while I was answering" in each for each in here.hers.texts) == 1


async def test_telegram_posts_to_a_gateway_that_does_not_poll() -> None:
    """Mode = webhook: what cannot be posted comes again, and what was posted twice is answered once."""

    def accounts(there: BotApiServer) -> dict[str, dict[str, object]]:
        return {"telegram": bot(there, mode="webhook", public_url="http://127.0.0.1:1")}

    async with scene(accounts=accounts) as here:
        settings = here.gateway.home / "holdfast.toml"
        settings.write_text(settings.read_text().replace('http://127.0.0.1:1"', f'{here.gateway.url}"'))
        await here.gateway.start()
        await until(lambda: here.there.bot.webhook, "the webhook is set", PATIENCE_S)
        await here.answered(here.writes())
        await here.gateway.kill()
        here.writes("while nobody is there")
        await until(lambda: here.there.bot.webhook_error[0], "a post fails", PATIENCE_S)
        await here.gateway.start()
        await here.verify()
        assert not here.there.bot.polled_at


async def test_two_bots_answer_each_in_its_own_chats() -> None:
    def accounts(there: BotApiServer) -> dict[str, dict[str, object]]:
        there.add_bot(OTHER_TOKEN, "Second", "second_bot")
        return {"telegram": bot(there), "work": bot(there, OTHER_TOKEN, allow=["2002"])}

    async with scene(accounts=accounts) as here:
        one, other = (here.there.group(number, str(number)) for number in (-1, -2))
        bob = here.there.person(2002, "Bob")
        await here.gateway.start()
        here.writes("@holdfast_bot here", one)
        here.writes("@second_bot here", other, bob)
        await here.verify()
        senders = [{each.sender.username for each in chat.of_bot()} for chat in (one, other)]
        assert senders == [{"holdfast_bot"}, {"second_bot"}]
        assert {each["state"] for each in (await here.accounts()).values()} == {"connected"}
