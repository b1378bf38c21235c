"""Several nodes on one database: a route that is added on one takes deliveries on the others, and each counts once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.operations.webhooks import RoutePlan
from tests import scratch
from tests.engine.world import until
from tests.postgres import Server
from tests.web.house import open_house
from tests.webhooks.sender import send, told


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(parent=scratch.parent()) as server:
        yield server


async def test_a_route_added_here_works_there(home: Path, server: Server) -> None:
    store = server.create_database("hooks")
    async with open_house(home / "a", store=store) as here, open_house(home / "b", store=store) as there:
        new = await here.services.webhooks.add(RoutePlan(name="hot", prompt="count to 1"))

        async def works(delivery: str, status: int) -> bool:
            return (await send(there, "hot", {}, delivery, secret=new.secret)).status_code == status

        await until(lambda: works("first", 202))
        both = await asyncio.gather(*(send(each, "hot", {}, "same", secret=new.secret) for each in (here, there) * 5))
        assert sorted(each.status_code for each in both) == [200] * 9 + [202]
        assert len({each.json()["turn_id"] for each in both}) == 1
        await there.services.webhooks.remove("hot")
        assert told(await send(there, "hot", {}, "gone", secret=new.secret)) == (404, "not_found")

        async def is_gone() -> bool:
            return (await send(here, "hot", {}, "gone", secret=new.secret)).status_code == 404

        await until(is_gone)
