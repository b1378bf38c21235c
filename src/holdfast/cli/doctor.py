"""`holdfast doctor`: checks everything that a gateway needs, and says what to do."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from holdfast.cli.frame import EXIT_FAILED, console, print_json, visible, with_json
from holdfast.client.contact import running_gateway
from holdfast.config import config_file
from holdfast.errors import HoldfastError
from holdfast.operations.doctor import Report
from holdfast.operations.gateway import Status

# A healthy gateway answers at once.
ANSWER_TIMEOUT_S = 5
_MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "bold red")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """The home to check, even if its configuration is wrong."""

    home: Path
    config_file: str | None


@click.command()
@with_json
async def doctor(visit: Visit, as_json: bool) -> None:
    """Check configuration, store, model, memory, channels, disk and clock, and say what to do.

    It needs no gateway, and does not disturb one that runs.  The exit code is 1 where something fails.
    """
    file = config_file(visit.home, visit.config_file)
    report = await check_up(visit.home, file, required=visit.config_file is not None)
    if as_json:
        print_json(report)
    else:
        print_report(report)
    if not report.ok:
        sys.exit(EXIT_FAILED)


async def check_up(home: Path, file: Path, *, required: bool) -> Report:
    """Ask the running gateway for its report, if there is one, and check everything else."""
    from holdfast.app.doctor import consult

    return await consult(home, file, await _gateway(home), required=required)


async def _gateway(home: Path) -> Status | Exception:
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S), running_gateway(home) as services:
            return await services.gateway.status()
    except (HoldfastError, OSError, TimeoutError) as error:
        return error


def print_report(report: Report) -> None:
    """Print the findings as text."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    named = ""
    for each in report.checks:
        mark, style = _MARKS[each.level]
        name, named = ("" if each.name == named else each.name), each.name
        table.add_row(Text(mark, style), Text(name, "bold"), Text(visible(each.found)))
        if each.advice:
            table.add_row("", "", Text(f"→ {visible(each.advice)}", "dim"))
    console.print(table)
    levels = [each.level.value for each in report.checks]
    console.print(Text(_sum(levels.count("fail"), levels.count("warn")), "bold"))


def _sum(failing: int, warnings: int) -> str:
    if not failing and not warnings:
        return "All is well."
    parts = [f"{failing} {'fails' if failing == 1 else 'fail'}"] * bool(failing)
    parts += [f"{warnings} to look at"] * bool(warnings)
    return f"{', '.join(parts)}."
