"""What follows an interruption, over every mode, every policy and every number of strikes."""

from __future__ import annotations

from enum import StrEnum
from itertools import product

import pytest

from holdfast.core.sessions import STRIKES_MAX
from holdfast.core.turns import Aftermath, Cause, Mode, OnCrash, Policy, Resume, Turn, after_loss

# One column per number of strikes, 0 to 5.  The mode decides, the policy only for conversations, the third strike always.
FATES = """
    conversation  on_message resume  crash  rest     rest     rest     give_up  give_up  give_up
    conversation  auto       resume  crash  continue continue continue give_up  give_up  give_up
    conversation  on_message suspend crash  suspend  suspend  rest     give_up  give_up  give_up
    conversation  auto       suspend crash  suspend  suspend  continue give_up  give_up  give_up
    conversation  on_message *       stop   rest     rest     rest     give_up  give_up  give_up
    conversation  auto       *       stop   continue continue continue give_up  give_up  give_up
    detached      *          *       *      continue continue continue give_up  give_up  give_up
    synchronous   *          *       *      rest     rest     rest     give_up  give_up  give_up
"""
STOPS = ("restart_timeout", "shutdown_timeout")
CAUSES = {"crash": ("crash",), "stop": STOPS, "*": ("crash", *STOPS)}


def _each(word: str, all_of_them: type[StrEnum]) -> list[str]:
    return list(all_of_them) if word == "*" else [word]


CASES = [
    (mode, resume, on_crash, cause, strikes, fate)
    for mode, any_resume, any_on_crash, causes, *fates in map(str.split, FATES.strip().splitlines())
    for resume, on_crash, cause in product(_each(any_resume, Resume), _each(any_on_crash, OnCrash), CAUSES[causes])
    for strikes, fate in enumerate(fates)
]


@pytest.mark.parametrize(("mode", "resume", "on_crash", "cause", "strikes", "fate"), CASES)
def test_an_interruption_has_the_fate_that_was_promised(
    mode: str, resume: str, on_crash: str, cause: str, strikes: int, fate: str
) -> None:
    """S2, R8, R9, R10: with `suspend` a crash suspends, but never a session that was resume pending already."""
    policy = Policy(resume=Resume(resume), on_crash=OnCrash(on_crash))
    assert after_loss(Mode(mode), policy, Cause(cause), strikes) is Aftermath(fate)


def test_the_table_of_fates_is_complete() -> None:
    assert {case[:5] for case in CASES} == set(product(Mode, Resume, OnCrash, CAUSES["*"], range(6)))
    assert {case[5] for case in CASES} == set(Aftermath)


def test_the_third_strike_suspends() -> None:
    """S2, R8."""
    assert STRIKES_MAX == 3


@pytest.mark.parametrize("resume", Resume)
def test_a_turn_that_no_message_will_follow_never_waits_for_one(resume: Resume) -> None:
    """R10: webhooks, jobs and detached runs go on by themselves, whatever the operator chose for conversations."""
    assert after_loss(Mode.DETACHED, Policy(resume=resume), Cause.CRASH, 1) is not Aftermath.REST


def test_a_new_turn_has_not_begun() -> None:
    """A2: the capability to deliver later is the turn's own and is there unless its channel says otherwise."""
    turn = Turn(id="t", session_id="s", ordinal=1, accepted_at=0)
    assert (turn.state, turn.attempt, turn.nth, turn.fence, turn.node_id) == ("queued", 0, 0, 0, None)
    assert turn.delivers_later
