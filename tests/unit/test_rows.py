"""Rows become records in the threads that read and write."""

from __future__ import annotations

import subprocess
import sys

# Kinds of its own, because a kind is looked up once; in a process of its own, because a failure ends the process.
THREADS = """
import enum, sys, threading
from dataclasses import make_dataclass
from holdfast.store.rows import reader

sys.setswitchinterval(1e-6)
COLUMNS = [f"column_{number}" for number in range(20)]
for _ in range(100):
    State = enum.Enum("State", {f"S{number}": f"s{number}" for number in range(20)})
    Inner = make_dataclass("Inner", [(name, int, 0) for name in COLUMNS])
    Kind = make_dataclass("Kind", [(name, State if number % 2 else Inner) for number, name in enumerate(COLUMNS)])
    read = reader(Kind, ", ".join(COLUMNS))
    row = ["s3" if number % 2 else {} for number in range(20)]
    together = threading.Barrier(4)
    threads = [threading.Thread(target=lambda: (together.wait(), read(row))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
"""


def test_threads_that_read_the_first_rows_of_a_kind_at_once_do_not_crash() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
