"""`holdfast jobs`: scheduled work."""

from __future__ import annotations

import click

from holdfast.cli.answer import rested
from holdfast.cli.frame import Frame, moment, print_fields, print_json, print_outcome, print_table, say, with_json
from holdfast.operations.jobs import JobView, Plan
from holdfast.operations.pages import SIZE_MAX


@click.group()
def jobs() -> None:
    """Prompts that run on a schedule."""


@jobs.command("list")
@with_json
async def list_(frame: Frame, as_json: bool) -> None:
    """List all jobs by name."""
    async with frame.reading_services() as services:
        page = await services.jobs.list(limit=SIZE_MAX)
    if as_json:
        print_json(page)
        return
    lines = [(each.name, each.schedule, _next(each), each.deliver or "", each.prompt) for each in page.items]
    empty = 'No jobs yet. Try: holdfast jobs add morning --schedule "30 7 * * *" --prompt "…"'
    print_table(("job", "schedule", "next", "deliver", "prompt"), lines, empty)


@jobs.command()
@click.argument("name")
@click.option(
    "--schedule",
    required=True,
    help='Minute, hour, day, month and weekday, like "30 7 * * 1-5", or once, like "at 2031-05-04T09:30".',
)
@click.option("--prompt", required=True, help="The prompt for the agent.")
@click.option("--deliver", help="The target of the answers; without it they stay in their sessions.")
@with_json
async def add(frame: Frame, name: str, schedule: str, prompt: str, deliver: str | None, as_json: bool) -> None:
    """Add or change the job NAME."""
    async with frame.services() as services:
        job = await services.jobs.save(Plan(name=name, schedule=schedule, prompt=prompt, deliver=deliver))
    _tell(job, as_json)


@jobs.command()
@click.argument("name")
@with_json
async def show(frame: Frame, name: str, as_json: bool) -> None:
    """Show the job NAME and its last runs."""
    async with frame.reading_services() as services:
        job = await services.jobs.get(name)
    if as_json:
        print_json(job)
        return
    print_fields("job", job, without=("slots",))
    if job.slots:
        say("")
        lines = [(moment(each.instant), each.outcome.value, each.turn_id or "") for each in job.slots]
        print_table(("when", "outcome", "turn"), lines, "")


@jobs.command()
@click.argument("name")
@with_json
async def run(frame: Frame, name: str, as_json: bool) -> None:
    """Run the job NAME now."""
    async with frame.services() as services:
        receipt = await services.jobs.run(name)
        await rested(services, receipt.turn_id)
    print_outcome(receipt, f"{name} runs as {receipt.turn_id}; see `holdfast sessions show {receipt.session_id}`", as_json)


@jobs.command()
@click.argument("name")
@with_json
async def pause(frame: Frame, name: str, as_json: bool) -> None:
    """Pause the job NAME until it is resumed."""
    async with frame.services() as services:
        _tell(await services.jobs.pause(name), as_json)


@jobs.command()
@click.argument("name")
@with_json
async def resume(frame: Frame, name: str, as_json: bool) -> None:
    """Resume the job NAME."""
    async with frame.services() as services:
        _tell(await services.jobs.resume(name), as_json)


@jobs.command()
@click.argument("name")
@with_json
async def remove(frame: Frame, name: str, as_json: bool) -> None:
    """Remove the job NAME; its sessions stay."""
    async with frame.services() as services:
        await services.jobs.remove(name)
    print_outcome({"removed": name}, f"{name} is removed.", as_json)


def _next(job: JobView) -> str:
    return "paused" if job.paused else moment(job.next_at)


def _tell(job: JobView, as_json: bool) -> None:
    print_outcome(
        job, f"{job.name} is paused." if job.paused else f"{job.name} is due next at {moment(job.next_at)}.", as_json
    )
