"""What every command shares: where the home is, how errors become exit codes, how results are printed."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

import click
import msgspec
import uvloop
from rich.console import Console
from rich.padding import Padding
from rich.status import Status as Spinner
from rich.table import Table
from rich.text import Text

from holdfast.channels.settings import KINDS, misconfigured
from holdfast.client import contact
from holdfast.config import Config, config_file, keep_apart, load, placed
from holdfast.errors import ConfigInvalid, Fatal, HoldfastError, Owned, Rejected, StoreRefused, Unavailable
from holdfast.operations.services import Services

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])  # A command with any options.

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_UNAVAILABLE = 69
EXIT_IO = 74
EXIT_OWNED = 75
EXIT_CONFIG = 78

# What steers a terminal instead of being read there: C0 but for the end of a line and the tab, DEL and C1, and what turns
# the direction of writing around, so that a line reads otherwise than it is.
_CONTROLS = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\n"), ord("\t")}
_STEERING = dict.fromkeys({*_CONTROLS, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}, "\N{REPLACEMENT CHARACTER}")
# JSON may hold them as they are, so they are spelt out; it says the same then.
_SPELT = {code: f"\\u{code:04x}" for code in _STEERING}

# Lines in a pipe are not wrapped here; their reader can do that.
PIPE_WIDTH = 10_000
console = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The home of this invocation and the configuration found there."""

    home: Path
    config: Config
    file: Path = Path("holdfast.toml")
    # Whether the file was chosen explicitly, so that it has to exist.
    named: bool = False

    @classmethod
    def at(cls, home: Path, chosen: str | None) -> Frame:
        file, named = config_file(home, chosen), chosen is not None
        config = load(file, required=named, further=misconfigured, kinds=KINDS)
        keep_apart("the configuration file", [file], config, home)
        return cls(home=home, config=config, file=file, named=named)

    def services(self) -> AbstractAsyncContextManager[Services]:
        """Connect to the running gateway, or run one for as long as this command lasts."""
        return contact.services(self.config, self.home, _tell_absent)

    def reading_services(self) -> AbstractAsyncContextManager[Services]:
        """Read from the running gateway, or from the store while none runs."""
        return contact.reading_services(self.config, self.home)


class Group(click.Group):
    """A command group in which every known error ends in one clear line and the exit code of its family."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for word in args:
            if not _is_utf8(word):
                _end(f"an argument is not UTF-8: {os.fsencode(word)!r}", EXIT_IO)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # Click's own signature.
        try:
            return super().invoke(ctx)
        except ConfigInvalid as error:
            # What only turns out to be wrong when a gateway is built does not know where it stands.
            _end(str(placed(ctx.obj.file, error) if isinstance(ctx.obj, Frame) else error), EXIT_CONFIG)
        except HoldfastError as error:
            _end(str(error), exit_code(error))
        except OSError as error:
            # A reader that has left is click's to answer; what the system did not say is a bug.
            if isinstance(error, BrokenPipeError) or error.strerror is None:
                raise
            _end(": ".join(str(each) for each in (error.strerror, error.filename) if each is not None), EXIT_IO)


def _tell_absent() -> None:
    # An answer may have been cut in the middle of its line.
    click.secho("\nwaiting for the gateway…", err=True, dim=True)


def _is_utf8(word: str) -> bool:
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _end(problem: str, code: int) -> NoReturn:
    click.echo(f"holdfast: {visible(problem)}", err=True)
    sys.exit(code)


def exit_code(error: HoldfastError) -> int:
    """Return the exit code of an error's family."""
    match error:
        case ConfigInvalid():
            return EXIT_CONFIG
        case Rejected():
            return EXIT_USAGE
        case Unavailable():
            return EXIT_UNAVAILABLE
        case Owned():
            return EXIT_OWNED
        case StoreRefused():
            return EXIT_CONFIG
        case Fatal():
            return EXIT_IO
        case _:
            return EXIT_FAILED


