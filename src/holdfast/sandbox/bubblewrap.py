"""The arguments of bubblewrap for a profile."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from holdfast.sandbox.launcher import FILTER_FD
from holdfast.sandbox.profile import Profile

PROGRAM = "bwrap"


def arguments(program: str, profile: Profile, command: Sequence[str], workdir: Path, *, has_network: bool) -> list[str]:
    """Return the command line of bubblewrap.  With `has_network` the launcher has already made a network namespace."""
    walls = [program, "--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    walls += [] if has_network else ["--unshare-net"]
    walls += ["--die-with-parent", "--cap-drop", "ALL", "--seccomp", str(FILTER_FD)]
    walls += ["--dev", "/dev", "--proc", "/proc"]
    size = ["--size", str(profile.limits.memory)] if profile.limits.memory else []
    covered = profile.covered()
    around = [path for path in covered if any(each.is_relative_to(path) for each in profile.writable)]
    places: list[tuple[Path, list[str]]] = [(path, ["--ro-bind", str(path), str(path)]) for path in profile.readable]
    places += [(path, ["--bind", str(path), str(path)]) for path in (*profile.writable, *profile.pinned())]
    places += [(path, [*size, "--tmpfs", str(path)]) for path in (*profile.blank, *around)]
    # Parents first: a parent that is mounted later would cover its children.
    for _, words in sorted(places, key=lambda each: len(each[0].parts)):
        walls += words
    for path, target in profile.links.items():
        walls += ["--symlink", target, str(path)]
    for path in covered:
        if path not in around:
            walls += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", os.devnull, str(path)]
    # Root owns the kernel's settings and could change them without any capability.
    walls += ["--remount-ro", "/proc", "--remount-ro", "/"]
    return [*walls, "--chdir", str(workdir), "--", *command]
