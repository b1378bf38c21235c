"""The list of guards keeps up with the code: one that cannot be removed any more proves nothing."""

from __future__ import annotations

from tests.mutants import MUTANTS, ROOT


def test_every_guard_that_is_removed_stands_where_it_is_looked_for() -> None:
    gone = [each.name for each in MUTANTS if each.guard not in (ROOT / "src" / "holdfast" / each.file).read_text()]
    assert not gone


def test_every_guard_has_tests_that_can_miss_it() -> None:
    missing = [(each.name, path) for each in MUTANTS for path in each.tests if not (ROOT / path.partition("::")[0]).exists()]
    assert not missing
