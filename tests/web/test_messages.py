"""Sessions, messages and turns over HTTP, on a real server."""

from __future__ import annotations

from pathlib import Path

from tests.web.house import open_house


async def test_a_message_is_acknowledged_and_its_answer_is_in_the_transcript(home: Path) -> None:
    """A2: the receipt comes at once, with the turn that will answer."""
    async with open_house(home) as house:
        session_id = await house.session(title="Harbour")
        receipt = await house.send(session_id, "hello from the pier")
        assert (receipt["session_id"], receipt["state"], receipt["duplicate"]) == (session_id, "queued", False)
        turn = await house.settled(receipt["turn_id"])
        assert turn["state"] == "completed"
        assert turn["accepted_at"] <= turn["started_at"] <= turn["answered_at"]
        transcript = await house.get(f"/api/sessions/{session_id}/messages")
        assert transcript["session"]["title"] == "Harbour"
        assert (transcript["items"][0]["role"], transcript["items"][0]["text"]) == ("user", "hello from the pier")
        assert "hello from the pier" in await house.said(session_id, receipt["turn_id"])
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
        first = await house.send(session_id, "one")
        await house.settled(first["turn_id"])
        await house.settled((await house.send(session_id, "two"))["turn_id"])
        fork = await house.post(f"/api/sessions/{session_id}/fork", {"through": first["turn_id"]}, 201)
        items = (await house.get(f"/api/sessions/{fork['id']}/messages"))["items"]
        assert [each["text"] for each in items if each["role"] == "user"] == ["one"]
        assert fork["parent_id"] == session_id


async def test_cancel_keeps_what_was_shown_and_a_second_one_is_told_so(home: Path) -> None:
    """J9: cancel is explicit, keeps the partial text, and a finished turn cannot be cancelled."""
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
        again = await house.post(f"/api/turns/{receipt['turn_id']}/cancel", status=409)
        assert "cancelled" in again["error"]["message"]


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
        session_id = await house.session()
        await house.settled((await house.send(session_id, "where is the lighthouse"))["turn_id"])
        hits = (await house.get("/api/search", q="LIGHTHOUSE"))["items"]
        assert {hit["session_id"] for hit in hits} == {session_id}
        assert (await house.get("/api/deliveries"))["items"] == []
