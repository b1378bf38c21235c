"""The style sheets share one namespace, so no class may be unused or defined twice."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "page" / "src"
# Composed from a grammar token, a terminal colour, or a kind of attachment.
COMPOSED = ("hljs-", "ansi-", "attached-")


def test_every_class_of_a_style_sheet_is_one_of_the_page() -> None:
    words = {word for path in SOURCES.rglob("*.ts*") for word in re.findall(r"[\w-]+", path.read_text())}
    classes = {name for sheet in _sheets() for name in re.findall(r"\.([a-z][\w-]*)", _selectors(sheet))}
    assert "composer" in classes
    assert not {name for name in classes - words if not name.startswith(COMPOSED)}


def test_no_style_sheet_takes_the_name_of_an_animation_of_another() -> None:
    names = Counter(name for sheet in _sheets() for name in re.findall(r"@keyframes ([\w-]+)", sheet))
    assert set(names.values()) == {1}, names


def _sheets() -> list[str]:
    return [re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL) for path in sorted(SOURCES.rglob("*.css"))]


def _selectors(sheet: str) -> str:
    return re.sub(r"\{[^{}]*\}", "{}", sheet)
