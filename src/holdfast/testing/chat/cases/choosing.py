"""What people decide beside questions: who is let in, what becomes of a backlog, whether an answer goes on.

They press a button where the platform has buttons; else they write its number.
"""

from __future__ import annotations

from holdfast.channels.chat.presses import GOING_ON
from holdfast.core.people import Choice
from holdfast.testing.chat.cases.asking import DRINKS
from holdfast.testing.chat.far_side import Impossible, Shown, Where, Who
from holdfast.testing.chat.played import Asking, InTwoSteps
from holdfast.testing.chat.world import Gateway, World, until

TWO_HOURS_MS = 2 * 3_600_000
BACKLOG = 6
REQUEST = "asks to be let in"
CUT_OFF = "The gateway stopped while I was answering"


async def a_stranger_is_let_in_with_a_button_or_a_number(world: World) -> None:
    async with world.gateway(home=_home(world)) as gateway:
        await world.far.write("let me in", Who.STRANGER)
        await _choose(world, await _offered(world, REQUEST), "Guest")
        await until(lambda: _is_shown(world, "You wrote: let me in", Who.STRANGER))
        assert await _decided(gateway) is Choice.GUEST
        assert gateway.agent.heard == ["let me in"]


async def a_stranger_does_not_decide_with_a_number(world: World) -> None:
    async with world.gateway(home=_home(world)) as gateway:
        await world.far.write("let me in", Who.STRANGER)
        await _offered(world, REQUEST)
        await world.far.write("3", Who.STRANGER)
        await until(gateway.is_idle)
        assert await _decided(gateway) is None
        assert gateway.agent.heard == []


async def a_number_decides_the_last_list_that_is_open_and_once(world: World) -> None:
    """A question is open while a stranger asks: a number that comes twice is for the stranger alone."""
    if world.can.buttons:
        raise Impossible("the kind declares buttons")
    async with world.gateway(Asking(DRINKS), stream="off", home=_home(world)) as gateway:
        await world.far.write("something to drink")
        question = await _offered(world, DRINKS.text)
        await world.far.write("let me in", Who.STRANGER)
        await _choose(world, await _offered(world, REQUEST), "Deny")
        await until(lambda: _is_shown(world, "is not let in"))
        await world.far.repeat()
        await until(gateway.is_idle)
        assert not await _is_shown(world, "So ")
        await _choose(world, question, "coffee")
        await until(lambda: _is_shown(world, "So coffee."))
        assert await _decided(gateway) is Choice.DENY
        assert gateway.agent.heard[:1] == ["something to drink"]
        assert "1" not in gateway.agent.heard


async def a_number_is_for_the_agent_once_nothing_is_open(world: World) -> None:
    async with world.gateway(home=_home(world)) as gateway:
        await world.far.write("let me in", Who.STRANGER)
        await _choose(world, await _offered(world, REQUEST), "Deny")
        await until(lambda: _has_decided(gateway))
        await world.far.write("1")
        await until(lambda: _is_shown(world, "You wrote: 1"))


async def a_backlog_is_decided_with_a_button_or_a_number(world: World) -> None:
    if not world.far.keeps_history:
        raise Impossible("the platform keeps nothing for a client that is away")
    for number in range(BACKLOG):
        await world.far.write(f"old {number}")
    world.clock.skip(TWO_HOURS_MS)
    async with world.gateway() as gateway:
        await _choose(world, await _offered(world, "came here while I was away"), "Answer the last")
        await until(lambda: gateway.agent.heard)
        await gateway.answered()
        (heard,) = gateway.agent.heard
        assert heard.endswith(f"old {BACKLOG - 1}")


async def an_answer_that_was_cut_off_goes_on_with_a_button_or_a_number(world: World) -> None:
    play = InTwoSteps("The answer is", " forty-two.")
    async with world.gateway(play, stream="off") as gateway:
        await world.far.write("what is it?")
        await until(lambda: gateway.has_said("The answer is"))
    async with world.gateway(play, resume="on_message", stream="off") as gateway:
        await world.reconnects(gateway)
        await _choose(world, await _offered(world, CUT_OFF), "Go on")
        await until(lambda: _is_shown(world, "forty-two."))
        assert world.can.buttons or await _is_shown(world, GOING_ON)


async def _offered(world: World, words: str) -> Shown:
    """Return the message of the operator's chat with these words, which offers choices."""

    async def look() -> Shown | None:
        return next((each for each in await world.shown() if words in each.text), None)

    return await until(look)


async def _choose(world: World, offer: Shown, label: str) -> None:
    if world.can.buttons:
        await world.far.press(world.me, offer.message_id, label)
        return
    assert offer.buttons == ()
    (number,) = [line.partition(".")[0] for line in offer.text.splitlines() if line.endswith(f". {label}")]
    await world.far.write(number)


async def _is_shown(world: World, words: str, who: Who = Who.OPERATOR) -> bool:
    return any(words in each for each in await world.texts(world.far.place(who, Where.PRIVATE)))


def _home(world: World) -> str:
    """Return the setting that makes the operator's chat the home chat."""
    return world.target(world.me).partition(":")[2]


async def _decided(gateway: Gateway) -> Choice | None:
    (pairing,) = await gateway.store.people.pairings()
    return pairing.decided


async def _has_decided(gateway: Gateway) -> bool:
    return await _decided(gateway) is not None
