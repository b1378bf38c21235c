"""`holdfast drill`: proves durability on this machine."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.bar import bar
from holdfast.cli.frame import EXIT_FAILED, console, json_option, print_json, say

if TYPE_CHECKING:
    from holdfast.drill.chat_verdict import ChatDrillResult
    from holdfast.drill.verdict import DrillResult


@click.command()
@click.option("--kills", default=20, show_default=True, type=click.IntRange(1), help="How often to end the gateway.")
@click.option("--seed", default=None, type=int, help="Repeat the timing of an earlier drill.")
@click.option("--store", "url", default="sqlite", show_default=True, help="sqlite, or an EMPTY postgresql:// database.")
@click.option(
    "--channel", type=click.Choice(["telegram"]), help="Send the messages and the answers through a channel of people."
)
@json_option
def drill(kills: int, seed: int | None, url: str, channel: str | None, as_json: bool) -> None:
    """Kill a scratch gateway at random moments and check every promise.

    Every third time it is stopped instead, with too little time for the turns that run.  With --channel, people write to it
    in chats of a scripted platform that the drill runs itself, and what their phones show is checked.

    Your own sessions are not touched: everything happens in a temporary folder.
    """
    seed = seed if seed is not None else time.time_ns() % 1_000_000
    with tempfile.TemporaryDirectory(prefix="holdfast-drill-") as folder, bar(as_json) as progress:
        task = progress.add_task("killing", total=kills)
        verdict = _run(channel, Path(folder), url, kills, seed, lambda done: progress.update(task, completed=done))
    if as_json:
        print_json({**dataclasses.asdict(verdict), "seed": seed})
    else:
        _print(verdict, seed)
    if verdict.violations:
        sys.exit(EXIT_FAILED)


def _run(
    channel: str | None, folder: Path, url: str, kills: int, seed: int, progress: Callable[[int], None]
) -> DrillResult | ChatDrillResult:
    # Every other command would pay for importing them, too.
    if channel:
        from holdfast.drill.chat_drill import drill_chats

        return drill_chats(folder, url, kills, seed, progress)
    from holdfast.drill.verdict import drill as run_drill

    return run_drill(folder, url, kills, seed, progress)


def _print(verdict: DrillResult | ChatDrillResult, seed: int) -> None:
    console.print(f"{verdict.kills} ends: {verdict.sigkills} by SIGKILL, {verdict.sigterms} by SIGTERM (seed {seed})")
    for line in verdict.told():
        console.print(f"  {line}")
    if verdict.violations:
        console.print(f"[bold red]{len(verdict.violations)} promises broken:[/bold red]")
        for violation in verdict.violations[:20]:
            say(f"  {violation}")
    else:
        console.print("[bold green]Every promise held.[/bold green]")
