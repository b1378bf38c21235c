"""The machines on both kinds of store.

A normal run replays the same examples every time, so that a red build means a change.  `HYPOTHESIS_PROFILE=long` searches
further, with thousands of new random examples:

    HYPOTHESIS_PROFILE=long .venv/bin/python -m pytest tests/machines
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.store.database import Run, Transaction
from holdfast.store.opening import open_store
from holdfast.store.retention import TABLES
from holdfast.store.store import Store
from tests import scratch
from tests.machines.spine import Spine
from tests.postgres import Server
from tests.watched import watched

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"


def _settings(examples: int, examples_long: int) -> settings:
    return settings(
        max_examples=examples_long if LONG else examples,
        stateful_step_count=50,
        derandomize=not LONG,
        database=None,
        # Explaining traces every line of every store, which takes longer than reading the steps.
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        deadline=None,
        print_blob=LONG,
        suppress_health_check=list(HealthCheck),
    )


# What a run must have seen to be worth anything; the shared store is slower, and sees less of what is rare.
WITNESSED = frozenset(
    {
        *(("accept", outcome) for outcome in ("done", "KeyReused", "SessionBusy", "IllegalMove")),
        *(("heed", outcome) for outcome in ("done", "joined", "Stale")),
        *((f"{write} again", "done") for write in ("accept", "start", "append", "park", "finish")),
        *(("cut", fate) for fate in ("continued", "rested", "suspended", "given_up")),
        *((write, outcome) for write in ("start", "append", "park", "finish", "settle") for outcome in ("done", "Stale")),
        *((move, outcome) for move in ("answer", "cancel") for outcome in ("done", "IllegalMove")),
        *(("send", outcome) for outcome in ("first", "repeated")),
        *(("committed", outcome) for outcome in ("done", "Stale")),
        *(("waive", outcome) for outcome in ("done", "IllegalMove")),
        *(
            (deed, "done")
            for deed in ("claim", "append late", "seal", "close off", "commit due", "commit one", "hasten", "prune")
        ),
        *((deed, "nothing") for deed in ("release", "claim", "commit due", "commit one", "end session", "suspend session")),
    }
)
WITNESSED_AT_LEAST = frozenset(
    {
        *((write, outcome) for write in ("start", "append", "finish", "settle") for outcome in ("done", "Stale")),
        *((deed, "done") for deed in ("accept", "claim", "park", "answer", "cancel", "append late")),
        *(("cut", fate) for fate in ("continued", "rested", "suspended", "given_up")),
        ("accept", "KeyReused"),
        ("send", "first"),
        ("committed", "done"),
    }
)

pytestmark = pytest.mark.timeout(0 if LONG else 300)


async def _watched(home: Path) -> Store:
    return await watched(await open_store("sqlite", home))


def test_whatever_happens_to_an_embedded_store_it_keeps_its_promises() -> None:
    """A1 A2 A3 T1 T2 T3 T4 J1 J2 J3 D1 D2 D3 M1 M2 S1 S2 X1 P1 C1 CONSERVATION"""

    class SqliteSpine(Spine):
        exclusive = True

        def __init__(self) -> None:
            # Power cuts have a suite of their own; here the disk may be memory.
            self.home = Path(tempfile.mkdtemp(prefix="hf-spine-", dir=scratch.parent()))
            scratch.furnish(self.home)
            super().__init__()

        def open_it(self) -> Coroutine[Any, Any, Store]:
            return _watched(self.home)

        def forget_it(self) -> None:
            shutil.rmtree(self.home)

    SqliteSpine.witnessed = Counter()
    run_state_machine_as_test(SqliteSpine, settings=_settings(200, 5_000))
    assert SqliteSpine.witnessed.keys() >= WITNESSED


def test_whatever_happens_to_a_shared_store_it_keeps_its_promises(postgres: Server) -> None:
    """A1 A2 A3 T1 T2 T3 T4 J1 J2 J3 D1 D2 D3 M1 M2 S1 S2 X1 P1 C1 CONSERVATION"""
    url = postgres.create_database("machine_spine")

    class PostgresSpine(Spine):
        exclusive = False

        def open_it(self) -> Coroutine[Any, Any, Store]:
            return open_store(url, Path())

        def teardown(self) -> None:
            # Emptying a database is many times faster than making one.
            self.run(self.store.database.write(_empty))
            super().teardown()

    PostgresSpine.witnessed = Counter()
    try:
        run_state_machine_as_test(PostgresSpine, settings=_settings(22, 2_000))
    finally:
        postgres.drop_database("machine_spine")
    assert PostgresSpine.witnessed.keys() >= WITNESSED_AT_LEAST


def _empty() -> Transaction[None]:
    tables = ", ".join(set(TABLES) - {"schema_versions"})
    yield Run(f"TRUNCATE {tables}")
