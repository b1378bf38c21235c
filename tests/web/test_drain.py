"""The end of a gateway: draining, forced, refused to nobody until it is over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.errors import Owned
from holdfast.operations.gateway import Stop
from holdfast.store.opening import open_readonly
from tests.engine.world import until
from tests.web.house import House, open_house


async def running(house: House, text: str, **opening: str) -> tuple[str, str]:
    """Start a turn and return its session and id."""
    session_id = await house.session(**opening)
    receipt = await house.send(session_id, text)
    await house.in_state(receipt["turn_id"], "running")
    return session_id, receipt["turn_id"]


async def stored(home: Path, turn_id: str) -> tuple[str, str | None]:
    """Return what the store says of a turn, after the gateway is gone."""
    store = await open_readonly("sqlite", home)
    try:
        turn = await store.turns.get(turn_id)  # type: ignore[arg-type]
        return turn.state.value, turn.cause
    finally:
        await store.close()


async def test_a_turn_that_ends_in_time_is_not_marked(home: Path) -> None:
    """R3: the drain waits, and nothing is interrupted."""
    async with open_house(home) as house:
        _, turn_id = await running(house, "wait 0.5 seconds")
        assert await house.stop() == Stop()
        assert house.log.interrupted == 0
        assert house.log.drains[0].running == 1
    assert await stored(home, turn_id) == ("completed", None)


@pytest.mark.parametrize(("restart", "cause"), [(False, "shutdown_timeout"), (True, "restart_timeout")])
async def test_a_turn_that_takes_too_long_is_interrupted_with_the_cause(home: Path, restart: bool, cause: str) -> None:
    """R4"""
    async with open_house(home) as house:
        _, turn_id = await running(house, "wait 60 seconds")
        assert await house.stop(timeout=0.2, restart=restart) == Stop(timeout=0.2, restart=restart)
        assert house.log.interrupted == 1
    assert await stored(home, turn_id) == ("interrupted", cause)


async def test_while_draining_input_is_accepted_and_readiness_is_not(home: Path) -> None:
    """R2: a message that arrives during the drain is durable, and answered after the next start."""
    async with open_house(home, drain_timeout=60) as house:
        _, blocking = await running(house, "wait 60 seconds")
        await house.services.gateway.stop(Stop())
        await until(lambda: house.log.drains)
        refused = await house.web.get("/ready")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "not_ready")
        assert (await house.web.get("/health")).status_code == 200
        session_id = await house.session(key="late")
        late = await house.send(session_id, "am I too late? count to 1")
        status = await house.services.gateway.status()
        assert (status.state, status.ready, status.running) == ("draining", False, 1)
        assert status.drain is not None
        assert 0 < status.drain.seconds_left <= 60
        # The second wish interrupts what still runs.
        await house.stop()
        assert house.log.interrupted == 1
    assert await stored(home, blocking) == ("interrupted", "shutdown_timeout")
    assert await stored(home, late["turn_id"]) == ("queued", None)
    async with open_house(home) as again:
        assert (await again.settled(late["turn_id"]))["state"] == "completed"


async def test_a_stop_during_a_restart_is_the_end_of_it(home: Path) -> None:
    """R4: the last wish counts, also for the cause; it ends the patience as any second one."""
    async with open_house(home, drain_timeout=60) as house:
        _, turn_id = await running(house, "wait 60 seconds")
        await house.services.gateway.stop(Stop(restart=True))
        await until(lambda: house.log.drains)
        assert await house.stop() == Stop()
        assert house.log.drains[0].restart
    assert await stored(home, turn_id) == ("interrupted", "shutdown_timeout")


async def test_a_home_has_one_gateway(home: Path) -> None:
    async with open_house(home):
        with pytest.raises(Owned, match=r"process \d+ already owns"):
            async with open_house(home):
                pytest.fail("a second gateway started in the same home")
    async with open_house(home) as after:
        assert (await after.services.gateway.status()).ready


async def test_a_home_on_postgresql_has_one_gateway_too(home: Path, store_url: str) -> None:
    async with open_house(home, store=store_url) as house:
        with pytest.raises(Owned):
            async with open_house(home, store=store_url):
                pytest.fail("a second gateway started in the same home")
        await house.settled((await house.send(await house.session(), "count to 1"))["turn_id"])
        status = await house.services.gateway.status()
        assert (status.accepted, status.settled, status.in_flight) == (1, 1, 0)


async def test_status_counts_what_was_accepted(home: Path) -> None:
    """CONSERVATION: accepted = settled + in flight."""
    async with open_house(home) as house:
        await house.settled((await house.send(await house.session(), "count to 1"))["turn_id"])
        await running(house, "wait 60 seconds")
        status = await house.get("/api/status")
        assert (status["accepted"], status["settled"], status["in_flight"], status["running"]) == (2, 1, 1, 1)
        assert status["turns"] == {"completed": 1, "running": 1}
        assert status["obligations"]["turns"] == 1
        assert (status["url"], status["state"], status["ready"]) == (house.url, "ready", True)
        assert (await house.get("/health"))["node"] == status["node"]


async def test_the_end_of_the_engine_is_the_end_of_the_gateway(home: Path) -> None:
    """A gateway whose store is moved away under it must not go on as if nothing were."""
    async with open_house(home) as house:
        (home / "holdfast.db-wal").unlink()
        await house.web.post("/api/sessions", json={})
        with pytest.raises(Exception, match="moved"):
            await asyncio.wait_for(asyncio.shield(house.gateway), 20)
