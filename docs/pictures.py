"""Takes the README's pictures: the real commands in a real terminal, drawn as SVG."""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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

    @contextmanager
    def gateway(self, **settings: str) -> Iterator[Callable[[], None]]:
        """Run a gateway in the background; yields what kills it with SIGKILL and starts it again."""
        environment = {**self._environment, **{f"HOLDFAST_{name}": value for name, value in settings.items()}}
        command = [sys.executable, "-m", "holdfast", "serve", "--port", "0", "--no-open"]

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        running = [start()]

        def kill() -> None:
            running[-1].kill()
            running[-1].wait()
            running.append(start())

        try:
            while not Path(self._environment["HOLDFAST_HOME"], "gateway.sock").exists():
                time.sleep(0.05)
            yield kill
        finally:
            running[-1].terminate()
            running[-1].wait()

    def say(self, text: str) -> None:
        """Show a remark of whoever sits at the screen."""
        self.shown += f"\x1b[2m# {text}\x1b[0m\n"

    def run(self, *words: str, typed: Sequence[str] = (), at: tuple[str, Callable[[], None]] | None = None) -> None:
        """Run a command to its end, typing a line at each of its prompts.

        `at` is a text, and what happens elsewhere when it is on the screen.
        """
        self.shown += f"{PROMPT}holdfast {shlex.join(words)}\n"
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(sys.executable, [sys.executable, "-m", "holdfast", *words], self._environment)
        output, lines = "", list(typed)
        while piece := _read(terminal):
            output += piece
            if lines and piece.endswith("› "):
                time.sleep(0.3)
                os.write(terminal, lines.pop(0).encode())
            if at and at[0] in output:
                at[1]()
                at = None
        os.waitpid(pid, 0)
        os.close(terminal)
        shown = output.replace("\r\n", "\n").splitlines()
        # A progress bar erases itself on a real screen.
        self.shown += "\n".join(line for line in shown if "killing" not in line) + "\n"

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
        with screen.gateway(GATEWAY__RESUME="auto") as kill:
            screen.say("While this answer streams, the gateway is killed with SIGKILL and started again.")
            screen.run("ask", "count to 40 slowly", at=(" 7 8 9", kill))
            screen.run("status")
            screen.run("sessions", "show", "terminal")
        screen.save("gateway.svg", "holdfast")
        screen = Screen(folder)
        with screen.gateway():
            typed = ("count to 12\n", "/title Counting\n", "ask me which colour\n", "blue\n", "/undo\n", "/status\n", "\x04")
            screen.run("chat", "--session", "work", typed=typed)
        screen.save("chat.svg", "holdfast chat")
        screen = Screen(folder)
        screen.run("drill", "--kills", "25")
        screen.save("drill.svg", "holdfast drill")


if __name__ == "__main__":
    main()
