"""Readers of a stream that do not read, come back, or are many."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import socket
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from holdfast.engine import feed
from holdfast.web import events as sse
from holdfast.web import protocol
from holdfast.web.protocol import BoundedProtocol
from tests.blackbox.gateway import Gateway, gateways
from tests.engine.world import until
from tests.web.house import PATIENCE_S, House, open_house, parse

# Each turn says it three times: as it is asked, while it is answered, and at the end.
LONG = 900_000
TURNS = 3
RECONNECTIONS = 50


async def connect(house: House, session_id: str, after: int = 0) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask for the events of a session over a socket that holds little, and read nothing of the answer."""
    address = urlsplit(house.url)
    bare = socket.socket()
    bare.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    bare.setblocking(False)
    await asyncio.get_running_loop().sock_connect(bare, (address.hostname, address.port))
    reader, writer = await asyncio.open_connection(sock=bare)
    writer.write(f"GET /api/sessions/{session_id}/events?after={after} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return reader, writer


async def entries(reader: asyncio.StreamReader, last: int) -> list[Any]:
    """Read events by the book, chunk by chunk, until one."""
    while await reader.readline() != b"\r\n":
        pass
    seen: list[Any] = []
    rest = b""
    while not seen or seen[-1]["seq"] < last:
        size = int(await reader.readline(), 16)
        *events, rest = (rest + await reader.readexactly(size)).split(b"\n\n")
        await reader.readexactly(2)
        seen += [json.loads(event.partition(b"data: ")[2]) for event in events if event.startswith(b"id: ")]
    return seen


def waiting() -> int:
    """Return how many bytes wait in this process for somebody to read them."""
    served = [each for each in gc.get_objects() if isinstance(each, BoundedProtocol)]
    return sum(each.transport.get_write_buffer_size() for each in served if not each.transport.is_closing())


async def test_a_reader_that_does_not_read_costs_nothing_and_misses_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J8: megabytes are said while it does not read; then each entry comes once, live ones and those of the journal.

    A mailbox holds little here, so that the rest can only come from the journal.
    """
    monkeypatch.setattr(feed, "BACKLOG_MAX", 4)
    async with asyncio.timeout(60), open_house(home) as house:
        session_id = await house.session()
        reader, writer = await connect(house, session_id)
        await until(lambda: waiting() == 0)
        for number in range(TURNS):
            turn = await house.send(session_id, f"{number} count to 1 " + "x" * LONG)
            assert (await house.settled(turn["turn_id"]))["state"] == "completed"
        last = (await house.get(f"/api/sessions/{session_id}"))["seq"]
        # An entry, and what a transport takes before it asks to wait; what was said is much more.
        assert 65_536 < waiting() < 2 * LONG
        seen = await entries(reader, last)
        assert [each["seq"] for each in seen] == list(range(1, last + 1))
        writer.close()


async def test_a_reader_that_takes_nothing_for_long_loses_its_connection(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The patience is shortened; the waiting is real."""
    monkeypatch.setattr(protocol, "WRITE_TIMEOUT_S", 0.3)
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.05)
    async with asyncio.timeout(60), open_house(home) as house:
        session_id = await house.session()
        _, writer = await connect(house, session_id)
        # Whoever does read is not bothered by it.
        seen: list[int] = []
        reading = asyncio.create_task(follow(house, session_id, seen))
        for number in range(TURNS):
            await house.settled((await house.send(session_id, f"{number} count to 1 " + "x" * LONG))["turn_id"])

        async def one_left() -> bool:
            return "holdfast_streams_open 1\n" in (await house.web.get("/metrics")).text

        await until(one_left)
        last = (await house.get(f"/api/sessions/{session_id}"))["seq"]
        await until(lambda: seen == list(range(1, last + 1)))
        reading.cancel()
        writer.close()


async def follow(house: House, session_id: str, seen: list[int]) -> None:
    async with house.events(session_id) as events:
        async for event in events:
            seen.extend([event["seq"]])


async def test_a_reader_that_does_not_read_does_not_keep_a_gateway_from_ending(home: Path) -> None:
    async with asyncio.timeout(60), open_house(home) as house:
        session_id = await house.session()
        _, writer = await connect(house, session_id)
        for number in range(TURNS):
            await house.settled((await house.send(session_id, f"{number} count to 1 " + "x" * LONG))["turn_id"])
        begun = asyncio.get_running_loop().time()
        await house.stop()
        assert asyncio.get_running_loop().time() - begun < 5
        writer.close()


