"""The core is pure: it imports nothing but the standard library and itself, waits for nothing, and reads no clock."""

from __future__ import annotations

import ast
import importlib
import sys
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType

import pytest

import holdfast.core

CORE = sorted(Path(holdfast.core.__file__ or "").parent.glob("**/*.py"))
OURS = ("holdfast.core", "holdfast.errors", "holdfast.ids")
# Modules that know the time, make luck, touch the world or wait for it.
IMPURE = {
    *("time", "datetime", "zoneinfo", "calendar", "sched"),
    *("random", "secrets", "uuid", "tempfile"),
    *("os", "io", "pathlib", "shutil", "glob", "fcntl", "sys", "platform", "getpass"),
    *("socket", "ssl", "select", "selectors", "http", "urllib", "subprocess", "signal"),
    *("asyncio", "threading", "multiprocessing", "concurrent", "queue", "contextvars"),
    *("logging", "sqlite3", "ctypes", "importlib", "builtins"),
}
IMPURE_BUILTINS = {"open", "print", "input", "eval", "exec", "compile", "__import__", "breakpoint"}
WAITING = (ast.Await, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith)


def impurities(source: str) -> list[str]:
    """List what a module of the core must not contain."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [f"imports {each.name}" for each in names if not may_import(each.name)]
            case ast.ImportFrom(module=module, names=names, level=level):
                if level or not may_import(module or ""):
                    found.append(f"imports {'.' * level}{module or ''}")
                elif module == "holdfast.ids":
                    found += [f"makes ids with {each.name}" for each in names if not each.name.endswith("Id")]
            case ast.Name(id=name, ctx=ast.Load()) if name in IMPURE_BUILTINS:
                found.append(f"uses {name}")
            case ast.comprehension(is_async=1):
                found.append("waits")
            case _ if isinstance(node, WAITING):
                found.append("waits")
            case _:
                pass
    return found


def may_import(module: str) -> bool:
    top = module.partition(".")[0]
    if top == "holdfast":
        return module in OURS or module.startswith("holdfast.core.")
    # It turns JSON into values and back, and touches nothing else.
    return top == "msgspec" or (top in sys.stdlib_module_names and top not in IMPURE)


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.stem)
def test_a_module_of_the_core_is_pure(path: Path) -> None:
    """C1: a rule that cannot read a clock cannot be fooled by one."""
    assert impurities(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import os.path",
        "from datetime import datetime",
        "from random import random",
        "from os import urandom",
        "def later():\n    import asyncio",
        "import httpx2",
        "from holdfast.clock import Clock",
        "from holdfast import clock",
        "from holdfast.store import turns",
        "from . import turns",
        "from holdfast.ids import new_turn_id",
        "import holdfast.ports",
        "async def rule(): ...",
        "async def rule():\n    await other()",
        "async def rule():\n    return [x async for x in y]",
        "open('file')",
        "read = open",
        "print('so')",
    ],
)
def test_an_impurity_would_be_found(source: str) -> None:
    assert impurities(source)


@pytest.mark.parametrize(
    "source",
    [
        "import hashlib",
        "from holdfast.core import turns",
        "from holdfast.errors import Stale",
        "from holdfast.ids import TurnId",
        "class Debt:\n    open: int = 0",
    ],
)
def test_what_a_rule_needs_is_allowed(source: str) -> None:
    assert impurities(source) == []


def modules() -> list[ModuleType]:
    return [importlib.import_module(f"holdfast.core.{path.stem}") for path in CORE if path.stem != "__init__"]


def test_the_core_is_found() -> None:
    assert {"turns", "sessions", "journal", "transcript", "leases"} <= {path.stem for path in CORE}


def test_everything_that_the_core_speaks_of_is_frozen() -> None:
    """T4: nobody changes a turn in his hands; what changed is another turn, and the store decides whether it may be."""
    for module in modules():
        for name, each in vars(module).items():
            if is_dataclass(each) and each.__module__ == module.__name__:  # type: ignore[union-attr]
                parameters = each.__dataclass_params__  # type: ignore[union-attr]
                assert parameters.frozen, name
                assert parameters.eq, name
                assert "__slots__" in vars(each), name
                assert all(field.kw_only for field in each.__dataclass_fields__.values()), name  # type: ignore[union-attr]
