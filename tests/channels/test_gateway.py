"""A whole gateway and a receiver: killed while it sends, told to go away, and looked after by an operator."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.errors import Rejected
from holdfast.operations.jobs import Plan
from holdfast.store.opening import open_store
from tests.blackbox.gateway import Gateway, gateways, until
from tests.channels.receiver import Receiver, Reply, receiving
from tests.channels.test_url import is_signed
from tests.engine.world import Hang
from tests.http_server import Request
from tests.web.house import open_house

NEVER = "0 4 29 2 *"


@asynccontextmanager
async def a_gateway(there: Receiver) -> AsyncIterator[Gateway]:
    """Run a gateway that may send to a receiver."""
    with gateways(channels__url__allow_hosts=json.dumps(there.hosts)) as (gateway,):
        gateway.environment["COLUMNS"] = "200"
        await gateway.start()
        yield gateway


async def answer_to(gateway: Gateway, target: str, name: str = "tides") -> None:
    """Have something answered, and the answer sent to a target."""
    await gateway.run("jobs", "add", name, "--schedule", NEVER, "--prompt", "count to 1", "--deliver", target)
    await gateway.run("jobs", "run", name)


async def in_state(gateway: Gateway, state: str) -> dict[str, Any]:
    """Return a delivery once there is one in this state."""
    found: list[dict[str, Any]] = []
    async with httpx2.AsyncClient(base_url=gateway.url, verify=False, trust_env=False) as web:

        async def look() -> bool:
            found[:] = (await web.get("/api/deliveries", params={"state": state})).json()["items"]
            return bool(found)

        await until(look, f"a delivery is {state}")
    return found[0]


async def test_killed_while_it_sends_it_repeats_that_once_and_says_so() -> None:
    """D1 D2: with the same id, and signed with the same secret, which nobody had to configure."""
    async with receiving(Hang(), Reply("202 Accepted", {"X-Request-Id": "r-1"})) as there, a_gateway(there) as gateway:
        await answer_to(gateway, f"url:{there.url()}")
        await until(lambda: there.posts, "the answer is being sent")
        await gateway.kill()
        await gateway.start()
        sent = await in_state(gateway, "delivered")
        await gateway.run("stop")
        store = await open_store("sqlite", gateway.home)
        secret = await store.secrets.get_or_add("url", "none")
        await store.close()
    first, second = there.posts
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == sent["id"]
    assert (first.json["possible_repeat"], second.json["possible_repeat"]) == (False, True)
    assert first.json["text"] == second.json["text"]
    assert (sent["receipt"], sent["repeats"]) == ("202 r-1", 1)
    assert all(is_signed(secret, each, int(time.time())) for each in there.posts)


async def test_killed_in_the_middle_of_several_tries_in_a_row_it_is_received_in_the_end() -> None:
    """D1 D2: the receiver knows the id, so that each repeat is harmless, and it takes the one that it hears to the end."""
    kills = 3
    async with receiving(*[Hang() for _ in range(kills)], Reply("202 Accepted")) as there, a_gateway(there) as gateway:
        await answer_to(gateway, f"url:{there.url()}")
        for killed in range(1, kills + 1):
            await until(lambda tries=killed: len(there.posts) == tries, f"try {killed} is on its way")
            await gateway.kill()
            await gateway.start()
        sent = await in_state(gateway, "delivered")
    assert (sent["receipt"], sent["attempt"], sent["repeats"]) == ("202", kills + 1, 1)
    assert {each.headers["webhook-id"] for each in there.posts} == {sent["id"]}
    assert [each.json["possible_repeat"] for each in there.posts] == [False, *[True] * kills]


@pytest.mark.long
async def test_an_operator_sees_why_and_when_and_can_have_it_sent_again() -> None:
    answers = {
        "/busy": [Reply("503 Away", {"Retry-After": "3600"})],
        "/gone": [Reply("404 Not Found", body=b"no such hook")],
    }

    def play(post: Request) -> Reply:
        return answers[post.path].pop() if answers[post.path] else Reply()

    async with receiving(by=play) as there, a_gateway(there) as gateway:
        await answer_to(gateway, f"url:{there.url('/busy')}", "busy")
        waiting = await in_state(gateway, "retry")
        assert 3_500_000 < waiting["due_at"] - time.time() * 1000 <= 3_600_000
        await answer_to(gateway, f"url:{there.url('/gone')}", "gone")
        failed = await in_state(gateway, "failed")
        table = await gateway.run("deliveries", "list", "--state", "retry")
        assert waiting["id"] in table
        assert "127.0.0.1 cannot take it now: 503 Away" in table
        shown = await gateway.run("deliveries", "show", failed["id"])
        assert "no such hook" in shown
        assert "due_at" not in shown
        assert "is sent again now" in await gateway.run("deliveries", "retry", failed["id"])
        sent = await in_state(gateway, "delivered")
        assert sent["id"] == failed["id"]
        with pytest.raises(AssertionError, match="it cannot be sent again: it has arrived"):
            await gateway.run("deliveries", "retry", sent["id"])
    assert [each.json["possible_repeat"] for each in there.posts] == [False] * 3


REFUSED = {
    "file:../x": "names no file",
    "url:https://169.254.169.254/latest/": "not on the public internet",
    "url:http://public.example/": "use https",
    "url:https://localhost/": r"channels\.url\.allow_hosts",
    "github_comment:octo/hello": "OWNER/REPOSITORY#NUMBER",
    "github_comment:octo/hello#7": "environment variable GITHUB_TOKEN",
    "pigeon:1": "targets are file:<address>, github_comment:<address>, url:<address>",
}


async def test_a_job_that_could_never_deliver_is_refused_when_it_is_added(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SECURITY 6: deliver to 169.254.169.254 → refused."""
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    async with open_house(home) as house:
        for target, problem in REFUSED.items():
            with pytest.raises(Rejected, match=problem):
                await house.services.jobs.save(Plan(name="tides", schedule=NEVER, prompt="p", deliver=target))
        for target in ("log", "file:reports", "url:https://hooks.example.com/a"):
            await house.services.jobs.save(Plan(name="tides", schedule=NEVER, prompt="p", deliver=target))