async def test_many_readers_hear_of_each_entry_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One heartbeat is for all of them, and when they have gone nothing of them is left."""
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.1)
    number = 200

    async with asyncio.timeout(60), open_house(home) as house:
        house.web = httpx2.AsyncClient(base_url=house.url, limits=httpx2.Limits(max_connections=None), timeout=PATIENCE_S)
        async with house.web:
            session_id = await house.session()
            seen: list[list[int]] = [[] for _ in range(number)]
            before = len(asyncio.all_tasks())
            readers = [asyncio.create_task(follow(house, session_id, each)) for each in seen]

            async def open_streams() -> bool:
                return f"holdfast_streams_open {number}\n" in (await house.web.get("/metrics")).text

            await until(open_streams)
            await asyncio.sleep(0.3)
            # A task of theirs in this test, and one in the gateway: that of the request.
            assert len(asyncio.all_tasks()) - before < 2 * number + 20
            await house.settled((await house.send(session_id, "count to 3"))["turn_id"])
            last = (await house.get(f"/api/sessions/{session_id}"))["seq"]
            await until(lambda: all(each == list(range(1, last + 1)) for each in seen))
            for each in readers:
                each.cancel()

            async def none_open() -> bool:
                return "holdfast_streams_open 0\n" in (await house.web.get("/metrics")).text

            await until(none_open)


class Line:
    """One answer as a server sees it, which takes nothing behind its end."""

    def __init__(self, hear: Callable[[], None]) -> None:
        self.when_lost: Callable[[], None] | None = None
        self.lost = self.choked = self._over = False
        self._hear = hear

    def abort(self) -> None:
        self._over = True

    async def send(self, message: Any) -> None:
        assert not self._over, "the answer had come to its end"
        if message["type"] == "http.response.body":
            self._over = not message["more_body"]
            if message["body"].startswith(b":"):
                self._hear()

    async def receive(self) -> Any:
        raise AssertionError("nobody asks")


async def test_streams_that_end_in_the_middle_of_a_heartbeat_end_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.01)
    monkeypatch.setattr(sse, "GREETED_AT_ONCE", 1)
    streams, over, heard = sse.Streams(asyncio.Event()), asyncio.Event(), asyncio.Semaphore(0)

    async def frames(end: asyncio.Event) -> AsyncGenerator[bytes]:
        yield b"data: {}\n\n"
        await end.wait()

    async def show(end: asyncio.Event, hear: Callable[[], None]) -> None:
        line = Line(hear)
        scope = {"method": "GET", "extensions": {"holdfast.connection": line}}
        await sse.EventStream(frames(end), streams)(scope, line.receive, line.send)

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        lasting = group.create_task(show(asyncio.Event(), heard.release))
        for _ in range(20):
            group.create_task(show(over, over.set))
        for _ in range(3):
            await heard.acquire()
        assert over.is_set()
        assert len(streams) == 1
        lasting.cancel()


async def test_asking_only_for_the_head_of_a_stream_ends(home: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), open_house(home) as house:
        answer = await house.web.head(f"/api/sessions/{await house.session()}/events")
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer.headers["content-type"].startswith("text/event-stream")


class Wanderer:
    """A reader that leaves after a few entries, and comes back with the last cursor that it saw."""

    def __init__(self, gateway: Gateway, session_id: str) -> None:
        self._gateway = gateway
        self._session_id = session_id
        self.seen: list[int] = []
        self.connections = 0
        self.over = False

    async def run(self) -> None:
        async with httpx2.AsyncClient(base_url=self._gateway.url, timeout=PATIENCE_S, trust_env=False) as web:
            while not self.over:
                try:
                    await self._visit(web)
                except httpx2.TransportError:
                    # The gateway is away.
                    await asyncio.sleep(0.02)

    async def _visit(self, web: httpx2.AsyncClient) -> None:
        cursor = {"Last-Event-ID": str(self.seen[-1])} if self.seen else {}
        address = f"/api/sessions/{self._session_id}/events"
        async with web.stream("GET", address, headers=cursor) as response:
            if response.status_code != 200:
                return
            self.connections += 1
            taken = 0
            async for event in parse(response):
                self.seen.append(event["seq"])
                taken += 1
                self.over = event["kind"] == "turn.completed" and self.connections >= RECONNECTIONS
                if self.over or taken == 1 + self.connections % 4:
                    return


async def talk(web: httpx2.AsyncClient, session_id: str, enough: Callable[[], bool]) -> None:
    while not enough():
        await web.post(f"/api/sessions/{session_id}/messages", json={"text": "count to 20"})
        await asyncio.sleep(0.2)


async def test_a_reader_that_reconnects_fifty_times_across_restarts_sees_each_entry_once() -> None:
    """J8: a real gateway, stopped and started, and killed and started, while it is read."""
    with gateways(gateway__resume="auto") as (gateway,):
        await gateway.start()
        async with (
            asyncio.timeout(120),
            httpx2.AsyncClient(base_url=gateway.url, timeout=PATIENCE_S, trust_env=False) as web,
        ):
            session_id = (await web.post("/api/sessions", json={})).json()["id"]
            wanderer = Wanderer(gateway, session_id)
            wandering = asyncio.create_task(wanderer.run())
            for end, visits in ((signal.SIGTERM, 15), (signal.SIGKILL, 30)):
                await talk(web, session_id, lambda visits=visits: wanderer.connections >= visits)
                gateway.signal(end)
                await gateway.ended()
                await gateway.start()
            await talk(web, session_id, wandering.done)
            await wandering
            assert wanderer.connections >= RECONNECTIONS
            assert wanderer.seen == list(range(1, wanderer.seen[-1] + 1))
