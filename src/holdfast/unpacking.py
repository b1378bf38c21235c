"""Compressed responses: their content in bounded pieces, and nothing of what a server sends behind it."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import AsyncGenerator, Generator

import httpx2

PIECE_MAX_BYTES = 256 * 1024
# How zlib is told which of its formats it will be.
_GZIP = 16 + zlib.MAX_WBITS
_BARE = -zlib.MAX_WBITS
_WINDOWS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}


async def unpacked(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """Yield the content of a response; one of an encoding that is not known as it comes.

    Raises `httpx2.DecodingError`.  A response without an end may follow the end of compressed content, and a decoder would
    keep all of that; so the reading ends there.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    unpacker = _Unpacker(encoding) if encoding in _WINDOWS else None
    async with contextlib.aclosing(response.aiter_raw()) as packed:
        async for piece in packed:
            if unpacker is None:
                yield piece
                continue
            if unpacker.has_ended and piece:
                return
            for each in unpacker.pieces(piece):
                yield each


class _Unpacker:
    """One decoder of zlib.  What is called deflate comes with zlib's header from some servers, and without from others."""

    def __init__(self, encoding: str) -> None:
        self._decoder = zlib.decompressobj(_WINDOWS[encoding])
        self._may_be_bare = encoding == "deflate"

    @property
    def has_ended(self) -> bool:
        return self._decoder.eof

    def pieces(self, packed: bytes) -> Generator[bytes]:
        try:
            while packed and not self._decoder.eof:
                piece = self._decoder.decompress(packed, PIECE_MAX_BYTES)
                packed, self._may_be_bare = self._decoder.unconsumed_tail, False
                if piece:
                    yield piece
        except zlib.error as error:
            if not self._may_be_bare:
                raise httpx2.DecodingError(str(error)) from error
            self._decoder, self._may_be_bare = zlib.decompressobj(_BARE), False
            yield from self.pieces(packed)
