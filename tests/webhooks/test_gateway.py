"""Deliveries at a whole gateway: every answer, and what becomes of each."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from holdfast.channels.webhook.signatures import Scheme, sign
from holdfast.config import RouteConfig
from holdfast.errors import ConfigInvalid, NotFound, Rejected
from holdfast.ids import SessionId, TurnId
from holdfast.operations.keys import KeyPlan
from holdfast.operations.sessions import PruneResult, Pruning
from holdfast.operations.webhooks import RoutePlan
from tests.engine.world import until
from tests.web.house import House
from tests.webhooks.sender import SECRET, now_ms, open_routes, post, route, send, told


async def ended(house: House, session_id: str) -> Any:
    async def look() -> Any:
        session = await house.get(f"/api/sessions/{session_id}")
        return session if session["state"] == "ended" else None

    return await until(look)


async def asked(house: House, session_id: str) -> str:
    items = (await house.get(f"/api/sessions/{session_id}/messages"))["items"]
    return next(each["text"] for each in items if each["role"] == "user")


async def test_a_delivery_is_accepted_answered_and_its_session_ended(home: Path) -> None:
    """W1, W2, W3, W4: 202 with the ids, a prompt of the payload, a session of its own that ends with its turn."""
    async with open_routes(home, alerts=route(prompt="count to 3; {message} on {host.0}; {event_type}")) as house:
        answer = await send(house, "alerts", {"message": "disk full", "host": ["db1"], "type": "alert"}, "dlv-1")
        said = answer.json()
        assert (answer.status_code, said["status"], said["delivery_id"]) == (202, "accepted", "dlv-1")
        assert set(said) == {"status", "session_id", "turn_id", "delivery_id", "missing"}
        assert (await house.settled(said["turn_id"]))["state"] == "completed"
        session = await ended(house, said["session_id"])
        assert (session["end_reason"], bool(session["ended_at"])) == ("webhook_complete", True)
        assert (session["channel"], session["key"], session["one_shot"]) == ("webhook", "webhook:alerts:dlv-1", True)
        assert await asked(house, said["session_id"]) == "count to 3; disk full on db1; alert"
        assert "1 2 3" in await house.said(said["session_id"], said["turn_id"])


async def test_the_answer_does_not_wait_for_the_agent(home: Path) -> None:
    """W3: the answer goes out before the agent runs, which goes on in the background."""
    async with open_routes(home, alerts=route(prompt="wait 600 seconds")) as house:
        said = (await send(house, "alerts", {})).json()
        turn = await house.in_state(said["turn_id"], "running")
        assert turn["started_at"] >= turn["accepted_at"]


@pytest.mark.parametrize(
    ("prompt", "state"), [("count to 2", "completed"), ("fail", "failed"), ("count to 900 slowly", "cancelled")]
)
async def test_the_session_ends_however_the_turn_does(home: Path, prompt: str, state: str) -> None:
    """W4: on success, failure and cancellation alike."""
    async with open_routes(home, alerts=route(prompt=prompt)) as house:
        said = (await send(house, "alerts", {})).json()
        if state == "cancelled":
            await house.in_state(said["turn_id"], "running")
            await house.post(f"/api/turns/{said['turn_id']}/cancel")
        assert (await house.settled(said["turn_id"]))["state"] == state
        assert (await ended(house, said["session_id"]))["end_reason"] == "webhook_complete"


async def test_pruning_removes_what_has_ended(home: Path) -> None:
    """W6: only ended sessions of that channel, and it says how many."""
    async with open_routes(home, alerts=route(prompt="{do}")) as house:
        done = [(await send(house, "alerts", {"do": "count to 1"}, f"d{number}")).json() for number in range(3)]
        for each in done:
            await ended(house, each["session_id"])
        busy = (await send(house, "alerts", {"do": "wait 600 seconds"}, "busy")).json()
        chat = await house.session()
        await house.post(f"/api/sessions/{chat}/end")
        assert await house.services.sessions.prune(Pruning(channel="webhook")) == PruneResult(pruned=3)
        assert await house.services.sessions.prune(Pruning(channel="webhook")) == PruneResult(pruned=0)
        assert (await house.get(f"/api/sessions/{busy['session_id']}"))["state"] == "open"
        assert (await house.web.get(f"/api/sessions/{done[0]['session_id']}")).status_code == 404
        # What came before is known for longer than what became of it.
        again = await send(house, "alerts", {"do": "count to 1"}, "d0")
        assert (told(again), again.json()["turn_id"]) == ((200, "duplicate"), done[0]["turn_id"])


async def test_the_same_delivery_is_one_turn_across_a_restart(home: Path) -> None:
    """A duplicate is 200 with the same turn id, also for the next process."""
    async with open_routes(home, alerts=route(prompt="count to 1; {message}")) as house:
        first = await send(house, "alerts", {"message": "x"}, "same")
        again = await asyncio.gather(*(send(house, "alerts", {"message": "x"}, "same") for _ in range(10)))
        assert {told(each) for each in again} == {(200, "duplicate")}
        assert {each.json()["turn_id"] for each in again} == {first.json()["turn_id"]}
        other = await send(house, "alerts", {"message": "y"}, "same")
        assert told(other) == (422, "key_reused")
    async with open_routes(home, alerts=route(prompt="count to 1; {message}")) as house:
        late = await send(house, "alerts", {"message": "x"}, "same")
        assert (told(late), late.json()["turn_id"]) == ((200, "duplicate"), first.json()["turn_id"])
        assert late.json()["session_id"] == first.json()["session_id"]


async def test_deliveries_that_come_at_once_become_one_turn(home: Path) -> None:
    async with open_routes(home, alerts=route()) as house:
        answers = await asyncio.gather(*(send(house, "alerts", {"message": "x"}, "race") for _ in range(20)))
        assert sorted(each.status_code for each in answers) == [200] * 19 + [202]
        assert len({each.json()["turn_id"] for each in answers}) == 1


async def test_a_replay_is_a_duplicate_where_the_sender_has_no_ids(home: Path) -> None:
    async with open_routes(home, alerts=route()) as house:
        for scheme, extra in ((Scheme.HMAC, "X-Delivery-Id"), (Scheme.SLACK, ""), (Scheme.STRIPE, "")):
            # Some of them sign alike, and one is a replay of the other.
            body, at = json.dumps({"message": scheme}).encode(), now_ms()
            signed = {name: value for name, value in sign(scheme, body, SECRET, at, "d").items() if name != extra}
            first, replay = await post(house, "alerts", body, signed), await post(house, "alerts", body, signed)
            assert (told(first), told(replay)) == ((202, "accepted"), (200, "duplicate"))
            assert first.json()["delivery_id"] == replay.json()["delivery_id"]


@pytest.mark.parametrize("scheme", [Scheme.HMAC, Scheme.SLACK, Scheme.STRIPE])
async def test_a_replay_under_another_id_is_a_duplicate(home: Path, scheme: Scheme) -> None:
    """SECURITY 4: where a time is signed and the id is not, whoever overheard it cannot make another delivery of it."""
    async with open_routes(home, alerts=route(), other=route()) as house:
        body = b'{"message": "x"}'
        signed = dict(sign(scheme, body, SECRET, now_ms(), "d"))
        first = await post(house, "alerts", body, signed)
        assert told(first) == (202, "accepted")
        for title in ("X-Delivery-Id", "Idempotency-Key", "X-Request-Id", "webhook-id"):
            replay = await post(house, "alerts", body, {**signed, title: "another"})
            assert told(replay) == (200, "duplicate")
            assert replay.json()["turn_id"] == first.json()["turn_id"]
        # What is signed with the same secret for another route is another delivery.
        assert told(await post(house, "other", body, signed)) == (202, "accepted")


async def test_what_github_signed_is_one_delivery_under_any_id_and_after_a_restart(home: Path) -> None:
    """S12: the signature covers the body alone, so that who overheard one can give it any id."""
    body = b'{"action": "opened", "message": "x"}'
    signed = dict(sign(Scheme.GITHUB, body, SECRET, now_ms(), "72d3162e"))
    async with open_routes(home, alerts=route(), other=route()) as house:
        first = await post(house, "alerts", body, signed)
        assert told(first) == (202, "accepted")
        assert told(await post(house, "other", body, signed)) == (202, "accepted")
        assert told(await send(house, "alerts", {"message": "y"}, scheme=Scheme.GITHUB)) == (202, "accepted")
    async with open_routes(home, alerts=route(), other=route()) as house:
        without = {name: value for name, value in signed.items() if name != "X-GitHub-Delivery"}
        for replayed in ({**signed, "X-GitHub-Delivery": "another"}, without, {**without, "webhook-id": "another"}, signed):
            replay = await post(house, "alerts", body, replayed)
            assert (told(replay), replay.json()["turn_id"]) == ((200, "duplicate"), first.json()["turn_id"])


@pytest.mark.parametrize("scheme", Scheme)
async def test_every_scheme_is_let_in_and_kept_out(home: Path, scheme: Scheme) -> None:
    """No or a flipped signature is 401, a stale or a future timestamp is 401, `sha1=` alone is 401."""
    secret = SECRET if scheme is Scheme.STANDARD else "only for this scheme 1"
    async with open_routes(home, alerts=route(secret=secret, rate_limit=1)) as house:
        payload, body = {"message": "x"}, json.dumps({"message": "x"}).encode()
        assert told(await post(house, "alerts", body)) == (401, "unverified")
        assert told(await send(house, "alerts", payload, scheme=scheme, secret="another secret 123456")) == (
            401,
            "unverified",
        )
        if scheme not in (Scheme.GITHUB, Scheme.GITLAB):
            for off in (-301_000, 302_000):
                stale = await send(house, "alerts", payload, scheme=scheme, secret=secret, at_ms=now_ms() + off)
                assert told(stale) == (401, "unverified")
        if scheme is Scheme.GITHUB:
            assert told(await post(house, "alerts", body, {"X-Hub-Signature": "sha1=" + "0" * 40})) == (401, "unverified")
        refused = await post(house, "alerts", body)
        assert "webhooks sign" in refused.json()["error"]["hint"]
        # None of them has used any of the rate.
        assert told(await send(house, "alerts", payload, scheme=scheme, secret=secret)) == (202, "accepted")
        assert (await house.get("/api/status"))["accepted"] == 1


async def test_one_valid_signature_of_two_is_enough(home: Path) -> None:
    async with open_routes(home, alerts=route()) as house:
        body = b'{"message": "x"}'
        signed = dict(sign(Scheme.STANDARD, body, SECRET, now_ms(), "two"))
        signed["webhook-signature"] = f"v1,{'A' * 43}= {signed['webhook-signature']}"
        assert told(await post(house, "alerts", body, signed)) == (202, "accepted")


async def test_a_route_that_is_not_there_is_404(home: Path) -> None:
    async with open_routes(home, off=route(enabled=False), alerts=route()) as house:
        for name in ("none", "off", "ALERTS", "alerts%2Fx", "alerts%00", "alerts/"):
            answer = await send(house, name, {"message": "x"})
            assert answer.status_code in (400, 403, 404), name
        assert told(await send(house, "none", {})) == (404, "not_found")
        assert told(await send(house, "off", {})) == (404, "not_found")
        assert (await house.web.get("/webhooks/alerts")).status_code == 405


async def test_too_large_is_413_before_anything_else(home: Path) -> None:
    async with open_routes(home, alerts=route(body_limit=100), large=route(body_limit=20_000)) as house:
        assert told(await post(house, "alerts", b"x" * 101)) == (413, "too_large")
        assert told(await send(house, "alerts", {"message": "x" * 90})) == (413, "too_large")
        assert told(await send(house, "alerts", {"message": "x" * 60})) == (202, "accepted")
        bomb = gzip.compress(b" " * 10_000_000)
        assert len(bomb) < 20_000
        assert told(await post(house, "large", bomb, {"content-encoding": "gzip"})) == (413, "too_large")


@pytest.mark.parametrize("body", [b"", b"hello", b"[1]", b'{"a": NaN}', b'{"a": "\xff"}', b'{"a":' * 10_000, b"null"])
async def test_what_is_no_json_is_400_for_whoever_has_signed_it(home: Path, body: bytes) -> None:
    async with open_routes(home, alerts=route()) as house:
        signed = sign(Scheme.STANDARD, body, SECRET, now_ms(), "d")
        assert told(await post(house, "alerts", body, dict(signed))) == (400, "bad_delivery")
        assert told(await post(house, "alerts", body)) == (401, "unverified")


async def test_an_id_that_is_none_is_400(home: Path) -> None:
    async with open_routes(home, alerts=route()) as house:
        odd = await send(house, "alerts", {"message": "x"}, scheme=Scheme.HMAC, X_Delivery_Id="x" * 300)
        assert told(odd) == (400, "bad_delivery")


async def test_events_and_filters_let_only_some_through(home: Path) -> None:
    filters = [{"field": "action", "in": ["opened"]}, {"not": {"field": "draft", "equals": True}}]
    async with open_routes(home, pulls=route(events=("pull_request",), filters=filters, rate_limit=1)) as house:
        for number, (event, payload) in enumerate(
            (("push", {"action": "opened"}), ("pull_request", {"action": "closed"}), ("pull_request", {"draft": True}))
        ):
            answer = await send(house, "pulls", payload, f"i{number}", scheme=Scheme.GITHUB, X_GitHub_Event=event)
            assert (told(answer), answer.json()["turn_id"]) == ((200, "ignored"), None)
        wanted = await send(house, "pulls", {"action": "opened"}, "w", scheme=Scheme.GITHUB, X_GitHub_Event="pull_request")
        assert told(wanted) == (202, "accepted")


async def test_what_is_missing_is_said_and_logged(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    """W1: a missing field renders `<missing>` and warns."""
    async with open_routes(home, alerts=route(prompt="count to 1: {message} {host.name}")) as house:
        with caplog.at_level(logging.WARNING):
            said = (await send(house, "alerts", {"message": "x"})).json()
        assert said["missing"] == ["host.name"]
        assert await asked(house, said["session_id"]) == "count to 1: x <missing>"
        assert "webhook alerts: delivery d1 has no host.name" in caplog.text


async def test_more_than_the_rate_is_429_and_duplicates_are_not_counted(home: Path) -> None:
    """Over the rate is 429 with Retry-After; what came before is known before the rate is looked at."""
    async with open_routes(home, alerts=route(rate_limit=2), other=route(rate_limit=1)) as house:
        first = await send(house, "alerts", {"message": "x"}, "a")
        for _ in range(3):
            assert told(await send(house, "alerts", {"message": "x"}, "a")) == (200, "duplicate")
        assert told(await send(house, "alerts", {"message": "y"}, "a")) == (422, "key_reused")
        assert told(await send(house, "alerts", {"message": "x"}, "b")) == (202, "accepted")
        over = await send(house, "alerts", {"message": "x"}, "c")
        assert told(over) == (429, "rate_limited")
        assert 1 <= int(over.headers["retry-after"]) <= 60
        again = await send(house, "alerts", {"message": "x"}, "a")
        assert (told(again), again.json()["turn_id"]) == ((200, "duplicate"), first.json()["turn_id"])
        assert told(await send(house, "other", {"message": "x"}, "c")) == (202, "accepted")


async def test_a_key_of_the_route_does_as_well_as_a_signature(home: Path) -> None:
    async with open_routes(home, alerts=route(), other=route()) as house:
        made = await house.services.keys.create(KeyPlan(name="ci", scopes=("webhook:alerts",)))
        body, shown = b'{"message": "x"}', {"Authorization": f"Bearer {made.key}"}
        assert told(await post(house, "alerts", body, {**shown, "Idempotency-Key": "k"})) == (202, "accepted")
        assert told(await post(house, "alerts", body, {**shown, "Idempotency-Key": "k"})) == (200, "duplicate")
        assert told(await post(house, "other", body, shown)) == (403, "wrong_scope")
        assert told(await post(house, "alerts", body, {"Authorization": "Bearer hf_wrong"})) == (401, "unauthorized")
        # Somebody with a key for something else may still sign.
        assert told(await send(house, "other", {"message": "x"}, Authorization=f"Bearer {made.key}")) == (202, "accepted")


async def test_an_unsigned_route_is_open_on_loopback_only(home: Path) -> None:
    """Unsigned webhooks only on loopback, and only when asked for by name."""
    unsigned = route(secret="", insecure_no_auth=True)
    async with open_routes(home, alerts=unsigned) as house:
        assert told(await post(house, "alerts", b'{"message": "x"}')) == (202, "accepted")
        assert told(await post(house, "alerts", b'{"message": "x"}', {"Host": "evil.example"})) == (421, "foreign_host")
        cross = await post(house, "alerts", b'{"message": "x"}', {"Origin": "https://evil.example"})
        assert told(cross) == (403, "foreign_origin")
        # A proxy on this machine speaks for everybody, and nothing can be signed with no secret.
        far = {"X-Forwarded-For": "203.0.113.7"}
        assert told(await post(house, "alerts", b'{"message": "x"}', far)) == (401, "unverified")
        signed = sign(Scheme.GITHUB, b"{}", "", now_ms(), "dlv-1")
        assert told(await post(house, "alerts", b"{}", {**signed, **far})) == (401, "unverified")


async def test_slack_is_told_its_challenge_once_it_has_signed(home: Path) -> None:
    async with open_routes(home, slack=route()) as house:
        asked_for = {"type": "url_verification", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}
        answer = await send(house, "slack", asked_for, scheme=Scheme.SLACK)
        assert (answer.status_code, answer.json()) == (200, {"challenge": asked_for["challenge"]})
        assert told(await post(house, "slack", json.dumps(asked_for).encode())) == (401, "unverified")
        assert (await house.get("/api/status"))["accepted"] == 0


async def test_forms_are_taken_too(home: Path) -> None:
    async with open_routes(home, alerts=route(prompt="count to 1: {action} {text}")) as house:
        for number, (scheme, form) in enumerate(
            ((Scheme.GITHUB, {"payload": '{"action": "opened", "text": "a"}'}), (Scheme.SLACK, {"action": "b", "text": "c"}))
        ):
            body = urlencode(form).encode()
            signed = {
                **sign(scheme, body, SECRET, now_ms(), f"f{number}"),
                "content-type": "application/x-www-form-urlencoded",
            }
            said = await post(house, "alerts", body, signed)
            assert told(said) == (202, "accepted")
            assert await asked(house, said.json()["session_id"]) == ("count to 1: opened a", "count to 1: b c")[number]


async def test_an_answer_goes_where_the_route_says(home: Path) -> None:
    """A turn of a webhook can deliver later; the answer leaves through the outbox."""
    async with open_routes(home, alerts=route(prompt="count to 2; {message}", deliver="file:alerts")) as house:
        said = (await send(house, "alerts", {"message": "x"})).json()
        turn = await house.settled(said["turn_id"])

        async def look() -> Any:
            return (await house.get(f"/api/turns/{turn['id']}"))["delivered_at"]

        await until(look)
        lines = (home / "outbox" / "alerts.jsonl").read_text("utf-8").splitlines()
        assert [json.loads(line)["turn_id"] for line in lines] == [said["turn_id"]]


async def test_a_route_may_deliver_without_an_agent(home: Path) -> None:
    """A deliver-only route sends the text of its template, and no agent is asked."""
    fast = route(prompt="count to 9: {message}", deliver="file:fast", deliver_only=True)
    async with open_routes(home, fast=fast) as house:
        said = (await send(house, "fast", {"message": "disk full"})).json()
        assert (await house.settled(said["turn_id"]))["state"] == "completed"
        assert (await ended(house, said["session_id"]))["end_reason"] == "webhook_complete"

        async def look() -> Any:
            return (await house.get(f"/api/turns/{said['turn_id']}"))["delivered_at"]

        await until(look)
        (line,) = (home / "outbox" / "fast.jsonl").read_text("utf-8").splitlines()
        assert json.loads(line)["text"] == "count to 9: disk full"


async def test_a_payload_may_name_an_issue_but_nothing_else(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_0123456789")
    target = "github_comment:{repository.full_name}#{number}"
    async with open_routes(home, pulls=route(deliver=target, prompt="wait 600 seconds")) as house:
        good = await send(house, "pulls", {"repository": {"full_name": "octo/hello"}, "number": 7}, "a")
        assert told(good) == (202, "accepted")
        for number, payload in enumerate(
            (
                {"number": 7},
                {"repository": {"full_name": "octo/hello"}},
                {"repository": {"full_name": "octo/hello"}, "number": "7#8"},
                {"repository": {"full_name": "../../evil"}, "number": 7},
                {"repository": {"full_name": "octo/hello?x=1"}, "number": 7},
                {"repository": {"full_name": "octo"}, "number": 7},
                {"repository": {"full_name": {"a": 1}}, "number": 7},
                {"repository": {"full_name": ""}, "number": 7},
            )
        ):
            assert told(await send(house, "pulls", payload, f"b{number}")) == (422, "no_target"), payload


async def test_an_empty_prompt_is_422(home: Path) -> None:
    async with open_routes(home, alerts=route(prompt="{message}")) as house:
        assert told(await send(house, "alerts", {"message": " "})) == (422, "empty_prompt")


async def test_a_route_is_added_used_changed_and_removed_while_the_gateway_runs(home: Path) -> None:
    """Hot: a route works at once, through a restart too; its secret is shown once."""
    async with open_routes(home, fixed=route()) as house:
        services = house.services.webhooks
        assert told(await send(house, "hot", {"message": "x"})) == (404, "not_found")
        new = await services.add(RoutePlan(name="hot", prompt="count to 1: {message}", events=("a",)))
        assert (new.url, new.secret[:6], new.route.source) == (f"{house.url}/webhooks/hot", "whsec_", "added")
        assert told(await send(house, "hot", {"message": "x", "type": "a"}, secret=new.secret)) == (202, "accepted")
        assert told(await send(house, "hot", {"message": "x"}, "d2", secret=new.secret)) == (200, "ignored")
        changed = await services.add(RoutePlan(name="hot", prompt="count to 2"))
        assert (changed.secret, changed.route.created_at) == ("", new.route.created_at)
        assert told(await send(house, "hot", {"message": "x"}, "d2", secret=new.secret)) == (202, "accepted")
        listed = (await services.list()).items
        assert [(each.name, each.source) for each in listed] == [("fixed", "configuration"), ("hot", "added")]
        assert new.secret not in (await house.web.get("/api/status")).text + str(listed) + str(await services.get("hot"))
        for ask in (services.add(RoutePlan(name="fixed")), services.remove("fixed")):
            with pytest.raises(Rejected, match="configuration"):
                await ask
    async with open_routes(home) as house:
        assert told(await send(house, "hot", {"message": "x"}, "d2", secret=new.secret)) == (200, "duplicate")
        await house.services.webhooks.remove("hot")
        assert told(await send(house, "hot", {"message": "x"}, "d3", secret=new.secret)) == (404, "not_found")
        for ask in (house.services.webhooks.remove("hot"), house.services.webhooks.get("hot")):
            with pytest.raises(NotFound):
                await ask


async def test_a_route_of_the_configuration_wins(home: Path) -> None:
    async with open_routes(home) as house:
        new = await house.services.webhooks.add(RoutePlan(name="alerts", prompt="count to 1"))
    async with open_routes(home, alerts=route()) as house:
        assert told(await send(house, "alerts", {"message": "x"}, secret=new.secret)) == (401, "unverified")
        assert told(await send(house, "alerts", {"message": "x"})) == (202, "accepted")
        assert [each.source for each in (await house.services.webhooks.list()).items] == ["configuration"]


@pytest.mark.parametrize(
    ("plan", "hint"),
    [
        ({"name": "a/b"}, "is not a valid name of a route"),
        ({"name": ""}, "is not a valid name of a route"),
        ({"prompt": "{__class__}"}, "prompt: "),
        ({"prompt": " "}, "prompt: is empty"),
        ({"filters": {"field": "a"}}, "filters: needs exactly one of"),
        ({"secret": "short"}, "too short"),
        ({"secret": "changeme-changeme-changeme"}, "placeholder"),
        ({"deliver": "pigeon:home"}, "nothing can be sent to"),
        ({"deliver": "pigeon"}, "not a target"),
        ({"deliver": "url:https://x.example/{a}"}, "must not choose the url"),
        ({"deliver": "url:http://169.254.169.254/latest"}, "deliver: "),
        ({"deliver_only": True}, "needs a target in deliver"),
        ({"body_limit": 0}, "between 1 and"),
        ({"rate_limit": -1}, "between 0 (no limit) and"),
        ({"events": ("x",) * 101}, "more than 100"),
        ({"scheme": "standard", "secret": "whsec_this is no base64 at all!"}, "base64"),
        ({"insecure_no_auth": True, "secret": "0123456789abcdef"}, "remove one of them"),
    ],
)
async def test_a_route_that_could_not_work_is_refused_when_it_is_added(home: Path, plan: dict[str, Any], hint: str) -> None:
    """Deliver to 169.254.169.254 is refused, and so is whatever else could only fail later."""
    async with open_routes(home) as house:
        with pytest.raises(Rejected) as refused:
            await house.services.webhooks.add(RoutePlan(**{"name": "hot", **plan}))
        assert hint in str(refused.value)
        assert (await house.services.webhooks.list()).items == []


async def test_a_gateway_does_not_start_with_a_route_that_could_not_work(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bad, hint in (
        (route(deliver="pigeon:home"), "channels.webhook.routes.alerts.deliver: nothing can be sent to"),
        (route(deliver="url:http://169.254.169.254/"), "channels.webhook.routes.alerts.deliver"),
        (RouteConfig(secret_env="NOT_THERE"), "the variable NOT_THERE is not set"),
        (RouteConfig(secret_env="TOO_SHORT"), "the variable TOO_SHORT is too short"),
        (RouteConfig(), "channels.webhook.routes.alerts.secret: is missing"),
    ):
        monkeypatch.setenv("TOO_SHORT", "abc")
        with pytest.raises(ConfigInvalid) as refused:
            async with open_routes(home, alerts=bad):
                raise AssertionError("it started")
        assert hint in str(refused.value)


async def test_a_secret_may_come_from_the_environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", "a secret of the environment")
    async with open_routes(home, alerts=RouteConfig(secret_env="HOOK_SECRET", prompt="count to 1")) as house:
        assert told(await send(house, "alerts", {}, secret="a secret of the environment")) == (202, "accepted")
        assert told(await send(house, "alerts", {}, "d2", secret="")) == (401, "unverified")


async def test_secrets_of_routes_reach_no_transcript(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    """K1: a secret is masked from the moment that its route is there, whole or without its prefix."""
    async with open_routes(home, fixed=route(prompt="count to 1 and say: {message}")) as house:
        new = await house.services.webhooks.add(RoutePlan(name="hot", prompt="say: {message}"))
        # What answers are signed with is made up where the operator chose nothing.
        own = (await house.services.webhooks.secret()).secret
        for number, secret in enumerate((SECRET, SECRET[6:], new.secret, new.secret[6:], own, own[6:])):
            said = (await send(house, "fixed", {"message": f"it is {secret}!"}, f"s{number}")).json()
            await house.settled(said["turn_id"])
            text = json.dumps(await house.get(f"/api/sessions/{said['session_id']}/messages"))
            assert "[redacted]" in text
            assert secret not in text
        assert new.secret not in caplog.text


async def test_who_may_keep_routes(home: Path) -> None:
    """Routes are the operator's: a guest of this machine may not see or change them."""
    async with open_routes(home, alerts=route()) as house:
        for method, path in (("GET", ""), ("POST", ""), ("GET", "/alerts"), ("DELETE", "/alerts"), ("POST", "/alerts/sign")):
            answer = await house.web.request(method, f"/api/webhooks{path}", json={"name": "x", "body": "{}"})
            assert answer.status_code == 403
        assert (await house.web.get("/api/signing-secret")).status_code == 403


