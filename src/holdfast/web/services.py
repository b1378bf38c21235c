"""The endpoints of the services: what a request says becomes the arguments of a method, and what it returns the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from operator import attrgetter
from typing import Any, assert_never

from starlette.requests import Request
from starlette.responses import Response

from holdfast.operations.operation import Location, Operation, Parameter, operations
from holdfast.web import requests
from holdfast.web.answers import answer, listing
from holdfast.web.endpoints import Endpoint, EndpointCall

# Returns the argument that a request says.
Read = Callable[[Request], object]


class ServiceEndpoints:
    """The operations of the service of one noun."""

    def __init__(self, noun: str, service: type) -> None:
        self._noun = noun
        self._service = service

    def endpoints(self) -> list[Endpoint]:
        return [endpoint_of(self._noun, each) for each in operations(self._service).values()]


def endpoint_of(noun: str, operation: Operation) -> Endpoint:
    """Return the endpoint of an operation of a service."""
    # All of this is found out once, and not with each request.
    service_of, method, status, body = attrgetter(noun), operation.function, operation.status, operation.body
    long_list = operation.long_list
    reads = [(each.argument, _read(each)) for each in operation.parameters]

    async def handle(call: EndpointCall) -> Response:
        arguments = {argument: read(call.request) for argument, read in reads}
        if body is not None:
            arguments[body.argument] = await call.body(body.kind)
        found: Any = await method(service_of(call.services), **arguments)  # Its type is the operation's own.
        if long_list:
            return await listing(replace(found, **{long_list: ()}), long_list, getattr(found, long_list))
        return answer(found, status)

    return Endpoint(
        method=operation.method,
        path=operation.path,
        handle=handle,
        summary=operation.summary,
        scope=operation.scope,
        takes=body.kind if body else None,
        body_max=operation.body_max,
        gives=operation.gives,
        status=status,
        parameters=operation.parameters,
        also=operation.also,
        refuses=operation.refuses,
    )


def _read(parameter: Parameter) -> Read:
    """Return what reads a parameter.  Text that is empty counts as missing."""
    name, default, kind = parameter.name, parameter.default, parameter.kind
    match parameter.location:
        case Location.PATH:
            return lambda request: requests.name(request, name)
        case Location.HEADER:
            return lambda request: requests.header(request, name) or default
        case Location.QUERY if kind is int:
            most, least = parameter.most, parameter.least
            return lambda request: requests.number(request.query_params.get(name), name, default, most, least)
        case Location.QUERY if kind is bool:
            return lambda request: _given(requests.flag(request.query_params.get(name), name), default)
        case Location.QUERY if issubclass(kind, StrEnum):
            return lambda request: _given(requests.choice(request.query_params.get(name), name, kind), default)
        case Location.QUERY:
            return lambda request: request.query_params.get(name) or default
        case _:
            assert_never(parameter.location)


def _given(value: object, default: object) -> object:
    return default if value is None else value
