"""What people hand in: kept in the workspace, where the tools of an agent find it."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from pathlib import Path

from holdfast.agent.tools.files import TEMPORARY
from holdfast.agent.tools.workspace import UPLOADS, Workspace, in_thread
from holdfast.core import filenames
from holdfast.errors import DiskFull, Stale
from holdfast.ports import Upload

FOLDER = UPLOADS
# How many digits of its digest are in a file's name: more if another file has the same beginning.
DIGITS = (8, 16, 64)
# Uploads must leave this much free space, for the store.
ROOM_KEPT_BYTES = 64 * 1024 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class WorkspaceUploads:
    """Files in one folder of the workspace.  The same file under the same name is there once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def keep(self, name: str, content: bytes) -> Upload:
        return await in_thread(lambda: self._keep(filenames.safe(name), content))

    def _keep(self, name: str, content: bytes) -> Upload:
        digest = hashlib.sha256(content).hexdigest()
        with self._workspace.folder(self._workspace.root / FOLDER, make=True) as folder:
            _check_room(folder, content)
            for digits in DIGITS:
                path = f"{digest[:digits]}-{name}"
                # Another upload may have added the same file in the meantime.
                if _holds(path, content, folder) or _add(path, content, folder) or _holds(path, content, folder):
                    os.fsync(folder)
                    return Upload(path=Path(FOLDER, path).as_posix(), name=name, bytes=len(content))
        raise Stale(f"other files have the names that {name!r} would get; call it something else")


def _check_room(folder: int, content: bytes) -> None:
    disk = os.fstatvfs(folder)
    if disk.f_bavail * disk.f_frsize < len(content) + ROOM_KEPT_BYTES:
        raise DiskFull(f"there is no room for {len(content)} bytes more: free some space on the disk of the workspace")


def _holds(path: str, content: bytes, folder: int) -> bool:
    """Return whether this file is already there."""
    try:
        file = os.open(path, _READ, dir_fd=folder)
    except OSError:
        # It does not exist or is not a file; then `_add` succeeds or fails.
        return False
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size != len(content):
            return False
        with os.fdopen(file, "rb", closefd=False) as opened:
            return opened.read(len(content) + 1) == content
    finally:
        os.close(file)


def _add(path: str, content: bytes, folder: int) -> bool:
    """Write a new file atomically; return False if the name exists."""
    temporary = f"{TEMPORARY}{secrets.token_hex(8)}"
    file = os.open(temporary, _WRITE, 0o600, dir_fd=folder)
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(file)
        # Unlike a rename, a link does not replace an existing file.
        os.link(temporary, path, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary, dir_fd=folder)
    return True
