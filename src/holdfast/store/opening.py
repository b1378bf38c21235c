"""Opening a store: the right driver for a URL, the schema brought up to date, one object with every aggregate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.clock import Clock, SystemClock
from holdfast.core.fairness import Quota
from holdfast.core.redaction import Redaction
from holdfast.errors import Damaged, StoreDamaged, StoreRefused
from holdfast.store.access import Keys, Logins, Secrets
from holdfast.store.catalog import Catalog
from holdfast.store.database import Database
from holdfast.store.deliveries import Deliveries
from holdfast.store.intake import Intake
from holdfast.store.jobs import Jobs
from holdfast.store.journal import Journal
from holdfast.store.masked import MaskedDatabase
from holdfast.store.memories import Memories
from holdfast.store.migrations import check, migrate
from holdfast.store.nodes import Nodes
from holdfast.store.passages import Passages
from holdfast.store.processes import Processes
from holdfast.store.questions import Questions
from holdfast.store.recoveries import Recoveries
from holdfast.store.retention import enforce
from holdfast.store.segments import Segments
from holdfast.store.sessions import Sessions
from holdfast.store.settlement import Settlement
from holdfast.store.space import give_back
from holdfast.store.spending import Spending
from holdfast.store.sqlite import SqliteDatabase
from holdfast.store.turns import Turns
from holdfast.store.webhooks import Webhooks


class Store:
    """Every aggregate on one database."""

    def __init__(self, database: Database, redaction: Redaction | None = None, quota: Quota | None = None) -> None:
        # Only where secrets of our own are kept they are kept as they are.
        self.secrets = Secrets(database)
        self.webhooks = Webhooks(database)
        if redaction:
            database = MaskedDatabase(database, redaction)
        self.database = database
        self.wakes = database.wakes
        self.sessions = Sessions(database, quota)
        self.passages = Passages(database)
        self.intake = Intake(database, quota)
        self.turns = Turns(database)
        self.settlement = Settlement(database)
        self.journal = Journal(database)
        self.questions = Questions(database)
        self.processes = Processes(database)
        self.spending = Spending(database)
        self.memories = Memories(database)
        self.deliveries = Deliveries(database)
        self.segments = Segments(database)
        self.nodes = Nodes(database)
        self.recoveries = Recoveries(database)
        self.jobs = Jobs(database, quota)
        self.catalog = Catalog(database)
        self.keys = Keys(database)
        self.logins = Logins(database)

    async def enforce_retention(self, one_shot_days: Mapping[str, int], now_ms: int) -> int:
        """Delete what has outlived its retention; returns how many sessions."""
        pruned = await enforce(self.sessions, self.jobs, self.nodes, self.spending, self.logins, one_shot_days, now_ms)
        return pruned.sessions

    @property
    def damage(self) -> Sequence[str]:
        """What is known to be damaged, as far as anybody has looked."""
        return self.database.damage

    async def inspect(self) -> Sequence[str]:
        """Read the whole store beside everything else, and return what is damaged."""
        return await self.database.inspect()

    async def give_back(self) -> int:
        """Give some free space back to the disk; returns how much there is still to give, in pages."""
        return await give_back(self.database)

    async def close(self) -> None:
        await self.database.close()


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
    """Open a store for looking only: nothing is migrated, locked or written."""
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
