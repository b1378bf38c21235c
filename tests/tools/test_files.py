"""Files of the workspace: what is read, written and edited, and that nothing outside ever is."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from holdfast.agent.tools.files import FILE_MAX_BYTES, LINE_MAX_CHARS, READ_LINES_MAX, WRITE_MAX_BYTES, Workspace, file_tools
from holdfast.agent.tools.port import Tool
from holdfast.core.effects import Effect
from holdfast.errors import NotFound, Rejected
from holdfast.offload.pool import Pool
from tests.tools.contexts import call_context


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("outside")
    return folder


@pytest.fixture
def tools(root: Path, pool: Pool) -> Mapping[str, Tool]:
    return {tool.name: tool for tool in file_tools(Workspace(root), pool)}


async def use(tools: Mapping[str, Tool], name: str, **args: object) -> str:
    return await tools[name].run(args, call_context())


def test_each_tool_says_what_it_takes_and_what_repeating_it_does(tools: Mapping[str, Tool]) -> None:
    """SECURITY 8: none of them is for strangers; every argument is described."""
    effects = {name: tool.effect for name, tool in tools.items()}
    pure, keyed, once = Effect.PURE, Effect.KEYED, Effect.EFFECTFUL
    assert effects == {"read_file": pure, "write_file": keyed, "edit_file": once, "search_files": pure}
    for tool in tools.values():
        assert not tool.harmless
        properties = tool.schema["properties"]
        assert isinstance(properties, dict)
        assert all(each["description"] for each in properties.values())


ESCAPES: list[Callable[[Path], str]] = [
    lambda _: "../secret.txt",
    lambda _: "a/../../secret.txt",
    lambda root: str(root.parent / "secret.txt"),
    lambda root: f"{root}-other/secret.txt",
    lambda root: f"{root}/../secret.txt",
    lambda _: "~/secret.txt",
    lambda _: "~",
    lambda _: "link",
    lambda _: "folder/secret.txt",
    lambda _: "relative/secret.txt",
    lambda _: "chain/secret.txt",
    lambda _: "a\0b",
    lambda _: "loop",
    lambda _: "x" * 5_000,
]


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("name", ["read_file", "write_file", "edit_file", "search_files"])
async def test_no_path_leads_outside(
    root: Path, tools: Mapping[str, Tool], name: str, escape: Callable[[Path], str]
) -> None:
    """SECURITY 7: `..`, absolute paths, links to files and folders, chains and loops of links are refused."""
    (root / "link").symlink_to(root.parent / "secret.txt")
    (root / "folder").symlink_to(root.parent)
    (root / "relative").symlink_to("..")
    (root / "inner").mkdir()
    (root / "chain").symlink_to("inner/up")
    (root / "inner" / "up").symlink_to("../..")
    (root / "loop").symlink_to("loop")
    args: dict[str, dict[str, object]] = {
        "read_file": {},
        "write_file": {"content": "changed"},
        "edit_file": {"old": "outside", "new": "changed"},
        "search_files": {"pattern": "outside"},
    }
    with pytest.raises(Rejected):
        await use(tools, name, path=escape(root), **args[name])
    assert (root.parent / "secret.txt").read_text() == "outside"
    assert [*(root.parent / "workspace-other").glob("*")] == []


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "sub/.GIT/config", "store/config"])
async def test_what_git_keeps_is_not_written(root: Path, tools: Mapping[str, Tool], path: str) -> None:
    """SECURITY 9: a hook would run unasked, as whoever commits next; in the terminal somebody is asked."""
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "config").write_text("old")
    (root / "store").symlink_to(".git")
    with pytest.raises(Rejected, match="git in the terminal"):
        await use(tools, "write_file", path=path, content="new")
    with pytest.raises(Rejected, match="git in the terminal"):
        await use(tools, "edit_file", path=".git/config", old="old", new="new")
    assert (root / ".git" / "config").read_text() == "old"
    assert [*(root / ".git" / "hooks").iterdir()] == []


async def test_paths_inside_are_found_however_they_are_spelt(root: Path, tools: Mapping[str, Tool]) -> None:
    """SECURITY 7: a link that stays inside, an absolute path and a detour are all fine."""
    (root / "a").mkdir()
    (root / "a" / "file").write_text("here")
    (root / "link").symlink_to("a")
    (root / "absolute").symlink_to(root / "a")
    for path in ("a/file", "./a/../a/file", "link/file", "absolute/file", f"{root}/a/file", "link/../a/file"):
        assert "here" in await use(tools, "read_file", path=path)


async def test_a_workspace_that_is_reached_through_a_link_is_one(root: Path) -> None:
    """SECURITY 7: both spellings of the folder itself are inside."""
    (root / "file").write_text("here")
    spelt = root.parent / "spelt"
    spelt.symlink_to(root)
    assert Workspace(spelt).resolve(f"{spelt}/file") == Workspace(spelt).resolve(f"{root}/file") == root / "file"


async def test_a_link_that_appears_meanwhile_is_not_followed(root: Path) -> None:
    """SECURITY 7: between the look and the opening, nothing can be exchanged."""
    workspace = Workspace(root)
    (root / "a").mkdir()
    path = workspace.resolve("a/secret.txt")
    (root / "a").rmdir()
    (root / "a").symlink_to(root.parent)
    with pytest.raises(OSError, match=r"directory|symbolic"), workspace.folder(path.parent):
        pass


async def test_lines_are_read_with_their_numbers(root: Path, tools: Mapping[str, Tool]) -> None:
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    assert await use(tools, "read_file", path="a.txt") == "     1\tone\n     2\ttwo\n     3\tthree"
    part = await use(tools, "read_file", path="a.txt", offset=2, limit=1)
    assert part == "     2\ttwo\n[lines 2 to 2 of 3; go on with offset 3]"


async def test_reading_is_bounded(root: Path, tools: Mapping[str, Tool]) -> None:
    """SECURITY 12: a long file comes in parts, a long line is cut, a huge file is refused."""
    (root / "long.txt").write_text("x\n" * (READ_LINES_MAX + 5))
    assert f"go on with offset {READ_LINES_MAX + 1}" in await use(tools, "read_file", path="long.txt")
    (root / "wide.txt").write_text("y" * 10 * LINE_MAX_CHARS)
    assert len(await use(tools, "read_file", path="wide.txt")) < 2 * LINE_MAX_CHARS
    with (root / "huge.bin").open("wb") as file:
        file.truncate(FILE_MAX_BYTES + 1)
    with pytest.raises(Rejected, match="at most"):
        await use(tools, "read_file", path="huge.bin")


async def test_what_is_no_text_is_refused_politely(root: Path, tools: Mapping[str, Tool]) -> None:
    (root / "a.bin").write_bytes(b"\x00\x01\x02")
    (root / "a.png").write_bytes(b"\x89PNG")
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    for path, reason in {"a.bin": "binary", "a.png": "image", "folder": "folder", ".": "folder", "pipe": "ordinary"}.items():
        with pytest.raises(Rejected, match=reason):
            await use(tools, "read_file", path=path)
    with pytest.raises(NotFound, match="does not exist"):
        await use(tools, "read_file", path="missing.txt")


async def test_other_encodings_are_read(root: Path, tools: Mapping[str, Tool]) -> None:
    (root / "latin.txt").write_bytes("caf\u00e9".encode("latin-1"))
    (root / "wide.txt").write_bytes("caf\u00e9".encode("utf-16"))
    (root / "marked.txt").write_bytes("caf\u00e9".encode("utf-8-sig"))
    (root / "empty.txt").touch()
    assert await use(tools, "read_file", path="latin.txt") == "     1\tcaf\u00e9\n[decoded as latin-1]"
    assert await use(tools, "read_file", path="wide.txt") == "     1\tcaf\u00e9\n[decoded as utf-16]"
    assert await use(tools, "read_file", path="marked.txt") == "     1\tcaf\u00e9"
    assert await use(tools, "read_file", path="empty.txt") == "empty.txt is empty."


async def test_a_file_is_created_overwritten_and_the_same_twice(root: Path, tools: Mapping[str, Tool]) -> None:
    """R10: writing again what was cut off leaves the same file."""
    assert await use(tools, "write_file", path="a/b/c.txt", content="caf\u00e9") == "Created a/b/c.txt (5 bytes)."
    (root / "a/b/c.txt").chmod(0o750)
    assert await use(tools, "write_file", path="a/b/c.txt", content="new") == "Overwrote a/b/c.txt (3 bytes)."
    assert await use(tools, "write_file", path="a/b/c.txt", content="new") == "Overwrote a/b/c.txt (3 bytes)."
    assert (root / "a/b/c.txt").read_text() == "new"
    assert stat.S_IMODE((root / "a/b/c.txt").stat().st_mode) == 0o750
    assert [path.name for path in (root / "a/b").iterdir()] == ["c.txt"]


async def test_what_cannot_be_written_changes_nothing(root: Path, tools: Mapping[str, Tool]) -> None:
    (root / "folder").mkdir()
    (root / "file").write_text("kept")
    for path, content in [
        ("folder", "x"),
        (".", "x"),
        ("file/inner", "x"),
        ("file", "\ud800"),
        ("file", "x" * (WRITE_MAX_BYTES + 1)),
    ]:
        with pytest.raises(Rejected):
            await use(tools, "write_file", path=path, content=content)
    assert (root / "file").read_text() == "kept"
    assert sorted(path.name for path in root.iterdir()) == ["file", "folder"]


async def test_a_reader_never_sees_half_a_file(root: Path, tools: Mapping[str, Tool]) -> None:
    """SECURITY 7: a file is replaced as a whole: many writers leave one content, and whole."""
    texts = [letter * 100_000 for letter in "abcd"]
    (root / "file").write_text(texts[0])
    writes = [asyncio.create_task(use(tools, "write_file", path="file", content=text)) for text in texts * 3]
    while not all(task.done() for task in writes):
        assert (root / "file").read_text() in texts
        await asyncio.wait(writes, return_when=asyncio.FIRST_COMPLETED, timeout=0.001)
    assert (await asyncio.gather(*writes))[0].startswith("Overwrote")


async def test_an_edit_shows_what_it_changed(root: Path, tools: Mapping[str, Tool]) -> None:
    (root / "a.py").write_text("one = 1\ntwo = 2\nthree = 3\n")
    said = await use(tools, "edit_file", path="a.py", old="two = 2", new="two = 22")
    assert (root / "a.py").read_text() == "one = 1\ntwo = 22\nthree = 3\n"
    assert "Edited a.py." in said
    assert "-two = 2\n+two = 22" in said


async def test_an_edit_must_be_exact_and_unique(root: Path, tools: Mapping[str, Tool]) -> None:
    text = "def first():\n    return 1\n\ndef second():\n    return 1\n"
    (root / "a.py").write_text(text)
    with pytest.raises(Rejected, match=r"stands 2 times .* line 2, 5"):
        await use(tools, "edit_file", path="a.py", old="return 1", new="return 2")
    with pytest.raises(Rejected, match="Only the blanks differ at line 1"):
        await use(tools, "edit_file", path="a.py", old="def first():\n  return 1", new="x")
    with pytest.raises(Rejected, match=r"nearest lines are:\n4: def second"):
        await use(tools, "edit_file", path="a.py", old="def secnd():", new="x")
    with pytest.raises(Rejected, match="same"):
        await use(tools, "edit_file", path="a.py", old="def", new="def")
    with pytest.raises(Rejected, match="old"):
        await use(tools, "edit_file", path="a.py", old="", new="def")
    assert (root / "a.py").read_text() == text
    assert "(2 times)" in await use(tools, "edit_file", path="a.py", old="return 1", new="return 2", replace_all=True)
    assert (root / "a.py").read_text() == text.replace("return 1", "return 2")


async def test_an_edit_keeps_what_it_does_not_change(root: Path, tools: Mapping[str, Tool]) -> None:
    """Line ends of another system and a missing one at the end stay as they are."""
    (root / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    await use(tools, "edit_file", path="a.txt", old="one\ntwo", new="1\n2")
    assert (root / "a.txt").read_bytes() == b"\xef\xbb\xbf1\r\n2\r\nthree"
    (root / "b.txt").write_bytes(b"caf\xe9")
    with pytest.raises(Rejected, match="not UTF-8"):
        await use(tools, "edit_file", path="b.txt", old="caf", new="x")
