"""Where tests keep their files: in memory if there is enough of it, in homes whose store has its schema already."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from holdfast.store.opening import open_store, store_path

# Several homes exist at a time, each with 8 MB of ballast, and every worker has a PostgreSQL cluster.
_ENOUGH_BYTES = 2 * 1024**3


@functools.cache
def parent() -> Path:
    """Return the folder for everything that need not outlive the tests."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free >= _ENOUGH_BYTES
    return memory if roomy else Path("/tmp")


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Give out an empty folder, and remove it afterwards."""
    with tempfile.TemporaryDirectory(dir=parent(), prefix="hf-") as name:
        yield Path(name)


@contextlib.contextmanager
def home() -> Iterator[Path]:
    """Give out a home that has an empty store, and remove it afterwards."""
    with folder() as made:
        furnish(made)
        yield made


def furnish(home: Path) -> None:
    """Put an empty store into a home that has none; a copy costs a third of what the migrations cost."""
    path = store_path(home)
    if not path.exists():
        path.write_bytes(_migrated())


@functools.cache
def _migrated() -> bytes:
    async def migrate(home: Path) -> None:
        await (await open_store("sqlite", home)).close()

    # A thread of its own gives it an event loop of its own, also if the caller runs inside one.
    with folder() as made, ThreadPoolExecutor(max_workers=1) as executor:
        executor.submit(lambda: asyncio.run(migrate(made))).result()
        return store_path(made).read_bytes()
