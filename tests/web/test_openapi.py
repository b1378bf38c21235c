"""The OpenAPI document is true: it has every route and no other, and what a client may send is answered as it says."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.routing import Route

from holdfast.operations.caller import Caller
from holdfast.operations.lifecycle import Lifecycle
from holdfast.operations.services import ServerServices
from holdfast.web import page
from holdfast.web.application import application, endpoints
from holdfast.web.events import Streams
from holdfast.web.metrics import Meter
from holdfast.web.openapi import document
from tests.blackbox.gateway import Gateway, gateways
from tests.engine.world import ManualClock
from tests.web.house import open_house

KEY = "a-key-for-the-operator"
EXAMPLES = int(os.environ.get("FUZZED_EXAMPLES", "3"))
PATIENCE_S = 20
# One ends the gateway, which its own tests do; the other does not end.
LEFT_OUT = {("POST", "/api/stop"), ("GET", "/api/events")}


async def everything() -> list[Any]:
    return endpoints(Streams(asyncio.Event()), Meter())


ENDPOINTS = asyncio.run(everything())
DOCUMENT = document(ENDPOINTS)
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
FUZZED = [
    SCHEMA[address][method]
    for address, item in DOCUMENT["paths"].items()
    for method in item
    if (method.upper(), address) not in LEFT_OUT
]


def nobodys(_caller: Caller) -> ServerServices:
    raise AssertionError("nobody asks")


async def test_every_route_is_described_and_nothing_else() -> None:
    """The files of the page are no part of what programs ask for."""
    files = {file.path for file in page.built()}
    app = application(nobodys, Lifecycle(ManualClock(), home="", store=""), Meter())
    routes = {
        (method, route.path)
        for route in app.routes
        if isinstance(route, Route) and route.path not in files
        for method in (route.methods or set()) - {"HEAD"}
    }
    described = {(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item}
    assert described == {(method, re.sub(r":\w+}", "}", path)) for method, path in routes}


def test_names_can_be_read_and_are_given_once() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert {"PageOfSessionView", "SessionState", "TurnState", "Refusal"} <= schemas.keys()
    assert not [name for name in schemas if not re.fullmatch(r"[A-Z][A-Za-z]+", name)]
    ids = [described["operationId"] for item in DOCUMENT["paths"].values() for described in item.values()]
    assert len(ids) == len(set(ids))
    references = set(re.findall(r"'\$ref': '#/components/(\w+)/(\w+)'", str(DOCUMENT)))
    assert all(name in DOCUMENT["components"][kind] for kind, name in references)


def test_a_session_has_every_field_that_is_promised() -> None:
    """W2"""
    schemas = DOCUMENT["components"]["schemas"]
    promised = (
        "id key channel source model state title created_at updated_at ended_at end_reason auto_reset_reason"
        " resume_pending resume_reason"
    )
    assert set(promised.split()) <= set(schemas["SessionView"]["required"])
    source = {"chat_id", "chat_name", "chat_type", "thread_id", "user_id", "user_name"}
    assert set(schemas["SourceView"]["properties"]) == source


async def test_the_document_is_for_everybody_and_says_what_a_key_is_for(home: Path) -> None:
    async with open_house(home, api_key=KEY) as house:
        del house.web.headers["authorization"]
        answer = await house.web.get("/openapi.json")
        assert (answer.status_code, answer.json()) == (200, DOCUMENT)
    stop = DOCUMENT["paths"]["/api/stop"]["post"]
    assert (stop["x-scope"], stop["security"]) == ("admin", [{"key": []}, {"browser": []}, {}])
    assert DOCUMENT["paths"]["/health"]["get"]["security"] == []


class World:
    """A gateway, and things in it that can be asked about by their ids."""

    def __init__(self, gateway: Gateway) -> None:
        self.url = gateway.url
        self.web = httpx2.Client(
            base_url=gateway.url, headers={"Authorization": f"Bearer {KEY}"}, timeout=PATIENCE_S, trust_env=False
        )
        self._numbers = itertools.count()

    def real(self, path: str) -> str | None:
        """Make something of the kind that an address is about, and return its id."""
        match path.split("/")[1:3]:
            case ["api", "sessions"]:
                return self._made("/api/sessions", {})["id"]
            case ["api", "turns"]:
                return self._said()["turn_id"]
            case ["api", "jobs"]:
                name = f"job-{next(self._numbers)}"
                return self._made("/api/jobs", {"name": name, "schedule": "0 4 * * *", "prompt": "count to 1"})["name"]
            case ["api", "memory"]:
                return self._made("/api/memory", {"text": f"fact {next(self._numbers)}"})["id"]
            case ["v1", "runs"]:
                return self._made("/v1/runs", {"input": "count to 1"})["run_id"]
            case ["v1", "responses"]:
                return self._made("/v1/responses", {"model": "holdfast", "input": "count to 1"})["id"]
            case _:
                return None

    def _said(self) -> Any:
        session_id = self._made("/api/sessions", {})["id"]
        return self._made(f"/api/sessions/{session_id}/messages", {"text": "count to 1"})

    def _made(self, path: str, body: dict[str, Any]) -> Any:
        answer = self.web.post(path, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with gateways(server__api_key=KEY) as (gateway,):
        asyncio.run(gateway.start())
        found = World(gateway)
        with found.web:
            yield found
        assert "Traceback" not in gateway.tail()


def ask(world: World, case: Case, *more: Any) -> None:
    """Ask as the document lets one, and look at whether the answer is one that it names."""
    answer = case.call(base_url=world.url, headers={"Authorization": f"Bearer {KEY}"}, timeout=PATIENCE_S)
    checks = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
    case.validate_response(answer, checks=[*checks, *more])


fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("endpoint", FUZZED, ids=lambda each: f"{each.method.upper()} {each.path}")
def test_whatever_the_document_allows_is_answered_as_it_says(world: World, endpoint: Any) -> None:
    # The stream of something that is there does not end.
    ends = not endpoint.path.endswith("/events")

    @fuzzed
    @given(case=endpoint.as_strategy(generation_mode=GenerationMode.POSITIVE), known=st.booleans())
    def check(case: Case, known: bool) -> None:
        if known and ends and "id" in case.path_parameters and (real := world.real(endpoint.path)):
            case.path_parameters["id"] = real
        ask(world, case)

    check()


def _takes_something(endpoint: Any) -> bool:
    described = DOCUMENT["paths"][endpoint.path][endpoint.method]
    return bool(described["parameters"] or "requestBody" in described)


@pytest.mark.parametrize(
    "endpoint", [each for each in FUZZED if _takes_something(each)], ids=lambda each: f"{each.method.upper()} {each.path}"
)
def test_whatever_the_document_does_not_allow_is_refused(world: World, endpoint: Any) -> None:
    @fuzzed
    @given(case=endpoint.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def check(case: Case) -> None:
        ask(world, case, negative_data_rejection)

    check()