async def test_turns_of_webhooks_have_a_minimal_tool_set(home: Path) -> None:
    """A stranger's words never meet private data and a way out: of the tools, only harmless ones are offered."""
    async with open_routes(home, alerts=route(prompt="run: echo out")) as house:
        said = (await send(house, "alerts", {})).json()
        await house.settled(said["turn_id"])
        items = (await house.get(f"/api/sessions/{said['session_id']}/messages"))["items"]
        (call,) = [each for each in items if each["role"] == "tool" and each["name"] == "terminal"]
        assert call["outcome"] == "error"
        assert "there is no tool 'terminal'" in call["result"]


async def test_a_delivery_can_be_tried_again_by_its_operator(home: Path) -> None:
    async with open_routes(home, alerts=route(prompt="fail")) as house:
        said = (await send(house, "alerts", {})).json()
        await house.settled(said["turn_id"])
        again = await house.services.turns.retry(TurnId(said["turn_id"]))
        assert (await house.settled(again.id))["state"] == "failed"
        assert (await ended(house, again.session_id))["end_reason"] == "webhook_complete"
        assert SessionId(said["session_id"]) != again.session_id


async def test_a_pattern_that_never_ends_keeps_nobody_waiting(home: Path) -> None:
    """A sender passes on what strangers wrote, and everything else here waits while it is searched."""
    filters = {"field": "message", "regex": r"^(\w+\s?)+$"}
    async with open_routes(home, alerts=route(filters=filters)) as house:
        slow = asyncio.create_task(send(house, "alerts", {"message": "a" * 60 + "!"}))
        async with asyncio.timeout(5):
            assert told(await slow) == (422, "slow_filter")
        assert told(await send(house, "alerts", {"message": "all is well"}, "d2")) == (202, "accepted")
