"""`holdfast memory replay`: give another provider what was learned before."""

from __future__ import annotations

import sys

import click
import uvloop

from holdfast.cli.bar import bar
from holdfast.cli.cards import shortened
from holdfast.cli.debts import WHY_MAX_CHARS
from holdfast.cli.frame import EXIT_FAILED, Frame, count, json_option, print_json, print_table, say
from holdfast.operations.replay import SKIPPED_MAX, Failure, Replayed, Replaying

# Segments that one request replays.
AT_ONCE = 20
# Failures that are listed.
SHOWN_MAX = 8
# After so many failures in a row, the next segment will fail too.
FAILED_IN_A_ROW_MAX = 10
EXIT_INTERRUPTED = 130


@click.command()
@click.option(
    "--provider", required=True, help="The provider to give it to: builtin, http, openviking or the name of a plugin."
)
@click.option("--url", default="", help="The URL of http or openviking (default: memory.url).")
@click.option("--person", default="", help="The owner of the conversations (default: you).")
@json_option
@click.pass_obj
def replay(frame: Frame, provider: str, url: str, person: str, as_json: bool) -> None:
    """Give another provider what was learned before.

    It may be stopped at any time.  The same command continues from there.
    """
    plan = Replaying(provider=provider, url=url, person=person, limit=AT_ONCE)
    course = _Course()
    try:
        uvloop.run(_replay(frame, plan, course, as_json))
    except KeyboardInterrupt:
        click.echo("\nStopped: what was replayed stays so, and the same command goes on from there.", err=True)
        sys.exit(EXIT_INTERRUPTED)
    if as_json:
        print_json(course.result())
    else:
        _print_replay(course)
    if course.failures:
        sys.exit(EXIT_FAILED)


class _Course:
    """The progress of a replay."""

    def __init__(self) -> None:
        self.provider = ""
        self.replayed = 0
        self.left = 0
        self.failures: list[Failure] = []
        self._in_a_row = 0

    def add(self, step: Replayed) -> None:
        self.provider = step.provider
        self.replayed += step.replayed
        self.left = step.left
        self.failures += step.failures
        self._in_a_row = self._in_a_row + step.failed if not step.replayed else 0

    @property
    def over(self) -> bool:
        """Whether everything left has failed, or so much has failed that the rest will too."""
        hopeless = self._in_a_row >= FAILED_IN_A_ROW_MAX or len(self.failures) >= SKIPPED_MAX
        return hopeless or self.left <= len(self.failures)

    def result(self) -> Replayed:
        failed = len(self.failures)
        return Replayed(
            provider=self.provider, replayed=self.replayed, failed=failed, left=self.left, failures=self.failures
        )


async def _replay(frame: Frame, plan: Replaying, course: _Course, as_json: bool) -> None:
    async with frame.services() as services:
        course.add(await services.memories.replay(_next(plan, course, limit=0)))
        with bar(as_json) as progress:
            task = progress.add_task(f"replaying into {course.provider}", total=course.left)
            while not course.over:
                course.add(await services.memories.replay(_next(plan, course)))
                progress.update(task, completed=course.replayed + len(course.failures))


def _next(plan: Replaying, course: _Course, limit: int = AT_ONCE) -> Replaying:
    skip = tuple(each.segment_id for each in course.failures)
    return Replaying(provider=plan.provider, url=plan.url, person=plan.person, limit=limit, skip=skip)


def _print_replay(course: _Course) -> None:
    if not course.replayed and not course.left:
        say(f"{course.provider} has everything already, or nothing was ever learned.")
        return
    say(f"{count(course.replayed, 'segment')} replayed into {course.provider}, {course.left} left.")
    lines = [
        (each.segment_id, each.session_id, shortened(each.error, WHY_MAX_CHARS)) for each in course.failures[:SHOWN_MAX]
    ]
    if lines:
        say(f"{count(len(course.failures), 'segment')} failed; the same command tries them again:", "yellow")
        print_table(("segment", "session", "why"), lines, "")
