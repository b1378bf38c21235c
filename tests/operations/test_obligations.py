"""What is remembered, sent and compacted, asked in this process over a real engine and store."""

from __future__ import annotations

import pytest

from holdfast.core.intake import Image
from holdfast.errors import IllegalMove, NotFound, Rejected
from holdfast.operations.memories import Remembered
from holdfast.operations.sessions import Message, Opening
from tests.engine.world import Open, opened, running_engine
from tests.operations.asking import Asking, said, services_of

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


async def test_memories_are_added_found_and_forgotten(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        memories = services_of(store, engine).memories
        added = await memories.add(Remembered(text="  likes the sea  "))
        assert added.text == "likes the sea"
        assert [each.id for each in (await memories.list(query="sea")).items] == [added.id]
        assert [each.id for each in (await memories.list()).items] == [added.id]
        other = services_of(store, engine, owner="somebody").memories
        assert (await other.list()).items == []
        with pytest.raises(NotFound):
            await other.remove(added.id)
        await memories.remove(added.id)
        assert (await memories.list()).items == []
        for nothing, reason in (("  ", "some text"), ("x" * 3_000, "at most 1,000"), ("\x1b[2J", "control character")):
            with pytest.raises(Rejected, match=reason):
                await memories.add(Remembered(text=nothing))


async def test_pictures_reach_the_turn_within_bounds(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        services = services_of(store, engine)
        session = await services.sessions.open(Opening(key="chat"))
        picture = Image(media_type="image/png", data=PNG)
        receipt = await services.sessions.send(session.id, Message(text="ask what it shows", images=(picture,)))
        assert await store.turns.images(receipt.turn_id) == [picture]
        for images, problem in (
            ([picture] * 5, "4 images at most"),
            ([Image(media_type="image/png", data=PNG + bytes(5 * 1024 * 1024))], "is the most"),
            ([Image(media_type="image/jpeg", data=PNG)], "not the image/jpeg it is said to be, but image/png"),
            ([Image(media_type="image/svg+xml", data=b"<svg/>")], "is not one of"),
            ([Image(media_type="image/gif", data=b"")], "but no image"),
        ):
            with pytest.raises(Rejected, match=problem):
                await services.sessions.send(session.id, Message(text="look", images=tuple(images)))


async def test_compacting_is_a_turn_of_an_open_session(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        services = services_of(store, engine)
        session = await services.sessions.open(Opening(key="chat"))
        receipt = await services.sessions.compact(session.id)
        assert await said(services, receipt.turn_id) == "compacted"
        await services.sessions.end(session.id)
        with pytest.raises(IllegalMove, match="is ended: it cannot be compacted"):
            await services.sessions.compact(session.id)
