"""The board: whoever watches sees how each session is now, however slowly they look and whatever hint was lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest

from holdfast.core.sessions import Glance, SessionDeleted, SessionsMissed
from holdfast.engine import board
from holdfast.engine.board import BACKLOG_MAX, Board, Sight
from holdfast.ids import SessionId, new_session_id
from holdfast.store.store import Store
from tests.engine.world import DEADLINE_S, Open, opened


async def made(store: Store, key: str, owner: str = "local") -> SessionId:
    return (await store.sessions.open(owner, key, "web", new_session_id(1), 1)).id


@asynccontextmanager
async def at_work(store: Store) -> AsyncIterator[Board]:
    """A board that hears nothing but what the test tells it."""
    found = Board(store.sessions)
    running = asyncio.create_task(found.run())
    yield found
    running.cancel()


async def following(watched: AsyncGenerator[Sight]) -> Sight:
    async with asyncio.timeout(DEADLINE_S):
        return await anext(watched)


async def test_a_hint_that_was_lost_is_made_up_for(open_it: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause between two looks unasked is shortened."""
    monkeypatch.setattr(board, "LOOK_MS", 50)
    async with opened(open_it) as store, at_work(store) as here, aclosing(here.watch("local")) as watched:
        assert await following(watched) == SessionsMissed()
        session_id, _ = await made(store, "one"), await made(store, "other", "somebody else")
        found = await following(watched)
        assert isinstance(found, Glance)
        assert found.session.id == session_id
        await store.settlement.end_session(session_id, "done", 2)
        found = await following(watched)
        assert isinstance(found, Glance)
        assert found.session.end_reason == "done"


async def test_what_was_shown_is_not_shown_again_until_it_differs(open_it: Open) -> None:
    async with opened(open_it) as store, at_work(store) as here, aclosing(here.watch("local")) as watched:
        assert await following(watched) == SessionsMissed()
        first, second = await made(store, "one"), await made(store, "two")
        here.hint(first)
        sights = [await following(watched)]
        here.hint(first)
        here.hint(second)
        sights.append(await following(watched))
        await store.sessions.change(first, title="another")
        here.hint(first)
        sights.append(await following(watched))
        shown = [(each.session.id, each.session.title) for each in sights if isinstance(each, Glance)]
        assert shown == [(first, None), (second, None), (first, "another")]


async def test_whoever_is_too_slow_is_told_to_look_for_themselves(open_it: Open) -> None:
    async with opened(open_it) as store, at_work(store) as here:
        async with aclosing(here.watch("local")) as slow, aclosing(here.watch("somebody else")) as other:
            assert [await following(slow), await following(other)] == [SessionsMissed(), SessionsMissed()]
            for number in range(BACKLOG_MAX):
                here.gone(SessionId(f"ses_{number % 7}"), "local")
            assert [await following(slow) for _ in range(7)] == [
                SessionDeleted(id=SessionId(f"ses_{number}")) for number in range(7)
            ]
            for number in range(BACKLOG_MAX + 1):
                here.gone(SessionId(f"ses_{number}"), "local")
            assert await following(slow) == SessionsMissed()
            here.miss()
            assert await following(other) == SessionsMissed()
        assert here._audiences == {}
