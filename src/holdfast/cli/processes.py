"""`holdfast processes`: background commands."""

from __future__ import annotations

import asyncio

import click

from holdfast.cli.frame import (
    Frame,
    limit_option,
    moment,
    print_json,
    print_outcome,
    print_table,
    print_text,
    print_view,
    say,
    with_json,
)
from holdfast.cli.sessions import find
from holdfast.core.processes import ProcessState
from holdfast.errors import Rejected
from holdfast.ids import ProcessId
from holdfast.operations.processes import ProcessView
from holdfast.operations.services import Services

LOOK_S = 0.5


@click.group()
def processes() -> None:
    """Commands in the background.  They continue when the gateway stops."""


@processes.command("list")
@click.option("--session", help="Only those of this session (its id or its key).")
@click.option("--state", type=click.Choice([each.value for each in ProcessState]), help="Only those in this state.")
@limit_option(20)
@click.option("--cursor", help="Continue after an earlier page.")
@with_json
async def list_(frame: Frame, session: str | None, state: str | None, limit: int, cursor: str | None, as_json: bool) -> None:
    """List background commands, the newest first."""
    async with frame.reading_services() as services:
        session_id = (await find(services, session)).id if session else None
        chosen = ProcessState(state) if state else None
        page = await services.processes.list(session_id=session_id, state=chosen, cursor=cursor, limit=limit)
    if as_json:
        print_json(page)
        return
    lines = [(each.id, _mood(each), moment(each.started_at), _one_line(each.command)) for each in page.items]
    print_table(("process", "state", "when", "command"), lines, "Nothing has run in the background yet.")
    if page.next_cursor and len(page.items) == limit:
        say(f"There may be more; go on with --cursor {page.next_cursor}", "dim")


@processes.command()
@click.argument("process")
@with_json
async def show(frame: Frame, process: str, as_json: bool) -> None:
    """Show one PROCESS."""
    async with frame.reading_services() as services:
        found = await services.processes.get(ProcessId(process))
    print_view("process", found, as_json)


@processes.command()
@click.argument("process")
@click.option("--follow", "-f", is_flag=True, help="Continue until it has ended.")
@click.option("--after", type=click.IntRange(0), default=0, help="Start after this byte.")
@with_json
async def log(frame: Frame, process: str, follow: bool, after: int, as_json: bool) -> None:
    """Print the output of PROCESS."""
    if follow and as_json:
        raise Rejected("--follow prints as it comes; leave out --json")
    async with frame.services() as services:
        if as_json:
            print_json(await services.processes.output(ProcessId(process), after))
            return
        await _print(services, ProcessId(process), after, follow=follow)


async def _print(services: Services, process_id: ProcessId, after: int, *, follow: bool) -> None:
    while True:
        # Asked before the output is read, so that no output is missed when it has ended.
        ended = (await services.processes.get(process_id)).state is not ProcessState.RUNNING
        output = await services.processes.output(process_id, after)
        if output.begin > after:
            say(f"[{output.begin - after} earlier bytes are not kept]", "dim")
        print_text(output.text)
        if output.end == after:
            if ended or not follow:
                return
            await asyncio.sleep(LOOK_S)
        after = output.end


@processes.command()
@click.argument("process")
@with_json
async def kill(frame: Frame, process: str, as_json: bool) -> None:
    """Kill PROCESS and everything that it started."""
    async with frame.services() as services:
        found = await services.processes.kill(ProcessId(process))
    print_outcome(found, f"{found.id} is {_mood(found)}.", as_json)


def _mood(process: ProcessView) -> str:
    return f"{process.state}, code {process.exit_code}" if process.exit_code is not None else process.state.value


def _one_line(command: str) -> str:
    return " ".join(command.split())
