"""A whole gateway in the test's own loop: a real server on a free port and on its socket, and real clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import httpx2

from holdfast.app.gateway import serve
from holdfast.client.remote import connected
from holdfast.config import Config, GatewayConfig, ServerConfig, ToolsConfig
from holdfast.daemon.handover import Handover
from holdfast.daemon.process import GatewayExit
from holdfast.operations.gateway import Drain, Status, Stop
from holdfast.operations.logins import SignInLink
from holdfast.operations.services import Services
from tests.engine.world import until

PATIENCE_S = 20
SETTLED = {"completed", "failed", "cancelled", "interrupted"}


class Log:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.status: asyncio.Future[Status] = asyncio.get_running_loop().create_future()
        self.link: SignInLink | None = None
        self.drains: list[Drain] = []
        self.interrupted: int | None = None

    def ready(self, status: Status, link: SignInLink | None, key: str = "") -> None:
        self.link = link
        self.key = key
        self.status.set_result(status)

    def draining(self, drain: Drain) -> None:
        self.drains.append(drain)

    def drained(self, stop: Stop, interrupted: int) -> None:
        self.interrupted = interrupted


class House:
    """A running gateway, and what a client can do with it."""

    def __init__(self, home: Path, log: Log, gateway: asyncio.Task[GatewayExit], status: Status) -> None:
        self.home = home
        self.log = log
        self.gateway = gateway
        self.url = status.url
        self.web = httpx2.AsyncClient(base_url=status.url, verify=False, timeout=PATIENCE_S)
        self.services: Services

    async def stop(self, **wish: Any) -> Stop:
        await self.services.gateway.stop(Stop(**wish))
        ended = await asyncio.wait_for(asyncio.shield(self.gateway), PATIENCE_S)
        _give_up(ended.handover)
        return ended.stop

    async def get(self, path: str, **params: Any) -> Any:
        answer = await self.web.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(self, path: str, body: object = None, status: int = 200, **headers: str) -> Any:
        answer = await self.web.post(path, json={} if body is None else body, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def session(self, **opening: Any) -> str:
        return (await self.post("/api/sessions", opening, 201))["id"]

    async def send(self, session_id: str, text: str, **headers: str) -> Any:
        return await self.post(f"/api/sessions/{session_id}/messages", {"text": text}, 202, **headers)

    async def settled(self, turn_id: str) -> Any:
        return await self.in_state(turn_id, *SETTLED)

    async def in_state(self, turn_id: str, *states: str) -> Any:
        async def look() -> Any:
            turn = await self.get(f"/api/turns/{turn_id}")
            return turn if turn["state"] in states else None

        return await until(look)

    async def said(self, session_id: str, turn_id: str) -> str:
        items = (await self.get(f"/api/sessions/{session_id}/messages"))["items"]
        return "".join(each["text"] for each in items if each["turn_id"] == turn_id and each["role"] == "assistant")

    @contextlib.asynccontextmanager
    async def events(self, session_id: str, after: int | None = None, **headers: str) -> AsyncIterator[AsyncIterator[Any]]:
        """Follow a session as a browser does; yields entries, or the names of other events."""
        params = {} if after is None else {"after": after}
        address = f"/api/sessions/{session_id}/events"
        async with self.web.stream("GET", address, params=params, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            assert response.headers["content-type"].startswith("text/event-stream")
            yield parse(response)


async def parse(response: httpx2.Response) -> AsyncIterator[Any]:
    """Read server-sent events by the book: fields until an empty line."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
            continue
        if "event" in fields:
            yield fields["event"]
        elif "data" in fields:
            entry = json.loads(fields["data"])
            assert int(fields["id"]) == entry["seq"]
            yield entry
        fields = {}


@contextlib.asynccontextmanager
async def open_house(
    home: Path,
    *,
    api_key: str = "",
    password: str = "",
    port: int = 0,
    guests: Literal["refuse", "own"] = "refuse",
    drain_timeout: float = 5,
    store: str = "sqlite",
    inherited: Handover | None = None,
    **more: Any,
) -> AsyncIterator[House]:
    """Run a gateway for as long as the context lasts; `more` are further parts of its configuration."""
    tools = more.pop("tools", ToolsConfig())
    config = Config(
        server=ServerConfig(port=port, api_key=api_key, password=password, guests=guests),
        gateway=GatewayConfig(drain_timeout=drain_timeout),
        store=type(Config().store)(url=store),
        tools=replace(tools, terminal=replace(tools.terminal, sandbox="off")),
        **more,
    )
    log = Log()
    gateway = asyncio.create_task(serve(config, home, log, inherited))
    await asyncio.wait((gateway, log.status), return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE_S)
    if gateway.done():
        await gateway
    house = House(home, log, gateway, log.status.result())
    if api_key:
        house.web.headers["authorization"] = f"Bearer {api_key}"
    async with house.web, connected(home / "gateway.sock") as services:
        house.services = services
        try:
            yield house
        finally:
            if not gateway.done():
                # Twice, so that no test waits for a turn that it has left running.
                for _ in range(2):
                    await services.gateway.stop(Stop(timeout=0))
                await asyncio.wait_for(gateway, PATIENCE_S)


def _give_up(handover: Handover) -> None:
    """Close what a gateway left to a next process, where none follows."""
    for listener in filter(None, (handover.listener, handover.unix)):
        listener.close()
    if handover.lock is not None:
        os.close(handover.lock)
