"""Sessions, messages and turns over HTTP, on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import IllegalMove
from tests.engine.world import until
from tests.web.house import House, open_house


async def test_a_message_is_acknowledged_and_its_answer_is_in_the_transcript(home: Path) -> None:
    """A2: the receipt comes at once, with the turn that will answer."""
    async with open_house(home) as house:
        session_id = await house.session(title="Harbour")
        receipt = await house.send(session_id, "hello from the pier; count to 1")
        assert (receipt["session_id"], receipt["state"], receipt["duplicate"]) == (session_id, "queued", False)
        turn = await house.settled(receipt["turn_id"])
        assert turn["state"] == "completed"
        assert turn["accepted_at"] <= turn["started_at"] <= turn["answered_at"]
        transcript = await house.get(f"/api/sessions/{session_id}/messages")
        assert transcript["session"]["title"] == "Harbour"
        assert (transcript["items"][0]["role"], transcript["items"][0]["text"]) == (
            "user",
            "hello from the pier; count to 1",
        )
        assert "hello from the pier; count to 1" in await house.said(session_id, receipt["turn_id"])
        assert transcript["next_cursor"] is None


async def test_the_same_idempotency_key_is_the_same_turn(home: Path) -> None:
    """A3: also when it comes again at once; with another text it is refused."""
    async with open_house(home) as house:
        session_id = await house.session()
        first = await house.send(session_id, "once", **{"Idempotency-Key": "k1"})
        again = await house.send(session_id, "once", **{"Idempotency-Key": "k1"})
        assert again["turn_id"] == first["turn_id"]
        assert again["duplicate"]
        refused = await house.post(
            f"/api/sessions/{session_id}/messages", {"text": "other"}, 422, **{"Idempotency-Key": "k1"}
        )
        assert refused["error"]["code"] == "key_reused"
        (accepted,) = (
            each
            for each in (await house.get(f"/api/sessions/{session_id}/journal"))["entries"]
            if each["kind"] == "turn.accepted"
        )
        assert accepted["data"] == {"text": "once", "key": "k1"}, "its sender does not find it in the journal"
        other = await house.session()
        assert (await house.send(other, "once", **{"Idempotency-Key": "k1"}))["turn_id"] != first["turn_id"]


async def test_a_session_of_a_key_is_opened_once(home: Path) -> None:
    async with open_house(home) as house:
        first = await house.post("/api/sessions", {"key": "desk:7", "channel": "web"}, 201)
        again = await house.post("/api/sessions", {"key": "desk:7", "channel": "web"}, 201)
        assert first == again
        fields = (
            "id key channel state title created_at updated_at ended_at end_reason auto_reset_reason resume_pending "
            "resume_reason"
        )
        assert set(fields.split()) <= first.keys()


async def test_sessions_are_listed_in_pages_with_ended_ones_among_them(home: Path) -> None:
    async with open_house(home) as house:
        made = [await house.session(key=f"s{number}") for number in range(5)]
        await house.post(f"/api/sessions/{made[0]}/end")
        seen: list[str] = []
        cursor = ""
        while cursor is not None:
            page = await house.get("/api/sessions", limit=2, cursor=cursor)
            assert len(page["items"]) <= 2
            seen += [each["id"] for each in page["items"]]
            cursor = page["next_cursor"]
        assert sorted(seen) == sorted(made)
        ended = await house.get("/api/sessions", state="ended")
        assert [each["id"] for each in ended["items"]] == [made[0]]
        assert ended["items"][0]["end_reason"]
        assert (await house.get("/api/sessions", key="s3"))["items"][0]["id"] == made[3]


async def test_the_sessions_of_a_key_are_listed_in_pages_too(home: Path) -> None:
    async with open_house(home) as house:
        made: list[str] = []
        for _ in range(3):
            made.insert(0, await house.session(key="again"))
            await house.post(f"/api/sessions/{made[0]}/end")
        made.insert(0, await house.session(key="again"))
        first = await house.get("/api/sessions", key="again", limit=2)
        rest = await house.get("/api/sessions", key="again", limit=2, cursor=first["next_cursor"])
        assert [each["id"] for each in (*first["items"], *rest["items"])] == made
        # What is passed over does not count.
        ended = await house.get("/api/sessions", key="again", limit=1, state="ended")
        assert [each["id"] for each in ended["items"]] == [made[1]]
        more = await house.get("/api/sessions", key="again", limit=1, state="ended", cursor=ended["next_cursor"])
        assert [each["id"] for each in more["items"]] == [made[2]]


async def test_a_session_can_be_renamed_suspended_and_deleted(home: Path) -> None:
    """R7: the next message of a suspended session begins a new one, which says why."""
    async with open_house(home) as house:
        session_id = await house.session(key="chat")
        renamed = await house.web.patch(f"/api/sessions/{session_id}", json={"title": "Lights"})
        assert renamed.json()["title"] == "Lights"
        await house.post(f"/api/sessions/{session_id}/suspend")
        receipt = await house.send(session_id, "still there?")
        assert receipt["session_id"] != session_id
        followed = await house.get(f"/api/sessions/{receipt['session_id']}")
        assert (followed["auto_reset_reason"], followed["parent_id"]) == ("suspended", session_id)
        gone = await house.web.delete(f"/api/sessions/{session_id}")
        assert gone.json() == {"deleted": True}
        assert (await house.web.get(f"/api/sessions/{session_id}")).status_code == 404


async def test_a_fork_goes_its_own_way(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        first = await house.send(session_id, "count to 1")
        await house.settled(first["turn_id"])
        await house.settled((await house.send(session_id, "count to 2"))["turn_id"])
        fork = await house.post(f"/api/sessions/{session_id}/fork", {"through": first["turn_id"]}, 201)
        items = (await house.get(f"/api/sessions/{fork['id']}/messages"))["items"]
        assert [each["text"] for each in items if each["role"] == "user"] == ["count to 1"]
        assert fork["parent_id"] == session_id


async def test_a_fork_before_the_first_message_is_empty_and_keeps_the_title(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session(title="Mine")
        first = await house.send(session_id, "count to 1")
        await house.settled(first["turn_id"])
        path = f"/api/sessions/{session_id}/fork"
        fork = await house.post(path, {"before": first["turn_id"]}, 201)
        assert (fork["turns"], fork["seq"], fork["title"], fork["parent_id"]) == (0, 0, "Mine", session_id)
        again = await house.send(fork["id"], "count to 2")
        assert again["session_id"] == fork["id"]
        both = await house.web.post(path, json={"before": first["turn_id"], "through": first["turn_id"]})
        assert (both.status_code, both.json()["error"]["code"]) == (400, "rejected")
        assert (await house.web.post(path, json={"before": "trn_nobody"})).status_code == 404


async def test_cancel_keeps_what_was_shown_and_a_second_one_is_the_same(home: Path) -> None:
    """J9: cancel is explicit, keeps the partial text, and may be repeated; what ended otherwise cannot be cancelled."""
    async with open_house(home) as house:
        session_id = await house.session()
        receipt = await house.send(session_id, "count to 900 slowly")
        async with house.events(session_id) as events:
            async for entry in events:
                if entry["kind"] == "text":
                    break
        cancelled = await house.post(f"/api/turns/{receipt['turn_id']}/cancel")
        assert (cancelled["state"], cancelled["cause"]) == ("cancelled", "user")
        assert await house.said(session_id, receipt["turn_id"])
        assert await house.post(f"/api/turns/{receipt['turn_id']}/cancel") == cancelled
        answered = await house.settled((await house.send(session_id, "count to 3"))["turn_id"])
        refused = (await house.post(f"/api/turns/{answered['id']}/cancel", status=409))["error"]
        assert (refused["code"], refused["state"]) == ("illegal_move", "completed")
        with pytest.raises(IllegalMove) as told:
            await house.services.turns.cancel(answered["id"])
        assert told.value.state == "completed"


async def joined(house: House, text: str) -> tuple[str, str]:
    """Send a message, and another one that joins its turn; return both turns."""
    session_id = await house.session()
    first = (await house.send(session_id, text))["turn_id"]
    await house.in_state(first, "running")
    steering = {"text": "and mind the tide", "busy": "steer"}
    second = (await house.post(f"/api/sessions/{session_id}/messages", steering, 202))["turn_id"]

    async def look() -> bool:
        return (await house.get(f"/api/turns/{second}"))["joined_to"] == first

    await until(look)
    return first, second


async def test_a_message_that_joined_a_turn_is_cancelled_with_it(home: Path) -> None:
    """J9: whoever holds either receipt can stop the answer that both share."""
    async with open_house(home) as house:
        first, second = await joined(house, "count to 900 slowly")
        cancelled = await house.post(f"/api/turns/{second}/cancel")
        assert (cancelled["id"], cancelled["state"], cancelled["cause"]) == (second, "cancelled", "user")
        assert (await house.get(f"/api/turns/{first}"))["state"] == "cancelled"
        assert await house.post(f"/api/turns/{second}/cancel") == cancelled


async def test_a_question_is_answered_for_a_message_that_joined_its_turn(home: Path) -> None:
    async with open_house(home) as house:
        first, second = await joined(house, "count to 10 slowly; ask me which tide")
        await house.in_state(first, "waiting")
        answered = await house.post(f"/api/turns/{second}/answer", {"text": "the spring tide"})
        assert (answered["id"], answered["state"]) == (second, "queued")
        assert (await house.settled(first))["state"] == "completed"
        assert "the spring tide" in await house.said(answered["session_id"], first)


async def test_a_busy_session_says_what_can_be_done(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        await house.in_state((await house.send(session_id, "wait 60 seconds"))["turn_id"], "running")
        refused = await house.post(f"/api/sessions/{session_id}/messages", {"text": "now", "busy": "reject"}, 409)
        assert refused["error"]["code"] == "session_busy"
        assert "busy=queue" in refused["error"]["hint"]


async def test_a_turn_that_asks_is_answered_and_goes_on(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        receipt = await house.send(session_id, "ask me which tide")
        await house.in_state(receipt["turn_id"], "waiting")
        answered = await house.post(f"/api/turns/{receipt['turn_id']}/answer", {"text": "the spring tide"})
        assert answered["state"] == "queued"
        assert (await house.settled(receipt["turn_id"]))["state"] == "completed"
        assert "the spring tide" in await house.said(session_id, receipt["turn_id"])


async def test_a_failed_turn_is_retried_as_a_new_one(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        failed = await house.settled((await house.send(session_id, "fail"))["turn_id"])
        assert (failed["state"], bool(failed["error"])) == ("failed", True)
        again = await house.post(f"/api/turns/{failed['id']}/retry", status=202)
        assert again["id"] != failed["id"]
        assert (await house.settled(again["id"]))["state"] == "failed"
        turns = await house.get("/api/turns", session=session_id, limit=1)
        assert [each["id"] for each in turns["items"]] == [failed["id"]]
        rest = await house.get("/api/turns", session=session_id, cursor=turns["next_cursor"])
        assert [each["id"] for each in rest["items"]] == [again["id"]]


async def test_search_finds_words_of_any_session(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session(title="Über the sea")
        await house.settled((await house.send(session_id, "where is the lighthouse; count to 1"))["turn_id"])
        hits = (await house.get("/api/search", q="LIGHTHOUSE"))["items"]
        assert {hit["session_id"] for hit in hits} == {session_id}
        found = await house.get("/api/search", q="uber s")
        assert found == {"items": [], "indexing": False}
        (hit,) = (await house.get("/api/search", q="uber se"))["items"]
        assert (hit["kind"], hit["turn_id"], hit["seq"], hit["session_id"]) == ("title", None, 0, session_id)
        assert (hit["label"], hit["snippet"], hit["marks"]) == ("Über the sea", "Über the sea", [[0, 4], [9, 11]])
        assert len((await house.get("/api/search", q="lighth"))["items"]) == len(hits)
        assert (await house.get("/api/deliveries"))["items"] == []
