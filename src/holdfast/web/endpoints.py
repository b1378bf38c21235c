"""Endpoints: everything that can be asked over HTTP, each with who may ask it, what it takes and what it gives.

A route exists only as one of these, so that none can forget to ask for a scope, and the OpenAPI document is made of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.core.keys import API
from holdfast.errors import ScopeMissing
from holdfast.operations.caller import Caller
from holdfast.operations.operation import BODY_MAX, Parameter
from holdfast.operations.pages import SIZE_MAX
from holdfast.operations.services import ServerServices
from holdfast.web import requests
from holdfast.web.answers import Refused
from holdfast.web.principal import How, Principal

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


class Stream:
    """What an endpoint gives that answers with server-sent events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One thing that can be asked.  Those of services are derived; what is not JSON in and JSON out is written by hand.

    `scope` is what the caller's key must cover; with None no key is needed.  `takes` is the type of the JSON body,
    `gives` that of the answer, which may be a stream of events as well; either may be bytes as they are, and `media`
    says what those of the answer can be.  `parameters` are what else is looked at.  `query` and `headers` name more of
    it, which `openapi.PARAMETERS` describes.  `also` are further statuses of the same answer, `refuses` those of unusual
    refusals.
    """

    method: str
    path: str
    handle: Callable[[EndpointCall], Awaitable[Response]]
    summary: str
    scope: str | None = API
    takes: type | None = None
    body_max: int = BODY_MAX
    body_timeout_s: float | None = None
    gives: object = None
    media: tuple[str, ...] = ()
    status: int = 200
    parameters: tuple[Parameter, ...] = ()
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    streams: bool = False
    also: tuple[int, ...] = ()
    refuses: tuple[int, ...] = ()


class EndpointGroup(Protocol):
    """Operations that belong together."""

    def endpoints(self) -> Sequence[Endpoint]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointCall:
    """One request, parsed as its endpoint declares it.  `services` are for its sender: what is another's is not there."""

    endpoint: Endpoint
    request: Request
    principal: Principal
    services: ServerServices

    async def body(self, kind: type[T]) -> T:
        """Return the JSON body.  An empty one counts as an empty object."""
        self._takes(kind)
        return await requests.body(self.request, kind, self.endpoint.body_max)

    async def hashed_body(self, kind: type[T]) -> tuple[T, str]:
        """Return the JSON body, and the SHA-256 of its bytes."""
        self._takes(kind)
        return await requests.hashed_body(self.request, kind, self.endpoint.body_max)

    async def content(self) -> bytes:
        """Return the body as it is."""
        self._takes(bytes)
        return await requests.content(self.request, self.endpoint.body_max, self.endpoint.body_timeout_s)

    def word(self, parameter: str) -> str | None:
        """Return a word from the query; None where it is missing or empty."""
        return self._asked(parameter) or None

    def number(self, parameter: str, default: int, most: int = SIZE_MAX, least: int = 1) -> int:
        """Return a number from the query."""
        return requests.number(self._asked(parameter), parameter, default, most, least)

    def choice(self, parameter: str, kind: type[E]) -> E | None:
        """Return one of a fixed set of words from the query."""
        return requests.choice(self._asked(parameter), parameter, kind)

    def flag(self, parameter: str) -> bool | None:
        """Return yes or no from the query; None where it says neither."""
        return requests.flag(self._asked(parameter), parameter)

    def header(self, title: str) -> str | None:
        """Return a header that names something; None where it is missing or empty."""
        self._declared(title, self.endpoint.headers)
        return requests.header(self.request, title)

    def name(self, parameter: str = "id") -> str:
        """Return an id from the path."""
        return requests.name(self.request, parameter)

    def _takes(self, kind: type) -> None:
        if kind is not self.endpoint.takes:
            raise TypeError(f"{self.endpoint.path} does not declare that it takes {kind.__name__}")

    def _asked(self, parameter: str) -> str | None:
        self._declared(parameter, self.endpoint.query)
        return self.request.query_params.get(parameter)

    def _declared(self, what: str, known: tuple[str, ...]) -> None:
        if what not in known:
            raise TypeError(f"{self.endpoint.path} does not declare that it looks at {what}")


def route(endpoint: Endpoint, services_of: Callable[[Caller], ServerServices]) -> Route:
    """Return an endpoint as a route over the services of its callers."""

    async def serve(request: Request) -> Response:
        state = request.scope["state"]
        state["route"] = endpoint.path
        principal: Principal = state["principal"]
        if endpoint.scope is not None:
            demand(principal, endpoint.scope)
        call = EndpointCall(endpoint=endpoint, request=request, principal=principal, services=services_of(principal.caller))
        try:
            return await endpoint.handle(call)
        except ScopeMissing as error:
            raise refused(principal, error.scope) from error

    return Route(endpoint.path, serve, methods=[endpoint.method])


def demand(principal: Principal, scope: str) -> None:
    """Refuse a principal whose key does not cover a scope.  Raises `Refused`."""
    if not principal.may(scope):
        raise refused(principal, scope)


def refused(principal: Principal, scope: str) -> Refused:
    """Return the refusal for a caller whose key does not cover a scope, with a hint what to do."""
    if principal.wait_s:
        hint = "wait, then try again with the right one"
        return Refused(429, "too_many_failures", "too many wrong keys were shown", hint, principal.wait_s)
    if principal.how is How.STRANGER:
        hint = "send Authorization: Bearer KEY with one of holdfast keys create, or sign the browser in with: holdfast link"
        return Refused(401, "unauthorized", "this key or sign-in is not valid", hint)
    if principal.how is How.ANONYMOUS:
        hint = "send Authorization: Bearer with a key (holdfast keys create), or sign in (holdfast link)"
        return Refused(401, "unauthorized", "a key is needed here", hint)
    if principal.how is How.GUEST:
        hint = "use the command line or gateway.sock on the gateway's machine, sign in, or send a key"
        return Refused(403, "operator_only", "only the operator may do this", hint)
    hint = f"make one with: holdfast keys create --scope {scope}"
    return Refused(403, "wrong_scope", f"this key has not the scope {scope!r}", hint)
