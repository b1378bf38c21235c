"""Runs every test of this folder inside its scene, so that none can forget the audit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast.store.store import Store
from tests.conformance.scenes import Scene


@pytest.fixture
def scene(open_it: Callable[[], Awaitable[Store]], store_url: str) -> Scene:
    """A store of each kind in turn; it is open, and has a node, while the test runs."""
    return Scene(open_it, store_url)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    scene = pyfuncitem.funcargs.get("scene")
    if not isinstance(scene, Scene):
        return None
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(scene.play(lambda: pyfuncitem.function(**arguments)))
    return True
