"""An exhaustive table as one test.

Checking a row of a pure rule costs microseconds; collecting, scheduling and reporting it as a test of its own costs a
thousand times more, in every worker of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def every(names: str, rows: Iterable[tuple[Any, ...]]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Run a test for each row of a table.  The first row that does not hold is named in the failure."""
    arguments, table = [name.strip() for name in names.split(",")], list(rows)

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        def test_every_row() -> None:
            assert table, "the table has no rows"
            for row in table:
                values = dict(zip(arguments, row, strict=True))
                try:
                    test(**values)
                except BaseException as error:
                    error.add_note(f"in the row {values}")
                    raise

        # Not `functools.wraps`: pytest would look for fixtures with the names of the columns.
        test_every_row.__name__, test_every_row.__doc__ = test.__name__, test.__doc__
        test_every_row.__module__ = test.__module__
        return test_every_row

    return decorate
