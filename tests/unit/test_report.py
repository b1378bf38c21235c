"""The boot report reads like something a person wrote."""

from __future__ import annotations

from holdfast.core.recovery import Interrupted, Standing, Swept
from holdfast.core.report import BootReport
from holdfast.ids import TurnId


def lines(swept: Swept | None = None, standing: Standing | None = None) -> list[str]:
    return BootReport(at=0, swept=swept or Swept(), standing=standing or Standing()).lines()


def turns(count: int) -> tuple[TurnId, ...]:
    return tuple(TurnId(f"t{number}") for number in range(1, count + 1))


def test_a_clean_start_says_so() -> None:
    assert lines() == ["Nothing was left over from an earlier run."]


def test_every_fate_has_its_line_and_its_reason() -> None:
    """R8, R9, R10"""
    cut = Interrupted(continued=turns(1), rested=turns(2), suspended=turns(3), given_up=turns(1))
    assert lines(Swept(turns=cut, released=1, deliveries=2, segments=1), Standing(queued=1, waiting=2, resumable=1_000)) == [
        "1 turn cut off by a crash: continued without waiting for anyone (t1)",
        "2 turns cut off by a crash: resumed by the next message, or by /resume (t1, t2)",
        "3 turns cut off by a crash: session suspended, as gateway.on_crash says (t1, t2, t3)",
        "1 turn interrupted 3 times in a row: given up, session suspended (t1)",
        "1 message taken up and not begun: queued again",
        "2 deliveries on the way: may or may not have arrived",
        "1 memory commit under way: repeated under the same id",
        "1 message waiting to be answered",
        "2 turns waiting for an answer from a person",
        "1,000 conversations to be resumed by the next message",
    ]


def test_a_thousand_turns_are_counted_and_a_few_named() -> None:
    (line,) = lines(Swept(turns=Interrupted(continued=turns(1_000))))
    assert line == "1,000 turns cut off by a crash: continued without waiting for anyone (t1, t2, t3, t4, t5, and 995 more)"
