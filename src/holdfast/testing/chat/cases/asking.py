"""Questions: with buttons where the platform has them, else answered with a number."""

from __future__ import annotations

from holdfast.channels.chat.presses import NOT_YOURS
from holdfast.core.delivery import DeliveryState
from holdfast.core.questions import Question
from holdfast.testing.chat.far_side import Impossible, Shown, Where, Who
from holdfast.testing.chat.played import Asking
from holdfast.testing.chat.world import Gateway, World, until

DRINKS = Question(id="drink", text="Tea or coffee?", choices=("tea", "coffee"))
ANSWER = "So coffee."


async def _asked(world: World, gateway: Gateway) -> Shown:
    """Return the message that asks, once it is there and its id is durable."""
    await gateway.delivery(DeliveryState.DELIVERED)
    (shown,) = await world.shown()
    assert shown.text.startswith(DRINKS.text)
    if world.can.buttons:
        assert shown.buttons == DRINKS.choices
    else:
        assert shown.buttons == ()
        assert "1. tea\n2. coffee" in shown.text
    return shown


async def _choose_coffee(world: World, shown: Shown) -> None:
    if world.can.buttons:
        await world.far.press(world.me, shown.message_id, "coffee")
    else:
        await world.far.write("2")


async def _answered(world: World) -> None:
    """Return once the answer is there, and the question says how it was settled, where it can be edited."""
    await until(lambda: _is_answered(world))


async def _is_answered(world: World) -> bool:
    question, *rest = await world.shown()
    says_how = not world.can.edits or ("coffee" in question.text.removeprefix(DRINKS.text) and not question.buttons)
    return says_how and [each.text for each in rest] == [ANSWER]


async def a_question_is_answered_by_a_button_or_a_number(world: World) -> None:
    async with world.gateway(Asking(DRINKS), stream="off") as gateway:
        await world.far.write("something to drink")
        await _choose_coffee(world, await _asked(world, gateway))
        await _answered(world)


async def a_question_is_answered_after_a_restart(world: World) -> None:
    async with world.gateway(Asking(DRINKS), stream="off") as gateway:
        await world.far.write("something to drink")
        shown = await _asked(world, gateway)
    async with world.gateway(Asking(DRINKS), stream="off") as gateway:
        await world.reconnects(gateway)
        await _choose_coffee(world, shown)
        await _answered(world)


async def a_second_press_is_told_how_the_first_settled_it(world: World) -> None:
    if not world.can.buttons:
        raise Impossible("the kind declares no buttons")
    if not world.far.keeps_history:
        raise Impossible("the platform keeps nothing for a client that is away")
    async with world.gateway(Asking(DRINKS), stream="off") as gateway:
        await world.far.write("something to drink")
        shown = await _asked(world, gateway)
    for label in ("coffee", "tea"):
        await world.far.press(world.me, shown.message_id, label)
    async with world.gateway(Asking(DRINKS), stream="off"):
        await _answered(world)
        told = await until(lambda: _told(world, 2))
        assert told == ["coffee", "This is settled already: coffee"]


async def a_stranger_in_a_group_decides_nothing(world: World) -> None:
    if not world.can.buttons:
        raise Impossible("the kind declares no buttons")
    place = world.far.place(Who.OPERATOR, Where.GROUP)
    async with world.gateway(Asking(DRINKS), stream="off"):
        await world.far.write("something to drink", where=Where.GROUP, mention=True)
        (shown,) = await until(lambda: world.shown(place))
        await world.far.press(place, shown.message_id, "tea", Who.STRANGER)
        assert await until(lambda: _told(world, 1)) == [NOT_YOURS]
        await world.far.press(place, shown.message_id, "coffee")
        await until(lambda: _says(world))


async def _told(world: World, times: int) -> list[str]:
    told = list(await world.far.told())
    return told if len(told) == times else []


async def _says(world: World) -> bool:
    return ANSWER in await world.texts(world.far.place(Who.OPERATOR, Where.GROUP))
