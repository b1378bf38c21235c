"""What a command costs before it does anything: nobody waits for the import of what they do not use."""

from __future__ import annotations

import subprocess
import sys

import pytest

GATEWAY = {"holdfast.agent", "holdfast.app", "holdfast.engine", "holdfast.store", "holdfast.web", "starlette", "uvicorn"}


@pytest.mark.parametrize(
    ("module", "spared"),
    [
        ("holdfast.cli", GATEWAY | {"httpx2"}),
        ("holdfast.client.remote", GATEWAY),
        ("holdfast.app.node", {"httpx2", "starlette", "holdfast.agent"}),
    ],
)
def test_a_command_imports_only_what_it_needs(module: str, spared: set[str]) -> None:
    code = f"import sys, {module}; print(*(set(sys.modules) & {spared!r}))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == []
