"""Where a chat is shown: a terminal with the prompt below the output, or a pipe."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import logging
import os
import re
import shutil
import signal
import sys
import termios
import threading
import tty
from collections.abc import Generator
from typing import Protocol

from rich.cells import cell_len
from rich.text import Text

from holdfast.cli.frame import console, print_text, visible
from holdfast.cli.line import Line
from holdfast.core import commands

_PIECES = re.compile(r"\n|[^\S\n]+|\S+")
_TAB = "    "
_READ_BYTES = 4096


class Screen(Protocol):
    """Shows a conversation and reads what the person types."""

    @property
    def is_live(self) -> bool:
        """Whether lines can be typed while something is printed."""
        ...

    def print(self, text: Text) -> None:
        """Print whole lines."""
        ...

    def stream(self, text: str, style: str = "") -> None:
        """Print a piece of streamed text."""
        ...

    def label(self, hint: str, status: str = "") -> None:
        """Set the prompt and the status line."""
        ...

    async def line(self) -> str | None:
        """Return the next line that the person types; None when they leave."""
        ...


class PipeScreen:
    """A pipe or a file: reads line by line, and prints without a prompt."""

    is_live = False

    def __init__(self) -> None:
        self._open_line = False
        self._at_prompt = False

    def print(self, text: Text) -> None:
        self._leave_line()
        console.print(text)

    def stream(self, text: str, style: str = "") -> None:
        if self._at_prompt:
            self._leave_line()
        if style:
            console.print(Text(visible(text), style), end="", soft_wrap=True)
        else:
            print_text(text)
        if text:
            self._open_line = not text.endswith("\n")

    def _leave_line(self) -> None:
        if self._open_line:
            print_text("\n")
        self._open_line = self._at_prompt = False

    def label(self, hint: str, status: str = "") -> None:
        """A pipe has no prompt."""

    async def line(self) -> str | None:
        self._leave_line()
        print_text("\n› ")
        self._open_line = self._at_prompt = True
        loop = asyncio.get_running_loop()
        typed: asyncio.Future[str | None] = loop.create_future()

        def read() -> None:
            try:
                line = sys.stdin.readline()
            except (OSError, ValueError):
                line = ""
            # After Ctrl-C nothing waits for the line.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(
                    lambda: typed.done() or typed.set_result(line.removesuffix("\n") if line else None)
                )

        # A daemon thread, because only another line could end it.
        threading.Thread(target=read, daemon=True).start()
        return await typed


class TerminalScreen:
    """A terminal.  Output goes above the prompt, which is drawn again below it with the text typed so far."""

    is_live = True

    def __init__(self) -> None:
        self._typed = Line(complete=commands.completed)
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._hint = ""
        self._status = ""
        # The column at which the last output ended, if its line is still open.
        self._column = 0
        # How many rows the prompt has above the cursor; None while it is not shown.
        self._rows: int | None = None

    @contextlib.contextmanager
    def taken(self) -> Generator[TerminalScreen]:
        """Read single keys from the keyboard while the context lasts."""
        keyboard = sys.stdin.fileno()
        before = termios.tcgetattr(keyboard)
        loop = asyncio.get_running_loop()
        tty.setcbreak(keyboard, termios.TCSADRAIN)
        loop.add_reader(keyboard, self._read, keyboard)
        # After a return from the shell (Ctrl-Z, fg) the keyboard has the settings of the shell.
        loop.add_signal_handler(signal.SIGCONT, self._come_back, keyboard)
        self._write("\x1b[?2004h")
        self._draw()
        try:
            yield self
        finally:
            loop.remove_reader(keyboard)
            loop.remove_signal_handler(signal.SIGCONT)
            self._erase()
            self._close_line()
            self._write("\x1b[?2004l")
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)

    def print(self, text: Text) -> None:
        self._erase()
        self._close_line()
        console.print(text)
        self._draw()

    def stream(self, text: str, style: str = "") -> None:
        self._erase()
        if self._column:
            self._write(f"\x1b[A\r\x1b[{self._column}C")
        width = _width()
        shown = [self._placed(piece, width) for piece in _PIECES.findall(visible(text).replace("\t", _TAB))]
        # Not through a console, which would wrap lines itself.
        self._write(_styled("".join(shown), style))
        if self._column:
            self._write("\n")
        self._draw()

    def label(self, hint: str, status: str = "") -> None:
        if (hint, status) != (self._hint, self._status):
            self._erase()
            self._hint, self._status = hint, status
            self._draw()

    async def line(self) -> str | None:
        return await self._lines.get()

    def clear(self) -> bool:
        """Clear the typed text; False if there is none."""
        if not self._typed.text:
            return False
        self._erase()
        self._typed.clear()
        self._draw()
        return True

    def _come_back(self, keyboard: int) -> None:
        tty.setcbreak(keyboard, termios.TCSADRAIN)
        self._rows = None
        self._draw()

    def _placed(self, piece: str, width: int) -> str:
        """Return a piece wrapped at words."""
        if piece == "\n":
            self._column = 0
            return "\n"
        length = cell_len(piece)
        if self._column + length <= width - 1:
            self._column += length
            return piece
        if piece.isspace():
            self._column = 0
            return "\n"
        written = "\n" if self._column else ""
        # A word that is longer than a line is split.
        rows = [""]
        column = 0
        for letter in piece:
            if column + cell_len(letter) > width - 1:
                rows.append("")
                column = 0
            rows[-1] += letter
            column += cell_len(letter)
        self._column = column
        return written + "\n".join(rows)

    def _close_line(self) -> None:
        # The cursor is below an open line already.
        self._column = 0

    def _read(self, keyboard: int) -> None:
        try:
            keys = os.read(keyboard, _READ_BYTES)
        except OSError:
            keys = b""
        self._erase()
        # The terminal was closed.
        for line in self._typed.feed(self._decoder.decode(keys)) if keys else (None,):
            self._lines.put_nowait(line)
        self._draw()

    def _draw(self) -> None:
        width = _width()
        typed = visible(self._typed.text).replace("\n", "⏎").replace("\t", " ")
        status = _cut(commands.hint(self._typed.text) or self._status, width - 1)
        head = f"{_styled(status, 'dim')}\n" if status else ""
        hint = "" if typed else _styled(_cut(self._hint, width - 4), "dim")
        self._write(f"\n{head}{_styled('›', 'bold cyan')} {typed}{hint}")
        before = 2 + cell_len(typed[: self._typed.cursor])
        whole = 2 + cell_len(typed) + (cell_len(_cut(self._hint, width - 4)) if hint else 0)
        # The cursor stays in a row that is exactly full.
        last, row = max(whole - 1, 0) // width, min(before // width, max(whole - 1, 0) // width)
        up = f"\x1b[{last - row}A" if last > row else ""
        column = before % width if before // width == row else width - 1
        self._write(f"{up}\r\x1b[{column}C" if column else f"{up}\r")
        self._rows = row + 1 + bool(status)
        sys.stdout.flush()

    def _erase(self) -> None:
        if self._rows is not None:
            self._write(f"\x1b[{self._rows}A\r\x1b[J")
            self._rows = None

    def _write(self, text: str) -> None:
        sys.stdout.write(text)


def _width() -> int:
    return max(shutil.get_terminal_size().columns, 20)


def _cut(text: str, most: int) -> str:
    shown = visible(text)
    while cell_len(shown) > most:
        shown = shown[:-2] + "…"
    return shown


def _styled(text: str, style: str) -> str:
    if not style or not text:
        return text
    with console.capture() as capture:
        console.print(Text(text, style), end="", soft_wrap=True)
    return capture.get()


class _Margin(logging.Handler):
    """Prints warnings of a gateway in this process above the prompt."""

    def __init__(self, page: Screen) -> None:
        super().__init__(logging.WARNING)
        self._page = page
        self._loop = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        # A warning may come from another thread, and after the chat has ended.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._page.print, Text(visible(record.getMessage()), "dim"))


@contextlib.contextmanager
def screen() -> Generator[Screen]:
    """Yield the screen for the terminal or pipe of this process."""
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        with TerminalScreen().taken() as live:
            margin = _Margin(live)
            logging.getLogger().addHandler(margin)
            try:
                yield live
            finally:
                logging.getLogger().removeHandler(margin)
    else:
        yield PipeScreen()
