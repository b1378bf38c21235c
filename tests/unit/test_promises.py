"""The page of promises says what the table and the results say, and nothing else."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RESULT: dict[str, Any] = {
    "store": "embedded",
    "seed": 7,
    "faults": {"SIGKILL": 3},
    "left_out": [],
    "impossible": [],
    "figures": {"inputs acknowledged": 1_234},
    "violations": [],
}


@pytest.fixture(scope="module")
def promises() -> ModuleType:
    spec = importlib.util.spec_from_file_location("promises", DOCS / "promises.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def table() -> dict[str, Any]:
    return tomllib.loads((DOCS / "promises.toml").read_text("utf-8"))


def test_the_page_is_what_the_command_writes(promises: ModuleType) -> None:
    assert promises.main(["--check"]) == 0


def test_the_page_has_the_figures_of_the_results(promises: ModuleType, table: dict[str, Any]) -> None:
    page = promises.write(table, [RESULT], ROOT)
    assert "| inputs acknowledged | 1,234 |" in page
    assert "| SIGKILL | 3 |" in page
    assert "python -m tests.chaos --store embedded --faults 3 --seed 7\n" in page


def test_the_figures_of_several_runs_are_added_up(promises: ModuleType, table: dict[str, Any]) -> None:
    page = promises.write(table, [RESULT, {**RESULT, "seed": 8}, {**RESULT, "store": "cluster"}], ROOT)
    assert "| SIGKILL | 6 | 3 |" in page
    assert "--store embedded --faults 3 --seed 8\n" in page


def test_a_broken_promise_is_on_the_page(promises: ModuleType, table: dict[str, Any]) -> None:
    page = promises.write(table, [{**RESULT, "violations": ["round 1: order: trn_b began before trn_a"]}], ROOT)
    (line,) = [line for line in page.splitlines() if "**1 time**" in line]
    assert "in the order in which they were confirmed" in line


def test_a_violation_that_belongs_to_no_promise_is_refused(promises: ModuleType, table: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match="no promise"):
        promises.write(table, [{**RESULT, "violations": ["gravity: things fall up"]}], ROOT)


@pytest.mark.parametrize("test", ["tests/unit/test_nothing.py::test_it", "tests/unit/test_promises.py::test_it"])
def test_a_test_that_is_not_there_is_refused(promises: ModuleType, table: dict[str, Any], test: str) -> None:
    table["promise"][0]["tests"].append(test)
    with pytest.raises(SystemExit, match=re.escape(test)):
        promises.write(table, [RESULT], ROOT)


def test_every_rule_of_the_checker_belongs_to_one_promise(table: dict[str, Any]) -> None:
    sources = ("chaos/verdict.py", "chaos/run.py", "blackbox/history.py")
    texts = [(ROOT / "tests" / source).read_text("utf-8") for source in sources]
    reported = {rule for text in texts for rule in re.findall(r'(?:yield |\(|\[)f"([a-z ]+): ', text)}
    rules = [rule for promise in table["promise"] for rule in promise["rules"]]
    assert len(rules) == len(set(rules))
    assert reported == set(rules)


def test_the_results_name_no_machine_and_no_day() -> None:
    text = (DOCS / "chaos.json").read_text("utf-8")
    assert not re.search(r"/(tmp|dev|home|root|work)/|20\d\d-\d\d-\d\d", text)
    assert {each["store"] for each in json.loads(text)} == {"embedded", "cluster"}
