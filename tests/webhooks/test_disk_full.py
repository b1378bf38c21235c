"""A full disk: a delivery is refused with 503 and the wait, and the same one is taken when there is room."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import httpx2
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.agent.scripted import Say, ScriptedAgent
from holdfast.app.services import ServiceParts
from holdfast.channels.webhook.routes import Routes
from holdfast.channels.webhook.signatures import Scheme, sign
from holdfast.clock import SystemClock
from holdfast.core.redaction import Redaction
from holdfast.operations.lifecycle import Lifecycle
from holdfast.operations.offline import absent
from holdfast.store.migrations import migrate
from holdfast.store.opening import store_path
from holdfast.store.sqlite import SqliteDatabase
from holdfast.store.store import Store
from holdfast.targets import Targets
from holdfast.web.application import application
from holdfast.web.metrics import Meter
from holdfast.web.principal import ANONYMOUS
from tests.crash.disk import FaultyDisk, measure
from tests.engine.world import running_engine
from tests.webhooks.sender import SECRET, channels, now_ms, route


class FromNobody:
    """An application as somebody finds it who has no key."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["principal"] = ANONYMOUS
        await self._app(scope, receive, send)


@asynccontextmanager
async def gateway(disk: FaultyDisk, home: Path) -> AsyncIterator[httpx2.AsyncClient]:
    database = await SqliteDatabase.open(store_path(home), vfs=disk.name)
    await migrate(database, now_ms())
    store, config, clock = Store(database), channels({"alerts": route()}), SystemClock()
    routes = Routes(
        store.webhooks, store.wakes, config.webhook.routes, host="127.0.0.1", targets=Targets({}), redaction=Redaction()
    )
    try:
        async with running_engine(store, ScriptedAgent([Say("seen")])) as engine:
            life = Lifecycle(clock, home="", store="")
            parts = ServiceParts(store=store, engine=engine, lifecycle=life, clock=clock, channels=config, routes=routes)
            transport = httpx2.ASGITransport(
                app=FromNobody(application(partial(parts.server_services, absent(home)), life, Meter()))
            )
            async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
                yield client
    finally:
        await store.close()


async def test_a_full_disk_is_503_with_the_wait_and_nothing_is_half_taken(tmp_path: Path) -> None:
    """A2: disk full is 503 with Retry-After; what is sent again once there is room is accepted, as new."""
    home, disk = tmp_path / "home", FaultyDisk("full")
    async with gateway(disk, home) as client:

        async def send(delivery: str) -> httpx2.Response:
            body = json.dumps({"message": "x" * 5_000}).encode()
            headers = {**sign(Scheme.STANDARD, body, SECRET, now_ms(), delivery), "Content-Type": "application/json"}
            return await client.post("/webhooks/alerts", content=body, headers=headers)

        assert (await send("before")).status_code == 202
        disk.limit(home, measure(home))
        for number in range(3):
            refused = await send("during")
            assert (number, refused.status_code, refused.json()["error"]["code"]) == (number, 503, "disk_full")
            assert int(refused.headers["retry-after"]) >= 1
        disk.heal()
        assert (await send("during")).status_code == 202
        assert (await send("during")).json()["status"] == "duplicate"
        assert (await send("before")).json()["status"] == "duplicate"
