"""Services over the store of a gateway that does not run: what only reads works, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar, cast

from holdfast.errors import NotRunning
from holdfast.operations.operation import operations

T = TypeVar("T")


class _Absent:
    """A part that only a running gateway has."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def __getattr__(self, name: str) -> Any:
        raise NotRunning(self._home)


class _Offline:
    """A service whose gateway does not run."""

    def __init__(self, service: object, home: Path) -> None:
        self._service = service
        self._home = home

    def __getattr__(self, name: str) -> Any:  # It stands in for any service.
        found = operations(type(self._service)).get(name)
        if found is None or not found.offline:
            raise NotRunning(self._home)
        return getattr(self._service, name)


def absent(home: Path) -> Any:  # It stands in for any type.
    """Return a part that only a running gateway has.  It raises `NotRunning` when it is used."""
    return _Absent(home)


def offline(service: T, home: Path) -> T:
    """Return a service that does only what is declared as `offline`.  Everything else raises `NotRunning`."""
    return cast("T", _Offline(service, home))
