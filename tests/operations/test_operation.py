"""The mechanism: what is declared beside a method is its route, its description and its client, and nothing else is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.client.absence import ABSENCE_MAX_S
from holdfast.client.link import Link
from holdfast.client.proxy import proxy
from holdfast.core.keys import ADMIN
from holdfast.core.redaction import Redaction
from holdfast.errors import HoldfastError, NotFound, NotRunning, ScopeMissing, Unavailable
from holdfast.ids import ProcessId, SessionId
from holdfast.operations.caller import Caller
from holdfast.operations.offline import absent, offline
from holdfast.operations.operation import Header, Location, Query, Retry, operation, operations
from holdfast.operations.pages import Page, Removed
from holdfast.web.answers import refuse
from holdfast.web.application import endpoints, nouns
from holdfast.web.endpoints import route
from holdfast.web.events import Streams
from holdfast.web.metrics import Meter
from holdfast.web.principal import OPERATOR as PRINCIPAL
from holdfast.web.services import endpoint_of

HOME = Path("/home/of/nobody")


class Taste(StrEnum):
    SWEET = "sweet"
    SOUR = "sour"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    fruit: str
    pieces: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sold:
    said: str


class Fruit:
    """A service with an operation of every kind."""

    @operation("GET /api/fruit", "List fruit", offline=True)
    async def list(
        self,
        *,
        session_id: Annotated[SessionId | None, Query("Whose.", name="session")] = None,
        taste: Annotated[Taste | None, Query("How it tastes.")] = None,
        ripe: Annotated[bool | None, Query("Only ripe fruit.")] = None,
        limit: Annotated[int, Query("How many.", least=1, most=9)] = 5,
        key: Annotated[str | None, Header("Idempotency-Key", "The same key is the same list.")] = None,
    ) -> Sold:
        return Sold(said=f"{session_id} {taste} {ripe} {limit} {key}")

    @operation("POST /api/fruit/{id}/boxes/{box:path}", "Buy fruit", scope=ADMIN, status=201, timeout_s=60)
    async def buy(self, fruit_id: ProcessId, box: str, order: Order) -> Page[Sold]:
        return Page(items=[Sold(said=f"{fruit_id} {box} {order.fruit} {order.pieces}")])

    @operation("DELETE /api/fruit/{id}", "Throw fruit away", retry=Retry.ALWAYS)
    async def remove(self, fruit_id: str) -> Removed:
        raise NotFound(f"there is no fruit {fruit_id!r}")

    @operation("GET /api/price", "Ask for a price", retry=Retry.UNHEARD)
    async def price(self, fruit: Annotated[str, Query("Of what.")]) -> Sold:
        return Sold(said=fruit)

    async def eat(self) -> None:
        """Not to be asked for."""


class Heard:
    """A transport that keeps what is asked, and answers."""

    def __init__(self, *answers: object) -> None:
        self.requests: list[httpx2.Request] = []
        self._answers = [*answers]

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx2.Response(200, json=answer)


def over(heard: Heard) -> Fruit:
    """Return the client of a service whose gateway is a transport."""
    web = httpx2.AsyncClient(transport=httpx2.MockTransport(heard), base_url="http://localhost")
    return proxy(Fruit, Link(web, HOME / "gateway.sock"), lambda: None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """A gateway with one service."""

    fruit: Fruit = field(default_factory=Fruit)


class LetIn:
    """An application whose callers are the operator."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["principal"] = PRINCIPAL
        await self._app(scope, receive, send)


def served() -> httpx2.AsyncClient:
    """Return a client of an application that serves the fruit."""
    shop: Any = Shop()
    routes = [route(endpoint_of("fruit", each), lambda _: shop) for each in operations(Fruit).values()]
    app = Starlette(routes=routes, exception_handlers={HoldfastError: refuse})
    app.state.redaction = Redaction()
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(LetIn(app)), base_url="http://localhost")


