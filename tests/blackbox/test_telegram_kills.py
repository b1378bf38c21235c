"""The gateway is killed beside any call of the Bot API, and people get every answer once, or a repeat that says so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

import pytest

from holdfast.drill.telegram.server import Moment
from tests.blackbox import phones
from tests.blackbox.gateway import until
from tests.blackbox.phones import Written
from tests.blackbox.telegram import OPERATOR_ID, PATIENCE_S, Fuse, Scene, scene

# What was cut off goes on by itself, so that every message is answered in the end.
GOES_ON = {"gateway__resume": "auto"}
# More calls than any of these scenes makes.
CALLS_MAX = 60

Story = Callable[[Scene], Awaitable[None]]


async def quick(here: Scene) -> None:
    """Messages in two chats, which are answered at once."""
    team = here.there.group(-77, "Team")
    here.writes()
    here.writes("@holdfast_bot in the group", team)
    await here.answered()


async def slow(here: Scene) -> None:
    """An answer that takes long, and a message that waits behind it."""
    first = here.asks_to_count(30, 10)
    # They are two messages, and not the parts of one.
    await here.begun(first)
    here.writes("and this")
    await here.answered()


async def asked(here: Scene) -> None:
    """A question that is answered by its button."""
    nonce = here.nonce()
    asking = f"Colour {nonce[1:]}?"
    script = f'{nonce} script: call ask_user {{"question": "{asking}", "choices": ["red", "blue"]}} | say {nonce}; result'
    said = here.there.says(here.hers, here.ann, script)
    card = await here.sees(asking)
    here.there.presses(card, here.ann, "blue")
    here.written.append(Written(nonce, said, f"{nonce}blue"))
    await here.answered()


async def stranger(here: Scene) -> None:
    """A stranger asks to be let in, and the operator presses a button."""
    number = 6_000 + len(here.there.people)
    person = here.there.person(number, f"Eve{number}")
    theirs = here.there.private(person)
    waiting = here.writes("may I?", theirs, person)
    request = await here.sees(f"Eve{number} ({number}) asks to be let in")
    here.there.presses(request, here.ann, "Guest")
    await here.answered(waiting)


async def is_killed(here: Scene, story: Story, fuse: Fuse) -> bool:
    """Play a story with a fuse, and once more from where it stands after the kill; False if the fuse did not burn."""
    fuse.lit()
    playing = asyncio.create_task(_played(here, story))
    burning = asyncio.create_task(until(lambda: fuse.burned, "the fuse burns", 2 * PATIENCE_S))
    await asyncio.wait({playing, burning}, return_when=asyncio.FIRST_COMPLETED)
    burning.cancel()
    fuse.out()
    if fuse.burned:
        await here.gateway.ended()
        await here.gateway.start()
    await playing
    await here.verify(status_lines_lost=fuse.lost_status_line)
    return bool(fuse.burned)


async def _played(here: Scene, story: Story) -> None:
    await story(here)
    await here.rests()


async def goes_through_every_kill(story: Story, moment: Moment, **account: object) -> None:
    async with scene(settings=GOES_ON, home=str(OPERATOR_ID), **account) as here:
        await here.gateway.start()
        for nth in count(1):
            assert nth < CALLS_MAX
            if not await is_killed(here, story, Fuse(here, nth, moment)):
                assert nth > 1
                return
            here.forget_status_lines()


@pytest.mark.long
@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("story", [quick, slow, asked, stranger])
async def test_killed_beside_any_call_everything_is_answered_once(story: Story, moment: Moment) -> None:
    """D1, R9, R10: before Telegram did it, behind it, and when it was told so."""
    await goes_through_every_kill(story, moment)


@pytest.mark.long
@pytest.mark.parametrize("moment", Moment)
async def test_killed_beside_any_call_a_growing_answer_is_completed_where_it_grows(moment: Moment) -> None:
    """D1: with stream = edit, what was shown is completed, or repeated with a label."""
    await goes_through_every_kill(slow, moment, stream="edit")


async def test_killed_beside_the_calls_that_matter_everything_is_answered_once() -> None:
    """D1, R9, R10: between receive and stage, before and after Telegram took an answer; the short form of the above."""
    async with scene(settings=GOES_ON, home=str(OPERATOR_ID)) as here:
        await here.gateway.start()
        for moment, method in (
            (Moment.DONE, "getUpdates"),
            (Moment.ANSWERED, "getUpdates"),
            (Moment.ARRIVED, "sendMessage"),
            (Moment.DONE, "sendMessage"),
        ):
            assert await is_killed(here, quick, Fuse(here, 1, moment, method))
        labelled = [each for chat in here.chats for each in chat.texts if each.startswith(phones.LABEL)]
        assert labelled, "the checker has seen a repeat"


async def test_killed_while_an_answer_grows_it_is_completed_in_the_same_message() -> None:
    """D1: the one message has the whole answer, and is the only one."""
    async with scene(settings=GOES_ON, stream="edit") as here:
        await here.gateway.start()
        assert await is_killed(here, slow, Fuse(here, 1, Moment.DONE, "editMessageText"))
        assert not any(each.startswith(phones.LABEL) for each in here.hers.texts)
