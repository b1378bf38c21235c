"""S5: the browser that `serve` opens is told where a private file is, and never the code that signs it in."""

from __future__ import annotations

import io
import re
import stat
import time
from pathlib import Path

import httpx2

from tests.cli.terminal import Terminal
from tests.cli.test_gateway import PATIENCE_S, on_a_screen

# Notes its arguments, and what is in the file that it was told to open.
BROWSER = """#!/bin/sh
umask 077
printf '%s\\n' "$@" > "$HOLDFAST_HOME/browser.part"
file="${1#file://}"
stat -c %a "$file" >> "$HOLDFAST_HOME/browser.part"
cat "$file" >> "$HOLDFAST_HOME/browser.part"
mv "$HOLDFAST_HOME/browser.part" "$HOLDFAST_HOME/browser.seen"
"""


class Desktop(Terminal):
    """A terminal on a screen with a browser."""

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "DISPLAY": ":99", "BROWSER": str(self.home / "browser")}


def read(screen: io.FileIO) -> bytes:
    """Return what stands on the screen once the gateway has shown its link."""
    shown = b""
    while b"holdfast link" not in shown:
        shown += screen.read(4096) or b""
    return shown


def test_the_browser_is_told_a_file_that_only_its_owner_reads_and_that_is_gone_afterwards(tmp_path: Path) -> None:
    terminal = Desktop(tmp_path / "home")
    terminal.home.mkdir(mode=0o700)
    program = terminal.home / "browser"
    program.write_text(BROWSER)
    program.chmod(0o700)
    seen, file = terminal.home / "browser.seen", terminal.home / "sign-in.html"
    with on_a_screen(terminal, "serve", "--port", "0") as (process, screen):
        shown = read(screen)
        deadline = time.monotonic() + PATIENCE_S
        while not seen.exists():
            assert time.monotonic() < deadline
        argument, mode, *page = seen.read_text().splitlines()
        assert (argument, mode, "code" in argument) == (file.as_uri(), "600", False)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        # People still see the link, and it is the one in the file.
        (link,) = set(re.findall(r"http://[^\"\s]+#code=[\w-]+", "\n".join(page)))
        assert link.encode() in shown
        address, _, code = link.partition("/#code=")
        with httpx2.Client(base_url=address, timeout=PATIENCE_S) as web:
            assert web.post("/api/sign-in", json={"code": code}).status_code == 200
        assert not file.exists()
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


def test_a_file_that_nobody_used_goes_with_the_gateway(tmp_path: Path) -> None:
    terminal = Desktop(tmp_path / "home")
    terminal.home.mkdir(mode=0o700)
    file = terminal.home / "sign-in.html"
    with on_a_screen(terminal, "serve", "--port", "0") as (process, screen):
        read(screen)
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    assert not file.exists()
