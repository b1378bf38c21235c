"""Tasks that were handed on survive kill -9 beside any write: none is done twice for one call, and each is told once."""

from __future__ import annotations

import itertools
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import scratch
from tests.crash.errands import GOALS, Errands
from tests.crash.forking import Death, Warm
from tests.crash.life import When


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm[Errands]]:
    with Warm[Errands]("tests.crash.errands") as warm:
        yield warm


@pytest.fixture
def homes() -> Iterator[Path]:
    with scratch.folder() as folder:
        yield folder


@pytest.mark.parametrize(
    ("when", "stride", "points_min"), [("before", 9, 100), pytest.param("after", 2, 20, marks=pytest.mark.long)]
)
def test_killed_beside_any_write_every_task_is_told_once(
    warm: Warm[Errands], homes: Path, when: When, stride: int, points_min: int
) -> None:
    """A3 A6 R10: killed once while tasks are handed on, done and told; the next life brings all of it to one end."""
    born = homes / "born"
    born.mkdir()
    assert warm.live(Errands(home=str(born), birth=True)).status == 0
    for nth in itertools.count(1, stride):
        home = homes / str(nth)
        shutil.copytree(born, home)
        death = warm.live(Errands(home=str(home), nth=nth, when=when))
        killed = death.status == -signal.SIGKILL
        assert killed or death.status == 0, death
        for _ in range(2):
            death = warm.live(Errands(home=str(home)))
            assert death.status == 0, (nth, death)
            converged(death, f"killed {when} point {nth}")
        shutil.rmtree(home)
        if not killed:
            # Fewer points than that: every one of them has been tried.
            assert nth > points_min
            return


def converged(death: Death, where: str) -> None:
    (report,) = death.reports()
    assert report["audit"] == [], where
    assert report["states"] == ["completed"] * 3, (where, report)
    assert report["children"] == [
        ["later", "ended", "completed"],
        ["later", "ended", "completed"],
        ["now", "ended", "completed"],
    ], (where, report)
    assert f"found {GOALS[2]}" in report["answer"], where
    told = sorted(report["asked"][1:])
    assert [f"found {goal}" in text for goal, text in zip(GOALS, told, strict=False)] == [True, True], (where, told)
    assert report["owed"] == 0, where
