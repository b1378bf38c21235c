"""What follows an interruption, over every mode, every policy and every number of strikes."""

from __future__ import annotations

from enum import StrEnum
from itertools import product

import pytest

from holdfast.core.sessions import STRIKES_MAX, STRIKES_SUSPECT, alone_ms
from holdfast.core.turns import Aftermath, Cause, Mode, OnCrash, Policy, Resume, Turn, after_loss, strikes_max
from tests.tables import every

# One column per number of strikes, 0 to 5.  The mode decides, the policy only for conversations, the third strike always,
# unless others were cut off by the same crash.
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
STOPS = ("restart_timeout", "shutdown_timeout", "disk_full")
CAUSES = {"crash": ("crash",), "stop": STOPS, "*": ("crash", *STOPS)}


def _each(word: str, all_of_them: type[StrEnum]) -> list[str]:
    return list(all_of_them) if word == "*" else [word]


CASES = [
    (mode, resume, on_crash, cause, strikes, fate)
    for mode, any_resume, any_on_crash, causes, *fates in map(str.split, FATES.strip().splitlines())
    for resume, on_crash, cause in product(_each(any_resume, Resume), _each(any_on_crash, OnCrash), CAUSES[causes])
    for strikes, fate in enumerate(fates)
]


@every("mode, resume, on_crash, cause, strikes, fate", CASES)
def test_an_interruption_has_the_fate_that_was_promised(
    mode: str, resume: str, on_crash: str, cause: str, strikes: int, fate: str
) -> None:
    """S2, R8, R9, R10: with `suspend` a crash suspends, but never a session that was resume pending already."""
    policy = Policy(resume=Resume(resume), on_crash=OnCrash(on_crash))
    assert after_loss(Mode(mode), policy, Cause(cause), strikes) is Aftermath(fate)


@every("mode, resume, on_crash, cause, strikes, fate", CASES)
def test_no_crash_in_company_gives_a_turn_up(
    mode: str, resume: str, on_crash: str, cause: str, strikes: int, fate: str
) -> None:
    """S2: which of several turns was the cause is not known, so each goes on as if it had fewer strikes."""
    policy = Policy(resume=Resume(resume), on_crash=OnCrash(on_crash))
    in_company = after_loss(Mode(mode), policy, Cause(cause), strikes, in_company=True)
    assert in_company is not Aftermath.GIVE_UP
    assert in_company is after_loss(Mode(mode), policy, Cause(cause), min(strikes, STRIKES_SUSPECT))


def test_a_crash_in_company_makes_suspects_and_convicts_none() -> None:
    """S2, R8."""
    most = [strikes_max(Cause.CRASH, in_company=in_company) for in_company in (True, False)]
    assert most == [STRIKES_SUSPECT, STRIKES_MAX]
    assert STRIKES_SUSPECT == STRIKES_MAX - 1


def test_a_suspect_runs_alone_for_longer_with_every_attempt_and_never_for_ever() -> None:
    """Nothing waits beside it for more than minutes, and no cause needs longer than the attempts in a row allow."""
    times = [alone_ms(attempt) for attempt in range(1, 60)]
    assert times == sorted(times)
    assert (times[0], times[2], times[3], times[-1]) == (2_000, 2_000, 4_000, 300_000)


def test_the_table_of_fates_is_complete() -> None:
    assert {case[:5] for case in CASES} == set(product(Mode, Resume, OnCrash, CAUSES["*"], range(6)))
    assert {case[5] for case in CASES} == set(Aftermath)


def test_the_third_strike_suspends() -> None:
    """S2, R8."""
    assert STRIKES_MAX == 3


@pytest.mark.parametrize("cause", Cause)
def test_a_full_disk_is_a_strike_only_where_there_was_none(cause: Cause) -> None:
    """R5, R8: it makes a session resume pending, and brings none closer to being given up."""
    assert strikes_max(cause, in_company=False) == (1 if cause == "disk_full" else STRIKES_MAX)


@pytest.mark.parametrize("resume", Resume)
def test_a_turn_that_no_message_will_follow_never_waits_for_one(resume: Resume) -> None:
    """R10: webhooks, jobs and detached runs go on by themselves, whatever the operator chose for conversations."""
    assert after_loss(Mode.DETACHED, Policy(resume=resume), Cause.CRASH, 1) is not Aftermath.REST


def test_a_new_turn_has_not_begun() -> None:
    """A2: the capability to deliver later is the turn's own and is there unless its channel says otherwise."""
    turn = Turn(id="t", session_id="s", ordinal=1, accepted_at=0)
    assert (turn.state, turn.attempt, turn.nth, turn.fence, turn.node_id) == ("queued", 0, 0, 0, None)
    assert turn.delivers_later
