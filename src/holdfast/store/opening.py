"""Opening a store: the right driver for a URL, and the schema brought up to date."""

from __future__ import annotations

from pathlib import Path

from holdfast.clock import Clock, SystemClock
from holdfast.core.quotas import Quota
from holdfast.core.redaction import Redaction
from holdfast.errors import Damaged, StoreDamaged, StoreRefused
from holdfast.store.database import Database
from holdfast.store.migrations import check, migrate
from holdfast.store.sqlite import SqliteDatabase
from holdfast.store.store import Store


async def open_store(
    url: str,
    home: Path,
    clock: Clock | None = None,
    *,
    redaction: Redaction | None = None,
    quota: Quota | None = None,
) -> Store:
    """Open `sqlite` in the home folder, or a `postgresql://` database, and migrate it.

    What `redaction` masks is never written there; `quota` is how much of it each tenant may use.
    """
    database = await _connect(url, home)
    try:
        await migrate(database, (clock or SystemClock()).now_ms())
    except Damaged as error:
        await database.close()
        raise StoreDamaged(store_path(home), "; ".join(database.damage)) from error
    except BaseException:
        await database.close()
        raise
    return Store(database, redaction, quota)


async def open_readonly(url: str, home: Path) -> Store:
    """Open a store for reading only.  It is not migrated or locked."""
    database = await _connect(url, home, readonly=True)
    try:
        await check(database)
    except Damaged as error:
        await database.close()
        raise StoreDamaged(store_path(home), "; ".join(database.damage)) from error
    except BaseException:
        await database.close()
        raise
    return Store(database)


async def _connect(url: str, home: Path, *, readonly: bool = False) -> Database:
    if url == "sqlite":
        path = store_path(home)
        return await (SqliteDatabase.open_readonly(path) if readonly else SqliteDatabase.open(path))
    if url.startswith(("postgresql://", "postgres://")):
        try:
            from holdfast.store.postgres import PostgresDatabase
        except ImportError as error:
            raise StoreRefused(
                "PostgreSQL needs its driver; in the folder of the source, run: pip install '.[postgres]'"
            ) from error
        return await PostgresDatabase.open(url)
    raise StoreRefused(f'store.url is {url!r}; it is either "sqlite" or postgresql://user@host/database')


def store_path(home: Path) -> Path:
    """Return where the embedded store of a home lives."""
    return home / "holdfast.db"
