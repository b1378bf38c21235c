"""Finds the endpoint of a request by its path at once, without comparing it with one route after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

Serve = Callable[[Request], Awaitable[Response]]
Handler = Callable[[Request, Exception], Awaitable[Response]]

_NAMED = "/{id}"


class FastRoutes:
    """Answers the routes that have no parameter, or one at the end of their path, and hands every other request on.

    `refusals` has the handler of each kind of error.
    """

    def __init__(self, app: ASGIApp, routes: Iterable[Route], refusals: Mapping[type[Exception], Handler]) -> None:
        self._app = app
        self._refusals = refusals
        self._refused = tuple(refusals)
        self._endpoints: dict[tuple[str, str], Serve] = {}
        for route in routes:
            if "{" not in route.path.removesuffix(_NAMED):
                for method in route.methods or ():
                    self._endpoints.setdefault((method, route.path), route.endpoint)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._find(scope) if scope["type"] == "http" else None
        if endpoint is None:
            await self._app(scope, receive, send)
            return
        response = await self._answer(endpoint, Request(scope, receive, send))
        await response(scope, receive, send)

    def _find(self, scope: Scope) -> Serve | None:
        method, path = scope["method"], scope["path"]
        if found := self._endpoints.get((method, path)):
            scope["path_params"] = {}
            return found
        parent, _, name = path.rpartition("/")
        if name and (found := self._endpoints.get((method, parent + _NAMED))):
            scope["path_params"] = {"id": name}
            return found
        return None

    async def _answer(self, endpoint: Serve, request: Request) -> Response:
        try:
            return await endpoint(request)
        except self._refused as error:
            return await next(handle for kind, handle in self._refusals.items() if isinstance(error, kind))(request, error)
