"""Rough weather for memory: servers that are slow, fail, hang and leave, and a model that extracts no better.

They keep everything that reaches them.  Told to be calm, they take all of it at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tests.http_server import Request, answer, read, serving
from tests.models.servers import ModelServer, Seen, last_said

# What a commit waits at most, as the gateways in the weather are told; who hangs does so for longer.
COMMIT_MAX_S = 1.5
LATE_S = COMMIT_MAX_S + 0.5
SLOW_MAX_S = 0.6


@dataclass(slots=True, eq=False)
class Given:
    """A segment that reached a server, and whether the server has made it its own."""

    owner: str
    at_ms: int
    key: str
    body: Mapping[str, Any]
    number: int = 0
    taken: int | None = None

    @property
    def segment_id(self) -> str:
        return self.body["segment_id"]


class RoughServer:
    """Remembers at one address, in whatever mood it is."""

    def __init__(self, chance: random.Random, counter: Callable[[], int]) -> None:
        self.calm = False
        self.given: list[Given] = []
        self.moods: Counter[str] = Counter()
        self.port = 0
        self._chance = chance
        self._count = counter
        self._moods: Mapping[str, tuple[int, Callable[[Given, asyncio.StreamWriter], Awaitable[None]]]] = MappingProxyType(
            {
                "takes it": (40, self._take),
                "is slow": (20, self._take_slowly),
                "fails before": (10, self._fail),
                "fails behind": (6, self._take_and_fail),
                "cuts before": (6, self._cut),
                "cuts behind": (6, self._take_and_cut),
                "breaks off": (4, self._break_off),
                "hangs": (4, self._hang),
                "takes it late": (4, self._take_late),
            }
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def owner(self) -> str:
        return f"http:{self.url}"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[RoughServer]:
        async with serving(self._serve) as self.port:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while asked := await read(reader):
            if asked.path == "/commit":
                await self._commit(asked, writer)
            else:
                await self._recall(writer)

    async def _commit(self, asked: Request, writer: asyncio.StreamWriter) -> None:
        key = asked.headers.get("idempotency-key", "")
        given = Given(owner=self.owner, at_ms=now_ms(), key=key, body=asked.json, number=self._count())
        self.given.append(given)
        if self.calm:
            await self._take(given, writer)
            return
        (name,) = self._chance.choices(list(self._moods), [weight for weight, _ in self._moods.values()])
        self.moods[name] += 1
        await self._moods[name][1](given, writer)

    async def _recall(self, writer: asyncio.StreamWriter) -> None:
        dice = 1.0 if self.calm else self._chance.random()
        if dice < 0.02:
            await asyncio.sleep(LATE_S)
        elif dice < 0.1:
            await asyncio.sleep(self._chance.uniform(0, SLOW_MAX_S))
        await answer(writer, 500 if 0.1 <= dice < 0.12 else 200, {"memories": [{"text": "The weather is rough."}]})

    def _keep(self, given: Given) -> None:
        given.taken = self._count()

    async def _take(self, given: Given, writer: asyncio.StreamWriter) -> None:
        self._keep(given)
        await answer(writer, 200, {"receipt": f"{len(given.body['messages'])} messages"})

    async def _take_slowly(self, given: Given, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(self._chance.uniform(0, SLOW_MAX_S))
        self._keep(given)
        await asyncio.sleep(self._chance.uniform(0, SLOW_MAX_S))
        await answer(writer, 202, {})

    async def _fail(self, _given: Given, writer: asyncio.StreamWriter) -> None:
        await answer(writer, self._chance.choice((400, 404, 429, 500, 503)), {"error": "not now"})

    async def _take_and_fail(self, given: Given, writer: asyncio.StreamWriter) -> None:
        self._keep(given)
        await answer(writer, 500, {"error": "it is not clear"})

    async def _cut(self, _given: Given, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def _take_and_cut(self, given: Given, writer: asyncio.StreamWriter) -> None:
        self._keep(given)
        writer.close()

    async def _break_off(self, given: Given, writer: asyncio.StreamWriter) -> None:
        self._keep(given)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Len")
        await writer.drain()
        writer.close()

    async def _hang(self, _given: Given, _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(COMMIT_MAX_S * 10)

    async def _take_late(self, given: Given, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(LATE_S)
        self._keep(given)
        await answer(writer, 200, {})


@dataclass
class RoughModel(ModelServer):
    """Answers by script; where it is to extract, it notes every message under a number of this reading, or fails."""

    calm: bool = False
    extractions: int = 0
    chance: random.Random = field(default_factory=random.Random)

    def _part(self, request: Seen) -> list[str]:
        talk = _talk(request)
        if talk is None:
            return super()._part(request)
        self.extractions += 1
        noted = f"say {json.dumps(self._noted(talk))}"
        if self.calm:
            return [noted]
        others = (["status 500"], ["hang"], ["cut"], ["think well", noted])
        return self.chance.choices([[noted], *others], (60, 10, 5, 10, 15))[0]

    def _noted(self, talk: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        said = [(each["turn"], each["text"].split()[0]) for each in talk if each["who"] == "person"]
        # Another text each time, so that whatever is taken twice is there twice.
        return {
            "add": [
                {"text": f"Spoke of {nonce} in reading {self.extractions}", "turn": turn, "quote": nonce}
                for turn, nonce in said
            ],
            "change": [],
            "remove": [],
            "profile": None,
        }


def _talk(request: Seen) -> Any:
    """Return what is to be extracted from; None where somebody wants an answer."""
    try:
        return json.loads(last_said(request.body))["talk"]
    except (ValueError, TypeError, KeyError):
        return None


def now_ms() -> int:
    return int(time.time() * 1000)
