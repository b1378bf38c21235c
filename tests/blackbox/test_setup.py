"""The first run: from a gateway that nobody configured to the answer of a real model, without an editor or a terminal."""

from __future__ import annotations

import contextlib
import re
import stat
from collections.abc import AsyncIterator

import httpx2

from tests.blackbox.client import client
from tests.blackbox.gateway import Gateway, gateways
from tests.models.servers import ModelServer
from tests.web.signing import Signing

KEY = "sk-the-key-of-the-first-run"
MODEL = "compatible:first-model"


@contextlib.asynccontextmanager
async def signed_in(gateway: Gateway) -> AsyncIterator[httpx2.AsyncClient]:
    """Follow the link that a start prints, as the page does."""
    await gateway.says("#code=")
    (link,) = re.findall(r"#code=(\S+)", gateway.log.read_text())
    headers = {"Origin": gateway.url}
    async with httpx2.AsyncClient(base_url=gateway.url, verify=False, headers=headers, trust_env=False, timeout=30) as page:
        answer = await page.post("/api/sign-in", json={"code": link})
        assert answer.status_code == 200, answer.text
        page.auth = Signing(answer.json())
        yield page


async def test_from_nothing_to_the_answer_of_a_model_and_nothing_in_flight_is_lost() -> None:
    with gateways() as (gateway,):
        await gateway.start()
        async with (
            client(gateway) as somebody,
            ModelServer("echo").running() as server,
            signed_in(gateway) as page,
        ):
            # The demonstration is in the middle of something, and something waits behind it.
            session_id = await somebody.session()
            follower = somebody.follow(session_id)
            running = await somebody.send(session_id, "count to 400 slowly")
            waiting = await somebody.send(session_id, "count to 2")
            await follower.saw("text", running.id)

            assert (await page.get("/api/setup")).json()["needed"]
            plan = {"name": MODEL, "base_url": server.url, "api_key": KEY}
            offered = (await page.post("/api/setup/models", json=plan)).json()
            assert offered["models"], offered
            tried = (await page.post("/api/setup/test", json=plan)).json()
            assert tried["ok"], tried
            chosen = await page.post("/api/setup", json=plan)
            assert (chosen.status_code, chosen.json()["restart_needed"]) == (200, True), chosen.text
            before = await gateway.node()
            assert (await page.post("/api/stop", json={"restart": True, "timeout": 0.2})).status_code == 202
            await gateway.begins_anew(before)

            # The page is still signed in, and there is nothing left to set up.
            found = (await page.get("/api/setup")).json()
            assert (found["needed"], found["model"]["name"], found["model"]["has_key"]) == (False, MODEL, True)
            assert not (await page.get("/api/settings")).json()["restart_needed"]
            asked = await somebody.answered(await somebody.send(await somebody.session(), "who are you?"))
            assert (await somebody.said(asked)).endswith("who are you?")
            # What waited is answered, and what was cut off keeps its words and says so.
            await somebody.answered(waiting)
            assert (await somebody.said(waiting)).endswith("count to 2")
            cut = await somebody.comes_to(running.id)
            assert (cut.state, cut.cause, bool(await somebody.said(running))) == ("interrupted", "restart_timeout", True)
            await somebody.verify()
        assert {each.headers.get("authorization") for each in server.requests} == {f"Bearer {KEY}"}
        gateway.close()
        holders = [each for each in gateway.home.rglob("*") if each.is_file() and KEY.encode() in each.read_bytes()]
        assert holders == [gateway.home / "holdfast.toml"]
        assert stat.S_IMODE(holders[0].stat().st_mode) == 0o600
        assert KEY not in gateway.log.read_text()
