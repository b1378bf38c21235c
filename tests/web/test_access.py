"""The name of a request, and the line about it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from holdfast.core.redaction import Redaction
from holdfast.web.access import Observed, written
from holdfast.web.answers import answer
from holdfast.web.metrics import Meter
from holdfast.web.principal import ANONYMOUS, GUEST, STRANGER, Principal
from tests.web.house import open_house

ODD = ("a b", "a\tb", "x" * 129, '"', "ü", "a,b", "{}")


class Keeper(logging.Handler):
    """A handler that keeps what it should write."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(record.getMessage()))


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    kept = Keeper()
    log = logging.getLogger("holdfast.access")
    log.addHandler(kept)
    yield kept
    log.removeHandler(kept)


async def ask(observed: Observed, **more: object) -> list[Message]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/turns/t",
        "query_string": b"key=hush",
        "headers": [],
        "state": {},
    }
    await observed({**scope, **more}, receive, send)
    return sent


async def friendly(scope: Scope, receive: Receive, send: Send) -> None:
    scope["state"]["principal"] = Principal(owner="alice", key_id="key_1")  # type: ignore[arg-type]
    scope["state"]["route"] = "/api/turns/{id}"
    await answer({"said": "something"})(scope, receive, send)


async def test_there_is_a_line_for_each_request_and_no_secret_in_it(keeper: Keeper) -> None:
    headers = [(b"authorization", b"Bearer hush"), (b"cookie", b"holdfast=hush"), (b"x-request-id", b"mine-1")]
    with written(Redaction(())):
        await ask(Observed(friendly, Meter(), logs=True), headers=headers)
    (line,) = keeper.lines
    assert line.pop("at") > 0
    assert line.pop("ms") >= 0
    assert line == {
        "method": "GET",
        "path": "/api/turns/t",
        "status": 200,
        "bytes": len('{"said":"something"}'),
        "owner": "alice",
        "key_id": "key_1",
        "request_id": "mine-1",
    }
    assert "hush" not in str(keeper.lines)


@pytest.mark.parametrize(("who", "owner"), [(ANONYMOUS, None), (STRANGER, None), (GUEST, "local")])
async def test_a_stranger_is_not_taken_for_the_operator(keeper: Keeper, who: Principal, owner: str | None) -> None:
    async def strange(scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["principal"] = who
        await answer({})(scope, receive, send)

    with written(Redaction(())):
        await ask(Observed(strange, Meter(), logs=True))
    assert keeper.lines[0]["owner"] == owner


async def test_there_is_no_line_where_none_is_wanted(keeper: Keeper) -> None:
    with written(Redaction(())):
        await ask(Observed(friendly, Meter()))
    assert keeper.lines == []


async def test_a_secret_of_the_configuration_is_masked_in_a_path_too(capsys: pytest.CaptureFixture[str]) -> None:
    with written(Redaction(("a-long-secret",))):
        await ask(Observed(friendly, Meter(), logs=True), path="/api/a-long-secret")
    line = capsys.readouterr().err
    assert json.loads(line)["status"] == 200
    assert "a-long-secret" not in line


async def test_a_request_that_breaks_is_counted_and_logged(keeper: Keeper) -> None:
    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ZeroDivisionError

    meter = Meter()
    with written(Redaction(())), pytest.raises(ZeroDivisionError):
        await ask(Observed(broken, meter, logs=True))
    assert keeper.lines[0]["status"] == 0
    assert 'holdfast_http_requests_total{method="GET",route="",status="left"} 1' in list(meter.lines())


async def test_every_answer_names_its_request(home: Path) -> None:
    """Refusals, unknown addresses and streams too; the client's own name is kept where it is a sane one."""
    async with open_house(home) as house:
        session_id = await house.session()
        names = set()
        for path in ("/health", "/nowhere", "/api/turns/none", "/metrics"):
            names.add((await house.web.get(path)).headers["x-request-id"])
        foreign = await house.web.get("/health", headers={"host": "evil.example"})
        names.add(foreign.headers["x-request-id"])
        async with house.web.stream("GET", f"/api/sessions/{session_id}/events") as stream:
            names.add(stream.headers["x-request-id"])
        assert len(names) == 6
        for name in ("a-name", "x" * 128, "0af7651916cd43dd/1+2=3"):
            assert (await house.web.get("/health", headers={"x-request-id": name})).headers["x-request-id"] == name
        for name in ODD:
            given = (await house.web.get("/health", headers={"x-request-id": name.encode()})).headers["x-request-id"]
            assert given.startswith("req_")
