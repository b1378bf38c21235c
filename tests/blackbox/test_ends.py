"""Every end of a gateway meets turns in every state: nothing is lost, nothing is done twice, and the cause is told."""

from __future__ import annotations

import asyncio

import pytest

from tests.blackbox.client import client
from tests.blackbox.gateway import gateways
from tests.blackbox.history import SYSTEM_NOTE, Outcome, Receipt
from tests.blackbox.scenes import CAUSES, NAMES, NEVER_S, SHORT_DRAIN_S, SOON_S, End, Scene, Stage, State

RUNS = frozenset({State.STREAMING, State.TOOL, State.EFFECT})


@pytest.mark.parametrize(
    ("end", "resume"),
    [
        (End.KILL, "on_message"),
        pytest.param(End.KILL, "auto", marks=pytest.mark.long),
        (End.DRAIN, "on_message"),
        pytest.param(End.SHORT, "on_message", marks=pytest.mark.long),
        (End.SHORT, "auto"),
        (End.FORCE, "on_message"),
        (End.RESTART, "on_message"),
    ],
)
async def test_a_turn_in_any_state_outlives_its_gateway(end: End, resume: str) -> None:
    """J1, J2, J8, R1 to R6, R9, R10: what was shown stays, with one marker; what was accepted is answered, once."""
    lasts = end is not End.DRAIN and resume == "on_message"
    drain_s = SHORT_DRAIN_S if end is End.SHORT else 60
    with gateways(gateway__resume=resume, gateway__drain_timeout=str(drain_s)) as (gateway,):
        await gateway.start()
        async with client(gateway) as somebody:
            stage = Stage(gateway=gateway, client=somebody, lasting_s=NEVER_S if lasts else SOON_S)
            scenes = await stage.set(*State)
            for scene in scenes:
                await somebody.poll(scene.session_id)
            await stage.end(end)
            if end is not End.RESTART:
                await gateway.start()
            await asyncio.gather(*(_judge(scene, stage, CAUSES[end], resume) for scene in scenes))
            outcome = await somebody.verify(stage.notes())
            _judge_banners(scenes, outcome, end)


async def _judge(scene: Scene, stage: Stage, cause: str | None, resume: str) -> None:
    somebody = stage.client
    for turn in filter(None, (scene.blocker, scene.turn if scene.state in RUNS else None)):
        await _judge_running(turn, scene, stage, cause, resume)
    match scene.state:
        case State.QUEUED | State.ACCEPTED:
            await somebody.answered(scene.turn)
        case State.WAITING:
            assert (await somebody.turn(scene.turn.id)).state == "waiting"
            await somebody.ask("POST", f"/api/turns/{scene.turn.id}/answer", {"text": "blue"})
            await somebody.answered(scene.turn)
            assert "You answered: “blue”" in await somebody.said(scene.turn)
        case State.FINISHING:
            # Nobody can tell from outside which came first.
            rested = await somebody.comes_to(scene.turn.id)
            assert (rested.state, rested.cause) in {("completed", None), ("interrupted", cause)}
        case _:
            pass


async def _judge_running(turn: Receipt, scene: Scene, stage: Stage, cause: str | None, resume: str) -> None:
    """A turn that ran goes on by itself or rests until the next message, as the operator chose."""
    somebody = stage.client
    rested = await somebody.comes_to(turn.id)
    if cause is None or resume == "auto":
        assert (rested.state, rested.attempt) == ("completed", 1 if cause is None else 2)
    else:
        assert (rested.state, rested.cause) == ("interrupted", cause)
        if not scene.blocker:
            await _judge_resuming(scene, stage, cause)
    if scene.state is State.EFFECT:
        await _judge_effect(scene, stage, cause)


async def _judge_resuming(scene: Scene, stage: Stage, cause: str) -> None:
    """R5, R6: looking changes nothing; the next message has one note, and only its answer ends the waiting."""
    somebody = stage.client
    for _ in range(2):
        session = await somebody.get(f"/api/sessions/{scene.session_id}")
        assert (session["resume_pending"], session["resume_reason"]) == (True, cause)
    following = await somebody.answered(await somebody.send(scene.session_id, "count to 2"))
    assert following.session_id == scene.session_id
    thought = await somebody.said(following, "reasoning")
    assert (thought.count(SYSTEM_NOTE), thought.count(NAMES[cause])) == (1, 1)
    assert not (await somebody.get(f"/api/sessions/{scene.session_id}"))["resume_pending"]
    after = await somebody.answered(await somebody.send(scene.session_id, "count to 2"))
    assert SYSTEM_NOTE not in await somebody.said(after, "reasoning")


async def _judge_effect(scene: Scene, stage: Stage, cause: str | None) -> None:
    """R10: what may have had its effect is shown as unknown, and not tried again."""
    items = (await stage.client.poll(scene.session_id)).items
    outcomes = [item.outcome for item in items if (item.turn_id, item.name) == (scene.turn.id, "keep_note")]
    assert outcomes == ["unknown" if cause else "ok"]


def _judge_banners(scenes: list[Scene], outcome: Outcome, end: End) -> None:
    """R1: whoever is in the middle of something is told once; a crash tells nobody."""
    told = {State.QUEUED, *RUNS} if end is not End.KILL else set[State]()
    for scene in scenes:
        banners = [str(entry.data["text"]) for entry in outcome.journals[scene.session_id] if "banner" in entry.data]
        if scene.state is not State.FINISHING and scene.state is not State.ACCEPTED:
            assert len(banners) == (scene.state in told), scene
        for banner in banners:
            words = ["restarting", "try to resume"] if end is End.RESTART else ["shutting down"]
            assert all(word in banner for word in words)
