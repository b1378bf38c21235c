"""A small disk: a file system of a few megabytes in a mount namespace of its own, and a gateway that lives on it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from tests import scratch
from tests.blackbox.gateway import ANEW, Gateway

# Far more than a fresh home with its ballast needs.
SIZE_MB = 48
_CHUNK = bytes(64 * 1024)


class SmallDisk:
    """`folder` is where it is mounted for those inside; `outside` is the same folder for everyone else."""

    def __init__(self, folder: Path, holder: int) -> None:
        self.folder = folder
        self.outside = Path(f"/proc/{holder}/root") / folder.relative_to("/")
        # A program that is started behind these words is inside.
        self.inside = ("nsenter", "-t", str(holder), "-U", "-m", "--preserve-credentials", "--")
        self._filler = self.outside / "filler"

    def fill(self) -> None:
        """Take all the room that there is."""
        file = os.open(self._filler, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            for size in (len(_CHUNK), 4096, 1):
                with contextlib.suppress(OSError):
                    while True:
                        os.write(file, _CHUNK[:size])
        finally:
            os.close(file)

    @contextlib.contextmanager
    def full(self, *, greedily: bool) -> Iterator[None]:
        """Have no room for as long as this lasts; `greedily` takes also what the gateway gives back, again and again."""
        over = threading.Event()

        def take() -> None:
            while not over.wait(0.005):
                self.fill()

        self.fill()
        taking = threading.Thread(target=take) if greedily else None
        if taking:
            taking.start()
        try:
            yield
        finally:
            over.set()
            if taking:
                taking.join()
            self._filler.unlink()


class CrampedGateway(Gateway):
    """A gateway whose home is on a small disk; its log is not."""

    def __init__(self, disk: SmallDisk, log: Path, **settings: str) -> None:
        super().__init__(disk.folder / "home", **settings)
        self.log = log
        self.command = [*disk.inside, *ANEW]


@contextlib.contextmanager
def small_disk(size_mb: int = SIZE_MB) -> Iterator[SmallDisk]:
    """Mount one; it is gone with the process that holds its namespace."""
    with scratch.folder() as folder:
        mount = f"mount -t tmpfs -o size={size_mb}m,mode=700 none {folder} && echo mounted && exec cat"
        words = ["unshare", "-Urm", "sh", "-c", mount]
        holder = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            assert holder.stdout
            assert holder.stdout.readline() == b"mounted\n"
            yield SmallDisk(folder, holder.pid)
        finally:
            holder.communicate()


@contextlib.contextmanager
def cramped_gateway(**settings: str) -> Iterator[tuple[CrampedGateway, SmallDisk]]:
    """Give out a gateway on a small disk, not started yet."""
    with small_disk() as disk, scratch.folder() as folder:
        gateway = CrampedGateway(disk, folder / "gateway.log", **settings)
        try:
            yield gateway, disk
        finally:
            gateway.close()
