"""Searching the workspace: what is found, what is left out, and that it always ends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from holdfast.agent.tools.files import Workspace, file_tools
from holdfast.agent.tools.port import StructTool, Tool
from holdfast.agent.tools.search import FileSearch, SearchFiles, search_tool
from holdfast.errors import NotFound, Rejected
from holdfast.offload.pool import Pool
from tests.tools.contexts import call_context


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    for name, text in {
        "a.py": "import os\nprint('needle')\n",
        "src/b.py": "needle = 1\n",
        "src/b.txt": "a needle here\n",
        "src/deep/c.md": "nothing\n",
        ".git/config": "needle\n",
        "node_modules/x.js": "needle\n",
        "build/out.txt": "needle\n",
        "src/skip.log": "needle\n",
        "src/gen/made.py": "needle\n",
        ".gitignore": "build/\n*.log\n# needle\nsrc/gen\n!keep\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "binary").write_bytes(b"needle\0")
    (tmp_path / "outside.txt").write_text("needle outside")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "loop").symlink_to(".")
    return folder


@pytest.fixture
def tool(root: Path, pool: Pool) -> Tool:
    return search_tool(Workspace(root), pool)


async def find(tool: Tool, **args: object) -> list[str]:
    return (await tool.run(args, call_context())).splitlines()


async def test_lines_are_found_with_their_places(tool: Tool) -> None:
    """SECURITY 7: neither .git, nor dependencies, ignored or binary files, nor links are looked into."""
    found = await find(tool, pattern="needle")
    assert found == [
        ".gitignore:3: # needle",
        "a.py:2: print('needle')",
        "src/b.py:1: needle = 1",
        "src/b.txt:1: a needle here",
    ]


async def test_a_search_can_be_narrowed(tool: Tool) -> None:
    assert await find(tool, pattern="needle", path="src") == ["src/b.py:1: needle = 1", "src/b.txt:1: a needle here"]
    assert await find(tool, pattern="needle", glob="*.py") == ["a.py:2: print('needle')", "src/b.py:1: needle = 1"]
    assert await find(tool, pattern="needle", glob="src/*.py") == ["src/b.py:1: needle = 1"]
    assert await find(tool, pattern="needle", path="src/b.txt") == ["src/b.txt:1: a needle here"]
    assert (await find(tool, pattern="needle", limit=1))[1].startswith("[stopped: 1 results")


async def test_names_are_found(tool: Tool) -> None:
    assert await find(tool, pattern="*.py", mode="names") == ["a.py", "src/b.py"]
    assert await find(tool, pattern="c.m", mode="names") == ["src/deep/c.md"]
    assert await find(tool, pattern="deep/*", mode="names") == ["src/deep/c.md"]


async def test_nothing_found_is_said(tool: Tool) -> None:
    assert "Nothing matches 'absent'" in (await find(tool, pattern="absent"))[0]
    with pytest.raises(NotFound):
        await find(tool, pattern="x", path="missing")


@pytest.mark.parametrize("pattern", [r"(?:n|x)e+dl*e\b", r"^\s*needle\s*=\s*\d+$"])
async def test_any_expression_can_be_used(tool: Tool, pattern: str) -> None:
    """What might take long is looked for in a process of its own, and finds the same."""
    assert "src/b.py:1: needle = 1" in await find(tool, pattern=pattern)


@pytest.mark.parametrize("pattern", ["(", "[a", "*a+b?c"])
async def test_what_is_no_expression_is_refused(tool: Tool, pattern: str) -> None:
    with pytest.raises(Rejected, match="not a regular expression"):
        await find(tool, pattern=pattern)


@pytest.mark.parametrize("pattern", ["((a+))+$", "(a|a)" * 40 + "c", "(?x)(a+) +c"])
async def test_an_expression_that_never_ends_is_ended(root: Path, pool: Pool, pattern: str) -> None:
    """S6: a model's expression cannot take the gateway, whatever it looks like."""
    (root / "evil.txt").write_text("a" * 60 + "b")
    with pytest.raises(Rejected, match=r"the search took longer than 0\.5 s; make the pattern simpler"):
        await find(search_tool(Workspace(root), pool, search_max_s=0.5), pattern=pattern)


async def test_what_is_not_there_is_said_from_another_process_too(tool: Tool) -> None:
    with pytest.raises(Rejected, match="does not exist"):
        await find(tool, pattern="(a+)+", path="missing")


async def test_a_search_ends_in_time(root: Path, pool: Pool) -> None:
    """SECURITY 12: what was found until then is returned, and that there may be more."""
    (said,) = await find(search_tool(Workspace(root), pool, search_max_s=0), pattern="needle")
    assert "[stopped: more than" in said


async def test_long_lines_are_shown_in_part(root: Path, tool: Tool) -> None:
    (root / "long.txt").write_text("pin" + "x" * 100_000)
    (found,) = await find(tool, pattern="pin", glob="long.txt")
    assert len(found) < 400


async def test_uploads_are_searched_only_by_a_path_that_says_so(root: Path, tool: Tool) -> None:
    """SECURITY 10: a search is private if and only if it looks at what people handed in."""
    for name in ("uploads/bill.txt", "uploads/uploads/old.txt", "src/uploads/code.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("treasure")
    (root / "handed").symlink_to("uploads")
    assert isinstance(tool, StructTool)
    here = FileSearch(Workspace(root), search_max_s=10)
    bill, old = "uploads/bill.txt:1: treasure", "uploads/uploads/old.txt:1: treasure"
    for path, private in {
        "uploads": [bill, old],
        "src/../uploads": [bill, old],
        "handed": [bill, old],
        "handed/bill.txt": [bill],
        "uploads/uploads": [old],
        str(root / "uploads"): [bill, old],
    }.items():
        assert here.result(SearchFiles(pattern="treasure", path=path)).splitlines() == private
        assert tool.is_private({"pattern": "treasure", "path": path}), path
    for path in (".", "loop", "uploads/..", "handed/..", "src", str(root)):
        assert here.result(SearchFiles(pattern="treasure", path=path)) == "src/uploads/code.txt:1: treasure"
        assert not tool.is_private({"pattern": "treasure", "path": path}), path
    assert (await find(tool, pattern="bill", mode="names"))[0].startswith("Nothing matches")


def test_searching_is_one_of_the_file_tools(root: Path) -> None:
    tools: Mapping[str, Tool] = {tool.name: tool for tool in file_tools(Workspace(root), Pool())}
    assert "search_files" in tools
