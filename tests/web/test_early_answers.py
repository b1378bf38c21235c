"""An answer that is given before the request has come in reaches the client that is still sending."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http.client
import json
import select
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
import uvloop
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.operations.sessions import MESSAGE_MAX
from holdfast.web import lingering_close, protocol, requests, server, uploads
from holdfast.web.answers import refusal
from holdfast.web.lingering_close import Lingering
from holdfast.web.server import serving, tcp_socket, unix_socket
from tests.engine.world import until
from tests.web.house import PATIENCE_S, House, open_house
from tests.webhooks.sender import open_routes, route

MIB = 1024 * 1024
HOST = b"Host: 127.0.0.1\r\n"
LARGE = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % (8 * MIB)
# It ends the connection, and nothing of the request's body is read for it.
REFUSING = refusal(413, "too_large", "the body is too large", "send less")

Where = tuple[str, int] | str


def dial(where: Where) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX if isinstance(where, str) else socket.AF_INET)
    sock.settimeout(PATIENCE_S)
    sock.connect(where)
    return sock


def await_answer(sock: socket.socket) -> None:
    """Wait until there is something to read, and leave it there."""
    assert select.select([sock], [], [], PATIENCE_S)[0]


def read_all(sock: socket.socket) -> bytes:
    return b"".join(iter(lambda: sock.recv(65_536), b""))


def answer_to_all_of(where: Where, asked: bytes, behind: bytes = b"y" * 8 * MIB) -> bytes:
    """Ask as most clients do: read only when all is sent, although the answer has long been there."""
    with dial(where) as sock:
        sock.sendall(asked)
        await_answer(sock)
        sock.sendall(behind)
        return read_all(sock)


def whole(answer: bytes, status: int) -> bytes:
    """Return the body of an answer that has come in whole, and after which the server said that it ends."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), answer
    assert b"connection: close" in head
    assert b"content-length: %d\r\n" % len(body) in head + b"\r\n"
    return body


@contextlib.asynccontextmanager
async def answering(app: ASGIApp, home: Path) -> AsyncIterator[tuple[Where, Where]]:
    """Run a server on both kinds of socket; yields their addresses."""
    path = home / "s.sock"
    with tcp_socket("127.0.0.1", 0) as tcp, unix_socket(path) as unix:
        async with serving([(tcp, app), (unix, app)]):
            yield tcp.getsockname(), str(path)


def addresses(house: House) -> tuple[Where, Where]:
    url = urlsplit(house.url)
    return (url.hostname or "", url.port or 0), str(house.home / "gateway.sock")


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_client_that_is_still_sending_reads_the_whole_answer(home: Path, run: Callable[..., None]) -> None:
    """Over TCP and the Unix socket, on the loop of the tests and on that of a real gateway."""

    async def ask() -> None:
        async with asyncio.timeout(PATIENCE_S), answering(REFUSING, home) as places:
            for where in places:
                assert whole(await asyncio.to_thread(answer_to_all_of, where, LARGE), 413) == REFUSING.body
                broken = await asyncio.to_thread(answer_to_all_of, where, b"\x16\x03\x01 no HTTP\r\n\r\n")
                assert b'"code":"bad_http"' in whole(broken, 400)

    run(ask())


