"""Forward migrations: each one commits with its own version, so a kill in between costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from holdfast.errors import StoreRefused
from holdfast.store import memories, passages
from holdfast.store.database import Database, Dialect, Run, Transaction

_SCHEMA = Path(__file__).with_name("schema")
_VERSIONS_TABLE = "CREATE TABLE IF NOT EXISTS schema_versions (version BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL)"
_LOCK = "SELECT pg_advisory_xact_lock(7305804402566)"
# What a migration does after its statements, in Python.
_BEHIND: Mapping[int, Callable[[Dialect], Transaction[None]]] = MappingProxyType({6: memories.adopt, 11: passages.adopt})


def known(dialect: Dialect) -> dict[int, list[Path]]:
    """Return the scripts of every migration this program has, by version."""
    found: dict[int, list[Path]] = {}
    for file in sorted(_SCHEMA.iterdir(), key=lambda each: (each.name.count("."), each.name)):
        version, _, rest = file.name.partition("_")
        if rest.count(".") == 1 or rest.split(".")[1] == dialect.name:
            found.setdefault(int(version), []).append(file)
    return found


def statements(dialect: Dialect, scripts: Iterable[Path]) -> list[str]:
    """Return what one migration executes."""
    return [statement for script in scripts for statement in _split(dialect.ddl(script.read_text("utf-8")))]


def _split(script: str) -> list[str]:
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
                work = statements(database.dialect, migrations[version])
                await database.write(lambda v=version, w=work: _apply(database.dialect, v, w, now_ms))
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


def _apply(dialect: Dialect, version: int, work: list[str], now_ms: int) -> Transaction[None]:
    # Another node may have been here first: look again under the lock.
    if (yield from _current(dialect)) >= version:
        return
    for statement in work:
        yield Run(statement)
    if version in _BEHIND:
        yield from _BEHIND[version](dialect)
    yield Run("INSERT INTO schema_versions VALUES (:version, :now)", {"version": version, "now": now_ms})
