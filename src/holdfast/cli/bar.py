"""The progress bar of long work: on a terminal only, never in a pipe or beside JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.frame import console

if TYPE_CHECKING:
    from rich.progress import Progress


def bar(quiet: bool) -> Progress:
    """Return a bar that disappears when the work is done."""
    # Most commands show no bar, so they do not import it.
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    # A description may have brackets, which are not markup.
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=quiet or not console.is_terminal, transient=True)
