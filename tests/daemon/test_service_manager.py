"""What a service manager is told, on a real datagram socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.daemon.service_manager import ServiceManager


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(5)
        yield listening


def test_every_piece_of_news_is_one_datagram(manager: socket.socket) -> None:
    notice = ServiceManager({"NOTIFY_SOCKET": manager.getsockname()})
    notice.ready("listening")
    assert manager.recv(4096).decode().splitlines() == ["READY=1", "STATUS=listening", f"MAINPID={os.getpid()}"]
    notice.stopping("draining")
    assert manager.recv(4096) == b"STOPPING=1\nSTATUS=draining"
    notice.reloading("draining")
    assert manager.recv(4096).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
    notice.alive()
    assert manager.recv(4096) == b"WATCHDOG=1"


def test_an_abstract_address_works_too() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0holdfast-test-{os.getpid()}")
        listening.settimeout(5)
        ServiceManager({"NOTIFY_SOCKET": f"@holdfast-test-{os.getpid()}"}).status("well")
        assert listening.recv(4096) == b"STATUS=well"


def test_nobody_listening_is_no_trouble(tmp_path: Path) -> None:
    ServiceManager({}).ready("here")
    ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "nobody")}).ready("here")


@pytest.mark.parametrize(
    ("environment", "pause"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "2000000"}, 1.0),
        ({"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": str(os.getpid())}, 1.0),
        ({"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_manager_hears_from_us_twice_in_its_patience(environment: dict[str, str], pause: float | None) -> None:
    assert ServiceManager(environment).watchdog_s == pause
