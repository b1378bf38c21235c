"""The application: every endpoint over one host."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import starmap

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from holdfast.channels.openai.models import OWN
from holdfast.core.redaction import Redaction
from holdfast.errors import HoldfastError
from holdfast.operations import services, upkeep
from holdfast.operations.caller import Caller
from holdfast.operations.lifecycle import Lifecycle
from holdfast.operations.services import ServerServices
from holdfast.web import page
from holdfast.web.activity import ActivityStream
from holdfast.web.answers import apologise, refusal, refuse, starve
from holdfast.web.clients import Clients
from holdfast.web.completions import Completions
from holdfast.web.endpoints import Endpoint, EndpointGroup, route
from holdfast.web.events import Streams
from holdfast.web.fast_routes import FastRoutes, Handler
from holdfast.web.metrics import Meter, Metrics
from holdfast.web.models import Models
from holdfast.web.nonces import Nonces
from holdfast.web.openapi import OpenApi
from holdfast.web.pictures import Pictures
from holdfast.web.posts import PostEndpoints
from holdfast.web.responses import Responses
from holdfast.web.runs import Runs
from holdfast.web.services import ServiceEndpoints
from holdfast.web.sessions import SessionEndpoints
from holdfast.web.signin import SignIn
from holdfast.web.uploads import UploadEndpoints

# Callers whose services are kept.
CALLERS_MAX = 256
_LISTED = "GET /openapi.json lists every address with its methods"


def endpoints(
    streams: Streams, meter: Meter, models: Sequence[str] = (OWN,), nonces: Nonces | None = None
) -> list[Endpoint]:
    """Return everything that can be asked."""
    clients = Clients(streams.closed)
    # A request is compared with one after the other, so what comes often stands first.
    groups: Sequence[EndpointGroup] = (
        PostEndpoints(),
        Completions(streams, clients, models),
        Responses(streams, clients, models),
        Runs(streams, clients),
        *starmap(ServiceEndpoints, nouns().items()),
        SessionEndpoints(streams),
        ActivityStream(streams),
        Pictures(),
        UploadEndpoints(),
        SignIn(nonces or Nonces()),
        Metrics(meter, streams),
        Models(models),
    )
    everything = [endpoint for group in groups for endpoint in group.endpoints()]
    # It describes itself as well.
    everything += OpenApi(everything).endpoints()
    return everything


def nouns() -> Mapping[str, type]:
    """Return the class of every service of a gateway by where it is found."""
    return {**services.nouns(), **upkeep.nouns()}


def application(
    services_of: Callable[[Caller], ServerServices],
    lifecycle: Lifecycle,
    meter: Meter,
    models: Sequence[str] = (OWN,),
    nonces: Nonces | None = None,
    redaction: Redaction | None = None,
) -> Starlette:
    """Return the HTTP face of a gateway.  `services_of` returns the services for a caller."""
    # The same callers come again and again.
    cached = functools.lru_cache(CALLERS_MAX)(services_of)
    routes = [route(each, cached) for each in endpoints(Streams(lifecycle.closing), meter, models, nonces)]
    refusals: Mapping[type[Exception], Handler] = {HoldfastError: refuse, ClientDisconnect: _give_up, MemoryError: starve}
    app = Starlette(
        routes=[*routes, *page.routes()],
        middleware=[Middleware(FastRoutes, routes, refusals)],
        exception_handlers={**refusals, HTTPException: _refuse_route, Exception: apologise},
    )
    # A path with a further slash is another path.  A redirect would repeat the host that the client sent.
    app.router.redirect_slashes = False
    app.state.redaction = redaction or Redaction()
    return app


async def _refuse_route(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return await apologise(request, error)
    if error.status_code == 405:
        found = refusal(405, "wrong_method", "this route does not take that method", _LISTED, path=request.url.path)
        found.headers["Allow"] = ", ".join(_methods(request))
        return found
    if _climbs(request.scope):
        # No file is read by its path here, and the refusal says that the attempt was noticed.
        return refusal(403, "bad_path", "a path leads down only, and by its plain name", _LISTED)
    return refusal(error.status_code, "no_route", "there is nothing at this address", _LISTED, path=request.url.path)


def _methods(request: Request) -> list[str]:
    """Return what an address takes, which is spread over as many routes."""
    fitting = [each for each in request.app.routes if each.matches(request.scope)[0] is Match.PARTIAL]
    return sorted({method for each in fitting for method in each.methods})


def _climbs(scope: Scope) -> bool:
    """Return whether a path tries to lead out of where it begins."""
    path: str = scope["path"]
    packed = b"%2f" in scope["raw_path"].lower()
    return packed or "\\" in path or "//" in path or "\0" in path or ".." in path.split("/")


async def _give_up(_request: Request, _error: Exception) -> Response:
    # The client has gone, so no one reads this answer.
    return Response(status_code=400)
