"""The proxy of a service: its operations as HTTP requests to the gateway that runs, made from what is declared."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, assert_never, cast
from urllib.parse import quote

from holdfast.client.absence import Absence
from holdfast.client.link import Link
from holdfast.errors import NotRunning, Unavailable
from holdfast.ids import new_id
from holdfast.operations.operation import Location, Operation, Retry, operations

T = TypeVar("T")

KEY_HEADER = "Idempotency-Key"


class Proxy:
    """A service whose operations are requests over a link."""

    def __init__(self, service: type, link: Link, absent: Callable[[], None]) -> None:
        self._service = service
        self._link = link
        self._absent = absent

    def __getattr__(self, name: str) -> Any:  # It stands in for any service.
        found = operations(self._service).get(name)
        if found is None:
            raise AttributeError(f"{self._service.__name__}.{name} is not declared as an operation")
        return functools.partial(self._ask, found)

    async def _ask(self, operation: Operation, *args: object, **kwargs: object) -> object:
        given = operation.signature.bind(self, *args, **kwargs).arguments
        for each in operation.parameters:
            if operation.retry is Retry.ALWAYS and each.name == KEY_HEADER and not given.get(each.argument):
                # With a key of its own the request is safe to repeat.
                given[each.argument] = new_id("cli", time.time_ns() // 1_000_000)
        return await patiently(lambda: _request(self._link, operation, given), operation.retry, self._absent)


def proxy(service: type[T], link: Link, absent: Callable[[], None]) -> T:
    """Return a service of the gateway behind a link; `absent` is called when a caller has to wait for it."""
    return cast("T", Proxy(service, link, absent))


async def patiently(ask: Callable[[], Awaitable[T]], retry: Retry, absent: Callable[[], None]) -> T:
    """Ask until the gateway has answered, as far as it is safe to ask again."""
    away: tuple[type[Unavailable], ...]
    match retry:
        case Retry.NEVER:
            away = ()
        case Retry.UNHEARD:
            away = (NotRunning,)
        case Retry.ALWAYS:
            away = (Unavailable,)
        case _:
            assert_never(retry)
    absence = Absence(absent)
    while True:
        try:
            return await ask()
        except away:
            await absence.wait()


async def _request(link: Link, operation: Operation, given: dict[str, Any]) -> Any:
    """Return what the gateway answers to arguments.  Their types are those of the service, as the caller sees it."""
    address, query, headers = operation.path, dict[str, str](), dict[str, str]()
    for each in operation.parameters:
        value = given.get(each.argument)
        if value is None:
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        match each.location:
            case Location.PATH:
                address = re.sub(rf"{{{each.name}(:\w+)?}}", lambda _, text=text: quote(text, safe=""), address)
            case Location.QUERY:
                query[each.name] = text
            case Location.HEADER:
                headers[each.name] = text
            case _:
                assert_never(each.location)
    body = given.get(operation.body.argument) if operation.body else None
    return await link.call(
        operation.method,
        address,
        operation.gives,
        params=query,
        json=body,
        headers=headers,
        timeout_s=operation.timeout_s,
    )
