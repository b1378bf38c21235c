"""The store goes away under a gateway and comes back; meanwhile everybody is told the truth."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import scratch
from tests.engine.world import until
from tests.postgres import Server
from tests.web.house import open_house


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(durable=True, parent=scratch.parent()) as server:
        yield server


async def test_a_gateway_without_its_store_is_alive_and_not_ready(home: Path, server: Server) -> None:
    """A2: a message is refused with 503 while it cannot be made durable, and the same one is taken later."""
    async with open_house(home, store=server.create_database("down")) as house:
        session_id = await house.session()
        assert (await house.web.get("/ready")).status_code == 200
        await asyncio.to_thread(server.stop, "immediate")
        assert (await house.web.get("/health")).status_code == 200
        ready = await house.web.get("/ready")
        assert (ready.status_code, ready.json()["error"]["code"]) == (503, "not_ready")
        refused = await house.web.post(
            f"/api/sessions/{session_id}/messages", json={"text": "count to 1"}, headers={"Idempotency-Key": "k"}
        )
        assert (refused.status_code, bool(refused.headers["retry-after"])) == (503, True)
        status = await house.get("/api/status")
        assert (status["ready"], bool(status["problem"])) == (False, True)

        await asyncio.to_thread(server.start)

        async def back() -> bool:
            return (await house.web.get("/ready")).status_code == 200

        await until(back)
        receipt = await house.send(session_id, "count to 1", **{"Idempotency-Key": "k"})
        assert (await house.settled(receipt["turn_id"]))["state"] == "completed"
