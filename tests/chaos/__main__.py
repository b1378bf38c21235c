"""Chaos, by hand: faults at random moments, and the verdict.

python -m tests.chaos --faults 150 --store cluster --seed 7 --json chaos.json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.chaos.run import ROUND, Orders, Report, Run
from tests.chaos.world import Setting

VIOLATION_MAX = 200


def main(arguments: list[str]) -> int:
    # Whoever ends the run ends its gateways.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chosen = _parser().parse_args(arguments)
    settings = [Setting(chosen.store)] if chosen.store else list(Setting)
    reports: list[Report] = []
    for setting in settings:
        orders = Orders(
            setting=setting,
            seed=chosen.seed,
            faults=chosen.faults if chosen.duration is None else None,
            duration_s=chosen.duration,
            without=frozenset(filter(None, chosen.without.split(","))),
            url=chosen.url if setting is Setting.CLUSTER else None,
            keep=chosen.keep,
        )
        report = asyncio.run(Run(orders, _progress(setting)).play())
        reports.append(report)
        _show(report, verbose=chosen.log)
    if chosen.json:
        write(chosen.json, reports, add=chosen.add)
    return int(any(each.violations for each in reports))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Break everything, and check every promise.")
    parser.add_argument("--store", choices=[*Setting], help="one setting; both, one after the other, where it is left out")
    parser.add_argument("--faults", type=int, default=50, help="how many faults in each setting (50)")
    parser.add_argument("--duration", type=float, help="for how many seconds, instead of a number of faults")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--without", default="", help='faults to leave out, by words of their names: "clock,disk"')
    parser.add_argument("--url", help="a PostgreSQL to use, with an empty database; it is not restarted")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the results there, in place of those of the same setting"
    )
    parser.add_argument("--add", action="store_true", help="keep the results of earlier runs in that file")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy the logs of the gateways there")
    parser.add_argument("--log", action="store_true", help="print each fault with its time")
    return parser


def _progress(setting: Setting) -> Callable[[str], None]:
    began = time.monotonic()

    def told(words: str) -> None:
        line = f"{setting}: {time.monotonic() - began:.0f} s, {words}"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K{line}")
        elif words.startswith(ROUND):
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    return told


def _show(report: Report, *, verbose: bool) -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    print(f"{report.setting}, seed {report.seed}: {report.faults.total()} faults in {report.seconds:.0f} s")
    for name, count in (*sorted(report.faults.items()), *sorted(report.figures.items())):
        print(f"{count:>9,}  {name}")
    if verbose or report.violations:
        print("\n".join(report.log))
    for each in report.violations:
        print(f"VIOLATION {each}")
    print(f"{len(report.violations) or 'no'} violations")


def write(path: Path, reports: list[Report], *, add: bool = False) -> None:
    """Write the results into a file, beside what it has of the same settings or in place of it."""
    known: list[dict[str, object]] = json.loads(path.read_text()) if path.exists() else []
    played = {each.setting for each in reports}
    kept = [each for each in known if add or each["store"] not in played]
    order = {each.value: number for number, each in enumerate(Setting)}
    results = sorted([*kept, *map(_plain, reports)], key=lambda each: order[str(each["store"])])
    path.write_text(json.dumps(results, indent=2) + "\n")


def _plain(report: Report) -> dict[str, object]:
    """Return a report without anything that depends on the day or the machine."""
    return {
        "store": report.setting,
        "seed": report.seed,
        "faults": dict(sorted(report.faults.items())),
        "left_out": report.left_out,
        "impossible": report.impossible,
        "figures": dict(sorted(report.figures.items())),
        "violations": [each.partition("\n")[0][:VIOLATION_MAX] for each in report.violations],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
