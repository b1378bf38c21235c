"""One event loop for all tests of the page, because a browser belongs to a loop and starts slowly."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.page import browser


@pytest.fixture(scope="session")
def browsing() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner
        runner.run(browser.close())


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests in the browser's loop."""
    if not asyncio.iscoroutinefunction(pyfuncitem.function):
        return None
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    runner: asyncio.Runner = pyfuncitem._request.getfixturevalue("browsing")
    runner.run(pyfuncitem.function(**arguments))
    return True