def test_what_is_asked_for_follows_from_the_signature() -> None:
    found = operations(Fruit)
    assert list(found) == ["list", "buy", "remove", "price"]
    asked = {each.argument: (each.name, each.location, each.kind, each.default) for each in found["list"].parameters}
    assert asked == {
        "session_id": ("session", Location.QUERY, str, None),
        "taste": ("taste", Location.QUERY, Taste, None),
        "ripe": ("ripe", Location.QUERY, bool, None),
        "limit": ("limit", Location.QUERY, int, 5),
        "key": ("Idempotency-Key", Location.HEADER, str, None),
    }
    in_path = [(each.argument, each.name, each.location) for each in found["buy"].parameters]
    assert in_path == [("fruit_id", "id", Location.PATH), ("box", "box", Location.PATH)]
    assert found["buy"].body is not None
    assert (found["buy"].body.argument, found["buy"].body.kind, found["buy"].gives) == ("order", Order, Page[Sold])
    (price,) = found["price"].parameters
    assert (price.required, price.default) == (True, "")


async def test_a_client_asks_as_the_operation_declares() -> None:
    heard = Heard({"said": "all"})
    assert await over(heard).list(session_id=SessionId("ses 1"), taste=Taste.SOUR, ripe=False, key="k") == Sold(said="all")
    assert await over(heard).list() == Sold(said="all")
    first, second = heard.requests
    assert (first.method, first.url.path) == ("GET", "/api/fruit")
    assert dict(first.url.params) == {"session": "ses 1", "taste": "sour", "ripe": "false"}
    assert (first.headers["idempotency-key"], dict(second.url.params)) == ("k", {})
    assert "idempotency-key" not in second.headers


async def test_a_client_sends_a_body_and_reads_what_is_declared() -> None:
    heard = Heard({"items": [{"said": "thanks"}]})
    found = await over(heard).buy(ProcessId("a/b c"), "x", Order(fruit="pear"))
    assert found == Page(items=[Sold(said="thanks")])
    (asked,) = heard.requests
    assert (asked.method, asked.url.raw_path) == ("POST", b"/api/fruit/a%2Fb%20c/boxes/x")
    assert asked.read() == b'{"fruit":"pear","pieces":1}'
    assert asked.headers["content-type"] == "application/json"
    assert asked.extensions["timeout"]["read"] == 60


async def test_what_is_not_declared_cannot_be_asked_for() -> None:
    with pytest.raises(AttributeError, match=r"Fruit\.eat is not declared"):
        await over(Heard({})).eat()


@pytest.mark.parametrize(
    ("ask", "answers", "asked"),
    [
        # What was heard may have been done.
        (lambda fruit: fruit.list(), [httpx2.ReadError("gone"), {"said": "x"}], 1),
        (lambda fruit: fruit.list(), [httpx2.ConnectError("nobody"), {"said": "x"}], 1),
        (lambda fruit: fruit.price("pear"), [httpx2.ReadError("gone"), {"said": "x"}], 1),
        (lambda fruit: fruit.price("pear"), [httpx2.ConnectError("nobody"), {"said": "x"}], 2),
        (lambda fruit: fruit.remove("pear"), [httpx2.ConnectError("nobody"), httpx2.ReadError("gone"), {}], 3),
    ],
)
async def test_a_request_is_sent_again_only_where_that_is_safe(
    ask: Callable[[Fruit], Awaitable[object]], answers: list[Any], asked: int
) -> None:
    heard = Heard(*answers)
    if asked < len(answers):
        with pytest.raises(Unavailable):
            await ask(over(heard))
    else:
        await asyncio.wait_for(ask(over(heard)), ABSENCE_MAX_S)
    assert len(heard.requests) == asked


async def test_offline_only_what_reads_works() -> None:
    fruit = offline(Fruit(), HOME)
    assert (await fruit.list()).said == "None None None 5 None"
    with pytest.raises(NotRunning, match="no gateway runs in /home/of/nobody"):
        await fruit.remove("x")
    with pytest.raises(NotRunning):
        await fruit.eat()
    with pytest.raises(NotRunning):
        absent(HOME).anything()


def test_a_caller_passes_where_its_key_covers_the_scope() -> None:
    Caller().demand(ADMIN)
    guest = Caller(scopes=frozenset({"api"}))
    assert (Caller().is_operator, guest.is_operator) == (True, False)
    with pytest.raises(ScopeMissing, match="'admin'"):
        guest.demand(ADMIN)


