"""`holdfast store`: the database file."""

from __future__ import annotations

import asyncio

import click

from holdfast.cli.frame import Frame, print_outcome, spinning, with_json
from holdfast.errors import Rejected

_MB = 1_000_000


@click.group()
def store() -> None:
    """The database file."""


@store.command()
@with_json
async def compact(frame: Frame, as_json: bool) -> None:
    """Rewrite the database file without its free space.  The gateway must be stopped.

    A gateway that runs gives space back by itself.  Only a store that was made by an older version cannot, until it is
    compacted once.  It needs as much free space as the store is large.
    """
    from holdfast.app.node import owned
    from holdfast.store.compacting import compact as write_anew
    from holdfast.store.opening import store_path

    if frame.config.store.url != "sqlite":
        raise Rejected("PostgreSQL looks after its own files; there is nothing to compact here")
    with owned(frame.home):
        async with spinning(shown=not as_json) as spinner:
            spinner.update("Writing the store anew")
            before, after = await asyncio.to_thread(write_anew, store_path(frame.home))
    print_outcome(
        {"bytes_before": before, "bytes_after": after},
        f"The store has {after / _MB:.1f} MB now; it had {before / _MB:.1f} MB.",
        as_json,
    )
