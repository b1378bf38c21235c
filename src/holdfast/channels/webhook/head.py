"""The headers of a delivery.  A header that is repeated, too long or not text is an error, not a missing header."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.errors import Rejected

VALUE_MAX = 4_096
# A sender of two signature headers may hope that one of them fits.
_MANY = 2


class BadHeader(Rejected):
    """A header with a value that it must not have."""


class Head:
    """The headers of one delivery; their names are in small letters."""

    __slots__ = ("_values",)

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            self._values.setdefault(name, []).append(value)

    def has(self, name: str) -> bool:
        return name.encode() in self._values

    def one(self, name: str) -> str:
        """Return the text of a header; empty if it is missing.  Raises `BadHeader`."""
        values = self._values.get(name.encode())
        if values is None:
            return ""
        if len(values) >= _MANY:
            raise BadHeader(f"{name} came {len(values)} times; send it once")
        value = values[0]
        if len(value) > VALUE_MAX:
            raise BadHeader(f"{name} is longer than {VALUE_MAX} bytes")
        if not value.isascii():
            raise BadHeader(f"{name} must be plain ASCII")
        return value.decode().strip()


def head(headers: dict[str, str]) -> Head:
    """Return headers as if they had been received."""
    return Head((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items())
