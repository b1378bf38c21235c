"""Distributions with entry points, put on the path as an installer would."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest


def installer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """Return a function that puts a distribution with a name, entry points and one module on the path."""
    monkeypatch.syspath_prepend(str(folder))

    def install(name: str, entry_points: str, code: str) -> None:
        module = name.replace("-", "_")
        (folder / f"{module}.py").write_text(code)
        monkeypatch.delitem(sys.modules, module, raising=False)
        info = folder / f"{module}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(entry_points)

    return install
