"""`holdfast drill`: proves durability on this machine."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.bar import bar
from holdfast.cli.frame import EXIT_FAILED, console, json_option, print_json, say

if TYPE_CHECKING:
    from holdfast.drill.verdict import DrillResult


@click.command()
@click.option("--kills", default=20, show_default=True, type=click.IntRange(1), help="How often to end the gateway.")
@click.option("--seed", default=None, type=int, help="Repeat the timing of an earlier drill.")
@click.option("--store", "url", default="sqlite", show_default=True, help="sqlite, or an EMPTY postgresql:// database.")
@json_option
def drill(kills: int, seed: int | None, url: str, as_json: bool) -> None:
    """Kill a scratch gateway at random moments and check every promise.

    Every third time it is stopped instead, with too little time for the turns that run.

    Your own sessions are not touched: everything happens in a temporary folder.
    """
    # Every other command would pay for importing it, too.
    from holdfast.drill.verdict import drill as run_drill

    seed = seed if seed is not None else time.time_ns() % 1_000_000
    with tempfile.TemporaryDirectory(prefix="holdfast-drill-") as folder, bar(as_json) as progress:
        task = progress.add_task("killing", total=kills)
        verdict = run_drill(Path(folder), url, kills, seed, lambda done: progress.update(task, completed=done))
    if as_json:
        print_json({**dataclasses.asdict(verdict), "seed": seed})
    else:
        _print(verdict, seed)
    if verdict.violations:
        sys.exit(EXIT_FAILED)


def _print(verdict: DrillResult, seed: int) -> None:
    console.print(f"{verdict.kills} ends: {verdict.sigkills} by SIGKILL, {verdict.sigterms} by SIGTERM (seed {seed})")
    console.print(f"  {verdict.accepted} messages acknowledged")
    console.print(f"  {verdict.completed} answered in full, {verdict.continued} of them across at least one such end")
    console.print(f"  {verdict.drained} turns cut by a stop that gave them too little time, each with its cause recorded")
    console.print(
        f"  {verdict.given_up} given up at the third interruption in a row or later, none by a crash beside others"
    )
    console.print(f"  {verdict.shown} journal entries on screen, all still there")
    console.print(f"  {verdict.effects} effects on the world, none twice; {verdict.effects_unknown} reported as unknown")
    console.print(f"  {verdict.sends} parts sent, {verdict.sends_labelled} labelled as possible repeats")
    console.print(
        f"  {verdict.remembered} answers remembered in {verdict.commits} commits, "
        f"{verdict.commits_repeated} of them made again as the same"
    )
    if verdict.violations:
        console.print(f"[bold red]{len(verdict.violations)} promises broken:[/bold red]")
        for violation in verdict.violations[:20]:
            say(f"  {violation}")
    else:
        console.print("[bold green]Every promise held.[/bold green]")
