"""The failpoint sweep: killed beside any write, and again inside recovery, the store still keeps every promise.

Nothing in production knows of it.  The points are found by the sweep itself: it kills beside the first, the second, the
third, until a life ends of itself.
"""

from __future__ import annotations

import itertools
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.delivery import REPEAT_LABEL
from tests.crash.forking import Death
from tests.crash.life import ANSWER, CASES, FOLLOW_UP_SAID, SAID, THOUGHT, Case, When
from tests.crash.sweeping import POINTS_MAX, Lives, lives_of
from tests.crash.world import World

Report = dict[str, Any]


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    with lives_of("tests.crash.life") as lives:
        yield lives


@pytest.fixture(scope="module")
def born(lives: Lives) -> Path:
    return lives.born()


@pytest.mark.parametrize(("when", "points_min"), [("before", 80), ("after", 12)])
@pytest.mark.parametrize("case", CASES)
def test_killed_beside_any_write_a_turn_still_comes_to_its_end(
    lives: Lives, born: Path, case: Case, when: When, points_min: int
) -> None:
    """A1 A2 A3 J1 J2 D1 D3 M1 M2 S1 X1 P1: killed once, beside each point of the whole life of a turn."""
    points = lives.kill_once(
        born, case, when, range(1, POINTS_MAX), lambda home, killed: converge(lives, home, case, killed)
    )
    assert points > points_min


@pytest.mark.parametrize(("when", "strides"), [("before", (10, 17)), ("after", (3, 5))])
@pytest.mark.parametrize("case", ["detached", "conversation"])
def test_killed_again_inside_recovery_it_still_does(
    lives: Lives, born: Path, case: Case, when: When, strides: tuple[int, int]
) -> None:
    """A1 A2 A3 J1 J2 D1 D3 M1 M2 S1 X1 P1: killed a second time, while it recovers from the first."""
    lives.kill_twice(born, case, when, strides, lambda home, killed: converge(lives, home, case, killed))


@pytest.mark.parametrize(("when", "points_min"), [pytest.param("before", 30, marks=pytest.mark.long), ("after", 6)])
def test_killed_beside_any_write_of_a_migration_the_store_still_opens(lives: Lives, when: When, points_min: int) -> None:
    """A1 A2 P1: the first start of all, killed before the store is open."""

    def kill(point: int) -> bool:
        home = lives.new_home()
        killed = lives.live(home, "birth", point, when)
        converge(lives, home, "detached", [killed])
        shutil.rmtree(home)
        return killed.status != 0

    assert lives.sweep(range(1, POINTS_MAX), kill) > points_min


def converge(lives: Lives, home: Path, case: Case, killed: Sequence[Death]) -> None:
    """Live on without being killed, and require that everything is as if nobody had ever been."""
    for death in killed:
        assert death.status in (0, -signal.SIGKILL), death.errors
    last = lives.live(home, case)
    assert last.status == 0, last.errors
    report, again = last.reports()
    deaths = [*killed, last]
    for left in itertools.chain.from_iterable(death.lines("left") for death in deaths):
        assert left == "[]"
    assert report["audit"] == []
    assert again["rows"] == report["rows"], "a second recovery changed something"
    world = World(home / "world")
    check_acceptance(report, deaths)
    check_transcript(report, case, deaths)
    check_tools(report, world)
    check_deliveries(report, world, deaths)
    check_memory(report, world)
    check_session(report, case)


def check_acceptance(report: Report, deaths: Sequence[Death]) -> None:
    """A1, A2, A3: what was acknowledged is there, once, and has come to its end."""
    accepted = [turn_id for death in deaths for turn_id in death.lines("accepted")]
    assert set(accepted) == {turn["id"] for turn in report["turns"]}
    for turn in report["turns"]:
        assert turn["state"] in ("completed", "interrupted"), turn
    *cut_off, last = report["turns"]
    assert last["state"] == "completed"
    assert all(turn["state"] == "interrupted" for turn in cut_off)


def check_transcript(report: Report, case: Case, deaths: Sequence[Death]) -> None:
    """J1, J3: what anyone was shown, and only that, is there in order; every word of an answer stands there once."""
    journal = [[entry["seq"], entry["kind"], entry["data"]] for entry in report["entries"]]
    for death in deaths:
        for shown in split_by_follower(death):
            assert shown == journal[: len(shown)]
    first, last = report["turns"][0], report["turns"][-1]
    said, thought = (text_of(report, first, role) for role in ("assistant", "reasoning"))
    if first["state"] == "completed":
        assert (said, thought) == ("".join(SAID), "".join(THOUGHT))
        answer = "".join(SAID) if case != "question" else "".join((*SAID[:2], ANSWER, *SAID[2:]))
        assert closing_of(report, first)["data"] == {"text": answer}
        markers = [item for item in report["transcript"] if item["kind"] == "interrupted"]
        # The turn also begins once more when its question is answered.
        answers = [entry["data"]["text"] for entry in report["entries"] if entry["kind"] == "approval.answered"]
        assert answers == [ANSWER] * (case == "question")
        assert len(markers) == first["attempt"] - 1 - len(answers)
    else:
        assert case == "conversation"
        assert "".join(SAID).startswith(said)
        assert "".join(THOUGHT).startswith(thought)
        assert closing_of(report, first)["data"] == {"cause": "crash", "continues": False}
        assert text_of(report, last, "assistant") == FOLLOW_UP_SAID


