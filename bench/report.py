"""What a benchmark found: one line per measurement, beside its raw limit and its bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich import box
from rich.table import Table


class Unit(StrEnum):
    RATE = "/s"
    MICROSECONDS = "µs"
    MILLISECONDS = "ms"
    SECONDS = "s"
    KILOBYTES = "kB"
    MEGABYTES = "MB"
    PERCENT = "%"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One measurement.  `raw` is the limit: the same work without Holdfast, in the same run and the same unit."""

    what: str
    measured: float
    unit: Unit
    detail: str = ""
    raw: float | None = None
    bar: str = ""
    met: bool | None = None
    note: str = ""

    @property
    def share(self) -> float | None:
        """How much of the limit was reached: 1 is as fast as raw, whichever way the unit counts."""
        if not self.raw or not self.measured:
            return None
        return self.measured / self.raw if self.unit is Unit.RATE else self.raw / self.measured

    def as_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__} | {"share": self.share}


def table(lines: Sequence[Line]) -> Table:
    """Return the lines as a table for people."""
    shown = Table("what", "measured", "raw limit", "ratio", "bar", "met", box=box.SIMPLE_HEAD)
    for line in lines:
        measured = f"{_amount(line.measured)} {line.unit}" + (f"  [dim]{line.detail}[/]" if line.detail else "")
        raw = "" if line.raw is None else f"{_amount(line.raw)} {line.unit}"
        share = "" if line.share is None else f"{line.share:.2f}"
        met = {None: "", True: "[green]yes[/]", False: "[bold red]NO[/]"}[line.met]
        shown.add_row(line.what, measured, raw, share, line.bar, met)
    return shown


def _amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
