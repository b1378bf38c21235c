"""The page: a few files of this package, which ask for nothing that is not here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER = "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
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
# Every file by its address.  What is not named here is not served.
FILES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "/": ("index.html", "text/html"),
        "/page.js": ("page.js", "text/javascript"),
        "/page.css": ("page.css", "text/css"),
        "/icon.svg": ("icon.svg", "image/svg+xml"),
    }
)


def routes() -> list[Route]:
    """Return the page, for anybody: it holds nothing that is secret."""
    return [_route(path, name, kind) for path, (name, kind) in FILES.items()]


def _route(path: str, name: str, kind: str) -> Route:
    content = files("holdfast.web").joinpath(FOLDER, name).read_bytes()

    async def serve(_request: Request) -> Response:
        return Response(content, headers=HEADERS, media_type=kind)

    return Route(path, serve, methods=["GET"])
