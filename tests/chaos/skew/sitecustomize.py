"""Shifts the wall clock of one process by the nanoseconds that a file names, at any time; its monotonic clock goes on.

Python imports this before anything else in a process whose PYTHONPATH has this folder.
"""

import mmap
import os
import struct
import time

if path := os.environ.get("CHAOS_CLOCK"):
    with open(path, "rb") as file:  # noqa: PTH123 - Nothing is imported here that a process would not import by itself.
        _offset = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
    _time_ns = time.time_ns

    def time_ns() -> int:
        return _time_ns() + struct.unpack_from("<q", _offset)[0]

    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9
