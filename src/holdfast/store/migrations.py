"""Forward migrations: each one commits with its own version, so a kill in between costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import resources
from types import MappingProxyType

from holdfast.errors import StoreRefused
from holdfast.store import memories, passages
from holdfast.store.database import Database, Dialect, Run, Transaction

_VERSIONS_TABLE = "CREATE TABLE IF NOT EXISTS schema_versions (version BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL)"
_LOCK = "SELECT pg_advisory_xact_lock(7305804402566)"
# What a migration does after its statements, in Python.
_BEHIND: Mapping[int, Callable[[Dialect], Transaction[None]]] = MappingProxyType({6: memories.adopt, 11: passages.adopt})


def known(dialect: Dialect) -> dict[int, list[str]]:
    """Return the statements of every migration this program has, by version."""
    folder = resources.files("holdfast.store").joinpath("schema")
    found: dict[int, list[str]] = {}
    for file in sorted(folder.iterdir(), key=lambda each: (each.name.count("."), each.name)):
        version, _, rest = file.name.partition("_")
        if rest.count(".") == 1 or rest.split(".")[1] == dialect.name:
            found.setdefault(int(version), []).extend(_statements(dialect.ddl(file.read_text("utf-8"))))
    return found


def _statements(script: str) -> list[str]:
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
    statements: list[str] = []
    current: list[str] = []
    for line in lines:
        current.append(line)
        ends_trigger = line.strip().startswith(("END;", "EXECUTE FUNCTION"))
        inside_trigger = current[0].startswith("CREATE TRIGGER") and not ends_trigger
        if line.rstrip().endswith(";") and not inside_trigger:
            statements.append("\n".join(current))
            current = []
        elif not "".join(current).strip():
            current = []
    return statements


async def migrate(database: Database, now_ms: int) -> int:
    """Bring the schema up to this program; returns its version.  Raises `StoreRefused` when the store is newer."""
    migrations = known(database.dialect)
    newest = max(migrations)
    current = await database.read(lambda: _version(database.dialect))
    if current > newest:
        raise StoreRefused(
            f"the store has schema {current} and this program knows {newest}; install the newer Holdfast again"
        )
    if current < newest:
        # It may take long, and so may waiting for another node that is at it.
        async with database.unhurried():
            for version in range(current + 1, newest + 1):
                await database.write(lambda v=version: _apply(database.dialect, v, migrations[v], now_ms))
    return newest


async def check(database: Database) -> None:
    """Raise `StoreRefused` unless the schema is exactly the one this program knows.  This only reads."""
    found = await database.read(lambda: _version(database.dialect))
    if found != max(known(database.dialect)):
        raise StoreRefused(f"the store has schema {found}; start the gateway of this version once, or install the right one")


def _version(dialect: Dialect) -> Transaction[int]:
    if not (yield Run(dialect.tables("name"), {"name": "schema_versions"})):
        return 0
    ((version,),) = yield Run("SELECT COALESCE(MAX(version), 0) FROM schema_versions")
    return version


def _current(dialect: Dialect) -> Transaction[int]:
    if dialect.name == "postgres":
        yield Run(_LOCK)
    yield Run(_VERSIONS_TABLE)
    ((version,),) = yield Run("SELECT COALESCE(MAX(version), 0) FROM schema_versions")
    return version


def _apply(dialect: Dialect, version: int, statements: list[str], now_ms: int) -> Transaction[None]:
    # Another node may have been here first: look again under the lock.
    if (yield from _current(dialect)) >= version:
        return
    for statement in statements:
        yield Run(statement)
    if version in _BEHIND:
        yield from _BEHIND[version](dialect)
    yield Run("INSERT INTO schema_versions VALUES (:version, :now)", {"version": version, "now": now_ms})
