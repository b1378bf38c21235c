"""What waits, runs and is due, over HTTP, on a real server."""

from __future__ import annotations

import base64
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.intake import Image
from holdfast.errors import NotFound, Rejected
from holdfast.ids import ProcessId, SessionId
from holdfast.operations.approvals import find
from holdfast.operations.jobs import Plan
from holdfast.operations.memories import Remembered
from holdfast.operations.sessions import Message
from tests.engine.world import until
from tests.web.house import House, open_house

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


async def waiting(house: House, session_id: str, text: str) -> Any:
    turn_id = (await house.send(session_id, text))["turn_id"]

    async def look() -> Any:
        items = (await house.get("/api/approvals"))["items"]
        return next((each for each in items if each["turn_id"] == turn_id), None)

    return await until(look)


async def refused(house: House, method: str, path: str, body: object = None) -> tuple[int, str]:
    answer = await house.web.request(method, path, json=body)
    return answer.status_code, answer.json()["error"]["code"]


async def test_an_open_question_is_listed_and_answered_at_its_turn(home: Path) -> None:
    async with open_house(home) as house:
        first, second = await house.session(), await house.session()
        asked = await waiting(house, first, "ask me which port; count to 1")
        other = await waiting(house, second, "ask me which tide; count to 1")
        assert (asked["session_id"], asked["text"], asked["about"]) == (first, "which port", "answer")
        page = await house.get("/api/approvals", limit=1)
        assert [each["id"] for each in page["items"]] == [asked["id"]]
        rest = await house.get("/api/approvals", limit=1, cursor=page["next_cursor"])
        assert [each["id"] for each in rest["items"]] == [other["id"]]
        of_second = await house.get("/api/approvals", session=second)
        assert [each["id"] for each in of_second["items"]] == [other["id"]]
        assert (await house.get("/api/status"))["questions"] == 2
        # The command line reads the same through its socket.
        found = await find(house.services.approvals, asked["id"])
        assert (found.turn_id, found.question_id) == (asked["turn_id"], asked["question_id"])
        body = {"text": "Bergen", "question_id": asked["question_id"]}
        await house.post(f"/api/turns/{asked['turn_id']}/answer", body)
        assert (await house.settled(asked["turn_id"]))["state"] == "completed"
        with pytest.raises(NotFound):
            await find(house.services.approvals, asked["id"])
        assert await refused(house, "GET", "/api/approvals?cursor=x") == (400, "rejected")
        assert await refused(house, "DELETE", "/api/grants/none") == (404, "not_found")
        assert (await house.services.approvals.grants()).items == []
        with pytest.raises(NotFound):
            await house.services.approvals.revoke("none")


async def test_jobs_are_kept_over_http(home: Path) -> None:
    async with open_house(home) as house:
        plan = {"name": "spring tides", "schedule": "30 7 * * *", "prompt": "count to 2"}
        assert (await house.post("/api/jobs", plan, 201))["next_at"]
        jobs = house.services.jobs
        assert [each.name for each in (await jobs.list()).items] == ["spring tides"]
        assert (await house.get("/api/jobs/spring%20tides"))["prompt"] == "count to 2"
        for leading in ("a/b", "..", "."):
            assert await refused(house, "POST", "/api/jobs", {**plan, "name": leading}) == (400, "rejected")
        assert await refused(house, "POST", "/api/jobs", {**plan, "schedule": "soon"}) == (400, "rejected")
        assert await refused(house, "POST", "/api/jobs", {"name": "x"}) == (400, "bad_json")
        assert await refused(house, "POST", "/api/jobs/none/run") == (404, "not_found")
        forecast = await jobs.forecast("30 7 * * *")
        assert (len(forecast.instants), forecast.instants[0]) == (5, (await jobs.list()).items[0].next_at)
        often = (await jobs.forecast("*/10 * * * *")).instants
        assert [later - earlier for earlier, later in pairwise(often)] == [600_000] * 4
        assert len((await jobs.forecast("at 2999-01-01T00:00")).instants) == 1
        assert await refused(house, "GET", "/api/schedule?schedule=soon") == (400, "rejected")
        await house.post("/api/jobs", {**plan, "name": "tides"}, 201)
        receipt = await house.post("/api/jobs/tides/run", status=202)
        assert (await house.settled(receipt["turn_id"]))["state"] == "completed"

        async def look() -> bool:
            return [each["outcome"] for each in (await house.get("/api/jobs/tides"))["slots"]] == ["ran"]

        await until(look)
        assert (await house.get(f"/api/sessions/{receipt['session_id']}"))["end_reason"] == "cron_complete"
        assert (await jobs.pause("tides")).paused
        assert not (await jobs.resume("tides")).paused
        assert (await jobs.run("tides")).state == "queued"
        assert (await jobs.save(Plan(name="tides", schedule="0 9 * * *", prompt="x"))).schedule == "0 9 * * *"
        await jobs.remove("tides")
        assert await refused(house, "GET", "/api/jobs/tides") == (404, "not_found")


async def test_memories_are_kept_over_http(home: Path) -> None:
    async with open_house(home) as house:
        added = await house.post("/api/memory", {"text": "likes the sea"}, 201)
        assert (await house.get("/api/memory"))["items"] == [added]
        assert (await house.get("/api/memory", q="sea"))["items"] == [added]
        assert (await house.get("/api/memory", q="mountains"))["items"] == []
        assert [each.id for each in (await house.services.memories.list(query="sea")).items] == [added["id"]]
        second = await house.services.memories.add(Remembered(text="and the hills"))
        await house.services.memories.remove(second.id)
        assert (await house.web.delete(f"/api/memory/{added['id']}")).json() == {"removed": True}
        assert (await house.services.memories.list()).items == []
        assert await refused(house, "DELETE", f"/api/memory/{added['id']}") == (404, "not_found")


