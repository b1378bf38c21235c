"""The server on its sockets, whatever ends it."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys

import pytest
from starlette.types import Receive, Scope, Send

from holdfast.app import gateway
from holdfast.config import Config, ServerConfig
from holdfast.web.server import serving, tcp_socket


async def nobody(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """An application that nobody asks."""


@pytest.mark.parametrize("cut_short", [False, True])
async def test_a_socket_that_is_closed_is_watched_no_longer(cut_short: bool) -> None:
    """What gets its number next, such as a connection to the database, would else never hear an answer."""
    numbers: list[int] = []
    try:
        with tcp_socket("127.0.0.1", 0) as listener:
            numbers.append(listener.fileno())
            async with serving([(listener, nobody)]):
                _ = 1 / int(not cut_short)
    except* ZeroDivisionError:
        assert cut_short
    assert [asyncio.get_running_loop().remove_reader(number) for number in numbers] == [False]


def test_a_gateway_makes_room_for_its_connections_as_far_as_it_may() -> None:
    look = "from holdfast.web.server import make_room; make_room();print(*resource.getrlimit(resource.RLIMIT_NOFILE))"

    def made(soft: int, hard: int) -> list[int]:
        limited = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard})); {look}"
        return [int(each) for each in subprocess.check_output([sys.executable, "-c", limited], text=True).split()]

    assert made(256, 8_000) == [4_000, 8_000]
    assert made(256, 1_000) == [1_000, 1_000]
    assert made(6_000, 8_000) == [6_000, 8_000]


def test_an_answer_does_not_wait_for_the_client_to_acknowledge_its_head() -> None:
    """asyncio turns Nagle's algorithm off only for sockets that name their protocol."""
    with tcp_socket("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_the_port_that_no_command_may_reach_is_the_one_that_the_gateway_has() -> None:
    """S4: also where it asked for any, or inherited the listener of a gateway with another setting."""
    with tcp_socket("127.0.0.1", 0) as listener:
        config = gateway.listening(Config(server=ServerConfig(port=0)), listener)
        assert config.server.port == listener.getsockname()[1] > 0