def split_by_follower(death: Death) -> list[list[Any]]:
    followers: list[list[Any]] = []
    for shown in death.shown():
        if shown[0] == 1:
            followers.append([])
        followers[-1].append(shown)
    return followers


def text_of(report: Report, turn: Report, role: str) -> str:
    items = [item for item in report["transcript"] if item["turn_id"] == turn["id"] and item["role"] == role]
    return "".join(item["text"] for item in items)


def closing_of(report: Report, turn: Report) -> Report:
    kinds = {"turn.completed", "turn.interrupted"}
    return [entry for entry in report["entries"] if entry["turn_id"] == turn["id"] and entry["kind"] in kinds][-1]


def check_tools(report: Report, world: World) -> None:
    """X1: an effect happens once or is unknown, and what is repeated carries the same key."""
    runs = world.read("tool")
    for name in ("pure", "keyed", "effectful"):
        keys = [run["key"] for run in runs if run["name"] == name]
        call = report["calls"].get(name)
        assert len(set(keys)) <= 1
        if call is None:
            assert not keys
            assert report["turns"][0]["state"] == "interrupted"
            continue
        assert set(keys) <= {f"{call['turn_id']}:{call['id']}"}
        if call["state"] == "ok":
            assert keys
        if name == "effectful":
            assert len(keys) <= 1
            assert call["starts"] == 1
            assert call["state"] in ("ok", "unknown")
        elif report["turns"][0]["state"] == "completed":
            assert call["state"] == "ok"
    outcomes = {item["name"]: item["outcome"] for item in report["transcript"] if item["role"] == "tool"}
    for name, call in report["calls"].items():
        if call["state"] in ("ok", "unknown"):
            assert outcomes[name] == call["state"], "people are not shown what became of the call"


def check_deliveries(report: Report, world: World, deaths: Sequence[Death]) -> None:
    """D1, D3: each part left in its order, once without a label, and again only with one."""
    answered = [turn["id"] for turn in report["turns"] if turn["state"] == "completed"]
    assert [(each["turn_id"], each["part"]) for each in report["deliveries"]] == [
        (i, part) for i in answered for part in (1, 2)
    ]
    sent = world.read("sent")
    assert [(line["turn_id"], line["part"]) for line in sent] == sorted(
        ((line["turn_id"], line["part"]) for line in sent), key=lambda pair: (answered.index(pair[0]), pair[1])
    )
    kills = sum(death.status != 0 for death in deaths)
    for each in report["deliveries"]:
        texts = [line["text"] for line in sent if line["id"] == each["id"]]
        assert texts.count(each["text"]) <= 1
        assert texts.count(f"{REPEAT_LABEL} {each['text']}") == len(texts) - texts.count(each["text"]) <= 1
        if each["state"] == "delivered":
            assert texts
        else:
            # Twice the sender died while it was sending, so nobody will ever know.
            assert (each["state"], each["repeats"]) == ("unknown", 1)
            assert kills > 1


def check_memory(report: Report, world: World) -> None:
    """M1, M2: each completed turn is in one segment, which its owner committed under one id."""
    completed = [turn for turn in report["turns"] if turn["state"] == "completed"]
    (segment,) = report["segments"]
    assert segment["state"] == "committed"
    assert (segment["first_generation"], segment["last_generation"]) == (1, len(completed))
    committed = world.read("committed")
    assert {line["id"] for line in committed} == {segment["id"]}
    entries = [entry for entry in report["entries"] if entry["kind"] in ("turn.accepted", "turn.completed")]
    said = [[turn["id"], entry["data"]["text"]] for turn in completed for entry in entries if entry["turn_id"] == turn["id"]]
    assert all([[turn_id, text] for turn_id, _, text in line["messages"]] == said for line in committed)


def check_session(report: Report, case: Case) -> None:
    """S1: a one-shot session ends with its turn, and a conversation does not."""
    state = (report["session"]["state"], report["session"]["end_reason"])
    assert state == (("open", None) if case == "conversation" else ("ended", "webhook_complete"))
    assert report["session"]["strikes"] == 0
