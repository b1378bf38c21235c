"""The channel that docs/channels.md builds: its suite passes, and a real gateway answers through it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.testing.chat import Where, Who
from tests.blackbox.gateway import ANEW, gateways
from tests.engine.world import until

PAGE = Path(__file__).parents[2] / "docs" / "channels.md"
LINES_MAX = 100
_BLOCK = re.compile(r"^```\w+ (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The files of the page, installed as an installer would leave them."""
    for name, text in _files():
        with (tmp_path / name).open("a") as file:
            file.write(text)
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    info = tmp_path / "holdfast_line_chat-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    ((group, points),) = project["entry-points"].items()
    named = "\n".join(f"{name} = {value}" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{named}\n")
    return tmp_path


def _files() -> Iterator[tuple[str, str]]:
    """Yield the blocks of the page that name a file.  Those of one file follow each other in it, as its author writes it."""
    begun: set[str] = set()
    for found in _BLOCK.finditer(PAGE.read_text()):
        yield found[1], f"\n\n{found[2]}" if found[1] in begun else found[2]
        begun.add(found[1])


def test_the_channel_is_as_short_as_the_page_says(package: Path) -> None:
    lines = (package / "line_chat.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) < LINES_MAX


def test_the_suite_passes_without_any_plugin(package: Path) -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_line_chat.py"]
    ran = subprocess.run(words, cwd=package, env=os.environ | {"PYTHONPATH": str(package)}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-8_000:]
    assert re.search(r"^\d\d passed, \d+ skipped", ran.stdout, re.MULTILINE), ran.stdout


async def test_a_real_gateway_answers_through_it(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(package))
    from line_server import line_server  # It is in the page.

    async with line_server() as there:
        with gateways() as (gateway,):
            gateway.command = ANEW
            gateway.environment["PYTHONPATH"] = str(package)
            gateway.home.mkdir()
            file = gateway.home / "holdfast.toml"
            file.touch(mode=0o600)
            file.write_text((package / "holdfast.toml").read_text())
            for key, value in there.settings.items():
                gateway.environment[f"HOLDFAST_CHANNELS__LINE__{key.upper()}"] = str(value)
            await gateway.start()
            await there.write("Is the tide in?")
            shown = await until(lambda: there.shown(there.place(Who.OPERATOR, Where.PRIVATE)))
            assert "Is the tide in?" in shown[0].text
            assert re.search(r"line +line +connected", await gateway.run("channels", "list"))
