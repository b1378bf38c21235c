"""Routes of scheduled work."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.desk.port import Desk, Plan
from holdfast.web.answers import answer
from holdfast.web.requests import body, name


class JobRoutes:
    """Prompts that run by themselves."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        one = "/api/jobs/{id}"
        return [
            Route("/api/jobs", self.list, methods=["GET"]),
            Route("/api/jobs", self.save, methods=["POST"]),
            Route(one, self.show, methods=["GET"]),
            Route(one, self.remove, methods=["DELETE"]),
            Route(f"{one}/run", self.run, methods=["POST"]),
            Route(f"{one}/pause", self.pause, methods=["POST"]),
            Route(f"{one}/resume", self.resume, methods=["POST"]),
        ]

    async def list(self, _request: Request) -> Response:
        return answer(await self._desk.jobs.list())

    async def save(self, request: Request) -> Response:
        return answer(await self._desk.jobs.save(await body(request, Plan)), 201)

    async def show(self, request: Request) -> Response:
        return answer(await self._desk.jobs.get(name(request)))

    async def remove(self, request: Request) -> Response:
        await self._desk.jobs.remove(name(request))
        return answer({"removed": True})

    async def run(self, request: Request) -> Response:
        return answer(await self._desk.jobs.run(name(request)), 202)

    async def pause(self, request: Request) -> Response:
        return answer(await self._desk.jobs.pause(name(request)))

    async def resume(self, request: Request) -> Response:
        return answer(await self._desk.jobs.resume(name(request)))