async def test_every_early_answer_is_read_to_its_end(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for a body is shortened; the waiting is real."""
    monkeypatch.setattr(requests, "BODY_TIMEOUT_S", 0.5)
    key = b"Authorization: Bearer a-key-for-the-operator\r\n"
    close, long = b"Connection: close\r\n", b"Content-Length: %d\r\n" % (8 * MIB)
    chunked = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    cases = [
        (401, b"/api/sessions", close + long, b""),
        (404, b"/nowhere", key + close + long, b""),
        (405, b"/api/status", key + close + long, b""),
        (415, b"/api/sessions", key + close + long + b"Content-Encoding: br\r\n", b""),
        (413, b"/api/sessions", key + long, b""),
        (413, b"/api/sessions", key + chunked, b"%x\r\n" % (20 * MIB) + b"y" * (requests.BODY_MAX + 1)),
        (400, b"/api/sessions", key + chunked, b"no length\r\n"),
        (408, b"/api/sessions", key + b"Content-Length: 1000000\r\n", b"{"),
    ]
    async with asyncio.timeout(2 * PATIENCE_S), open_house(home, api_key="a-key-for-the-operator") as house:
        tcp, unix = addresses(house)
        for status, path, headers, begun in cases:
            asked = b"POST %b HTTP/1.1\r\n%b%b\r\n%b" % (path, HOST, headers, begun)
            # The Unix socket needs no key.
            for where in (tcp,) if status == 401 else (tcp, unix):
                whole(await asyncio.to_thread(answer_to_all_of, where, asked), status)


async def test_a_body_that_is_announced_too_large_is_413_before_it_comes(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that asks whether to go on is told no.  One that is waited for would be 408 here."""
    monkeypatch.setattr(requests, "BODY_TIMEOUT_S", 0.5)

    def answer(where: Where, path: str, size: int, expect: bytes, zeros: int = 0) -> bytes:
        length = b"Content-Length: %b%d\r\n" % (b"0" * zeros, size)
        with dial(where) as sock:
            sock.sendall(b"POST %b HTTP/1.1\r\n%b%b%b\r\n" % (path.encode(), HOST, expect, length))
            return read_all(sock)

    async with asyncio.timeout(2 * PATIENCE_S), open_routes(home, alerts=route(body_limit=100)) as house:
        where, _ = addresses(house)
        session_id = await house.session()
        for path, most in (
            ("/api/sessions", requests.BODY_MAX),
            (f"/api/sessions/{session_id}/messages", MESSAGE_MAX),
            ("/api/uploads?name=a", uploads.UPLOAD_MAX),
            ("/v1/runs", MESSAGE_MAX),
            ("/webhooks/alerts", 100),
        ):
            for expect in (b"", b"Expect: 100-continue\r\n"):
                refused = await asyncio.to_thread(answer, where, path, most + 1, expect)
                assert b'"code":"too_large"' in whole(refused, 413), path
        whole(await asyncio.to_thread(answer, where, "/webhooks/alerts", 101, b"", 10_000), 413)
        # As much as it may have is waited for.
        asked = await asyncio.to_thread(answer, where, "/webhooks/alerts", 100, b"Expect: 100-continue\r\n")
        assert asked.startswith(b"HTTP/1.1 100 ")
        assert b"HTTP/1.1 408 " in asked


async def test_a_body_of_unknown_length_is_413_as_soon_as_it_is_too_large(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "BODY_TIMEOUT_S", 2)
    asked = b"POST /webhooks/alerts HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n" + b"3e8\r\n"

    def answer(where: Where) -> bytes:
        with dial(where) as sock:
            sock.sendall(asked + b"y" * 101)
            return read_all(sock)

    async with asyncio.timeout(PATIENCE_S), open_routes(home, alerts=route(body_limit=100)) as house:
        assert b'"code":"too_large"' in whole(await asyncio.to_thread(answer, addresses(house)[0]), 413)


async def test_real_clients_read_an_early_answer(home: Path) -> None:
    """Both send all of a body before they read."""
    body = b"y" * (MESSAGE_MAX + MIB)

    def plain(where: Where, path: str, headers: dict[str, str]) -> int:
        assert not isinstance(where, str)
        with contextlib.closing(http.client.HTTPConnection(*where, timeout=PATIENCE_S)) as client:
            client.request("POST", path, body, headers)
            with client.getresponse() as response:
                assert json.loads(response.read())["error"]["message"]
                return response.status

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), MIB):
            yield body[start : start + MIB]

    alerts = route(body_limit=100)
    key = {"Authorization": "Bearer a-key-for-the-operator"}
    async with (
        asyncio.timeout(3 * PATIENCE_S),
        open_routes(home, house={"api_key": "a-key-for-the-operator"}, alerts=alerts) as house,
        httpx2.AsyncClient(base_url=house.url, timeout=PATIENCE_S) as stranger,
        httpx2.AsyncClient(
            base_url="http://localhost",
            transport=httpx2.AsyncHTTPTransport(uds=str(house.home / "gateway.sock")),
            timeout=PATIENCE_S,
        ) as near,
    ):
        for status, path, headers in (
            (401, "/api/sessions", {}),
            (404, "/nowhere", key),
            (413, "/api/sessions", key),
            (413, "/webhooks/alerts", {}),
            (415, "/api/sessions", {**key, "Content-Encoding": "br"}),
        ):
            assert await asyncio.to_thread(plain, addresses(house)[0], path, headers) == status
            clients = (stranger,) if status == 401 else (stranger, near)
            for client in clients:
                for content in (body, pieces()):
                    answer = await client.post(path, content=content, headers=headers)
                    assert (answer.status_code, bool(answer.json()["error"]["message"])) == (status, True), path


