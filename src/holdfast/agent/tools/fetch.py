"""The `fetch` tool: one page or file from the web, as text that is marked as untrusted."""

from __future__ import annotations

from email.message import Message
from typing import Annotated, Literal

import msgspec

from holdfast.agent.tools.hosts import Hosts, named
from holdfast.agent.tools.pages import Download, DownloadText, read_download
from holdfast.agent.tools.port import CallContext, StructTool
from holdfast.agent.tools.untrusted import fence
from holdfast.core.effects import Effect
from holdfast.core.questions import Question
from holdfast.egress import Egress, FetchedResponse, host_of
from holdfast.errors import Rejected
from holdfast.offload.pool import Pool

CHARS_DEFAULT = 20_000
CHARS_MAX = 45_000
BYTES_MAX = 2 * 1024 * 1024
READ_MAX_S = 5.0
# The header is cut here, because a long one would take long to parse.
KIND_MAX_CHARS = 500

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


def fetch_tool(egress: Egress, pool: Pool, hosts: Hosts, read_max_s: float = READ_MAX_S) -> StructTool[FetchArgs]:
    """Return the tool, which sends its requests through a guarded egress."""

    async def ask(args: FetchArgs, context: CallContext) -> Question | None:
        return await hosts.ask_after_reading(named(host_of(args.url)), f"May I fetch this?\n\n    {args.url}", context)

    async def read(download: Download, context: CallContext) -> DownloadText:
        try:
            return await pool.run(read_download, download, read_max_s, user=context.session.id)
        except TimeoutError:
            raise Rejected(f"reading {download.url} took longer than {read_max_s:g} s; try another page") from None

    async def fetch(args: FetchArgs, context: CallContext) -> str:
        # After private reading, an approved host may not redirect to one that is not approved.
        answer = await egress.request(args.method, args.url, bytes_max=BYTES_MAX, same_host=bool(context.private))
        head = _head(args.method, answer)
        if args.method == "HEAD":
            return f"{head}\n{fence(_headers(answer), answer.url)}"
        if not answer.body:
            return f"{head}\nThe answer is empty."
        text = await read(_download(answer, args.max_chars), context)
        left = text.chars - len(text.beginning)
        more = f"\n{left:,} more characters were left out; ask for more with max_chars (up to {CHARS_MAX:,})."
        return f"{head}\n{fence(text.beginning, answer.url)}{more if left else ''}"

    return StructTool(
        name="fetch",
        description=(
            "Read a page or a text file from the web. HTML comes back as readable text with its links, JSON and text as "
            "they are; other kinds are refused. Addresses of this machine and its network are out of reach unless allowed."
        ),
        args=FetchArgs,
        effect=Effect.PURE,
        action=fetch,
        asks=ask,
        reads_private=False,
    )


def _head(method: str, answer: FetchedResponse) -> str:
    kind = answer.headers.get("content-type", "no content type")
    size = f", {len(answer.body):,} bytes" if method == "GET" else ""
    cut = f" (the first {BYTES_MAX:,} only; the rest was not read)" if answer.cut else ""
    return f"{method} {answer.url}: {answer.status} {answer.reason}, {kind}{size}{cut}"


def _headers(answer: FetchedResponse) -> str:
    return "\n".join(f"{name}: {value}" for name, value in answer.headers.items() if name.lower() != "set-cookie")


def _download(answer: FetchedResponse, chars_max: int) -> Download:
    kind, charset = _media_type(answer)
    if kind not in _HTML and not _is_text(kind, answer.body):
        raise Rejected(
            f"{answer.url} is {kind or 'binary data'}, {_size(answer)}: only pages and text can be read; "
            "download it with the terminal if you need it"
        )
    return Download(body=answer.body, charset=charset, url=answer.url, is_html=kind in _HTML, chars_max=chars_max)


def _is_text(kind: str, body: bytes) -> bool:
    return kind.startswith("text/") or kind in _TEXT or kind.endswith(_TEXT_SUFFIXES) or (not kind and b"\0" not in body)


def _media_type(answer: FetchedResponse) -> tuple[str, str | None]:
    header = Message()
    header["content-type"] = said = answer.headers.get("content-type", "")[:KIND_MAX_CHARS]
    kind = header.get_content_type() if said else ""
    return kind, header.get_content_charset()


def _size(answer: FetchedResponse) -> str:
    told = answer.headers.get("content-length", "")
    if told.isdecimal():
        return f"{int(told):,} bytes"
    return f"{'more than ' if answer.cut else ''}{len(answer.body):,} bytes"
