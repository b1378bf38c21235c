"""How long a delivery waits, when it is given up, and how a resend is labelled."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.delivery import (
    ASIDE_FIRST,
    ASIDE_LAST,
    ATTEMPTS_MAX,
    BACKOFF_FIRST_MS,
    BACKOFF_MAX_MS,
    BANNER_EXPIRES_AFTER_MS,
    EXPIRES_AFTER_MS,
    MOVES,
    REPEAT_LABEL,
    Delivery,
    DeliveryEvent,
    DeliveryState,
    after_loss,
    after_refusal,
    after_rejection,
    backoff_ms,
    banner_part,
    due_after_refusal,
)
from holdfast.ids import DeliveryId, SessionId, TurnId
from tests.tables import every

attempts = st.integers(1, 64)
jitters = st.floats(0, 1, exclude_max=True)


@given(attempts, jitters)
def test_a_wait_lies_between_half_of_its_length_and_all_of_it(attempt: int, jitter: float) -> None:
    """D2: never so short that it hammers, never so long that it is forgotten."""
    longest = min(BACKOFF_FIRST_MS * 2 ** (attempt - 1), BACKOFF_MAX_MS)
    assert longest // 2 <= backoff_ms(attempt, jitter) <= longest


@given(attempts, jitters)
def test_a_later_attempt_never_waits_less(attempt: int, jitter: float) -> None:
    assert backoff_ms(attempt, jitter) <= backoff_ms(attempt + 1, jitter)


@given(attempts, jitters, jitters)
def test_jitter_spreads_the_waits(attempt: int, one: float, other: float) -> None:
    assert (backoff_ms(attempt, one) <= backoff_ms(attempt, other)) or one > other
    assert backoff_ms(attempt, 0) < backoff_ms(attempt, 0.5)


def sent(attempt: int, repeats: int = 0) -> Delivery:
    return Delivery(
        id=DeliveryId("d"),
        turn_id=TurnId("t"),
        session_id=SessionId("s"),
        target="chat:1",
        part=1,
        text="hello",
        created_at=0,
        due_at=0,
        attempt=attempt,
        repeats=repeats,
    )


def test_of_a_resend_that_is_never_taken_it_is_only_known_that_the_first_may_have_arrived() -> None:
    """D1: `failed` would claim to know."""
    assert after_rejection(sent(1)) is DeliveryEvent.FAIL
    assert after_rejection(sent(2, repeats=1)) is DeliveryEvent.LOSE
    assert after_refusal(sent(ATTEMPTS_MAX, repeats=1)) is DeliveryEvent.LOSE
    assert after_refusal(sent(2, repeats=1)) is DeliveryEvent.REFUSE


PARTS = (1, 7, banner_part(1), banner_part(9), ASIDE_FIRST, ASIDE_LAST)


@every("attempt, part, repeats, dedupes", product(range(1, ATTEMPTS_MAX + 3), PARTS, (0, 1), (True, False)))
def test_what_may_have_arrived_is_sent_again_for_as_long_as_the_far_side_drops_repeats(
    attempt: int, part: int, repeats: int, dedupes: bool
) -> None:
    """D1 A1: every case there is.  A banner is over with its stop, and tries end where those of a refused one end."""
    lost = replace(sent(attempt, repeats), part=part, state=DeliveryState.SENDING)
    event = after_loss(lost, dedupes=dedupes)
    assert (event is DeliveryEvent.RESEND) is (dedupes and attempt < ATTEMPTS_MAX and not -1_000_001 < part < 0)
    after = lost.on(event)
    if event is DeliveryEvent.RESEND:
        assert (after.state, after.repeats, after.outgoing) == (DeliveryState.RETRY, 1, f"{REPEAT_LABEL} hello")
    else:
        assert (event, after.state, after.repeats) == (DeliveryEvent.LOSE, DeliveryState.UNKNOWN, repeats)


@every("state, event, repeats", product(DeliveryState, DeliveryEvent, (0, 1)))
def test_a_label_is_never_taken_off_again(state: DeliveryState, event: DeliveryEvent, repeats: int) -> None:
    """D1: whatever happens to a delivery that may have arrived, its next send says so."""
    if (state, event) in MOVES:
        after = replace(sent(1, repeats), state=state).on(event)
        assert after.repeats == (1 if event in (DeliveryEvent.RESEND, DeliveryEvent.REPEAT) else repeats)


@pytest.mark.parametrize(("attempt", "wait_ms"), [(0, 500), (1, 500), (2, 1_000), (5, 8_000), (11, 450_000), (40, 450_000)])
def test_waits_double_until_they_reach_the_longest(attempt: int, wait_ms: int) -> None:
    assert backoff_ms(attempt, 0) == wait_ms


@pytest.mark.parametrize("attempt", [1, 2, 8, 50, *range(ATTEMPTS_MAX - 1, ATTEMPTS_MAX + 3)])
def test_a_refused_delivery_is_tried_again_until_its_attempts_are_used_up(attempt: int) -> None:
    """A1: it ends, and says so."""
    assert after_refusal(sent(attempt)) is (DeliveryEvent.REFUSE if attempt < 100 else DeliveryEvent.FAIL)


@pytest.mark.parametrize("attempt", [1, 2, 8, 50, *range(ATTEMPTS_MAX - 1, ATTEMPTS_MAX + 3)])
def test_every_answer_to_a_refusal_is_a_move_from_sending(attempt: int) -> None:
    assert (DeliveryState.SENDING, after_refusal(sent(attempt))) in MOVES


NOW = 1_000


@pytest.mark.parametrize(
    ("wanted_s", "due_at"),
    [
        (None, NOW + 500),
        (0, NOW + 500),
        (-5, NOW + 500),
        (0.0004, NOW + 1),
        (17, NOW + 17_000),
        (7_200, NOW + 7_200_000),
        (10**9, EXPIRES_AFTER_MS),
        (float("inf"), EXPIRES_AFTER_MS),
    ],
)
def test_the_far_side_says_when_to_try_again_within_the_life_of_a_delivery(wanted_s: float | None, due_at: int) -> None:
    assert due_after_refusal(sent(1), NOW, wanted_s, 0) == due_at


def test_a_wish_of_the_far_side_makes_nothing_live_longer() -> None:
    banner = replace(sent(1), part=banner_part(1))
    assert due_after_refusal(banner, NOW, 3_600, 0) == BANNER_EXPIRES_AFTER_MS
    assert due_after_refusal(sent(1), EXPIRES_AFTER_MS + 5, 3_600, 0) == EXPIRES_AFTER_MS + 5


@pytest.mark.parametrize(
    ("state", "repeats", "waits"),
    [
        *((state, 0, True) for state in (DeliveryState.PENDING, DeliveryState.RETRY, DeliveryState.UNKNOWN)),
        *(
            (state, 0, False)
            for state in (DeliveryState.SENDING, DeliveryState.DELIVERED, DeliveryState.FAILED, DeliveryState.EXPIRED)
        ),
        (DeliveryState.UNKNOWN, 1, False),
    ],
)
def test_only_what_is_not_over_has_a_next_try(state: DeliveryState, repeats: int, waits: bool) -> None:
    assert replace(sent(1, repeats), state=state, due_at=7).next_try_at == (7 if waits else None)


def test_all_attempts_together_fit_into_the_life_of_a_delivery() -> None:
    """A1: it fails by its attempts before it is too old to send, so the error says what the far side said."""
    assert sum(backoff_ms(attempt, 0.999) for attempt in range(1, ATTEMPTS_MAX)) < EXPIRES_AFTER_MS


def test_a_far_side_that_was_away_overnight_still_gets_what_it_is_owed() -> None:
    assert sum(backoff_ms(attempt, 0) for attempt in range(1, ATTEMPTS_MAX)) > 10 * 3_600_000


@pytest.mark.parametrize(("repeats", "outgoing"), [(0, "the answer"), (1, f"{REPEAT_LABEL} the answer")])
def test_a_resend_after_an_unknown_outcome_says_what_it_is(repeats: int, outgoing: str) -> None:
    """D1: at most one unlabelled send."""
    sent = Delivery(
        id="d",
        turn_id="t",
        session_id="s",
        target="log:",
        part=1,
        text="the answer",
        created_at=0,
        due_at=0,
        repeats=repeats,
    )
    assert sent.outgoing == outgoing