async def test_what_a_client_asks_for_reaches_the_method_as_it_was_said() -> None:
    async with served() as web:
        fruit = proxy(Fruit, Link(web, HOME / "gateway.sock"), lambda: None)
        asked = await fruit.list(session_id=SessionId("ses 1"), taste=Taste.SOUR, ripe=False, limit=7, key="k")
        assert asked == await Fruit().list(session_id=SessionId("ses 1"), taste=Taste.SOUR, ripe=False, limit=7, key="k")
        assert await fruit.list() == await Fruit().list()
        order = Order(fruit="pear", pieces=3)
        assert await fruit.buy(ProcessId("a c"), "x/y", order) == await Fruit().buy(ProcessId("a c"), "x/y", order)
        assert await fruit.price("") == Sold(said="")
        with pytest.raises(NotFound, match="there is no fruit 'a ö'"):
            await fruit.remove("a ö")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "None None None 5 None"),
        ("session=&limit=100&other=1", "None None None 9 None"),
        ("limit=0", "limit must be a whole number, 1 or more"),
        ("limit=many", "limit must be a whole number, 1 or more"),
        ("taste=salty", "taste must be one of sweet, sour"),
        ("ripe=maybe", "ripe must be true or false"),
    ],
)
async def test_what_a_request_says_is_checked_before_the_method_runs(query: str, said: str) -> None:
    async with served() as web:
        answer = await web.get(f"/api/fruit?{query}")
    found = answer.json()
    assert (found["said"] if answer.status_code == 200 else found["error"]["message"]) == said


async def test_a_body_is_checked_and_the_status_is_the_declared_one() -> None:
    async with served() as web:
        address = "/api/fruit/a/boxes/b"
        assert (await web.post(address, json={"fruit": "pear"})).status_code == 201
        for body, status in ((b'{"pieces": 1}', 400), (b"{", 400), (b"", 400)):
            answer = await web.post(address, content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == status
        assert (await web.post(address, content=b"fruit=pear")).status_code == 415


class Unfit:
    """Methods that nobody could ask for."""

    @operation("GET /api/silent", "Take what says nothing")
    async def silent(self, *, cursor: str | None = None) -> Removed: ...

    @operation("GET /api/odd", "Take what no request can say")
    async def odd(self, *, when: Annotated[float, Query("When.")] = 0.0) -> Removed: ...

    @operation("GET /api/missing/{id}", "Forget what is in the path")
    async def missing(self) -> Removed: ...

    @operation("POST /api/two", "Take two bodies")
    async def two(self, one: Order, other: Order) -> Removed: ...

    @operation("GET /api/number", "Take a number that has to be there")
    async def number(self, limit: Annotated[int, Query("How many.")]) -> Removed: ...

    @operation("GET /api/place/{id}", "Take a number from the path")
    async def place(self, place: int) -> Removed: ...


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("silent", "does not say what cursor means"),
        ("odd", "takes when, which is neither"),
        ("missing", "has no argument for 'id' of its path"),
        ("two", "has two bodies"),
        ("number", "takes limit, which needs a default"),
        ("place", "takes place from its path"),
    ],
)
def test_a_method_that_cannot_be_asked_for_is_refused(name: str, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        _ = operations(Unfit)[name].parameters


DECLARED = [(noun, name) for noun, service in nouns().items() for name in operations(service)]


@pytest.mark.parametrize(("noun", "name"), DECLARED)
async def test_every_operation_is_a_route_and_a_request_of_the_client(noun: str, name: str) -> None:
    declared = operations(nouns()[noun])[name]
    routes = {(each.method, each.path): each for each in endpoints(Streams(asyncio.Event()), Meter())}
    found = routes[declared.method, declared.path]
    assert (found.parameters, found.gives, found.status) == (declared.parameters, declared.gives, declared.status)
    assert declared.body is None or found.takes is declared.body.kind
    assert declared.offline is False or declared.method == "GET"
    assert declared.signature.return_annotation is not None
