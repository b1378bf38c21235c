"""The application: every route over one desk."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from holdfast.desk.lifecycle import Lifecycle
from holdfast.desk.port import Desk
from holdfast.errors import HoldfastError
from holdfast.web.answers import apologise, refusal, refuse
from holdfast.web.approvals import ApprovalRoutes
from holdfast.web.deliveries import DeliveryRoutes
from holdfast.web.house import HouseRoutes
from holdfast.web.jobs import JobRoutes
from holdfast.web.memory import MemoryRoutes
from holdfast.web.processes import ProcessRoutes
from holdfast.web.sessions import SessionRoutes
from holdfast.web.turns import TurnRoutes


def application(desk: Desk, lifecycle: Lifecycle) -> Starlette:
    """Return the HTTP face of a desk."""
    groups = (
        HouseRoutes(desk),
        SessionRoutes(desk, lifecycle),
        TurnRoutes(desk),
        DeliveryRoutes(desk),
        ApprovalRoutes(desk),
        ProcessRoutes(desk),
        JobRoutes(desk),
        MemoryRoutes(desk),
    )
    app = Starlette(
        routes=[route for group in groups for route in group.routes()],
        exception_handlers={
            HoldfastError: refuse,
            HTTPException: _refuse_route,
            ClientDisconnect: _give_up,
            Exception: apologise,
        },
    )
    # An address with another slash at its end is another address, and a redirect would repeat whatever host it came by.
    app.router.redirect_slashes = False
    return app


async def _refuse_route(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        return refusal(405, "wrong_method", "this route does not take that method")
    return refusal(status, "no_route", "there is nothing at this address")


async def _give_up(_request: Request, _error: Exception) -> Response:
    # Nobody is there to read it.
    return Response(status_code=400)
