"""The page: the files that were built into this package, which ask for nothing that is not here."""

from __future__ import annotations

import functools
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

FOLDER = "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types holdfast"
)
HEADERS = MappingProxyType(
    {
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
)
KINDS = MappingProxyType(
    {
        ".html": "text/html",
        ".js": "text/javascript",
        ".css": "text/css",
        ".svg": "image/svg+xml",
        ".png": "image/png",
        ".webmanifest": "application/manifest+json",
    }
)
# Their names change with what is in them, so what has been fetched once is good for ever.
NAMED_BY_CONTENT = "/assets/"
FOR_EVER = "public, max-age=31536000, immutable"
# A browser asks each time whether it has changed.
ASKED_AGAIN = "no-cache"
UNBUILT = "The page has not been built into this package. In a checkout: make page\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file of the page."""

    path: str
    kind: str
    plain: bytes


def built() -> list[File]:
    """Return every file of the page; none where it has not been built."""
    return [_file(path, each) for path, each in _walk("/", files("holdfast.web").joinpath(FOLDER))]


def routes() -> list[Route]:
    """Return the routes of the page.  They need no key, because the page holds no secret."""
    return [_route(file) for file in built()] or [Route("/", _apologise, methods=["GET"])]


def _walk(path: str, folder: Traversable) -> Iterator[tuple[str, Traversable]]:
    if not folder.is_dir():
        return
    for each in folder.iterdir():
        if each.is_dir():
            yield from _walk(f"{path}{each.name}/", each)
        elif _suffix(each.name) in KINDS:
            yield f"{path}{each.name}", each


def _suffix(name: str) -> str:
    return f".{name.rpartition('.')[2]}"


def _file(path: str, found: Traversable) -> File:
    return File(path="/" if path == "/index.html" else path, kind=KINDS[_suffix(found.name)], plain=found.read_bytes())


def _route(file: File) -> Route:
    lasting = FOR_EVER if file.path.startswith(NAMED_BY_CONTENT) else ASKED_AGAIN
    headers = {**HEADERS, "Cache-Control": lasting, "Vary": "Accept-Encoding"}
    packed_headers = {**headers, "Content-Encoding": "gzip"}

    @functools.cache
    def packed() -> bytes:
        # Packing every file at the start would delay each start; no time stamp, so the bytes are always the same.
        return gzip.compress(file.plain, mtime=0)

    async def serve(request: Request) -> Response:
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed(), headers=packed_headers, media_type=file.kind)
        return Response(file.plain, headers=headers, media_type=file.kind)

    return Route(file.path, serve, methods=["GET"])


async def _apologise(_request: Request) -> Response:
    return PlainTextResponse(UNBUILT, 503, headers=HEADERS)
