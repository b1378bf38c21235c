"""Routes of background commands."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.core.processes import State
from holdfast.desk.port import OUTPUT_MAX, Desk
from holdfast.ids import ProcessId, SessionId
from holdfast.web.answers import answer
from holdfast.web.requests import choice, name, number

POSITION_MAX = 2**53


class ProcessRoutes:
    """What runs beside the conversations."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        return [
            Route("/api/processes", self.list, methods=["GET"]),
            Route("/api/processes/{id}", self.show, methods=["GET"]),
            Route("/api/processes/{id}/log", self.log, methods=["GET"]),
            Route("/api/processes/{id}/kill", self.kill, methods=["POST"]),
        ]

    async def list(self, request: Request) -> Response:
        session_id = request.query_params.get("session")
        page = await self._desk.processes.list(
            session_id=SessionId(session_id) if session_id else None,
            state=choice(request, "state", State),
            cursor=request.query_params.get("cursor"),
            limit=number(request, "limit", 50),
        )
        return answer(page)

    async def show(self, request: Request) -> Response:
        return answer(await self._desk.processes.get(_process_id(request)))

    async def log(self, request: Request) -> Response:
        after = number(request, "after", 0, most=POSITION_MAX, least=0)
        limit = number(request, "limit", OUTPUT_MAX, most=OUTPUT_MAX)
        return answer(await self._desk.processes.output(_process_id(request), after, limit))

    async def kill(self, request: Request) -> Response:
        return answer(await self._desk.processes.kill(_process_id(request)))


def _process_id(request: Request) -> ProcessId:
    return ProcessId(name(request))
