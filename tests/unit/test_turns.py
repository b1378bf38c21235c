"""What follows an interruption, over every mode, every policy and every number of strikes."""

from __future__ import annotations

from itertools import product

import pytest

from holdfast.core.sessions import STRIKES_MAX
from holdfast.core.turns import Aftermath, Mode, Resume, Turn, after_loss

# One column per number of strikes, 0 to 5.  The mode decides, the policy only for conversations, the third strike always.
FATES = """
    conversation  on_message  rest     rest     rest     give_up  give_up  give_up
    conversation  auto        continue continue continue give_up  give_up  give_up
    detached      on_message  continue continue continue give_up  give_up  give_up
    detached      auto        continue continue continue give_up  give_up  give_up
    synchronous   on_message  rest     rest     rest     give_up  give_up  give_up
    synchronous   auto        rest     rest     rest     give_up  give_up  give_up
"""
CASES = [
    (mode, resume, strikes, fate)
    for mode, resume, *fates in map(str.split, FATES.strip().splitlines())
    for strikes, fate in enumerate(fates)
]


@pytest.mark.parametrize(("mode", "resume", "strikes", "fate"), CASES)
def test_an_interruption_has_the_fate_that_was_promised(mode: str, resume: str, strikes: int, fate: str) -> None:
    """S2, R8, R9, R10."""
    assert after_loss(Mode(mode), Resume(resume), strikes) is Aftermath(fate)


def test_the_table_of_fates_is_complete() -> None:
    assert {case[:3] for case in CASES} == set(product(Mode, Resume, range(6)))
    assert {case[3] for case in CASES} == set(Aftermath)


def test_the_third_strike_suspends() -> None:
    """S2, R8."""
    assert STRIKES_MAX == 3


@pytest.mark.parametrize("resume", Resume)
def test_a_turn_that_no_message_will_follow_never_waits_for_one(resume: Resume) -> None:
    """R10: webhooks, jobs and detached runs go on by themselves, whatever the operator chose for conversations."""
    assert after_loss(Mode.DETACHED, resume, 1) is not Aftermath.REST


def test_a_new_turn_has_not_begun() -> None:
    """A2: the capability to deliver later is the turn's own and is there unless its channel says otherwise."""
    turn = Turn(id="t", session_id="s", ordinal=1, accepted_at=0)
    assert (turn.state, turn.attempt, turn.nth, turn.fence, turn.node_id) == ("queued", 0, 0, 0, None)
    assert turn.delivers_later
