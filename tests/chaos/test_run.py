"""Chaos in small; `make chaos` is the long one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chaos.__main__ import main, write
from tests.chaos.faults import FAULTS
from tests.chaos.run import Report
from tests.chaos.world import Setting


@pytest.mark.long
@pytest.mark.parametrize("store", Setting)
def test_ten_faults_break_no_promise(store: Setting, tmp_path: Path) -> None:
    """A1 A3 T2 J1 J8 D1 S1 X1 CONSERVATION: real gateways, clients of every kind, and several faults at a time."""
    results = tmp_path / "results.json"
    status = main(["--store", store, "--faults", "10", "--seed", "7", "--json", str(results)])
    (found,) = json.loads(results.read_text())
    assert found["violations"] == []
    assert status == 0
    assert sum(found["faults"].values()) == 10
    assert found["figures"]["inputs acknowledged"] > 20
    assert found["figures"]["entries streamed"] > 100


def test_results_of_one_store_leave_those_of_the_other(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    results.write_text(json.dumps([{"store": "cluster", "seed": 1}]))
    write(results, [Report(setting=Setting.EMBEDDED, seed=2)])
    write(results, [Report(setting=Setting.EMBEDDED, seed=3)])
    assert [(each["store"], each["seed"]) for each in json.loads(results.read_text())] == [("embedded", 3), ("cluster", 1)]


def test_every_fault_has_a_name_of_its_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
