"""Routes of deliveries."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.core.delivery import State
from holdfast.desk.port import Desk
from holdfast.ids import DeliveryId, SessionId
from holdfast.web.answers import answer
from holdfast.web.requests import choice, name, number


class DeliveryRoutes:
    """The outbox."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        return [
            Route("/api/deliveries", self.list, methods=["GET"]),
            Route("/api/deliveries/{id}", self.show, methods=["GET"]),
            Route("/api/deliveries/{id}/retry", self.retry, methods=["POST"]),
        ]

    async def list(self, request: Request) -> Response:
        session_id = request.query_params.get("session")
        page = await self._desk.deliveries(
            state=choice(request, "state", State),
            session_id=SessionId(session_id) if session_id else None,
            cursor=request.query_params.get("cursor"),
            limit=number(request, "limit", 50),
        )
        return answer(page)

    async def show(self, request: Request) -> Response:
        return answer(await self._desk.delivery(DeliveryId(name(request))))

    async def retry(self, request: Request) -> Response:
        return answer(await self._desk.retry_delivery(DeliveryId(name(request))), 202)
