"""What comes in over HTTP, parsed once: bodies, ids and the parameters of lists."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import TypeVar

import msgspec
from starlette.requests import Request

from holdfast.desk.cursors import SIZE_MAX
from holdfast.web.answers import Refused
from holdfast.web.principal import Principal

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

BODY_MAX = 1024 * 1024
# A client that is still sending when the connection closes may never see why, so a little more is taken and forgotten.
DISCARDED_MAX = 16 * BODY_MAX
BODY_TIMEOUT_S = 10
ID_MAX = 200


async def body(request: Request, kind: type[T], most: int = BODY_MAX) -> T:
    """Return the JSON body of a request, `most` bytes long.  An empty one counts as an empty object."""
    raw = await _read(request, most)
    if not raw:
        raw = b"{}"
    elif request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "not_json", "the body must be application/json", "send Content-Type: application/json")
    try:
        if len(raw) > BODY_MAX:
            # What takes this long to read must not keep others waiting.
            return await asyncio.to_thread(_parse, raw, kind)
        return _parse(raw, kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Refused(400, "bad_json", f"the body is not what this route takes: {error}") from error


def _parse(raw: bytes, kind: type[T]) -> T:
    # All of it is read first, so that what this route does not look at is checked as well.
    return msgspec.convert(msgspec.json.decode(raw), kind)


async def _read(request: Request, most: int) -> bytes:
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "encoded", "the body must not be compressed")
    raw = bytearray()
    size = 0
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for piece in request.stream():
                size += len(piece)
                if size > most + DISCARDED_MAX:
                    break
                if size <= most:
                    raw += piece
    except TimeoutError:
        raise Refused(408, "too_slow", f"the body took longer than {BODY_TIMEOUT_S} seconds") from None
    if size > most:
        raise Refused(413, "too_large", f"the body is larger than {most} bytes")
    return bytes(raw)


def name(request: Request, parameter: str = "id") -> str:
    """Return an id from the path."""
    value: str = request.path_params[parameter]
    if not value.isprintable() or len(value) > ID_MAX:
        raise Refused(400, "bad_id", "an id has printable characters only, and not too many")
    return value


def header(request: Request, title: str) -> str | None:
    """Return a header that names something; None where it is missing or empty."""
    value = request.headers.get(title, "").strip()
    if not value.isprintable() or len(value) > ID_MAX:
        raise Refused(400, "bad_header", f"{title} has printable characters only, {ID_MAX} at most")
    return value or None


def number(value: str | None, parameter: str, default: int, most: int = SIZE_MAX, least: int = 1) -> int:
    """Return a number from the query."""
    if value is None:
        return default
    if not value.isascii() or not value.isdigit() or len(value) > 18 or int(value) < least:
        raise Refused(400, "bad_parameter", f"{parameter} must be a whole number, {least} or more")
    return min(int(value), most)


def choice(value: str | None, parameter: str, kind: type[E]) -> E | None:
    """Return one of a fixed set of words from the query."""
    if value is None:
        return None
    try:
        return kind(value)
    except ValueError:
        raise Refused(400, "bad_parameter", f"{parameter} must be one of {', '.join(kind)}") from None


def flag(value: str | None, parameter: str) -> bool | None:
    """Return yes or no from the query."""
    if value is None:
        return None
    if value not in ("true", "false"):
        raise Refused(400, "bad_parameter", f"{parameter} must be true or false")
    return value == "true"


def principal(request: Request) -> Principal:
    """Return who makes the request, as the guard found out."""
    return request.state.principal
