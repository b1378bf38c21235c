"""A host that a model names and whose look-up hangs delays nothing but itself."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import httpx2
import pytest

from holdfast.egress import Egress, Guard, Resolver, system_resolver
from holdfast.errors import Unavailable
from holdfast.resolver import ThreadedResolver
from tests.engine.world import until

# More than the event loop has threads for.
MANY = 40
AT_ONCE_S = 5


class Hanging:
    """The system's look-up, which gives no answer for `*.slow.example` until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.asked: list[str] = []
        self._ask = socket.getaddrinfo

    def __call__(self, host: Any, *more: Any, **named: Any) -> Any:
        self.asked.append(str(host))
        if str(host).endswith(".slow.example"):
            self.go.wait()
            raise socket.gaierror("no answer")
        if host == "quick.example":
            host = "127.0.0.9"
        return self._ask(host, *more, **named)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    system = Hanging()
    monkeypatch.setattr(socket, "getaddrinfo", system)
    yield system
    system.go.set()


@contextlib.asynccontextmanager
async def stuck(resolver: Resolver, count: int) -> AsyncIterator[list[asyncio.Task[Sequence[str]]]]:
    """Look up so many names that hang."""

    async def look_up(number: int) -> Sequence[str]:
        return await resolver(f"h{number}.slow.example", 80)

    tasks = [asyncio.create_task(look_up(each)) for each in range(count)]
    await asyncio.sleep(0.1)
    try:
        yield tasks
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_names_that_hang_delay_no_look_up_of_the_gateway(hanging: Hanging) -> None:
    async with stuck(system_resolver, MANY):
        try:
            async with asyncio.timeout(AT_ONCE_S):
                assert await asyncio.get_running_loop().getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)
                assert await Egress.to("http://localhost:80/")._guard.addresses(httpx2.URL("http://localhost:80/"))
        finally:
            # The loop waits for its own threads before it closes.
            hanging.go.set()


async def test_another_host_is_found_while_names_hang(hanging: Hanging) -> None:
    look_ups = ThreadedResolver(most=3)
    async with stuck(look_ups, 2), asyncio.timeout(AT_ONCE_S):
        for _ in range(5):
            assert await look_ups("quick.example", 80) == ["127.0.0.9"]


async def test_when_all_hang_a_further_look_up_is_refused_in_time(hanging: Hanging) -> None:
    look_ups = ThreadedResolver(most=2, wait_timeout_s=0.3)
    async with stuck(look_ups, 2), asyncio.timeout(AT_ONCE_S):
        with pytest.raises(Unavailable, match="2 other lookups have no answer yet"):
            await Guard(["quick.example"], look_ups).addresses(httpx2.URL("http://quick.example/"))
        assert hanging.asked == ["h0.slow.example", "h1.slow.example"]


async def test_a_look_up_that_waits_runs_when_another_ends_and_not_when_its_caller_has_gone(hanging: Hanging) -> None:
    look_ups = ThreadedResolver(most=1)
    async with stuck(look_ups, 1) as (first,), asyncio.timeout(AT_ONCE_S):
        gone, stays = (asyncio.create_task(look_ups(name, 80)) for name in ("h9.slow.example", "quick.example"))
        await asyncio.sleep(0)
        # A caller that has gone does not free the thread of its look-up.
        first.cancel()
        gone.cancel()
        await asyncio.sleep(0.1)
        assert not stays.done()
        hanging.go.set()
        assert await stays == ["127.0.0.9"]
        assert hanging.asked == ["h0.slow.example", "quick.example"]
        await until(lambda: not [each for each in threading.enumerate() if each.name == "holdfast-look-up"])


async def test_a_name_without_an_address_says_why(hanging: Hanging) -> None:
    hanging.go.set()
    with pytest.raises(OSError, match="no answer"):
        await ThreadedResolver()("h1.slow.example", 80)


def test_a_look_up_that_hangs_does_not_hold_the_process_at_its_end() -> None:
    program = """
        import asyncio, socket, threading
        from holdfast.egress import system_resolver

        socket.getaddrinfo = lambda *_, **__: threading.Event().wait()

        async def main():
            try:
                async with asyncio.timeout(0.2):
                    await system_resolver("h.slow.example", 80)
            except TimeoutError:
                print("too slow")

        asyncio.run(main())
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=20, check=True
    )
    assert (ended.stdout, ended.stderr) == ("too slow\n", "")
