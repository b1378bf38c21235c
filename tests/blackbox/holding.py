"""Attempts to hold the event loop of a gateway, and how quickly it answers others meanwhile."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2

from tests.blackbox.client import Client, client
from tests.blackbox.gateway import until
from tests.blackbox.history import Receipt
from tests.blackbox.models import Workshop, workshop
from tests.http_server import Request
from tests.tools.servers import Reply, Served, serving

PAGES = 7
LINES = 200_000
# Hard to parse; some releases of Python have mended that.  Hard to decode, in all of them.
HOSTILE_PAGES = (("text/html; charset=punycode", b"b" * 1_500_000), ("text/html", b"<a " * 500_000))
LOOK_S = 0.02


@dataclass
class Attack:
    """A gateway with a model that does what a hostile page told it to, and the answers to /health meanwhile."""

    workshop: Workshop
    somebody: Client
    web: Served
    took_s: list[float]

    async def begin(self, *calls: str) -> Receipt:
        """Have one turn make these calls at once, and say what the last of them gave."""
        session_id = await self.somebody.session()
        return await self.somebody.send(session_id, f"script: {'; '.join(calls)} | result")

    async def ask_in_bad_json(self) -> int:
        """Send a body that is wrong at its beginning, and whose rest is hard to look through; return the status."""
        async with httpx2.AsyncClient(base_url=self.workshop.gateway.url, verify=False, trust_env=False, timeout=30) as web:
            body = b'{"text": 1e999, "x": "' + b'\\"' * 500_000
            answer = await web.post("/api/sessions", content=body, headers={"Content-Type": "application/json"})
            return answer.status_code

    async def look_again(self) -> None:
        """Return when health was answered once more."""
        seen = len(self.took_s)
        await until(lambda: len(self.took_s) > seen, "the gateway answers")

    @property
    def searches(self) -> str:
        return call("search_files", pattern="(a|a)" * 40 + "c", glob="evil.txt")

    @property
    def fetches(self) -> list[str]:
        return [call("fetch", url=f"{self.web.url()}{number}") for number in range(PAGES)]

    @property
    def edits(self) -> str:
        return call("edit_file", path="long.txt", old="x", new="y", replace_all=True)


def call(name: str, **args: object) -> str:
    return f"call {name} {json.dumps(args)}"


@asynccontextmanager
async def attacked() -> AsyncIterator[Attack]:
    """Run a gateway that can be attacked, and look at its health all the while."""
    async with serving(_hostile) as web:
        hosts = json.dumps([f"127.0.0.1:{web.port}"])
        with workshop(tools__fetch__allow_hosts=hosts) as here:
            await here.gateway.start()
            folder = here.gateway.home / "workspace"
            (folder / "evil.txt").write_text("a" * 100 + "b")
            (folder / "long.txt").write_text("".join(f"x{number}\n" for number in range(LINES)))
            async with client(here.gateway) as somebody:
                attack = Attack(here, somebody, web, [])
                looking = asyncio.create_task(_look(here.gateway.url, attack.took_s))
                try:
                    yield attack
                finally:
                    looking.cancel()
                    await asyncio.wait((looking,))


def _hostile(asked: Request) -> Reply:
    kind, body = HOSTILE_PAGES[int(asked.path.strip("/")) % len(HOSTILE_PAGES)]
    return Reply(body, headers={"Content-Type": kind})


async def _look(url: str, took_s: list[float]) -> None:
    async with httpx2.AsyncClient(base_url=url, verify=False, trust_env=False, timeout=60) as web:
        while True:
            began = time.perf_counter()
            assert (await web.get("/health")).status_code == 200
            took_s.append(time.perf_counter() - began)
            await asyncio.sleep(LOOK_S)
