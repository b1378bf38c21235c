"""Tells the service manager how the gateway is: systemd's notify protocol, which is one datagram per message."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping


class ServiceManager:
    """The service manager that started this process, if there is one."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._watchdog_us = _watchdog_us(environment)

    @property
    def watchdog_s(self) -> float | None:
        """How often the manager wants to hear from us: twice in the time after which it would kill us."""
        return self._watchdog_us / 2_000_000 if self._watchdog_us else None

    def ready(self, status: str) -> None:
        self._tell("READY=1", f"STATUS={status}", f"MAINPID={os.getpid()}")

    def reloading(self, status: str) -> None:
        """Say that this process is about to restart under the same id."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}", f"STATUS={status}")

    def stopping(self, status: str) -> None:
        self._tell("STOPPING=1", f"STATUS={status}")

    def status(self, status: str) -> None:
        self._tell(f"STATUS={status}")

    def alive(self) -> None:
        self._tell("WATCHDOG=1")

    def _tell(self, *messages: str) -> None:
        if not self._address:
            return
        # An address that begins with @ is in the abstract namespace.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        # The gateway goes on when the service manager does not listen.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as wire:
            wire.sendto("\n".join(messages).encode(), address)


def _watchdog_us(environment: Mapping[str, str]) -> int:
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0
    wanted = environment.get("WATCHDOG_USEC", "")
    return int(wanted) if wanted.isascii() and wanted.isdigit() else 0