def is_cut_off(where: Where, asked: bytes, behind: bytes, pause_s: float = 0) -> bool:
    """Send the same piece again and again, and return whether the connection is lost in the end."""
    with dial(where) as sock:
        sock.sendall(asked)
        await_answer(sock)
        try:
            for _ in range(500):
                sock.sendall(behind)
                time.sleep(pause_s)
        except ConnectionError:
            return True
    return False


async def test_what_is_taken_behind_an_answer_has_an_end(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the connection closes or may go on, a client cannot make the gateway read for ever."""
    monkeypatch.setattr(lingering_close, "LINGER_MAX", MIB)
    kept = refusal(404, "no_route", "nothing is here")
    endless = LARGE.replace(b"%d" % (8 * MIB), b"%d" % (1024 * MIB))
    async with asyncio.timeout(2 * PATIENCE_S):
        for app in (REFUSING, kept):
            async with answering(app, home) as places:
                for where in places:
                    assert await asyncio.to_thread(is_cut_off, where, endless, b"y" * MIB)


async def test_a_client_that_sends_slowly_behind_an_answer_is_cut_off(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is shortened; the waiting is real."""
    monkeypatch.setattr(lingering_close, "LINGER_S", 0.2)
    async with asyncio.timeout(PATIENCE_S), answering(REFUSING, home) as places:
        for where in places:
            assert await asyncio.to_thread(is_cut_off, where, LARGE, b"y", 0.01)


async def test_a_lingering_connection_counts_until_it_is_closed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "CONNECTIONS_MAX", 1)

    def status(where: Where) -> bytes:
        with dial(where) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
            return read_all(sock).split()[1]

    async with asyncio.timeout(PATIENCE_S), answering(REFUSING, home) as (where, _):
        with dial(where) as sock:
            sock.sendall(LARGE)
            await asyncio.to_thread(await_answer, sock)
            assert await asyncio.to_thread(status, where) == b"503"

        async def room() -> bool:
            return await asyncio.to_thread(status, where) == b"413"

        await until(room)


async def test_no_lingering_connection_keeps_a_server_from_closing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that lingers already, nor one that is answered when the server is about to close."""
    monkeypatch.setattr(lingering_close, "LINGER_S", 10 * PATIENCE_S)
    monkeypatch.setattr(server, "GRACE_S", 10 * PATIENCE_S)
    asked, closing = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/late":
            asked.set()
            await closing.wait()
        await REFUSING(scope, receive, send)

    def is_closed(where: Where) -> bool:
        with socket.socket() as sock:
            return sock.connect_ex(where) == errno.ECONNREFUSED

    async def close_late(where: Where) -> None:
        await until(lambda: is_closed(where))
        closing.set()

    with socket.socket() as early, socket.socket() as late:
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group, answering(app, home) as (where, _):
            for sock, path in ((early, b"/ "), (late, b"/late ")):
                sock.connect(where)
                sock.sendall(LARGE.replace(b"/ ", path, 1))
            await asyncio.to_thread(await_answer, early)
            await asked.wait()
            group.create_task(close_late(where))
        for sock in (early, late):
            whole(read_all(sock), 413)


async def test_a_client_that_reset_the_connection_is_no_error() -> None:
    """The kernel knows it before the loop does."""
    loop = asyncio.get_running_loop()
    connections: set[object] = set()
    with tcp_socket("127.0.0.1", 0) as listener:
        client = dial(listener.getsockname())
        accepted, _ = listener.accept()
    transport, _ = await loop.connect_accepted_socket(asyncio.Protocol, accepted)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    Lingering(transport, connections, loop)
    assert len(connections) == 1
    await until(lambda: not connections)
