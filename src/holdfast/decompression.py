"""Decompresses responses in bounded pieces, and stops reading at the end of the compressed content."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import AsyncGenerator, Generator

import httpx2

PIECE_MAX_BYTES = 256 * 1024
# zlib's numbers for its formats.
_GZIP = 16 + zlib.MAX_WBITS
_BARE = -zlib.MAX_WBITS
_WINDOWS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}


async def decompressed(response: httpx2.Response) -> AsyncGenerator[bytes]:
    """Yield the content of a response; an unknown encoding is passed on as it is.  Raises `httpx2.DecodingError`.

    A server may send data without end after the compressed content, and a decoder would buffer all of it.  So reading stops
    at the end of the content.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    decompressor = _Decompressor(encoding) if encoding in _WINDOWS else None
    async with contextlib.aclosing(response.aiter_raw()) as packed:
        async for piece in packed:
            if decompressor is None:
                yield piece
                continue
            if decompressor.has_ended and piece:
                return
            for each in decompressor.pieces(piece):
                yield each


class _Decompressor:
    """Decompresses one response.  Some servers send "deflate" with zlib's header, others without."""

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
