"""What every folder shares: a real store of each kind, empty for each test, and only what a test needs of the machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.offload.pool import Pool
from holdfast.store import home as store_home
from holdfast.store.opening import open_store
from holdfast.store.store import Store
from tests import scratch
from tests.machine import Surroundings
from tests.postgres import Databases, Server

_surroundings = Surroundings()

# This moves `tmp_path` into memory too; pytest looks it up when the first test asks for a folder.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(scratch.parent()))


def pytest_configure() -> None:
    _surroundings.hide()
    # Most tests open a store, and the ballast of a gateway takes half of that time.
    store_home.BALLAST_BYTES = 64 * 1024


def pytest_unconfigure() -> None:
    _surroundings.close()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _surroundings.prepare(item)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """One real PostgreSQL for the whole run; each test gets a database of its own."""
    with Server(parent=scratch.parent()) as server:
        yield server


@pytest.fixture(scope="session")
def migrated(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a database with our schema, to be copied."""

    async def migrate(url: str) -> None:
        await (await open_store(url, tmp_path_factory.mktemp("migrated"))).close()

    asyncio.run(migrate(postgres.create_database("migrated")))
    return "migrated"


@pytest.fixture(scope="session")
def databases(postgres: Server, migrated: str) -> Iterator[Databases]:
    """Databases with our schema and no rows."""
    with contextlib.closing(Databases(postgres, migrated)) as databases:
        yield databases


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where to open a store that has its schema, on each kind of database in turn."""
    if request.param == "sqlite":
        yield "sqlite"
        return
    databases: Databases = request.getfixturevalue("databases")
    server: Server = request.getfixturevalue("postgres")
    name = databases.take()
    yield server.url(name)
    databases.give_back(name)


# What these folders try stands above the store. Conformance proves that both stores do the same, and the engine runs on
# both; here PostgreSQL is a variation, and a long proof. A test that is of PostgreSQL alone is no variation.
ABOVE_THE_STORE = frozenset({"agent", "channels", "memory", "operations", "processes", "tools"})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tests = [item for item in items if isinstance(item, pytest.Function) and item.path.parent.name in ABOVE_THE_STORE]
    stores = {item: item.callspec.params.get("store_url") for item in tests if hasattr(item, "callspec")}
    embedded = {(item.path, item.originalname) for item, store in stores.items() if store == "sqlite"}
    for item, store in stores.items():
        if store == "postgres" and (item.path, item.originalname) in embedded:
            item.add_marker(pytest.mark.long)


@pytest.fixture
def open_it(store_url: str, tmp_path: Path) -> Callable[[], Awaitable[Store]]:
    """Open the test's store; once more, it is the same store again."""

    async def open_it() -> Store:
        if store_url == "sqlite":
            scratch.furnish(tmp_path)
        return await open_store(store_url, tmp_path)

    return open_it


@pytest.fixture
def home() -> Iterator[Path]:
    """A home for the gateway of one test."""
    with scratch.home() as home:
        yield home


@pytest.fixture
def pool() -> Pool:
    """Child processes for one asynchronous test; they end with its loop."""
    return Pool()


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests, each in a loop of its own."""
    if not asyncio.iscoroutinefunction(pyfuncitem.function):
        return None
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    pool: Pool | None = pyfuncitem.funcargs.get("pool")
    asyncio.run(_run(pyfuncitem.function(**arguments), pool))
    return True


async def _run(test: Awaitable[None], pool: Pool | None) -> None:
    try:
        await test
    finally:
        if pool:
            await pool.close()
