"""Run the benchmarks: `python -m bench [NAME...] [--quick] [--json FILE]`."""

from __future__ import annotations

import importlib
import json
import logging
import time
from pathlib import Path

import click
import uvloop
from rich.console import Console

from bench.ground import Ground
from bench.machine import facts
from bench.report import Line, table

NAMES = (
    "durability",
    "turns",
    "scale",
    "recovery",
    "restart",
    "failover",
    "distance",
    "relay",
    "agent",
    "http",
    "loop",
    "growth",
    "search",
    "prune",
    "memory",
    "page",
    "sandbox",
    "channels",
)


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(NAMES))
@click.option("--quick", is_flag=True, help="Less of everything: under a minute, and noisier.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Also write the numbers here.")
@click.option("--folder", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".",
              help="Where the temporary data goes; it should be a real disk.")  # fmt: skip
def main(names: tuple[str, ...], quick: bool, json_file: Path | None, folder: Path) -> None:
    """Measure Holdfast beside the raw limit of the same machine."""
    logging.basicConfig(level=logging.ERROR)
    # A fixed width keeps the table whole where the output is a file.
    console = Console(width=None if Console().is_terminal else 150)
    machine = facts(folder)
    for name, value in machine.items():
        console.print(f"[bold]{name}[/] {value}", highlight=False)
    found: dict[str, list[Line]] = {}
    for name in names or NAMES:
        began = time.monotonic()
        with Ground(folder.resolve(), quick=quick) as ground:
            found[name] = uvloop.run(importlib.import_module(f"bench.{name}").run(ground))
        console.print(f"\n[bold]{name}[/] ({time.monotonic() - began:.0f} s)", highlight=False)
        console.print(table(found[name]))
        for line in found[name]:
            if line.note:
                console.print(f"[dim]{line.what}: {line.note}[/]", highlight=False)
    if json_file:
        written = {"machine": machine, "lines": {name: [line.as_json() for line in lines] for name, lines in found.items()}}
        json_file.write_text(json.dumps(written, indent=2, ensure_ascii=False))
    raise SystemExit(any(line.met is False for lines in found.values() for line in lines))


if __name__ == "__main__":
    main()
