"""Routes of what is remembered."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.desk.port import Desk
from holdfast.ids import MemoryId
from holdfast.web.answers import answer
from holdfast.web.requests import body, name, number


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What a client wants to be remembered."""

    text: str


class MemoryRoutes:
    """Facts that outlast their conversation."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        return [
            Route("/api/memory", self.list, methods=["GET"]),
            Route("/api/memory", self.add, methods=["POST"]),
            Route("/api/memory/{id}", self.remove, methods=["DELETE"]),
        ]

    async def list(self, request: Request) -> Response:
        limit = number(request, "limit", 200)
        if query := request.query_params.get("q"):
            return answer(await self._desk.memories.search(query, limit))
        return answer(await self._desk.memories.list(limit))

    async def add(self, request: Request) -> Response:
        return answer(await self._desk.memories.add((await body(request, Remembered)).text), 201)

    async def remove(self, request: Request) -> Response:
        await self._desk.memories.remove(MemoryId(name(request)))
        return answer({"removed": True})
