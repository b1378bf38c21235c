"""Facts about the machine, without which no number means anything."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import apsw
import psutil
import uvloop
from tests.postgres import find_installation


def facts(folder: Path) -> dict[str, str]:
    """Return what a reader must know to compare these numbers with others."""
    return {
        "cores": f"{os.cpu_count()} × {_processor()}",
        "load before": f"{os.getloadavg()[0]:.2f}",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_version()}, uvloop {uvloop.__version__}",
        "SQLite": f"{apsw.sqlite_lib_version()}, WAL, synchronous=FULL",
        "PostgreSQL": f"{_postgres()}, fsync on",
        "filesystem": _filesystem(folder),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _postgres() -> str:
    said = subprocess.run(
        [find_installation() / "bin" / "postgres", "--version"], capture_output=True, text=True, check=True
    )
    return said.stdout.split()[-1]


def _filesystem(folder: Path) -> str:
    around = [each for each in psutil.disk_partitions(all=True) if folder.resolve().is_relative_to(each.mountpoint)]
    mount = max(around, key=lambda each: len(each.mountpoint))
    return f"{mount.fstype} on {mount.device}"
