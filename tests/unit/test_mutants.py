"""The list of guards keeps up with the code: one that cannot be removed any more proves nothing."""

from __future__ import annotations

from tests.mutants import MUTANTS, ROOT


def test_every_guard_that_is_removed_stands_once_where_it_is_looked_for() -> None:
    counts = {each.name: (ROOT / "src" / "holdfast" / each.file).read_text().count(each.guard) for each in MUTANTS}
    assert {name: count for name, count in counts.items() if count != 1} == {}


def test_every_guard_has_tests_that_can_miss_it() -> None:
    named = {each.name: [word for word in each.tests if word.startswith("tests/")] for each in MUTANTS}
    missing = [path for paths in named.values() for path in paths if not (ROOT / path.partition("::")[0]).exists()]
    assert not missing
    assert all(named.values())