def run_async(command: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Run an `async def` command in a loop of its own."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return uvloop.run(command(*args, **kwargs))

    return run


@contextlib.asynccontextmanager
async def spinning(*, shown: bool = True) -> AsyncGenerator[Spinner]:
    """Show progress on a terminal while something takes long."""
    spinner = Spinner("", console=console)
    if shown and console.is_terminal:
        spinner.start()
    try:
        yield spinner
    finally:
        spinner.stop()


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


def with_json(command: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an `async def` command with the frame of this invocation, and `as_json` if its result is for scripts."""
    return json_option(click.pass_obj(run_async(command)))


def limit_option(default: int) -> Callable[[F], F]:
    """How many things a list shows."""
    return click.option("--limit", type=click.IntRange(1), default=default, show_default=True, help="How many at most.")


def print_json(value: object) -> None:
    """Print a result as JSON."""
    click.echo(to_json(value).translate(_SPELT), nl=False)


def to_json(value: object) -> str:
    """Return a result as JSON that people can read too."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


_IN_ONE_PIECE = frozenset(
    {"session", "turn", "segment", "delivery", "process", "memory", "grant", "job", "next", "state", "when", "last used",
     "next try", "accepted", "answered", "turns", "begins with"}
)  # fmt: skip


def print_table(columns: Sequence[str], lines: Sequence[Sequence[str]], empty: str) -> None:
    """Print rows for people, or one sentence when there are none."""
    if not lines:
        console.print(f"[dim]{empty}[/dim]")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        # What is copied from here stays in one piece; where there is no room the last columns give way.
        table.add_column(column, overflow="fold", no_wrap=column in _IN_ONE_PIECE)
    for line in lines:
        table.add_row(*(Text(visible(cell)) for cell in line))
    console.print(table)


def print_fields(title: str, view: object, without: Sequence[str] = ()) -> None:
    """Print every field of a view that says something."""
    fields: dict[str, object] = msgspec.to_builtins(view)
    lines = [
        (name, moment(value) if name.endswith("_at") and isinstance(value, int | None) else _said(value))
        for name, value in fields.items()
        if name not in without and (value is not None or name.endswith("_at"))
    ]
    print_table((title, ""), lines, "")


def print_view(title: str, view: object, as_json: bool) -> None:
    """Print one thing with all its fields."""
    if as_json:
        print_json(view)
    else:
        print_fields(title, view)


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


def print_outcome(result: object, sentence: str, as_json: bool, *, soft_wrap: bool = False) -> None:
    """Print what a command has done: its result as JSON, or a sentence."""
    if as_json:
        print_json(result)
    else:
        say(sentence, soft_wrap=soft_wrap)


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, cast("list[object]", value))) or "–"
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else str(value)


def visible(text: str) -> str:
    """Return text without control sequences, so that it cannot control the terminal."""
    return text.translate(_STEERING)


def say(text: str, style: str = "", *, end: str = "\n", soft_wrap: bool = False) -> None:
    """Print text that may be untrusted: it contains no markup, and cannot control the terminal."""
    console.print(Text(visible(text), style=style), end=end, soft_wrap=soft_wrap)


def print_text(text: str) -> None:
    """Print text unchanged into a pipe, and made visible on a terminal."""
    # Otherwise click would leave out of a pipe what it takes for colours.
    click.echo(visible(text) if sys.stdout.isatty() else text, nl=False, color=True)


def moment(at_ms: int | None) -> str:
    """Return a time as people read it, in their own time zone: of today the time alone, else the date as well."""
    if at_ms is None:
        return "–"
    at, now = datetime.fromtimestamp(at_ms / 1000).astimezone(), datetime.now().astimezone()
    return f"{at:%H:%M:%S}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M}"


def tilde(path: Path) -> str:
    """Return a path as its owner would write it."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def print_lines(lines: Sequence[str], indent: int) -> None:
    """Print lines of prose; what is too long goes on below itself."""
    for line in lines:
        console.print(Padding(Text(visible(line)), (0, 0, 0, indent), expand=False))
