"""What comes in over HTTP, parsed once: bodies, ids and the parameters of lists."""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from enum import StrEnum
from typing import TypeVar

import msgspec
from starlette.requests import Request

from holdfast.operations.operation import BODY_MAX
from holdfast.operations.pages import SIZE_MAX
from holdfast.web.answers import Refused
from holdfast.web.json_offsets import offset
from holdfast.web.protocol import has_arrived

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

# How many bytes of incoming bodies are kept at once.  All senders share this limit, as they are not known yet.
BODIES_MAX = 256 * BODY_MAX
BODY_TIMEOUT_S = 10
ID_MAX = 200
# One byte of a body can take this many bytes in a Python string.
TEXT_WIDTH_MAX = 4
UNPACKED_AT_ONCE = 256 * 1024
# How zlib is told that it will be gzip, and no other of its formats.
_GZIP = 16 + zlib.MAX_WBITS


async def body(request: Request, kind: type[T], most: int = BODY_MAX) -> T:
    """Return the JSON body of a request, `most` bytes long.  An empty one counts as an empty object."""
    return await _parsed(request, await content(request, most), kind)


async def hashed_body(request: Request, kind: type[T], most: int = BODY_MAX) -> tuple[T, str]:
    """Return the JSON body of a request, and the SHA-256 of its bytes."""
    raw = await content(request, most)
    if len(raw) > BODY_MAX:
        return await _parsed(request, raw, kind), await asyncio.to_thread(_hashed, raw)
    return await _parsed(request, raw, kind), _hashed(raw)


def _hashed(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


async def _parsed(request: Request, raw: bytes, kind: type[T]) -> T:
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
        more = {"offset": where} if (where := offset(raw, error)) is not None else {}
        problem, hint = f"the body is not what this route takes: {error}", "GET /openapi.json says what it takes"
        raise Refused(400, "bad_json", problem, hint, more=more) from error


def require_memory(raw: bytes) -> None:
    """Raise `MemoryError` where there is none for the text of a body: the decoder would crash this process instead."""
    bytes(len(raw) * TEXT_WIDTH_MAX)


def _parse(raw: bytes, kind: type[T]) -> T:
    require_memory(raw)
    # All of it is read first, so that what this route does not look at is checked as well.
    return msgspec.convert(msgspec.json.decode(raw), kind)


async def content(request: Request, most: int = BODY_MAX, timeout_s: float | None = None) -> bytes:
    """Return the body of a request, `most` bytes long when it is unpacked."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise Refused(415, "encoded", f"a body cannot be sent as {encoding[:40]!r}", "send it as it is, or as gzip")
    raw = await _read(request, most, timeout_s or BODY_TIMEOUT_S)
    return await _unpacked(raw, most) if encoding == "gzip" else raw


async def _read(request: Request, most: int, timeout_s: float) -> bytes:
    if has_arrived(request.scope):
        return await _gathered(request, most)
    if _announced(request) > most:
        # Nothing of it is waited for, and a client that asks first is not told to go on.
        raise _too_large(most)
    try:
        async with asyncio.timeout(timeout_s):
            return await _gathered(request, most)
    except TimeoutError:
        raise Refused(408, "too_slow", f"the body took longer than {timeout_s} seconds", "send it faster") from None


def _announced(request: Request) -> int:
    # The parser lets digits through only, and a number of 64 bits, but any number of zeros before it: too many for `int`.
    return int(request.headers.get("content-length", "").strip().lstrip("0") or 0)


class _Bodies:
    """How much is kept of those that come in now."""

    size = 0


async def _gathered(request: Request, most: int) -> bytes:
    raw = bytearray()
    try:
        async for piece in request.stream():
            if len(raw) + len(piece) > most:
                raise _too_large(most)
            _Bodies.size += len(piece)
            raw += piece
            if _Bodies.size > BODIES_MAX:
                raise Refused(503, "crowded", "too much is being sent to this gateway at once", "try again in a moment")
    finally:
        _Bodies.size -= len(raw)
    return bytes(raw)


async def _unpacked(packed: bytes, most: int) -> bytes:
    """Return a gzip body unpacked.  It is unpacked in steps, so that a huge result does not block other requests."""
    raw = bytearray()
    unpacker = zlib.decompressobj(_GZIP)
    try:
        while not unpacker.eof:
            piece = unpacker.decompress(packed, UNPACKED_AT_ONCE)
            packed = unpacker.unconsumed_tail
            raw += piece
            if len(raw) > most:
                raise _too_large(most)
            if not piece and not unpacker.eof:
                raise Refused(400, "bad_gzip", "the packed body ends too early", "send all of it")
            await asyncio.sleep(0)
        if unpacker.unused_data:
            # Others would read on, and so another body than the one that is judged here.
            raise Refused(400, "bad_gzip", "something stands behind the packed body", "pack all of it at once")
    except zlib.error as error:
        if _lacks_memory(error):
            raise MemoryError from error
        raise Refused(400, "bad_gzip", f"the body is not gzip: {error}", "send it as it is, or as gzip") from error
    return bytes(raw)


def _lacks_memory(error: zlib.error) -> bool:
    # Z_MEM_ERROR of zlib.h; Python has no exception of its own for it.
    return str(error).startswith("Error -4 ")


def _too_large(most: int) -> Refused:
    return Refused(413, "too_large", f"the body is larger than {most} bytes", "send less at once")


def name(request: Request, parameter: str = "id") -> str:
    """Return an id from the path."""
    value: str = request.path_params[parameter]
    if not value.isprintable() or len(value) > ID_MAX:
        odd = next((place for place, each in enumerate(value) if not each.isprintable()), ID_MAX)
        problem = f"an id has printable characters only, {ID_MAX} at most"
        raise Refused(400, "bad_id", problem, more={"offset": odd})
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
