"""Where benchmarks run: a folder on a real disk and, once asked for, a PostgreSQL that keeps its promises."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from tests.postgres import Server

from holdfast.store.opening import open_store
from holdfast.store.store import Store

Kind = Literal["sqlite", "postgres"]


class Ground:
    """One run's temporary data, removed at its end.  `quick` asks for less of everything."""

    def __init__(self, parent: Path, *, quick: bool) -> None:
        self.quick = quick
        self.folder = Path(tempfile.mkdtemp(prefix=".bench-", dir=parent))
        # PostgreSQL runs as another user when we are root, and has to get through to its own folder.
        self.folder.chmod(0o711)
        self._numbers = itertools.count(1)
        self._server: Server | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._server:
            self._server.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def home(self) -> Path:
        """Return a new empty folder."""
        home = self.folder / str(next(self._numbers))
        home.mkdir()
        return home

    def database(self) -> str:
        """Return the URL of a new empty PostgreSQL database."""
        if self._server is None:
            self._server = Server(durable=True, parent=self.folder)
            self._server.start()
        return self._server.create_database(f"bench_{next(self._numbers)}")

    async def store(self, kind: Kind) -> tuple[Store, str]:
        """Open a new store; also returns where: the folder of an SQLite file, or a URL."""
        if kind == "sqlite":
            home = self.home()
            return await open_store("sqlite", home), str(home / "holdfast.db")
        url = self.database()
        return await open_store(url, self.folder), url
