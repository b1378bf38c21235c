"""Writes promises.md from the table of promises and the results of the last run of the checker.

    python docs/promises.py            write the page
    python docs/promises.py --check    exit 1 when the page is not what would be written

The results in chaos.json are those of `python -m tests.chaos --json docs/chaos.json`.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
PAGE, TABLE, RESULTS = (DOCS / name for name in ("promises.md", "promises.toml", "chaos.json"))
STORES = {"embedded": "one gateway on SQLite", "cluster": "three gateways on PostgreSQL"}
INTRODUCTION = """\
# What Holdfast promises

Each promise has a mechanism, tests that try to break it, and a checker that is not part of Holdfast: `make chaos` starts
real gateways, lets many clients work with them, and breaks everything around them at random moments, several things at a
time. The checker knows only what the clients, the receiver of deliveries and the model server have seen. When it is calm
again, it compares that with what is there.

This page is written by `python docs/promises.py`; `make check` fails when it is out of date.
"""
EXCUSED = """\
A turn without an answer counts as kept only if its client cancelled it, if the model was away for longer than it is asked,
if the disk was full, or if it was interrupted three times in a row; the conversation says which.
"""


def write(table: Mapping[str, Any], results: Sequence[Mapping[str, Any]], tests: Path) -> str:
    """Return the page.  Raises `SystemExit` for a test that is not there, and for a violation that no promise covers."""
    promises = table["promise"]
    for promise in promises:
        for test in promise["tests"]:
            _demand(test, tests)
    rules = [rule for promise in promises for rule in promise["rules"]]
    for violation in _violations(results):
        if not any(violation.startswith(f"{rule}:") for rule in rules):
            raise SystemExit(f"no promise of {TABLE.name} has a rule for: {violation}")
    lines = [
        INTRODUCTION,
        *_promised(promises, results),
        *_run(results),
        *_about(table),
        *_not_promised(table["not_promised"]),
    ]
    return "\n".join(lines)


def _demand(test: str, root: Path) -> None:
    path, _, name = test.partition("::")
    file = root / path
    if not file.is_file() or not re.search(rf"def {re.escape(name)}\(", file.read_text("utf-8")):
        raise SystemExit(f"{TABLE.name} names a test that is not there: {test}")


def _violations(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return all violations without the number of their round."""
    found = [violation for result in results for violation in result["violations"]]
    return [re.sub(r"^round \d+: ", "", each) for each in found]


def _promised(promises: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "## The promises\n"
    yield "| promise | what it rests on | tests beside the checker | broken in the last run |"
    yield "|---|---|---|---|"
    for promise in promises:
        tests = "<br>".join(map(_link, promise["tests"]))
        yield f"| {promise['says']} | {promise['rests_on']} | {tests} | {_broken(promise['rules'], results)} |"
    yield ""


def _link(test: str) -> str:
    """Return a test as the sentence that it is, with a link to its file."""
    path, _, name = test.partition("::")
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../{path})"


def _broken(rules: Sequence[str], results: Sequence[Mapping[str, Any]]) -> str:
    """Say how often a promise was broken in the run; one without rules is not judged there."""
    if not rules:
        return "not part of it"
    count = sum(each.startswith(tuple(f"{rule}:" for rule in rules)) for each in _violations(results))
    return f"**{count} time{'s' * (count > 1)}**" if count else "never"


def _run(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "## The last run\n"
    yield "```sh"
    yield from (f"python -m tests.chaos {_arguments(result)}" for result in results)
    yield "```\n"
    for result in results:
        if result["left_out"]:
            yield f"Left out of this run: {', '.join(result['left_out'])} ({STORES[result['store']]}).\n"
        if result["impossible"]:
            yield f"Not possible where this ran: {', '.join(result['impossible'])} ({STORES[result['store']]}).\n"
    yield from _columns("fault", results, "faults")
    yield from _columns("seen by the checker", results, "figures")
    yield EXCUSED
    if violations := _violations(results):
        yield "What was broken:\n"
        yield from (f"- `{violation.replace('`', chr(39))}`" for violation in violations)
        yield ""


def _about(table: Mapping[str, Any]) -> Iterator[str]:
    """Say what the results do not: which versions ran, and what became of what was broken."""
    if about := table.get("about_the_run"):
        yield f"{about.strip()}\n"


def _arguments(result: Mapping[str, Any]) -> str:
    without = f' --without "{",".join(result["left_out"])}"' if result["left_out"] else ""
    return f"--store {result['store']} --faults {sum(result['faults'].values())} --seed {result['seed']}{without}"


def _columns(title: str, results: Sequence[Mapping[str, Any]], what: str) -> Iterator[str]:
    """Return a table of counts, with a column for each store: the sum of its runs."""
    sums: dict[str, Counter[str]] = {}
    for result in results:
        sums.setdefault(result["store"], Counter()).update(result[what])
    yield f"| {title} | {' | '.join(STORES[store] for store in sums)} |"
    yield f"|---|{'--:|' * len(sums)}"
    for name in sorted({name for counts in sums.values() for name in counts}):
        yield f"| {name} | {' | '.join(f'{counts[name]:,}' if name in counts else '' for counts in sums.values())} |"
    yield ""


def _not_promised(table: Sequence[Mapping[str, str]]) -> Iterator[str]:
    yield "## What is not promised\n"
    yield from (f"- **{each['what']}.** {each['why']}" for each in table)
    yield "\n[Security](security.md) has promises and limits of its own.\n"


def main(arguments: Sequence[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    page = write(tomllib.loads(TABLE.read_text("utf-8")), json.loads(RESULTS.read_text("utf-8")), DOCS.parent)
    if not arguments:
        PAGE.write_text(page, "utf-8")
    elif page != PAGE.read_text("utf-8"):
        print(f"{PAGE.name} is out of date; run: python docs/promises.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
