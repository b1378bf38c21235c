"""What people do becomes durable once, in its order, also if the connection or the gateway fails."""

from __future__ import annotations

from dataclasses import replace

from holdfast.core.chats import AccountState
from holdfast.core.turns import TurnState
from holdfast.testing.chat.far_side import Impossible
from holdfast.testing.chat.played import Held
from holdfast.testing.chat.world import TIMING, World, until


async def a_message_is_answered_in_its_chat(world: World) -> None:
    async with world.gateway() as gateway:
        await world.far.write("hello")
        await world.see("You wrote: hello")
        (turn,) = await gateway.turns()
        assert turn.reply_to == world.target(world.me)


async def what_is_reported_twice_is_answered_once(world: World) -> None:
    """A3"""
    async with world.gateway() as gateway:
        await world.far.write("hello")
        await world.see("You wrote: hello")
        await world.far.repeat()
        await world.far.write("and again")
        await world.see("You wrote: hello", "You wrote: and again")
        assert gateway.agent.heard == ["hello", "and again"]


async def messages_in_the_wrong_order_are_each_answered_once(world: World) -> None:
    async with world.gateway() as gateway:
        async with world.far.backwards():
            await world.far.write("first")
            await world.far.write("second")
        await until(lambda: len("\n".join(gateway.agent.heard).split()) > 1)
        await gateway.answered()
        assert sorted("\n".join(gateway.agent.heard).split()) == ["first", "second"]


async def an_edit_that_comes_before_its_message_is_what_the_message_says(world: World) -> None:
    async with world.gateway() as gateway:
        async with world.far.backwards():
            message_id = await world.far.write("as it was")
            await world.far.edit(world.me, message_id, "as it is")
        await world.see("You wrote: as it is")
        assert gateway.agent.heard == ["as it is"]


async def an_edit_changes_a_message_that_waits(world: World) -> None:
    held = Held("first")
    async with world.gateway(held, stream="off") as gateway:
        await world.far.write("first")
        await until(lambda: gateway.agent.heard)
        message_id = await world.far.write("second")
        second = (await until(lambda: gateway.turns_at_least(2)))[1]
        await world.far.edit(world.me, message_id, "corrected")
        await until(lambda: gateway.asks(second, "corrected"))
        held.release("first")
        await world.see("You wrote: first", "You wrote: corrected")


async def a_message_that_is_deleted_while_it_waits_is_not_answered(world: World) -> None:
    held = Held("first")
    async with world.gateway(held, stream="off") as gateway:
        await world.far.write("first")
        await until(lambda: gateway.agent.heard)
        message_id = await world.far.write("never mind")
        await until(lambda: gateway.turns_at_least(2))
        await world.far.delete(world.me, message_id)
        await until(lambda: gateway.is_in(1, TurnState.CANCELLED))
        held.release("first")
        await gateway.answered()
        assert gateway.agent.heard == ["first"]


async def what_did_not_become_durable_is_reported_again(world: World) -> None:
    """A2: a platform is told only after the commit."""
    async with world.gateway() as gateway:
        gateway.platform.batches_to_drop = 1
        await world.far.write("hello")
        await world.see("You wrote: hello")
        assert gateway.platform.batches_to_drop == 0
        assert gateway.agent.heard == ["hello"]


async def what_is_written_while_the_gateway_is_away_is_answered_later_and_nothing_twice(world: World) -> None:
    """A1"""
    async with world.gateway() as gateway:
        await world.far.write("before")
        await world.see("You wrote: before")
        await gateway.answered()
    if not world.far.keeps_history:
        raise Impossible("the platform keeps nothing for a client that is away")
    await world.far.write("meanwhile")
    async with world.gateway() as later:
        await world.see("You wrote: before", "You wrote: meanwhile")
        assert later.agent.heard == ["meanwhile"]


async def a_connection_that_ends_is_made_again(world: World) -> None:
    async with world.gateway() as gateway:
        await world.far.write("before")
        await world.see("You wrote: before")
        connects = len(gateway.platform.of("identify"))
        await world.far.disconnect()
        await world.reconnects(gateway, connects)
        await world.far.write("after")
        await world.see("You wrote: before", "You wrote: after")


async def a_connection_that_brings_nothing_is_made_again(world: World) -> None:
    async with world.gateway(timing=replace(TIMING, deaf_ms=1_000)) as gateway:
        await world.far.write("before")
        await world.see("You wrote: before")
        connects = len(gateway.platform.of("identify"))
        await world.far.fall_silent()
        await world.reconnects(gateway, connects)
        await world.far.write("after")
        await world.see("You wrote: before", "You wrote: after")
        assert len(gateway.platform.of("identify")) > connects


async def another_program_that_receives_is_named(world: World) -> None:
    async with world.gateway() as gateway:
        await world.far.write("before")
        await world.see("You wrote: before")
        async with world.far.rival():
            await until(lambda: gateway.has_state(AccountState.TAKEN))
            assert "another program receives" in (await gateway.record()).problem
        await world.reconnects(gateway)
        await world.far.write("after")
        await world.see("You wrote: before", "You wrote: after")
        record = await gateway.record()
        assert (record.state, record.problem) == (AccountState.CONNECTED, "")


async def a_file_is_fetched_and_named_to_the_agent(world: World) -> None:
    if not world.can.files_in:
        raise Impossible("the kind declares no files_in")
    async with world.gateway() as gateway:
        await world.far.attach("look", "notes.txt", "text/plain", b"forty-two")
        await until(lambda: gateway.agent.heard)
        (heard,) = gateway.agent.heard
        assert heard.startswith("look\n")
        assert "notes.txt (text/plain, 9 bytes)" in heard
        assert heard.endswith("forty-two")


async def a_command_is_answered_without_the_agent(world: World) -> None:
    async with world.gateway() as gateway:
        await world.far.write("/help")
        await until(world.texts)
        await world.far.write("hello")
        await until(lambda: gateway.agent.heard)
        assert gateway.agent.heard == ["hello"]
