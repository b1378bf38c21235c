"""`holdfast serve`: run the gateway in this process."""

from __future__ import annotations

import contextlib
import html
import logging
import os
import sys
import threading
import webbrowser
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import click
import uvloop
from rich.text import Text

from holdfast.cli.frame import Frame, console, count, print_lines, tilde, visible
from holdfast.config import ServerConfig, misplaced, wrong_with
from holdfast.daemon.handover import inherit, replace_process
from holdfast.errors import ConfigInvalid, Exposed
from holdfast.home_files import OPENING
from holdfast.operations.gateway import Drain, Status, Stop
from holdfast.operations.logins import SignInLink

_REDIRECT = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>Holdfast</title>
<p><a href="{url}">Sign in to Holdfast</a></p>
"""


@click.command()
@click.option("--host", help="The address to listen on (default: server.host, 127.0.0.1).")
@click.option(
    "--port", type=click.IntRange(0, 65_535), help="The port to listen on (default: server.port, 8420; 0: any free port)."
)
@click.option(
    "--no-open", is_flag=True, help="Do not open a browser.  Without this, one opens on a terminal with a display."
)
@click.pass_obj
def serve(frame: Frame, host: str | None, port: int | None, no_open: bool) -> None:
    """Run the gateway until it is stopped.  Ctrl-C lets running turns finish; a second Ctrl-C interrupts them."""
    # The other commands do not import a gateway.
    from holdfast.app.gateway import serve as run_gateway
    from holdfast.daemon.watchdog import Watchdog
    from holdfast.operations.settings import Origin

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    # Otherwise each request to a model is a line of the log.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    config = replace(frame.config, server=_server(frame.config.server, host, port))
    given = {f"server.{key}": value for key, value in (("host", host), ("port", port)) if value is not None}
    inherited, origin = inherit(), Origin(file=frame.file, named=frame.named, arguments=given, loaded=frame.config)
    # After a restart the page is already open.
    screen = ServeScreen(opens=not no_open and inherited.lock is None and _has_display())
    # It watches until the process ends, because closing may hang too.
    watchdog = Watchdog(config.gateway.stall_timeout, config.gateway.drain_timeout)
    try:
        ended = uvloop.run(run_gateway(config, frame.home, screen, inherited, origin, watchdog))
        (frame.home / OPENING).unlink(missing_ok=True)
    except Exposed as error:
        watchdog.close()
        if host:
            raise ConfigInvalid(f"--host: {error.problem}") from None
        raise misplaced(frame.file, ("server", "host"), error.problem) from None
    except BaseException:
        watchdog.close()
        raise
    if ended.stop.restart:
        with _unseen():
            console.file.flush()
        watchdog.close()
        replace_process(ended.handover)


def _server(configured: ServerConfig, host: str | None, port: int | None) -> ServerConfig:
    server = replace(configured, host=host or configured.host, port=configured.port if port is None else port)
    for key, problem in wrong_with(server).items():
        raise ConfigInvalid(f"--{key}: {problem}")
    return server


def _has_display() -> bool:
    """Return whether this process has a display for a browser."""
    return sys.stdout.isatty() and (sys.platform == "darwin" or bool({"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()))


def _redirect(file: Path, url: str) -> Path:
    """Write a page that only its owner can read, and that redirects to an address."""
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as page:
        page.write(_REDIRECT.format(url=html.escape(url)))
    return file


@contextlib.contextmanager
def _unseen() -> Generator[None]:
    """Continue without output when the terminal was closed or the reader of the pipe has gone."""
    try:
        yield
    # rich exits on a broken pipe.
    except (OSError, SystemExit):
        console.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class ServeScreen:
    """Shows what a gateway does: everything on a terminal, only the important events in a pipe.

    The gateway goes on without its terminal, and can also stop without it.
    """

    def __init__(self, *, opens: bool = False) -> None:
        self._opens = opens
        # As text, because markup makes rich load the names of four thousand emoji.
        self._spinner = console.status(Text())
        self._shown = -1

    @_unseen()
    def ready(self, status: Status, link: SignInLink | None, key: str = "") -> None:
        where = visible(f" · {tilde(Path(status.home))} · store {status.store}")
        console.print(Text.assemble((f"Holdfast {status.version}", "bold"), (where, "dim")))
        print_lines(status.boot, indent=2)
        hint = f" (pid {status.pid}; Ctrl-C stops)"
        console.print(Text.assemble("Listening on ", (status.url, "bold"), (hint, "dim")))
        if key:
            console.print(Text.assemble("Programs on this machine need this key, which is shown once\n  ", (key, "bold")))
        if link is None:
            return
        # On a line of its own and not wrapped, so that it can be clicked and copied.
        console.print(Text.assemble("Sign in at\n  ", (link.url, "bold")), soft_wrap=True)
        console.print(Text("  (good once, for fifteen minutes; later: holdfast link)", "dim"))
        if self._opens:
            # All users of the machine can read the arguments of a browser.
            file = _redirect(Path(status.home) / OPENING, link.url)
            # Some browsers return only when they are closed.
            threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()

    @_unseen()
    def draining(self, drain: Drain) -> None:
        if console.is_terminal:
            self._spinner.update(f"{progress(drain)} [dim](Ctrl-C again interrupts them)[/dim]")
            self._spinner.start()
        elif drain.running != self._shown:
            console.print(progress(drain))
        self._shown = drain.running

    @_unseen()
    def drained(self, stop: Stop, interrupted: int) -> None:
        self._spinner.stop()
        cut = f"{count(interrupted, 'turn')} interrupted, and marked so" if interrupted else "nothing was interrupted"
        console.print(f"{'Restarting' if stop.restart else 'Stopped'}: {cut}.")


def progress(drain: Drain) -> str:
    """Print the progress of a drain."""
    return f"{verb(drain)}: {rest(drain)}"


def verb(drain: Drain) -> str:
    """Return why the gateway drains."""
    return "Restarting" if drain.restart else "Stopping"


def rest(drain: Drain) -> str:
    """Return what a drain still waits for."""
    if not drain.running:
        return "everything is at rest"
    return f"{count(drain.running, 'turn')} still running, {drain.seconds_left:.0f} s left"
