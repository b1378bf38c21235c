"""Runs: accepted once durable, followed from any cursor, stopped, answered, and going on by themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast.core.events import EntryKind
from holdfast.core.journal import Entry
from holdfast.core.turns import Mode, Turn, TurnState
from holdfast.ids import SessionId, TurnId
from holdfast.operations.turns import Turns, TurnView
from holdfast.web.runs import shown
from tests.openai.clients import KEY, demonstrated, modelled, system, told
from tests.web.house import House, open_house, parse

LAST = {"turn.completed", "turn.failed", "turn.cancelled"}


async def start(house: House, text: str, **more: Any) -> Any:
    return await house.post("/v1/runs", {"input": text, **more}, 202)


async def events(house: House, run_id: str, stop_at: int | None = None, **params: Any) -> list[Any]:
    """Read the events of a run until they end, or until there are enough."""
    found: list[Any] = []
    headers = {"Last-Event-ID": str(params.pop("last"))} if "last" in params else {}
    async with house.web.stream("GET", f"/v1/runs/{run_id}/events", params=params, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        async for entry in parse(response):
            found.append(entry)
            if len(found) == stop_at:
                break
    return found


async def finished(house: House, run_id: str) -> Any:
    await events(house, run_id)
    return await house.get(f"/v1/runs/{run_id}")


async def test_a_run_from_its_receipt_to_its_output(home: Path) -> None:
    """W4: without a session it has one of its own, which ends with it; A1: it cannot deliver later."""
    async with modelled(home, "say hello; usage 120 7 100") as (house, _, server):
        receipt = await start(house, "hi", instructions="be brief", metadata={"a": "b"})
        assert receipt.keys() == {"run_id", "session_id", "status"}
        run = await finished(house, receipt["run_id"])
        assert (run["status"], run["output"], run["error"]) == ("completed", "hello", None)
        assert run["usage"] == {"input_tokens": 120, "output_tokens": 7, "cached_tokens": 100, "total_tokens": 127}
        assert (run["metadata"], run["session_id"]) == ({"a": "b"}, receipt["session_id"])
        assert (await house.get(f"/api/sessions/{receipt['session_id']}"))["end_reason"] == "api_complete"
        assert told(server) == [("user", "hi")]
        assert system(server).endswith("be brief")
        assert "cannot reach the person after this answer" in system(server)


async def test_the_events_are_those_of_the_run_and_end_with_it(home: Path) -> None:
    async with demonstrated(home) as (house, _):
        run = await start(house, "count to 10", session_key="work")
        await start(house, "count to 3", session_key="work")
        found = await events(house, run["run_id"])
        assert {entry["turn_id"] for entry in found} == {run["run_id"]}
        assert (found[0]["kind"], found[-1]["kind"]) == ("turn.accepted", "turn.completed")
        assert await events(house, run["run_id"], after=found[4]["seq"]) == found[5:]
        assert await events(house, run["run_id"], last=found[4]["seq"]) == found[5:]
        assert await events(house, run["run_id"], after=found[-1]["seq"]) == []
        assert (await events(house, run["run_id"], after=10_000))[0] == "reset"


async def test_a_run_goes_on_through_a_restart_and_its_reader_misses_nothing(home: Path) -> None:
    """J8, R10: detached work always continues by itself."""
    async with demonstrated(home, drain_timeout=0) as (house, _):
        run_id = (await start(house, "count to 40"))["run_id"]
        seen = await events(house, run_id, stop_at=8)
        await house.stop(timeout=0)
    async with demonstrated(home) as (house, _):
        seen += await events(house, run_id, after=seen[-1]["seq"])
        assert [entry["seq"] for entry in seen] == sorted({entry["seq"] for entry in seen})
        assert seen == await events(house, run_id)
        said = "".join(entry["data"]["text"] for entry in seen if entry["kind"] == "text")
        run = await house.get(f"/v1/runs/{run_id}")
        assert (run["status"], run["output"]) == ("completed", said)
        assert said.endswith("39 40.")


async def test_a_run_is_stopped_once_and_for_all(home: Path) -> None:
    """J9: stop keeps the partial text, can be repeated, and is refused with the state of one that is over."""
    async with demonstrated(home) as (house, _):
        run_id = (await start(house, "count to 200 slowly"))["run_id"]
        await events(house, run_id, stop_at=6)
        stopped = await house.post(f"/v1/runs/{run_id}/stop")
        assert stopped["status"] == "cancelled"
        assert stopped["output"]
        assert (await house.post(f"/v1/runs/{run_id}/stop"))["status"] == "cancelled"
        done = (await start(house, "hello"))["run_id"]
        await events(house, done)
        error = (await house.post(f"/v1/runs/{done}/stop", status=409))["error"]
        assert (error["code"], error["state"], error["turn_id"]) == ("illegal_move", "completed", done)


async def test_a_run_that_asks_is_answered(home: Path) -> None:
    async with demonstrated(home) as (house, _):
        run_id = (await start(house, "ask me may I?"))["run_id"]
        await house.in_state(run_id, "waiting")
        waiting = await house.get(f"/v1/runs/{run_id}")
        assert (waiting["status"], waiting["question"]["text"]) == ("waiting", "may I?")
        address = f"/v1/runs/{run_id}/approval"
        assert (await house.post(address, {}, 400))["error"]["code"] == "invalid_request"
        assert (await house.post(address, {"text": "no", "question_id": "another"}, 409))["error"]["state"]
        await house.post(address, {"text": "certainly", "question_id": waiting["question"]["question_id"]})
        run = await finished(house, run_id)
        assert (run["status"], run["question"]) == ("completed", None)
        assert "certainly" in run["output"]


async def test_only_the_operator_consents_to_a_command(home: Path) -> None:
    """A guest may answer what is asked of people, and never what is asked for consent."""
    async with open_house(home) as house:
        run_id = (await start(house, "run: rm -rf /tmp/nothing-of-that-name"))["run_id"]
        await house.in_state(run_id, "waiting")
        error = (await house.post(f"/v1/runs/{run_id}/approval", {"decision": "once"}, 403))["error"]
        assert error["code"] == "operator_only"
        await house.post(f"/v1/runs/{run_id}/stop")


async def test_the_same_key_is_the_same_run(home: Path) -> None:
    async with demonstrated(home) as (house, _):
        keyed = {"Idempotency-Key": "k1"}
        first = await house.post("/v1/runs", {"input": "count to 50"}, 202, **keyed)
        again = await house.post("/v1/runs", {"input": "count to 50"}, 202, **keyed)
        assert again["run_id"] == first["run_id"]
        assert (await house.post("/v1/runs", {"input": "another"}, 422, **keyed))["error"]["code"] == "key_reused"
        await house.post(f"/v1/runs/{first['run_id']}/stop")


async def test_a_run_works_in_the_session_that_it_names(home: Path) -> None:
    async with modelled(home) as (house, _, server):
        session_id = await house.session(key="work")
        first = await start(house, "my name is Ada", session_key="work")
        await finished(house, first["run_id"])
        second = await start(house, "who am I?", session_id=session_id)
        await finished(house, second["run_id"])
        assert {first["session_id"], second["session_id"]} == {session_id}
        assert [text for role, text in told(server) if role == "user"] == ["my name is Ada", "who am I?"]
        assert (await house.get(f"/api/sessions/{session_id}"))["state"] == "open"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"input": ""}, 400),
        ({"input": 5}, 400),
        ({"input": "x", "session_key": "a", "session_id": "ses_b"}, 400),
        ({"input": "x", "session_id": "ses_nowhere"}, 404),
        ({"input": "x", "session_id": "ses_\x00"}, 400),
        ({"input": "x", "session_key": "a\nb"}, 400),
        ({"input": "x", "session_key": "a" * 201}, 400),
        ({"input": [{"role": "assistant", "content": "x"}]}, 400),
    ],
)
async def test_what_cannot_be_run_is_refused(home: Path, body: Any, status: int) -> None:
    async with open_house(home, api_key=KEY) as house:
        error = (await house.post("/v1/runs", body, status))["error"]
        assert error["message"]


async def test_only_runs_are_runs(home: Path) -> None:
    async with demonstrated(home) as (house, _):
        session_id = await house.session()
        receipt = await house.send(session_id, "hello")
        for odd in (receipt["turn_id"], "trn_nothing"):
            for method, path in (("GET", ""), ("GET", "/events"), ("POST", "/stop")):
                answer = await house.web.request(method, f"/v1/runs/{odd}{path}")
                assert (answer.status_code, json.loads(answer.text)["error"]["code"]) == (404, "not_found")


async def test_a_background_command_of_a_run_promises_nothing(home: Path) -> None:
    """A4: on a turn that cannot deliver later the process runs, nobody watches it, and the agent is told to poll."""
    async with demonstrated(home) as (house, _):
        run = await start(house, "background: true", session_key="work")
        found = await events(house, run["run_id"])
        (result,) = [
            json.loads(entry["data"]["result"])
            for entry in found
            if entry["kind"] == "tool.finished" and entry["data"]["name"] == "terminal"
        ]
        assert result["notify_on_complete"] is False
        assert "process" in result["notify_unsupported"]


class Passing:
    """Turns of which a run is completed between any two looks at it."""

    def __init__(self, entries: list[Entry], turn: TurnView) -> None:
        self._entries = entries
        self._turn = turn
        self._looks = 0

    async def entries(self, turn_id: TurnId) -> list[Entry]:
        assert turn_id == self._turn.id
        return self._entries if self._is_over() else self._entries[:3]

    async def get(self, turn_id: TurnId) -> TurnView:
        assert turn_id == self._turn.id
        return self._turn if self._is_over() else replace(self._turn, state=TurnState.RUNNING)

    def _is_over(self) -> bool:
        self._looks += 1
        return self._looks > 1


async def test_a_run_that_is_shown_as_completed_is_shown_whole() -> None:
    """It may be completed in the middle of being looked at."""
    kinds = [EntryKind.TURN_ACCEPTED, EntryKind.TURN_STARTED, EntryKind.TEXT, EntryKind.TEXT, EntryKind.TURN_COMPLETED]
    entries = [
        Entry.read(
            session_id=SessionId("ses"), seq=seq, turn_id=TurnId("trn"), attempt=1, nth=seq, kind=kind, at=seq,
            data={"text": f"{seq}", "request": {"endpoint": "runs"}},
        )
        for seq, kind in enumerate(kinds, 1)
    ]  # fmt: skip
    turn = Turn(
        id=TurnId("trn"),
        session_id=SessionId("ses"),
        ordinal=1,
        accepted_at=1,
        mode=Mode.DETACHED,
        state=TurnState.COMPLETED,
    )
    turns = cast("Turns", Passing(entries, TurnView.of(turn, turn, None)))
    for _ in range(2):
        run = await shown(turns, turn.id)
        assert (run.status, run.output) in {(TurnState.RUNNING, "3"), (TurnState.RUNNING, "34"), (TurnState.COMPLETED, "34")}
