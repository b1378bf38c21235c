"""What the gateway sends arrives once, whole and in its order, or is known not to have arrived."""

from __future__ import annotations

from holdfast.channels.chat.port import Outgoing
from holdfast.core.delivery import REPEAT_LABEL, DeliveryState, Extra, KeptFile, notice
from holdfast.errors import Unavailable
from holdfast.testing.chat.far_side import Failure, Impossible
from holdfast.testing.chat.played import Saying
from holdfast.testing.chat.world import World, until

FLOOD_S = 200
# Longer than the first wait after a refusal, and than that before a repeat.
BACKOFF_MS = 2_000
HELLO = "You wrote: hello"


async def a_long_answer_comes_in_parts_that_fit(world: World) -> None:
    """D3: no character is cut in two, in any unit that the platform counts."""
    size = world.can.message_size
    answer = "a" + "😀" * (size.most if size else 20_000)
    async with world.gateway(Saying(answer)) as gateway:
        await world.far.write("hello")
        await until(lambda: gateway.agent.heard)
        (turn,) = await gateway.answered()
        shown = await world.shown()
        assert "".join(each.text for each in shown) == answer
        assert all(size is None or size.fits(each.text) for each in shown)
        assert (len(shown) > 1) == (size is not None)
        sent = await gateway.store.deliveries.of_turn(turn.id)
        assert [each.receipt for each in sent] == [each.message_id for each in shown]


async def code_that_is_cut_is_code_in_each_part(world: World) -> None:
    """D3"""
    size = world.can.message_size
    lines = [f"line {number}" for number in range(1 + (size.most if size else 4_000) // 5)]
    async with world.gateway(Saying("\n".join(["Look:", "```", *lines, "```"]))) as gateway:
        await world.far.write("hello")
        await until(lambda: gateway.agent.heard)
        await gateway.answered()
        texts = await world.texts()
        assert all(each.count("```") == 2 for each in texts)
        assert [line for each in texts for line in each.splitlines() if line.startswith("line")] == lines


async def a_platform_that_wants_a_pause_gets_exactly_that(world: World) -> None:
    """The content is not changed, and nothing else is sent to that chat either."""
    async with world.gateway() as gateway:
        await world.far.fail(Failure.FLOOD, FLOOD_S)
        earliest = world.clock.now_ms()
        await world.far.write("hello")
        waiting = await gateway.delivery(DeliveryState.RETRY)
        assert earliest <= waiting.due_at - FLOOD_S * 1_000 <= world.clock.now_ms()
        (refused,) = gateway.platform.of("send")
        assert isinstance(refused.error, Unavailable)
        assert refused.error.retry_after_s == FLOOD_S
        before = [each for each in gateway.platform.calls if each.place == world.me]
        world.clock.skip(FLOOD_S * 1_000 - 10_000)
        await world.far.write("and this")
        await until(lambda: len(gateway.agent.heard) > 1)
        assert [each for each in gateway.platform.calls if each.place == world.me] == before
        world.clock.skip(10_000)
        await world.see(HELLO, "You wrote: and this")
        await gateway.answered()
        assert {each.key for each in gateway.platform.of("send") if each.text == HELLO} == {refused.key}


async def what_a_platform_did_not_take_is_sent_again(world: World) -> None:
    """D1: a refusal is certain, so the second try has no label."""
    async with world.gateway() as gateway:
        await world.far.fail(Failure.DOWN)
        await world.far.write("hello")
        await gateway.delivery(DeliveryState.RETRY)
        assert await world.texts() == []
        world.clock.skip(BACKOFF_MS)
        await world.see(HELLO)
        await gateway.answered()
        first, second = gateway.platform.of("send")
        assert first.key == second.key


async def what_may_have_arrived_is_repeated_once_with_a_label(world: World) -> None:
    """D1"""
    async with world.gateway() as gateway:
        await world.far.fail(Failure.LOST)
        await world.far.write("hello")
        await until(lambda: gateway.platform.of("send"))
        world.clock.skip(BACKOFF_MS)
        await world.see(*_repeated(world))
        await gateway.answered()
        assert len(gateway.platform.of("send")) == 2


async def what_was_being_sent_at_a_crash_is_repeated_once_with_a_label(world: World) -> None:
    """D1 D2: the platform took it, and its receipt was not stored."""
    async with world.gateway() as gateway:
        await world.far.fail(Failure.SILENT)
        await world.far.write("hello")
        await world.see(HELLO)
        await gateway.delivery(DeliveryState.SENDING)
    async with world.gateway() as gateway:
        await world.see(*_repeated(world))
        await gateway.answered()
        assert gateway.agent.heard == []
        assert len(gateway.platform.of("send")) == 1


def _repeated(world: World) -> list[str]:
    return [HELLO] if world.far.drops_repeats else [HELLO, f"{REPEAT_LABEL} {HELLO}"]


async def a_chat_that_is_closed_for_good_is_not_tried_again(world: World) -> None:
    async with world.gateway() as gateway:
        await world.far.fail(Failure.BLOCKED)
        await world.far.write("hello")
        failed = await gateway.delivery(DeliveryState.FAILED)
        (refused,) = gateway.platform.of("send")
        assert failed.error == str(refused.error)
        assert await world.texts() == []


async def a_file_is_sent_where_the_platform_takes_files(world: World) -> None:
    async with world.gateway() as gateway:
        # A platform may let nothing be sent to people who have not written.
        await world.far.write("hello")
        await world.see(HELLO)
        now = world.clock.now_ms()
        kept = await gateway.store.kept_files.keep(b"forty-two", now)
        extra = Extra(file=KeptFile(id=kept, name="notes.txt", media_type="text/plain", bytes=9))
        (sent,) = await gateway.store.deliveries.notify(
            notice("file", "local", world.target(world.me), ["here"], now, extra)
        )
        if world.can.files_out:
            _, shown = await world.see(HELLO, "here")
            assert shown.file == b"forty-two"
        else:
            await until(lambda: gateway.is_sent(sent.id, DeliveryState.FAILED))
            assert await world.texts() == [HELLO]


async def an_edit_that_changes_nothing_is_no_error(world: World) -> None:
    if not world.can.edits:
        raise Impossible("the kind declares no edits")
    async with world.gateway() as gateway:
        await world.far.write("hello")
        (shown,) = await world.see(HELLO)
        for _ in range(2):
            await gateway.platform.edit(world.me, shown.message_id, Outgoing(text="It says something else."))
        assert await world.texts() == ["It says something else."]


async def a_deletion_of_what_is_gone_is_no_error(world: World) -> None:
    if not world.can.deletes:
        raise Impossible("the kind declares no deletes")
    async with world.gateway() as gateway:
        await world.far.write("hello")
        (shown,) = await world.see(HELLO)
        for _ in range(2):
            await gateway.platform.delete(world.me, shown.message_id)
        assert await world.texts() == []
