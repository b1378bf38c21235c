"""Takes the README's pictures: the real commands in a real terminal, drawn as SVG."""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

HERE = Path(__file__).parent
WIDTH, HEIGHT = 92, 40
PROMPT = "\x1b[1;32m$\x1b[0m "


class Screen:
    """A terminal in which commands are typed one after the other."""

    def __init__(self, home: str) -> None:
        self.shown = ""
        self._environment = {
            **os.environ,
            "HOME": home,
            "HOLDFAST_HOME": f"{home}/.holdfast",
            "TERM": "xterm-256color",
            "COLUMNS": str(WIDTH),
        }

    def run(self, *words: str, typed: str = "", kill_at: str | None = None) -> None:
        """Run a command to its end, or kill it once `kill_at` is on the screen."""
        self.shown += f"{PROMPT}holdfast {shlex.join(words)}\n"
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(sys.executable, [sys.executable, "-m", "holdfast", *words], self._environment)
        output = ""
        while piece := _read(terminal):
            output += piece
            if typed and "›" in piece:
                time.sleep(0.3)
                os.write(terminal, typed.encode())
                typed = ""
            if kill_at and kill_at in output:
                os.kill(pid, signal.SIGKILL)
                output += "\n\x1b[1;31mKilled\x1b[0m"
                break
        os.waitpid(pid, 0)
        os.close(terminal)
        lines = output.replace("\r\n", "\n").splitlines()
        # A progress bar erases itself on a real screen.
        self.shown += "\n".join(line for line in lines if "killing" not in line) + "\n"

    def save(self, name: str, title: str) -> None:
        console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
        console.print(Text.from_ansi(self.shown.strip()))
        picture = console.export_svg(title=title, theme=DIMMED_MONOKAI, unique_id="holdfast")
        # The reader's own monospace font will do; nothing is fetched from anywhere.
        (HERE / name).write_text(re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL))


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 4096).decode(errors="replace")
    except OSError:
        return ""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        screen = Screen(folder)
        screen.run("ask", "what happens if you die?", kill_at="Kill this")
        screen.run("chat", typed="are you back?\n\x04")
        screen.save("terminal.svg", "holdfast")
        screen = Screen(folder)
        screen.run("drill", "--kills", "25")
        screen.save("drill.svg", "holdfast drill")


if __name__ == "__main__":
    main()
