"""The fast routes lead where the router leads."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from holdfast.operations.caller import Caller
from holdfast.operations.lifecycle import Lifecycle
from holdfast.operations.services import ServerServices
from holdfast.web.application import application
from holdfast.web.fast_routes import FastRoutes
from holdfast.web.metrics import Meter
from tests.engine.world import ManualClock
from tests.web.house import open_house


def nobodys(_caller: Caller) -> ServerServices:
    raise AssertionError("nobody asks")


async def test_whatever_it_knows_is_what_the_routes_would_find() -> None:
    app = application(nobodys, Lifecycle(ManualClock(), home="", store=""), Meter())
    routes = [each for each in app.routes if isinstance(each, Route)]
    called: list[object] = []

    async def past(scope: Scope, _receive: Receive, _send: Send) -> None:
        called.append(None)

    def noting(route: Route) -> Route:
        async def note(request: object) -> object:
            called.append(route.endpoint)
            return past

        return Route(route.path, note, methods=list(route.methods or ()))  # type: ignore[arg-type]

    fast_routes = FastRoutes(past, [noting(each) for each in routes], {})
    short = 0
    for method, path in {(method, route.path) for route in routes for method in route.methods or ()}:
        scope = {"type": "http", "method": method, "path": re.sub(r"{[^}]*}", "some", path), "root_path": "", "headers": []}
        first = next(each for each in routes if each.matches(scope)[0] is Match.FULL)
        called.clear()
        await fast_routes(scope, None, None)  # type: ignore[arg-type]
        assert called[0] in (None, first.endpoint), (method, path)
        short += called[0] is not None
    assert short > len(routes) / 2


async def test_what_it_does_not_know_is_refused_as_ever(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        assert (await house.web.put("/api/status")).status_code == 405
        assert (await house.web.get("/api/nothing")).status_code == 404
        assert (await house.web.get("/api/sessions/")).status_code == 404
        missing = await house.web.get("/api/sessions/ses_nobody")
        assert missing.status_code == 404
        assert missing.json()["error"]["code"] == "not_found"