async def test_a_process_that_is_none_is_404_for_everything(home: Path) -> None:
    async with open_house(home) as house:
        assert await house.get("/api/processes") == {"items": [], "next_cursor": None}
        for method, path in (("GET", ""), ("GET", "/log"), ("POST", "/kill")):
            assert await refused(house, method, f"/api/processes/prc_0{path}") == (404, "not_found")
        processes = house.services.processes
        assert (await processes.list()).items == []
        for ask in (
            processes.get(ProcessId("prc_0")),
            processes.output(ProcessId("prc_0")),
            processes.kill(ProcessId("prc_0")),
        ):
            with pytest.raises(NotFound):
                await ask
        for query in ("state=asleep", "limit=0"):
            assert (await refused(house, "GET", f"/api/processes?{query}"))[0] == 400
        assert (await refused(house, "GET", "/api/processes/prc_0/log?after=-1"))[0] == 400


def image(data: bytes = PNG, media_type: str = "image/png") -> dict[str, str]:
    return {"media_type": media_type, "data": base64.b64encode(data).decode()}


async def test_pictures_come_with_a_message(home: Path) -> None:
    """A3: the same key with another picture is another message, and is refused."""
    async with open_house(home) as house:
        session_id = await house.session()
        path = f"/api/sessions/{session_id}/messages"
        message = {"text": "what is this? count to 1", "images": [image()]}
        first = await house.post(path, message, 202, **{"Idempotency-Key": "k"})
        again = await house.post(path, message, 202, **{"Idempotency-Key": "k"})
        assert (again["turn_id"], again["duplicate"]) == (first["turn_id"], True)
        other = {**message, "images": [image(PNG + b"x")]}
        assert (await house.web.post(path, json=other, headers={"Idempotency-Key": "k"})).status_code == 422
        assert (await house.settled(first["turn_id"]))["state"] == "completed"
        large = Image(media_type="image/png", data=PNG + bytes(5_000_000))
        receipt = await house.services.sessions.send(
            SessionId(session_id), Message(text="four large ones; count to 1", images=(large,) * 4)
        )
        assert (await house.settled(receipt.turn_id))["state"] == "completed"
        with pytest.raises(Rejected, match="4 images at most"):
            await house.services.sessions.send(
                SessionId(session_id), Message(text="five", images=(Image(media_type="image/png", data=PNG),) * 5)
            )


@pytest.mark.parametrize(
    ("images", "code"),
    [
        ([image(b"not a picture")], "rejected"),
        ([image(PNG, "image/jpeg")], "rejected"),
        ([image(PNG, "text/html")], "rejected"),
        ([image()] * 5, "rejected"),
        ([image(PNG + bytes(5 * 1024 * 1024))], "rejected"),
        ([{"media_type": "image/png", "data": "not base64!"}], "bad_json"),
        ([{"media_type": "image/png"}], "bad_json"),
        ("one", "bad_json"),
    ],
)
async def test_pictures_that_no_model_would_take_are_400(home: Path, images: object, code: str) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        body = {"text": "look", "images": images}
        assert await refused(house, "POST", f"/api/sessions/{session_id}/messages", body) == (400, code)
        assert (await house.get(f"/api/sessions/{session_id}/messages"))["items"] == []


async def test_only_messages_may_be_as_large_as_pictures(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        text = {"text": "x" * 2_000_000}
        assert await refused(house, "POST", f"/api/sessions/{session_id}/messages", text) == (413, "too_large")
        assert await refused(house, "POST", "/api/memory", text) == (413, "too_large")


async def test_compacting_is_a_turn(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        receipt = await house.post(f"/api/sessions/{session_id}/compact", status=202)
        assert (await house.settled(receipt["turn_id"]))["session_id"] == session_id
        items = (await house.get(f"/api/sessions/{session_id}/messages"))["items"]
        assert (items[0]["role"], items[0]["text"]) == ("user", "/compress")
        await house.post(f"/api/sessions/{session_id}/end")
        assert await refused(house, "POST", f"/api/sessions/{session_id}/compact") == (409, "illegal_move")


async def test_only_the_operator_lets_a_job_deliver(home: Path) -> None:
    """SECURITY 9: a command of the agent's can reach a gateway that needs no key, and would send in the operator's name."""
    async with open_house(home) as house:
        plan = {"name": "leak", "schedule": "30 7 * * *", "prompt": "count to 1"}
        for target in ("file:out", "url:https://example.com/hook", "github_comment:a/b#1", "nowhere:1"):
            assert await refused(house, "POST", "/api/jobs", {**plan, "deliver": target}) == (403, "operator_only")
        assert (await house.get("/api/jobs"))["items"] == []
        await house.post("/api/jobs", {**plan, "deliver": "log"}, 201)
        await house.services.jobs.save(Plan(name="leak", schedule="30 7 * * *", prompt="count to 1", deliver="file:out"))
        # Nor what it says, once it is delivered.
        changed = {**plan, "prompt": "count to 2", "deliver": "file:out"}
        assert await refused(house, "POST", "/api/jobs", changed) == (403, "operator_only")
