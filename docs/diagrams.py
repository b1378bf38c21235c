"""Draws the state diagrams of architecture.md from the tables that the program runs on.

    python docs/diagrams.py            redraw them
    python docs/diagrams.py --check    exit 1 when the page does not show the tables as they are

Each stands between two comments that name its place; the rest of the page is left alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from holdfast.core import delivery, effects, processes, segments, sessions, turns

PAGE = Path(__file__).with_name("architecture.md")

Moves = Mapping[tuple[Any, Any], StrEnum]

# What moves, and the table by which it does.
TABLES: Mapping[str, tuple[type, Moves]] = {
    "session": (sessions.Session, sessions.MOVES),
    "turn": (turns.Turn, turns.MOVES),
    "tool call": (effects.Call, effects.MOVES),
    "delivery": (delivery.Delivery, delivery.MOVES),
    "segment": (segments.Segment, segments.MOVES),
    "process": (processes.Process, processes.MOVES),
}


def draw(subject: type, moves: Moves) -> str:
    """Return the diagram of one table: in from the first state, out from those that nothing leaves."""
    (first,) = (field.default for field in fields(subject) if field.name == "state")
    lines = ["stateDiagram-v2", f"    [*] --> {first}"]
    lines += [f"    {before} --> {after}: {event}" for (before, event), after in moves.items()]
    left = {before for before, _ in moves}
    lines += [f"    {state} --> [*]" for state in type(first) if state not in left]
    return "\n".join(["```mermaid", *lines, "```"])


def redraw(page: str) -> str:
    """Return the page with every diagram as its table is now."""
    for name, (subject, moves) in TABLES.items():
        begin, end = f"<!-- diagram: {name} -->", "<!-- end of diagram -->"
        place = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if len(place.findall(page)) != 1:
            raise SystemExit(f"the page needs one place for the {name}: {begin} and, below it, {end}")
        page = place.sub(f"{begin}\n{draw(subject, moves)}\n{end}", page)
    return page


def main(arguments: Sequence[str], path: Path = PAGE) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    before = path.read_text("utf-8")
    after = redraw(before)
    if not arguments:
        path.write_text(after, "utf-8")
    elif after != before:
        print(f"{path.name} shows other moves than the tables; run: python docs/diagrams.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
