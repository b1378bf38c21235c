"""Takes the pictures of the README and the guide: the real commands in a real terminal, drawn as SVG."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

HERE = Path(__file__).parent
WIDTH = 92
# An answer streams with shorter pauses.
QUIET_S = 4.0
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
        """Run a command to its end, typing a line whenever it has shown nothing new for a while.

        `at` is a text, and what happens elsewhere when it is on the screen.
        """
        self.shown += f"{PROMPT}holdfast {shlex.join(words)}\n"
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(sys.executable, [sys.executable, "-m", "holdfast", *words], self._environment)
        glass, output, lines = Glass(), "", list(typed)
        while (piece := _read(terminal, quiet_s=QUIET_S if lines else None)) is not None:
            glass.show(piece.replace(self._environment["HOME"], "~"))
            output += piece
            if not piece:
                os.write(terminal, lines.pop(0).encode())
            if at and at[0] in output:
                at[1]()
                at = None
        os.waitpid(pid, 0)
        os.close(terminal)
        self.shown += glass.text()

    def save(self, name: str, title: str) -> None:
        console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
        console.print(Text.from_ansi(self.shown.strip()))
        picture = console.export_svg(title=title, theme=DIMMED_MONOKAI, unique_id="holdfast")
        # The reader's own monospace font will do; nothing is fetched from anywhere.
        (HERE / name).write_text(re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL))


class Glass:
    """What can be seen of a terminal: rows of coloured letters, and a cursor that is steered among them."""

    _PIECE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|([^\x1b])", re.DOTALL)

    def __init__(self) -> None:
        self._rows: list[list[tuple[str, str]]] = [[]]
        self._row = self._column = 0
        self._colour = self._rest = ""

    def show(self, text: str) -> None:
        text, end = self._rest + text, 0
        for piece in self._PIECE.finditer(text):
            numbers, steer, letter = piece.groups()
            self._put(letter) if letter else self._steer(steer, numbers)
            end = piece.end()
        self._rest = text[end:]

    def text(self) -> str:
        """Return everything that stands on it, for a terminal that only writes downwards."""
        return "".join(f"{_coloured(row)}\x1b[0m\n" for row in self._rows)

    def _put(self, letter: str) -> None:
        if letter == "\r":
            self._column = 0
            return
        # A full row is left when there is something to show behind it, and not before.
        if letter == "\n" or self._column == WIDTH:
            self._row, self._column = self._row + 1, 0
            self._rows += [[] for _ in range(self._row + 1 - len(self._rows))]
        if letter != "\n":
            row = self._rows[self._row]
            row += [(" ", "")] * (self._column + 1 - len(row))
            row[self._column] = (letter, self._colour)
            self._column += 1

    def _steer(self, steer: str, numbers: str) -> None:
        number = int(numbers) if numbers.isdigit() else 1
        match steer:
            case "A":
                self._row -= number
            case "C":
                self._column += number
            case "J":
                self._rows[self._row :] = [self._rows[self._row][: self._column]]
            case "K":
                self._rows[self._row] = [] if numbers == "2" else self._rows[self._row][: self._column]
            case "m":
                self._colour = "" if numbers in ("", "0") else f"{self._colour}\x1b[{numbers}m"
            case _:
                pass


def _coloured(row: Sequence[tuple[str, str]]) -> str:
    runs = groupby(row, key=lambda cell: cell[1])
    return "".join(f"\x1b[0m{colour}{''.join(letter for letter, _ in cells)}" for colour, cells in runs)


def _read(terminal: int, quiet_s: float | None) -> str | None:
    """Return what is shown next, nothing where nothing new came for a while, None at the end."""
    if not select.select([terminal], [], [], quiet_s)[0]:
        return ""
    try:
        return os.read(terminal, 4096).decode(errors="replace") or None
    except OSError:
        return None


def remembering(folder: str) -> None:
    """Take the picture of what is remembered, and of where it was said."""
    screen = Screen(folder)
    with screen.gateway():
        screen.run("ask", "I live in Genoa, near the harbour.", "--session", "boat")
        screen.run("ask", "Remember that my boat is called Elsa.", "--session", "boat")
        screen.run("ask", "I prefer short answers.", "--session", "desk")
        screen.run("memory", "commit", "--all")
        screen.shown = ""
        screen.run("memory", "show")
        elsa = next(line for line in screen.shown.splitlines() if "Elsa" in line)
        screen.run("memory", "show", re.findall(r"mem_\w+", elsa)[0])
        screen.run("memory", "status", "boat")
    screen.save("memory.svg", "holdfast memory")


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
        with screen.gateway(TOOLS__TERMINAL__SANDBOX="off"):
            typed = (
                "run: ls\r",
                "run: rm -rf build\r",
                "o\r",
                "background: sleep 8 && echo deployed\r",
                "o\r",
                "delegate: count to 5\r",
                "/title Cleaning up\r",
                "\x04",
            )
            screen.run("chat", "--session", "work", typed=typed)
        screen.save("chat.svg", "holdfast chat")
        remembering(folder)
        screen = Screen(folder)
        screen.run("drill", "--kills", "25")
        screen.save("drill.svg", "holdfast drill")


if __name__ == "__main__":
    main()
