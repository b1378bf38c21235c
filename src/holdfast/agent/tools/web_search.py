"""The `web_search` tool: searches the web through the configured provider."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Annotated, Protocol, TypeVar, cast
from urllib.parse import urlencode

import msgspec

from holdfast.agent.tools.hosts import Hosts, named
from holdfast.agent.tools.port import CallContext, StructTool
from holdfast.agent.tools.untrusted import fence
from holdfast.config import WebSearchConfig
from holdfast.core.effects import Effect
from holdfast.core.questions import Question
from holdfast.egress import Egress, FetchedResponse, host_of
from holdfast.errors import ConfigInvalid, Rejected, Unavailable

PLUGINS = "holdfast.search"
LIMIT_DEFAULT = 5
LIMIT_MAX = 20
SNIPPET_MAX_CHARS = 500
TIMEOUT_S = 20.0
ANSWER_MAX_BYTES = 2 * 1024 * 1024
BRAVE_URL = "https://api.search.brave.com/res/v1/web/search"
_TOO_MANY = 429
_SERVER_ERROR = 500

Shape = TypeVar("Shape")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """One result."""

    title: str
    url: str
    text: str = ""


class Searcher(Protocol):
    """A provider of web search."""

    async def search(self, query: str, limit: int) -> Sequence[SearchResult]:
        """Return results, the best first.  Raises `Unavailable` if a retry may help, `Rejected` if not."""
        ...


class _SearxngResult(msgspec.Struct):
    title: str = ""
    url: str = ""
    content: str = ""


class _SearxngAnswer(msgspec.Struct):
    results: list[_SearxngResult] = []


class Searxng:
    """A SearXNG server with its JSON format switched on."""

    def __init__(self, url: str, egress: Egress) -> None:
        self._url = url.rstrip("/")
        self._egress = egress

    async def search(self, query: str, limit: int) -> Sequence[SearchResult]:
        target = f"{self._url}/search?{urlencode({'q': query, 'format': 'json'})}"
        answer = await self._egress.request("GET", target, bytes_max=ANSWER_MAX_BYTES, redirects_max=0)
        found = _read(answer, _SearxngAnswer, "searxng", "is its JSON format switched on?")
        return [SearchResult(title=each.title, url=each.url, text=each.content) for each in found.results[:limit]]


class _BraveResult(msgspec.Struct):
    title: str = ""
    url: str = ""
    description: str = ""


class _BraveWeb(msgspec.Struct):
    results: list[_BraveResult] = []


class _BraveAnswer(msgspec.Struct):
    web: _BraveWeb = msgspec.field(default_factory=_BraveWeb)


class Brave:
    """The Brave search API."""

    def __init__(self, api_key: str, egress: Egress, url: str = BRAVE_URL) -> None:
        self._api_key = api_key
        self._egress = egress
        self._url = url

    async def search(self, query: str, limit: int) -> Sequence[SearchResult]:
        target = f"{self._url}?{urlencode({'q': query, 'count': limit, 'text_decorations': 'false'})}"
        headers = {"Accept": "application/json", "X-Subscription-Token": self._api_key}
        answer = await self._egress.request("GET", target, headers=headers, bytes_max=ANSWER_MAX_BYTES, redirects_max=0)
        found = _read(answer, _BraveAnswer, "brave", "is the API key right?")
        return [SearchResult(title=each.title, url=each.url, text=each.description) for each in found.web.results[:limit]]


def _read(answer: FetchedResponse, shape: type[Shape], name: str, hint: str) -> Shape:
    if answer.status == _TOO_MANY or answer.status >= _SERVER_ERROR:
        raise Unavailable(f"{name} cannot search now: {answer.status} {answer.reason}")
    if answer.status != 200:
        raise Rejected(f"{name} refused the search: {answer.status} {answer.reason}; {hint}")
    try:
        return msgspec.json.decode(answer.body, type=shape)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Rejected(f"{name} sent a malformed response: {error}; {hint}") from error


def searcher(config: WebSearchConfig, environment: Mapping[str, str] = os.environ) -> Searcher | None:
    """Return the configured provider; None if there is none.  Raises `ConfigInvalid`."""
    match config.provider:
        case "":
            return None
        case "searxng":
            if not config.url:
                raise ConfigInvalid("tools.web_search.url: searxng needs the URL of its server")
            return Searxng(config.url, Egress.to(config.url, TIMEOUT_S))
        case "brave":
            if not (key := config.api_key or environment.get(config.api_key_env, "")):
                raise ConfigInvalid("tools.web_search.api_key: brave needs a key, here or in the variable of api_key_env")
            url = config.url or BRAVE_URL
            return Brave(key, Egress.to(url, TIMEOUT_S), url)
        case plugin:
            return _plugged(plugin, config)


def search_host(config: WebSearchConfig) -> str:
    """Return where queries are sent: the host of the engine, or the name of the plugin."""
    url = config.url or (BRAVE_URL if config.provider == "brave" else "")
    return named(host_of(url)) if url else config.provider


def _plugged(name: str, config: WebSearchConfig) -> Searcher:
    found = entry_points(group=PLUGINS)
    for each in found:
        if each.name == name:
            make = cast("Callable[[WebSearchConfig], Searcher]", each.load())
            return make(config)
    known = ", ".join(sorted({"searxng", "brave", *found.names}))
    raise ConfigInvalid(f"tools.web_search.provider: there is no {name!r}; there are {known}")


class WebSearchArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    query: Annotated[str, msgspec.Meta(description="What to look for.", min_length=1, max_length=400)]
    limit: Annotated[int, msgspec.Meta(description="How many results at most.", ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT


def web_search_tool(provider: Searcher, hosts: Hosts, host: str) -> StructTool[WebSearchArgs]:
    """Return the tool for a provider.  `host` is the host that queries are sent to."""

    async def ask(args: WebSearchArgs, context: CallContext) -> Question | None:
        return await hosts.ask_after_reading(host, f"May I search the web for this?\n\n    {args.query}", context)

    async def search(args: WebSearchArgs, _context: CallContext) -> str:
        found = list(await provider.search(args.query, args.limit))[: args.limit]
        if not found:
            return f"Nothing was found for {args.query!r}; try other words."
        return f"{len(found)} results:\n{fence(_listed(found), 'the web')}"

    return StructTool(
        name="web_search",
        description="Search the web. Returns titles, URLs and short excerpts; read a page in full with fetch.",
        args=WebSearchArgs,
        effect=Effect.PURE,
        action=search,
        asks=ask,
        reads_private=False,
    )


def _listed(found: Sequence[SearchResult]) -> str:
    lines = (
        f"{number}. {each.title.strip() or each.url}\n   {each.url}\n   {' '.join(each.text.split())[:SNIPPET_MAX_CHARS]}"
        for number, each in enumerate(found, 1)
    )
    return "\n".join(line.rstrip() for line in lines)
