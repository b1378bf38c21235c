"""The drill through Telegram: it ends lives while people write, and notices what is wrong on their phones."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from holdfast.core.delivery import REPEAT_LABEL
from holdfast.drill.chat_drill import drill_chats, settle
from holdfast.drill.chat_verdict import judge
from holdfast.drill.ends import Ends
from holdfast.drill.people import Crowd
from holdfast.drill.telegram.chats import Chat
from holdfast.drill.telegram.server import telegram
from holdfast.store.opening import open_store


def test_whatever_ends_the_gateway_each_message_is_answered_once_in_its_chat(store_url: str, tmp_path: Path) -> None:
    """A1 A2 D1 D2 D3 X1 R2 R4: kills, and a stop that gives running turns too little time, while people write."""
    done: list[int] = []
    verdict = drill_chats(tmp_path, store_url, 3, 7, done.append)
    assert verdict.violations == []
    assert (verdict.kills, verdict.sigkills, verdict.sigterms) == (3, 2, 1)
    assert done == [1, 2, 3]
    assert verdict.answered + verdict.joined + verdict.given_up == verdict.written
    assert verdict.shown >= verdict.answered >= verdict.chats


@pytest.mark.long
def test_fifty_ends_of_a_gateway_that_people_write_to(store_url: str, tmp_path: Path) -> None:
    """A1 A2 D1 D2 D3 X1 R2 R4."""
    assert drill_chats(tmp_path, store_url, 50, 11, lambda _: None).violations == []


@contextlib.contextmanager
def says_more(chat: Chat, text: str, *, is_quiet: bool = False) -> Generator[None]:
    message = chat.add(chat.of_bot()[0].sender, text=text, is_quiet=is_quiet)
    yield
    del chat.messages[message.id]


@contextlib.contextmanager
def shows_nothing(chat: Chat) -> Generator[None]:
    chat.of_bot()[-1].is_deleted = True
    yield
    list(chat.messages.values())[-1].is_deleted = False


@contextlib.contextmanager
def says(chat: Chat, *texts: str) -> Generator[None]:
    messages = chat.of_bot()
    before = [each.text for each in messages]
    for message, text in zip(messages, texts, strict=True):
        message.text = text
    yield
    for message, text in zip(messages, before, strict=True):
        message.text = text


@contextlib.contextmanager
def wrote_more(crowd: Crowd) -> Generator[None]:
    crowd.say_one_more(7)
    yield
    del crowd.written[-len(crowd.chats) :]


async def test_what_is_wrong_on_a_phone_is_noticed(tmp_path: Path) -> None:
    """A1 D1 D2 D3: an answer twice, elsewhere, changed, out of order or missing, and words that no row has."""
    async with telegram() as server:
        crowd = Crowd(server, random.Random(0))
        for nth in (1, 2):
            crowd.say_one_more(nth)
            await settle(tmp_path, "sqlite", nth, server)
        store = await open_store("sqlite", tmp_path)
        here, there = crowd.chats[:2]
        first, last = here.texts
        unknown = "D1 shown in telegram:1001, and in no row"
        wrong: list[tuple[Callable[[], contextlib.AbstractContextManager[None]], set[str]]] = [
            (contextlib.nullcontext, set()),
            (
                lambda: says_more(here, last),
                {unknown, "D1 answered 2 times, and 0 times"},
            ),
            (
                lambda: says_more(there, last),
                {"D1 shown in telegram:1002", "D1 answered in another chat: n0x2"},
            ),
            (lambda: says_more(here, f"{REPEAT_LABEL} {last}"), {unknown}),
            (lambda: says_more(here, "Working…", is_quiet=True), {f"{unknown}: 'Working…'"}),
            (lambda: shows_nothing(here), {"D1 recorded as delivered, and not shown", "D1 never answered: n0x2"}),
            (lambda: says(here, first, f"{last}!"), {"D1 dlv_"}),
            (lambda: says(here, last, first), {"D1 dlv_", "D3 n0x2 was answered before n0x1"}),
            (lambda: wrote_more(crowd), {"A1 written and lost"}),
        ]
        for change, expected in wrong:
            with change():
                found = (await judge(store, tmp_path, crowd, Ends())).violations
            assert {each for each in expected if any(said.startswith(each) for said in found)} == expected, found
            assert [said for said in found if not any(said.startswith(each) for each in expected)] == []
        await store.close()
