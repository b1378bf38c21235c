"""What a person sent as one thing, and what not."""

from __future__ import annotations

from itertools import product

import pytest

from holdfast.core.joining import (
    APART_MS,
    BACKLOG_MAX,
    BACKLOG_MS,
    LONG_WINDOW_MS,
    PART_UNITS,
    WINDOW_MS,
    Arrived,
    gather,
    is_backlog,
)

LONG = "x" * PART_UNITS
# Two units each.
EMOJI = "\U0001f600"


def arrived(text: str = "hi", received_at: int = 0, sent_at: int = 0, **changes: object) -> Arrived:
    return Arrived(**{"speaker": ("5", ""), "text": text, "sent_at": sent_at, "received_at": received_at, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "album", "window_ms"),
    [
        ("hi", "", WINDOW_MS),
        (LONG[1:], "", WINDOW_MS),
        (LONG, "", LONG_WINDOW_MS),
        (EMOJI * (PART_UNITS // 2), "", LONG_WINDOW_MS),
        (EMOJI * (PART_UNITS // 2 - 1), "", WINDOW_MS),
        ("\ud83d" * PART_UNITS, "", LONG_WINDOW_MS),
        ("", "a", LONG_WINDOW_MS),
    ],
)
@pytest.mark.parametrize("late_ms", [0, 1])
def test_a_message_waits_for_the_next_as_long_as_its_window(first: str, album: str, window_ms: int, late_ms: int) -> None:
    waiting = [arrived(first, album=album), arrived("two", received_at=window_ms + late_ms, album=album)]
    now_ms = window_ms + late_ms
    if late_ms:
        assert gather(waiting, now_ms).places == (0,)
        assert gather(waiting, now_ms).wait_ms == 0
    else:
        assert gather(waiting, now_ms).places == (0, 1)
        assert gather(waiting, now_ms).wait_ms == (LONG_WINDOW_MS if album else WINDOW_MS)


@pytest.mark.parametrize("apart_ms", [-APART_MS - 1, -APART_MS, 0, APART_MS, APART_MS + 1])
def test_messages_that_were_sent_apart_are_never_one(apart_ms: int) -> None:
    """What is fetched after an hour arrives at once."""
    waiting = [arrived(sent_at=10_000), arrived(sent_at=10_000 + apart_ms)]
    assert len(gather(waiting, 0).places) == (2 if abs(apart_ms) <= APART_MS else 1)


def test_each_message_is_compared_with_the_one_before_it() -> None:
    waiting = [arrived(received_at=each * WINDOW_MS, sent_at=each * APART_MS) for each in range(4)]
    found = gather(waiting, 3 * WINDOW_MS + 100)
    assert found.places == (0, 1, 2, 3)
    assert found.wait_ms == WINDOW_MS - 100


@pytest.mark.parametrize(("one", "other"), list(product(["", "a", "b"], repeat=2)))
def test_an_album_is_joined_with_itself_alone(one: str, other: str) -> None:
    found = gather([arrived(album=one), arrived(album=other)], 0)
    assert found.places == ((0, 1) if one == other else (0,))
    assert found.wait_ms == (0 if one != other else LONG_WINDOW_MS if one else WINDOW_MS)


@pytest.mark.parametrize("alone", [0, 1])
def test_a_command_stands_alone(alone: int) -> None:
    waiting = [arrived(alone=each == alone) for each in range(2)]
    assert gather(waiting, 0).places == (0,)
    assert gather(waiting, 0).wait_ms == 0


@pytest.mark.parametrize("other", [("6", ""), ("5", "thread")])
def test_others_may_speak_in_between(other: tuple[str, str]) -> None:
    waiting = [arrived(), arrived(speaker=other), arrived(), arrived(speaker=other, alone=True), arrived()]
    assert gather(waiting, 0).places == (0, 2, 4)


@pytest.mark.parametrize("now_ms", [-(10**9), -1, 0, WINDOW_MS - 1, WINDOW_MS, 10**9])
def test_a_clock_that_was_set_lets_nothing_wait_longer_than_its_window(now_ms: int) -> None:
    assert gather([arrived()], now_ms).wait_ms == WINDOW_MS - max(0, min(now_ms, WINDOW_MS))


@pytest.mark.parametrize("count", range(BACKLOG_MAX + 3))
@pytest.mark.parametrize("age_ms", [0, BACKLOG_MS, BACKLOG_MS + 1])
def test_more_than_five_old_messages_are_a_backlog(count: int, age_ms: int) -> None:
    now_ms = 10 * BACKLOG_MS
    assert is_backlog([now_ms - age_ms] * count + [now_ms], now_ms) == (count > BACKLOG_MAX and age_ms > BACKLOG_MS)
