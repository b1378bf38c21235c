"""Web search asks whoever was chosen, over real sockets, and is not there when nobody was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from holdfast.agent.tools.web_search import Brave, Searcher, Searxng, searcher, web_search_tool
from holdfast.config import WebSearchConfig
from holdfast.errors import ConfigInvalid, Rejected, Unavailable
from tests.http_server import Request
from tests.tools.contexts import HOSTS, call_context
from tests.tools.servers import Reply, Served, serving

SEARXNG = {
    "query": "tea",
    "results": [
        {"title": "Green", "url": "https://a.example/", "content": "leaves  and\nwater", "engine": "x", "score": 1.5},
        {"title": "", "url": "https://b.example/"},
        {"title": "Black", "url": "https://c.example/", "content": "more"},
    ],
}
BRAVE = {
    "type": "search",
    "web": {"results": [{"title": "Green", "url": "https://a.example/", "description": "leaves", "page_age": "2024"}]},
}


async def searched(
    config: Callable[[Served], WebSearchConfig], reply: Callable[[Request], Reply], **args: Any
) -> tuple[str, Served]:
    async with serving(reply) as there:
        found = searcher(config(there), {"KEY": "from-the-environment"})
        assert found is not None
        return await web_search_tool(found, HOSTS, "search.example").run(
            {"query": "tea & cake", **args}, call_context()
        ), there


def searxng(there: Served) -> WebSearchConfig:
    return WebSearchConfig(provider="searxng", url=there.url("/"))


def brave(there: Served) -> WebSearchConfig:
    return WebSearchConfig(provider="brave", url=there.url("/res/v1/web/search"), api_key_env="KEY")


async def test_searxng_is_asked_in_its_json_format() -> None:
    text, there = await searched(searxng, lambda asked: Reply(msgspec.json.encode(SEARXNG)), limit=2)
    target = urlsplit(there.asked[0].path)
    assert (target.path, parse_qs(target.query)) == ("/search", {"q": ["tea & cake"], "format": ["json"]})
    assert "1. Green\n   https://a.example/\n   leaves and water" in text
    assert "2. https://b.example/" in text
    assert "c.example" not in text
    assert "untrusted" in text


async def test_brave_is_asked_with_its_key_in_a_header() -> None:
    """The key stands in no URL, where logs would keep it."""
    text, there = await searched(brave, lambda asked: Reply(msgspec.json.encode(BRAVE)), limit=7)
    assert there.asked[0].headers["x-subscription-token"] == "from-the-environment"
    assert "from-the-environment" not in there.asked[0].path
    assert parse_qs(urlsplit(there.asked[0].path).query)["count"] == ["7"]
    assert "1. Green\n   https://a.example/\n   leaves" in text


async def test_nothing_found_is_said_plainly() -> None:
    text, _ = await searched(brave, lambda asked: Reply(b"{}"))
    assert text == "Nothing was found for 'tea & cake'; try other words."


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(b"{}", status="401 Unauthorized"), Rejected),
        (Reply(b"<html>", status="200 OK"), Rejected),
        (Reply(b"", status="429 Too Many Requests"), Unavailable),
        (Reply(b"", status="503 Service Unavailable"), Unavailable),
        (Reply(b"", status="302 SearchResult", headers={"Location": "http://127.0.0.1:1/"}), Rejected),
    ],
)
@pytest.mark.parametrize("config", [searxng, brave])
async def test_a_failure_is_named(config: Any, reply: Reply, error: type[Exception]) -> None:
    with pytest.raises(error):
        await searched(config, lambda asked: reply)


def test_nobody_searches_unless_somebody_was_chosen() -> None:
    assert searcher(WebSearchConfig()) is None


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (WebSearchConfig(provider="searxng"), "needs the URL"),
        (WebSearchConfig(provider="brave", api_key_env="UNSET"), "needs a key"),
        (WebSearchConfig(provider="nobody"), "there are brave, searxng"),
    ],
)
def test_a_choice_that_cannot_work_is_a_configuration_error(config: WebSearchConfig, problem: str) -> None:
    with pytest.raises(ConfigInvalid, match=problem):
        searcher(config, {})


def test_what_is_chosen_is_what_searches() -> None:
    chosen: list[Searcher | None] = [
        searcher(WebSearchConfig(provider="searxng", url="http://[::1]:8080")),
        searcher(WebSearchConfig(provider="brave", api_key="k" * 20), {}),
    ]
    assert [type(each) for each in chosen] == [Searxng, Brave]


async def test_a_plugin_searches_under_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package is found by its entry point, as pip would leave it."""
    info = tmp_path / "looker-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: looker\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[holdfast.search]\nlooker = looker_plugin:Looker\n")
    (tmp_path / "looker_plugin.py").write_text(
        "from holdfast.agent.tools.web_search import SearchResult\n"
        "class Looker:\n"
        "    def __init__(self, config):\n"
        "        self.url = config.url\n"
        "    async def search(self, query, limit):\n"
        "        return [SearchResult(title=query, url=self.url)] * 9\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = searcher(WebSearchConfig(provider="looker", url="https://l.example/"))
    assert found is not None
    text = await web_search_tool(found, HOSTS, "search.example").run({"query": "tea", "limit": 3}, call_context())
    assert text.startswith("3 results:")
    assert "1. tea\n   https://l.example/" in text
