"""Routes about the gateway as a whole: is it well, is it ready, what is it doing, and its end."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.desk.port import Desk, Pruning
from holdfast.desk.views import Stop
from holdfast.web.answers import answer, refusal
from holdfast.web.requests import body, number, refuse_guests


class HouseRoutes:
    """The gateway itself."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        return [
            Route("/health", self.health, methods=["GET"]),
            Route("/ready", self.ready, methods=["GET"]),
            Route("/api/status", self.status, methods=["GET"]),
            Route("/api/search", self.search, methods=["GET"]),
            Route("/api/prune", self.prune, methods=["POST"]),
            Route("/api/stop", self.stop, methods=["POST"]),
        ]

    async def health(self, _request: Request) -> Response:
        return answer(await self._desk.health())

    async def ready(self, _request: Request) -> Response:
        health = await self._desk.ready()
        if health.ready:
            return answer(health)
        return refusal(503, "not_ready", health.problem or f"the gateway is {health.state}")

    async def status(self, _request: Request) -> Response:
        return answer(await self._desk.status())

    async def search(self, request: Request) -> Response:
        return answer(await self._desk.search(request.query_params.get("q", ""), number(request, "limit", 50)))

    async def prune(self, request: Request) -> Response:
        refuse_guests(request)
        return answer({"pruned": await self._desk.prune(await body(request, Pruning))})

    async def stop(self, request: Request) -> Response:
        refuse_guests(request)
        await self._desk.stop(await body(request, Stop))
        return answer(await self._desk.health(), 202)
