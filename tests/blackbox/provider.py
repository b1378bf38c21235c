"""A memory server for gateways: takes commits and answers recalls as it is told to, and keeps every request in order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.blackbox.gateway import PATIENCE_S, free_port
from tests.http_server import answer, read, serving


@dataclass(eq=False)
class Asked:
    """A request as it arrived, and how it was answered, if it was."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    status: int | None = None

    @property
    def said(self) -> list[str]:
        """What people said in the turns of a commit, without the words by which their messages are known."""
        said = [each["text"] for each in self.body["messages"] if each["role"] == "user"]
        return [text.partition(" ")[2] for text in said]


@dataclass
class Provider:
    """One address.  With `status` it answers commits so; while it holds a path, nobody who asks there is answered."""

    status: int = 200
    memories: Sequence[str] = ()
    asked: list[Asked] = field(default_factory=list)
    port: int = field(default_factory=free_port)
    _open: dict[str, asyncio.Event] = field(default_factory=dict)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)
    _served: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def owner(self) -> str:
        return f"http:{self.url}"

    @property
    def commits(self) -> list[Asked]:
        return [each for each in self.asked if each.path == "/commit"]

    @property
    def recalls(self) -> list[Asked]:
        return [each for each in self.asked if each.path == "/recall"]

    @property
    def taken(self) -> list[Asked]:
        """The commits that it has answered with success."""
        return [each for each in self.commits if each.status == 200]

    def hold(self, path: str = "/commit") -> None:
        self._open[path] = asyncio.Event()

    def release(self, path: str = "/commit") -> None:
        self._open.pop(path).set()

    async def got(self, count: int, path: str = "/commit") -> Asked:
        """Return the request with this number, as soon as it has come."""
        found = await self._gets(lambda: [each for each in self.asked if each.path == path], count)
        return found[count - 1]

    async def took(self, count: int) -> list[Asked]:
        """Return what was taken, once that is so much."""
        return await self._gets(lambda: self.taken, count)

    async def come(self) -> None:
        await self._served.enter_async_context(serving(self._serve, self.port))

    async def go(self) -> None:
        """Be away: nobody listens at the address."""
        await self._served.aclose()

    async def _gets(self, found: Any, count: int) -> Any:
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(lambda: len(found()) >= count)
        return found()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while request := await read(reader):
            asked = Asked(path=request.path, headers=request.headers, body=request.json)
            await self._told(asked)
            await self._answer(asked, reader, writer)

    async def _told(self, asked: Asked) -> None:
        async with self._news:
            if asked not in self.asked:
                self.asked.append(asked)
            self._news.notify_all()

    async def _answer(self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if gate := self._open.get(asked.path):
            await gate.wait()
        if reader.at_eof():
            # Whoever asked has gone and will never hear of it.
            return
        status, body = (self.status, {}) if asked.path == "/commit" else (200, self._recalled(asked))
        await answer(writer, status, body)
        asked.status = status
        await self._told(asked)

    def _recalled(self, asked: Asked) -> dict[str, Any]:
        return {"memories": [{"text": each} for each in self.memories][: asked.body["limit"]]}


@contextlib.asynccontextmanager
async def providers(count: int = 1) -> AsyncIterator[list[Provider]]:
    """Serve at so many addresses for as long as the context lasts."""
    made = [Provider() for _ in range(count)]
    try:
        for each in made:
            await each.come()
        yield made
    finally:
        for each in made:
            await each.go()
