"""The files around the embedded store: who owns it, and what is kept back for a full disk."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

from holdfast.errors import Owned, StoreRefused

BALLAST_BYTES = 8 * 1024 * 1024

_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs", "lustre"})


class Ownership:
    """The lock that makes this process the only one to open the store for writing."""

    def __init__(self, path: Path, inherited: int | None = None) -> None:
        self.handed_over = False
        self._file = _adopt(path, inherited) or os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(self._file, 32, 0).decode(errors="replace").strip()
            os.close(self._file)
            raise Owned(str(path.parent), int(pid) if pid.isdigit() else None) from None
        os.truncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def hand_over(self) -> int:
        """Return a file descriptor that goes on holding the lock, for the process that takes our place."""
        self.handed_over = True
        return os.dup(self._file)

    def release(self) -> None:
        """Give the store up.  The file stays: removing it would let two processes lock two different files."""
        if not self.handed_over:
            # A process that waits for this one to end can see it without taking the lock.
            os.truncate(self._file, 0)
        os.close(self._file)


def _adopt(path: Path, inherited: int | None) -> int | None:
    """Return the inherited descriptor if it is one of this very file; else close it."""
    if inherited is None:
        return None
    try:
        if path.exists() and os.path.samestat(os.fstat(inherited), path.stat()):
            os.set_inheritable(inherited, False)
            return inherited
        os.close(inherited)
    except OSError:
        return None
    return None


class Ballast:
    """Room on the disk that new work never gets, so that turns in flight can still be ended when it is full."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = False

    def restore(self) -> bool:
        """Take the room back if the disk has it again; False while it has not."""
        if self._held:
            return True
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                os.posix_fallocate(file, 0, BALLAST_BYTES)
            finally:
                os.close(file)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()
            return False
        self._held = True
        return True

    def release(self) -> None:
        """Give the room to the work that must be ended."""
        self._path.unlink(missing_ok=True)
        self._held = False


def make_home(folder: Path) -> None:
    """Make a folder whose name survives a power cut; what is kept in it would be lost with it."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from error
    for each in missing:
        parent = os.open(each.parent, os.O_RDONLY)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)


def refuse_network_filesystem(folder: Path) -> None:
    """Raise `StoreRefused` where file locks cannot be trusted."""
    if (kind := _filesystem(folder.resolve())) in _NETWORK:
        raise StoreRefused(f"{folder} is on a network filesystem ({kind}); use a local disk, or PostgreSQL")


def _filesystem(folder: Path) -> str:
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return ""
    points = [(fields[1].replace("\\040", " "), fields[2]) for line in mounts if len(fields := line.split()) > 2]
    inside = [(point, kind) for point, kind in points if folder.is_relative_to(point)]
    return max(inside, key=lambda mount: len(mount[0]), default=("", ""))[1]
