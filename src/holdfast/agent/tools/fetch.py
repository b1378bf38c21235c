"""Fetch: one page or file from the web, as text that is marked as somebody else's."""

from __future__ import annotations

import asyncio
from email.message import Message
from typing import Annotated, Literal

import msgspec

from holdfast.agent.tools.pages import decoded, read_page
from holdfast.agent.tools.port import Site, StructTool
from holdfast.agent.tools.untrusted import fence
from holdfast.core.effects import Effect
from holdfast.egress import Answer, Egress
from holdfast.errors import Rejected

CHARS_DEFAULT = 20_000
CHARS_MAX = 45_000
BYTES_MAX = 2 * 1024 * 1024

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = frozenset(
    {"application/json", "application/xml", "application/javascript", "application/x-javascript", "application/yaml"}
    | {"application/x-yaml", "application/toml", "application/x-ndjson", "application/sql", "application/x-sh"}
)
_TEXT_SUFFIXES = ("+json", "+xml", "+yaml")


class FetchArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: Annotated[str, msgspec.Meta(description="The http or https URL.", min_length=1, max_length=8_192)]
    method: Annotated[
        Literal["GET", "HEAD"], msgspec.Meta(description="GET for the content, HEAD for status and headers only.")
    ] = "GET"
    max_chars: Annotated[int, msgspec.Meta(description="How much of the text to return at most.", ge=100, le=CHARS_MAX)] = (
        CHARS_DEFAULT
    )


def fetch_tool(egress: Egress) -> StructTool[FetchArgs]:
    """Return the tool that fetches through a guarded way out."""

    async def fetch(args: FetchArgs, _site: Site) -> str:
        answer = await egress.request(args.method, args.url, bytes_max=BYTES_MAX)
        head = _head(args.method, answer)
        if args.method == "HEAD":
            return f"{head}\n{fence(_headers(answer), answer.url)}"
        return f"{head}\n{await _content(answer, args.max_chars)}"

    return StructTool(
        name="fetch",
        description=(
            "Read a page or a text file from the web. HTML comes back as readable text with its links, JSON and text as "
            "they are; other kinds are refused. Addresses of this machine and its network are out of reach unless allowed."
        ),
        args=FetchArgs,
        effect=Effect.PURE,
        action=fetch,
    )


def _head(method: str, answer: Answer) -> str:
    kind = answer.headers.get("content-type", "no content type")
    size = f", {len(answer.body):,} bytes" if method == "GET" else ""
    cut = f" (the first {BYTES_MAX:,} only; the rest was not read)" if answer.cut else ""
    return f"{method} {answer.url}: {answer.status} {answer.reason}, {kind}{size}{cut}"


def _headers(answer: Answer) -> str:
    return "\n".join(f"{name}: {value}" for name, value in answer.headers.items() if name.lower() != "set-cookie")


async def _content(answer: Answer, chars_max: int) -> str:
    kind, charset = _media_type(answer)
    if not answer.body:
        return "The answer is empty."
    if kind in _HTML:
        # A page may be made to be slow to parse; the loop is not held up by it.
        page = await asyncio.to_thread(lambda: read_page(decoded(answer.body, charset), answer.url))
        text = f"Title: {page.title}\n\n{page.text}" if page.title else page.text
    elif _is_text(kind, answer.body):
        text = decoded(answer.body, charset)
    else:
        raise Rejected(
            f"{answer.url} is {kind or 'binary data'}, {_size(answer)}: only pages and text can be read; "
            "download it with the terminal if you need it"
        )
    left = len(text) - chars_max
    note = (
        f"\n{left:,} more characters were left out; ask for more with max_chars (up to {CHARS_MAX:,})." if left > 0 else ""
    )
    return fence(text[:chars_max], answer.url) + note


def _is_text(kind: str, body: bytes) -> bool:
    return kind.startswith("text/") or kind in _TEXT or kind.endswith(_TEXT_SUFFIXES) or (not kind and b"\0" not in body)


def _media_type(answer: Answer) -> tuple[str, str | None]:
    header = Message()
    header["content-type"] = answer.headers.get("content-type", "")
    kind = header.get_content_type() if answer.headers.get("content-type") else ""
    return kind, header.get_content_charset()


def _size(answer: Answer) -> str:
    told = answer.headers.get("content-length", "")
    if told.isdecimal():
        return f"{int(told):,} bytes"
    return f"{'more than ' if answer.cut else ''}{len(answer.body):,} bytes"
