"""What some tests need of the machine beyond Python, and what no other test may depend on: a sandbox, a browser.

A test that needs one says so by its marker: `sandbox` (bubblewrap), `launcher` (user namespaces, for our own launcher),
`landlock`, `browser`, `mounts` (user and mount namespaces, for a file system that runs full).  It is skipped on a machine
that has none, with the reason; it fails there if HOLDFAST_SANDBOX_REQUIRED or the like is set.  All other tests do not find
bubblewrap even if it is installed, and their gateways have no sandbox, so that they mean the same everywhere.
HOLDFAST_HIDE=sandbox,browser makes this machine one that has neither.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest

from holdfast.sandbox import Sandbox, SandboxKind, profile
from holdfast.sandbox.bubblewrap import PROGRAM

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# The first process of a run keeps it here for those that it starts, whose own PATH lacks bubblewrap.
_KEPT = "HOLDFAST_TEST_PATH"
PATH = os.environ.setdefault(_KEPT, os.environ.get("PATH", os.defpath))

# The mechanisms that confine commands, for tests of each of them.
BUBBLEWRAP = pytest.param(SandboxKind.BUBBLEWRAP, marks=pytest.mark.sandbox)
LAUNCHER = pytest.param(SandboxKind.LAUNCHER, marks=pytest.mark.launcher)
LANDLOCK = pytest.param(SandboxKind.LANDLOCK, marks=pytest.mark.landlock)
CONFINING = (BUBBLEWRAP, LAUNCHER)

# For a test whose promise holds on both sides: it gets the choice of the operator.
with_and_without_a_sandbox = pytest.mark.parametrize("sandbox", [pytest.param("on", marks=pytest.mark.sandbox), "off"])


def is_hidden(need: str) -> bool:
    return need in os.environ.get("HOLDFAST_HIDE", "").split(",")


def browser() -> str | None:
    """Return the browser of this machine."""
    if is_hidden("browser"):
        return None
    asked = os.environ.get("HOLDFAST_BROWSER")
    return asked or next((path for name in BROWSERS if (path := shutil.which(name, path=PATH))), None)


def no_browser() -> str:
    """Return why there is no browser; nothing if there is one."""
    return "" if browser() else "there is no Chromium on this machine; install one, or name it in HOLDFAST_BROWSER"


@cache
def no_sandbox() -> str:
    """Return why there is no sandbox; nothing if there is one.  Bubblewrap itself is tried, not what we make of it."""
    found = None if is_hidden("sandbox") else shutil.which(PROGRAM, path=PATH)
    if found is None:
        return "bubblewrap is not installed on this machine"
    words = [found, "--unshare-user-try", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    tried = subprocess.run(words, capture_output=True, text=True, timeout=60)
    return f"bubblewrap does not work on this machine: {tried.stderr.strip()}" if tried.returncode else ""


def no_launcher() -> str:
    """Return why our own launcher cannot confine anything here; nothing if it can."""
    return _missing(SandboxKind.LAUNCHER)


def no_landlock() -> str:
    """Return why Landlock cannot be used here; nothing if it can."""
    return _missing(SandboxKind.LANDLOCK)


@cache
def no_mounts() -> str:
    """Return why no file system can be mounted here; nothing if one can."""
    if is_hidden("mounts"):
        return "mounting is hidden"
    if missing := [name for name in ("unshare", "nsenter", "mount") if not shutil.which(name)]:
        return f"{', '.join(missing)} is not installed on this machine"
    words = ["unshare", "-Urm", "mount", "-t", "tmpfs", "none", tempfile.gettempdir()]
    tried = subprocess.run(words, capture_output=True, text=True, timeout=60)
    return f"nothing can be mounted on this machine: {tried.stderr.strip()}" if tried.returncode else ""


@cache
def _missing(kind: SandboxKind) -> str:
    if is_hidden(kind.value):
        return f"the {kind.value} is hidden"
    with tempfile.TemporaryDirectory(prefix="hf-probe-") as folder:
        found = asyncio.run(Sandbox.find("auto", profile(Path(folder)), kinds=[kind]))
    return "" if found.kind is kind else found.description


NEEDS: Mapping[str, Callable[[], str]] = {
    "sandbox": no_sandbox,
    "launcher": no_launcher,
    "landlock": no_landlock,
    "browser": no_browser,
    "mounts": no_mounts,
}


class Surroundings:
    """The two ways in which a test finds programs: all that there are, or all but bubblewrap."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def hide(self) -> None:
        """Take bubblewrap away from this process and those that it starts."""
        own = os.environ.get("PATH", PATH)
        if shutil.which(PROGRAM, path=own):
            self._folder = tempfile.TemporaryDirectory(prefix="hf-path-")
            # A database runs as another user, with the same PATH.
            Path(self._folder.name).chmod(0o755)
            os.environ["PATH"] = _path_without(PROGRAM, own, Path(self._folder.name))
        self._without = os.environ.get("PATH", PATH)

    def prepare(self, item: pytest.Item) -> None:
        """Give a test what it needs; end it here if that is missing."""
        needed = [need for need in NEEDS if item.get_closest_marker(need)]
        for need in needed:
            if problem := NEEDS[need]():
                (pytest.fail if os.environ.get(f"HOLDFAST_{need.upper()}_REQUIRED") else pytest.skip)(problem)
        os.environ["PATH"] = PATH if "sandbox" in needed else self._without

    def close(self) -> None:
        if self._folder:
            self._folder.cleanup()


def _path_without(program: str, path: str, folder: Path) -> str:
    """Return a PATH on which everything is found but one program: links stand for the folders that have it."""
    places: list[str] = []
    for number, place in enumerate(path.split(os.pathsep)):
        if not shutil.which(program, path=place):
            places.append(place)
            continue
        instead = folder / str(number)
        instead.mkdir()
        for each in Path(place).iterdir():
            if each.name != program:
                (instead / each.name).symlink_to(each)
        places.append(str(instead))
    return os.pathsep.join(places)
