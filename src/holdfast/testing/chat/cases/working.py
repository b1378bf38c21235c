"""What a chat shows while the agent works: as much as the platform can."""

from __future__ import annotations

from holdfast.channels.chat.status_line import DONE
from holdfast.core.delivery import DeliveryState
from holdfast.testing.chat.played import Held, InTwoSteps
from holdfast.testing.chat.world import World, until

# Longer than an answer may take that needs no status line, and than the pause between two edits.
LONG_MS = 4_000


async def a_status_line_says_what_happens_and_ends_with_the_answer(world: World) -> None:
    held = Held("first", "second")
    async with world.gateway(held) as gateway:
        await world.far.write("first")
        await until(lambda: gateway.agent.heard)
        await world.far.write("second")
        await until(lambda: gateway.turns_at_least(2))
        world.clock.skip(LONG_MS)
        await _lines(world, "Waiting behind another message…", "Working…")
        held.release("first")
        await until(lambda: len(gateway.agent.heard) > 1)
        world.clock.skip(LONG_MS)
        await _lines(world, "Working…", after=1)
        held.release("second")
        await gateway.answered()
        await _lines(world, after=2)


async def _lines(world: World, *lines: str, after: int = 0) -> None:
    """Return once people see these status lines, and the answers to so many messages."""
    answers = [f"You wrote: {each}" for each in ("first", "second")[:after]]
    closed = [] if world.can.deletes else [DONE] * after
    expected = sorted([*answers, *closed, *lines] if world.can.edits else answers)
    await until(lambda: _is_shown(world, expected))


async def _is_shown(world: World, expected: list[str]) -> bool:
    return sorted(await world.texts()) == expected


async def typing_is_shown_while_the_agent_works(world: World) -> None:
    held = Held("hello")
    async with world.gateway(held, stream="off") as gateway:
        await world.far.write("hello")
        await until(lambda: gateway.agent.heard)
        if world.can.typing:
            await until(lambda: world.far.typing(world.me))
        held.release("hello")
        await world.see("You wrote: hello")
        assert world.can.typing or not gateway.platform.of("type")


async def an_answer_grows_in_one_message_where_messages_can_be_edited(world: World) -> None:
    """The id of the message is durable before it is edited, so that after a crash the same one is completed."""
    play = InTwoSteps("The answer is", " forty-two.")
    async with world.gateway(play, stream="edit") as gateway:

        async def is_known(message_id: str) -> None:
            assert await gateway.knows(message_id)

        gateway.platform.before_edit = is_known
        await world.far.write("hello")
        await until(lambda: gateway.has_said("The answer is"))
        world.clock.skip(LONG_MS)
        begun = (await world.see("The answer is"))[0].message_id if world.can.edits else None
        play.release()
        (shown,) = await world.see("The answer is forty-two.")
        sent = await gateway.delivery(DeliveryState.DELIVERED)
        assert sent.receipt == shown.message_id
        assert begun in (None, shown.message_id)
        assert len(gateway.platform.of("send")) == 1


async def a_growing_answer_that_was_cut_off_is_completed_in_its_message(world: World) -> None:
    play = InTwoSteps("The answer is", " forty-two.")
    async with world.gateway(play, stream="edit") as gateway:
        await world.far.write("hello")
        await until(lambda: gateway.has_said("The answer is"))
        world.clock.skip(LONG_MS)
        if world.can.edits:
            (shown,) = await world.see("The answer is")
            await until(lambda: gateway.knows(shown.message_id))
    async with world.gateway(play, stream="edit") as gateway:
        await until(lambda: gateway.agent.heard)
        await gateway.answered()
        await world.see("The answer is forty-two.")
