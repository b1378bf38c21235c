"""Routes of what turns wait for, and of what may be done unasked."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.desk.port import Desk
from holdfast.ids import SessionId
from holdfast.web.answers import answer
from holdfast.web.requests import name, number


class ApprovalRoutes:
    """Open questions, which are answered at their turn, and standing grants."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        return [
            Route("/api/approvals", self.list, methods=["GET"]),
            Route("/api/grants", self.grants, methods=["GET"]),
            Route("/api/grants/{id}", self.revoke, methods=["DELETE"]),
        ]

    async def list(self, request: Request) -> Response:
        session_id = request.query_params.get("session")
        page = await self._desk.approvals.list(
            session_id=SessionId(session_id) if session_id else None,
            cursor=request.query_params.get("cursor"),
            limit=number(request, "limit", 50),
        )
        return answer(page)

    async def grants(self, _request: Request) -> Response:
        return answer(await self._desk.approvals.grants())

    async def revoke(self, request: Request) -> Response:
        return answer(await self._desk.approvals.revoke(name(request)))
