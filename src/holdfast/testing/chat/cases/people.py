"""Who is answered, and where."""

from __future__ import annotations

from holdfast.channels.chat.gate import ANSWERS_MAX
from holdfast.core.chats import Consumed, MessagePart
from holdfast.core.intake import Inbound
from holdfast.core.people import Choice
from holdfast.testing.chat.far_side import Impossible, Where, Who
from holdfast.testing.chat.played import Held
from holdfast.testing.chat.world import ACCOUNT, Gateway, World, until


async def what_the_account_itself_writes_is_not_answered(world: World) -> None:
    await _is_not_answered(world, Who.ACCOUNT)


async def what_another_bot_writes_is_not_answered(world: World) -> None:
    await _is_not_answered(world, Who.OTHER_BOT)


async def _is_not_answered(world: World, who: Who) -> None:
    async with world.gateway() as gateway:
        await world.far.write("beep", who)
        await world.far.write("hello")
        await until(lambda: gateway.agent.heard)
        await until(gateway.is_idle)
        await gateway.answered()
        assert gateway.agent.heard == ["hello"]
        assert len(gateway.platform.of("send")) == 1


async def a_stranger_gets_a_code_and_is_answered_once_let_in(world: World) -> None:
    async with world.gateway() as gateway:
        place = world.far.place(Who.STRANGER, Where.PRIVATE)
        await world.far.write("let me in", Who.STRANGER)
        await until(lambda: world.texts(place))
        (pairing,) = await gateway.store.people.pairings()
        assert (pairing.user_id, pairing.place) == (world.far.user_ids[Who.STRANGER], place)
        told = "\n".join(await world.texts(place))
        assert len([word for word in told.split() if pairing.is_asked_by(word)]) == 1
        assert gateway.agent.heard == []
        await _let_in(gateway)
        assert (await world.texts(place))[-1] == "You wrote: let me in"


async def _let_in(gateway: Gateway) -> None:
    """Let the stranger in as a guest, and answer what was written first."""
    (pairing,) = await until(gateway.store.people.pairings)
    await gateway.store.people.decide(pairing.id, Choice.GUEST, "local", gateway.clock.now_ms())
    await until(lambda: gateway.agent.heard)
    await gateway.answered()


async def an_answer_goes_where_its_message_came_from(world: World) -> None:
    """Not to the place of the last message."""
    held = Held("first")
    async with world.gateway(held, stream="off") as gateway:
        await world.far.write("let me in", Who.STRANGER)
        await _let_in(gateway)
        await world.far.write("first")
        await until(lambda: "first" in gateway.agent.heard)
        place = world.far.place(Who.STRANGER, Where.PRIVATE)
        await world.far.write("elsewhere", Who.STRANGER)
        await until(lambda: _says(world, "You wrote: elsewhere"))
        held.release("first")
        await world.see("You wrote: first")
        assert "You wrote: first" not in await world.texts(place)


async def _says(world: World, text: str) -> bool:
    return text in await world.texts(world.far.place(Who.STRANGER, Where.PRIVATE))


async def in_a_group_only_what_mentions_the_account_is_answered(world: World) -> None:
    place = world.far.place(Who.OPERATOR, Where.GROUP)
    async with world.gateway() as gateway:
        await world.far.write("by the way", where=Where.GROUP)
        # Parts of one message arrive together, so what follows waits until that one was read.
        await world.far.write("hello")
        await world.see("You wrote: hello")
        await until(gateway.is_idle)
        await world.far.write("are you there?", where=Where.GROUP, mention=True)
        await until(lambda: len(gateway.agent.heard) > 1)
        _, turn = await gateway.answered()
        assert "are you there?" in gateway.agent.heard[1]
        assert "by the way" not in gateway.agent.heard[1]
        assert turn.reply_to == world.target(place)
        assert len(await world.texts(place)) == 1
        assert await world.texts() == ["You wrote: hello"]


async def a_stranger_in_a_group_is_not_answered(world: World) -> None:
    place = world.far.place(Who.STRANGER, Where.GROUP)
    async with world.gateway() as gateway:
        await world.far.write("are you there?", Who.STRANGER, Where.GROUP, mention=True)
        await world.far.write("hello")
        await world.see("You wrote: hello")
        await until(gateway.is_idle)
        assert gateway.agent.heard == ["hello"]
        assert await world.texts(place) == []
        assert await gateway.store.people.pairings() == []


async def a_thread_is_a_conversation_of_its_own(world: World) -> None:
    if not world.can.threads:
        raise Impossible("the kind declares no threads")
    group, thread = (world.far.place(Who.OPERATOR, where) for where in (Where.GROUP, Where.THREAD))
    async with world.gateway() as gateway:
        for where, place in ((Where.GROUP, group), (Where.THREAD, thread)):
            await world.far.write("are you there?", where=where, mention=True)
            await until(lambda place=place: world.texts(place))
        first, second = await gateway.answered()
        assert (first.reply_to, second.reply_to) == (world.target(group), world.target(thread))
        assert first.session_id != second.session_id
        assert len(await world.texts(group)) == len(await world.texts(thread)) == 1


async def a_chat_with_another_id_is_the_same_conversation(world: World) -> None:
    async with world.gateway() as gateway:
        await world.far.write("before", where=Where.GROUP, mention=True)
        await until(lambda: gateway.agent.heard)
        await gateway.answered()
        await world.far.move()
        place = world.far.place(Who.OPERATOR, Where.GROUP)
        await world.far.write("after", where=Where.GROUP, mention=True)
        await until(lambda: world.texts(place))
        first, second = await gateway.answered()
        assert first.session_id == second.session_id
        assert second.reply_to == world.target(place)


async def two_programs_do_not_answer_each_other_for_ever(world: World) -> None:
    async with world.gateway() as gateway:
        await world.far.write("let me in", Who.STRANGER)
        await _let_in(gateway)
        user_id = world.far.user_ids[Who.STRANGER]
        for number in range(ANSWERS_MAX):
            part = MessagePart(chat_id="earlier", message_id=str(number), position=0, length=1)
            earlier = Consumed(account=ACCOUNT, numbers=(), user_id=user_id, parts=(part,))
            await gateway.inbox.accept(
                Inbound(conversation=f"{ACCOUNT}:earlier", text="x", channel=ACCOUNT, verbatim=True, consumed=earlier)
            )
        await world.far.write("one more", Who.STRANGER)
        await until(lambda: _is_told_to_wait(world))
        assert "one more" not in gateway.agent.heard


async def _is_told_to_wait(world: World) -> bool:
    return any("again later" in each for each in await world.texts(world.far.place(Who.STRANGER, Where.PRIVATE)))
