"""`holdfast status`, `stop` and `restart`: show, stop and restart the running gateway."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from pathlib import Path

import click
from rich.status import Status as Spinner
from rich.table import Table
from rich.text import Text

from holdfast.cli.frame import (
    Frame,
    console,
    count,
    moment,
    print_json,
    print_lines,
    run_async,
    say,
    spinning,
    tilde,
    visible,
    with_json,
)
from holdfast.cli.serve import progress, rest, verb
from holdfast.client.contact import running_gateway
from holdfast.core.timekeeping import lead
from holdfast.errors import NotRunning, Unavailable
from holdfast.home_files import LOCK
from holdfast.ids import NodeId
from holdfast.operations.gateway import AgentView, Status, Stop
from holdfast.operations.segments import in_words
from holdfast.operations.services import Services

LOOK_S = 0.2
UNKNOWN = "unknown"
# Little is left to do after the drain; a gateway that takes longer hangs.
ENDING_MAX_S = 30


@click.command()
@with_json
async def status(frame: Frame, as_json: bool) -> None:
    """Show what the running gateway is doing."""
    async with running_gateway(frame.home) as services:
        glance = await services.gateway.status()
    if as_json:
        print_json(glance)
    else:
        print_status(glance)


@click.command()
@click.option(
    "--timeout", type=click.FloatRange(0), help="How many seconds running turns may take (default: gateway.drain_timeout)."
)
@click.pass_obj
@run_async
async def stop(frame: Frame, timeout: float | None) -> None:
    """Stop the running gateway.  Running turns may finish first."""
    async with running_gateway(frame.home) as services, spinning() as spinner:
        pid = (await services.gateway.health()).pid
        await services.gateway.stop(Stop(timeout=timeout))
        await _drained(services, spinner)
    await _gone(frame.home, pid)
    console.print(f"Stopped (pid {pid}).")


@click.command()
@click.option(
    "--timeout", type=click.FloatRange(0), help="How many seconds running turns may take (default: gateway.drain_timeout)."
)
@click.pass_obj
@run_async
async def restart(frame: Frame, timeout: float | None) -> None:
    """Restart the running gateway.  Running turns may finish first; the others try to continue afterwards."""
    async with running_gateway(frame.home) as services, spinning() as spinner:
        before = await services.gateway.health()
        await services.gateway.stop(Stop(restart=True, timeout=timeout))
        await _drained(services, spinner)
        spinner.update("Restarting: waiting for the gateway to be back")
        glance = await _back(frame.home, before.node)
    say(f"Restarted (pid {glance.pid}), listening on {glance.url}.")
    print_lines(glance.boot, indent=2)


async def _drained(services: Services, spinner: Spinner) -> None:
    """Wait until the gateway has stopped answering."""
    with contextlib.suppress(Unavailable):
        while drain := (await services.gateway.status()).drain:
            spinner.update(progress(drain))
            await asyncio.sleep(LOOK_S)


async def _gone(home: Path, pid: int) -> None:
    """Wait until another gateway can own the home."""
    deadline = time.monotonic() + ENDING_MAX_S
    while (home / LOCK).read_text("ascii", "replace").strip() == str(pid) and _lives(pid):
        if time.monotonic() > deadline:
            raise Unavailable(f"the gateway (pid {pid}) has drained but does not end")
        await asyncio.sleep(LOOK_S / 4)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def _back(home: Path, old: NodeId) -> Status:
    """Wait until a new process of the gateway is ready, and return its status."""
    deadline = time.monotonic() + ENDING_MAX_S
    while True:
        with contextlib.suppress(Unavailable):
            async with running_gateway(home) as services:
                glance = await services.gateway.status()
            if glance.node != old and glance.ready:
                return glance
        if time.monotonic() > deadline:
            raise NotRunning(home)
        await asyncio.sleep(LOOK_S)


def print_status(glance: Status) -> None:
    """Print the status of a gateway as text."""
    mood = Text(visible(_mood(glance)), "green" if glance.ready else "yellow")
    console.print(Text.assemble((f"Holdfast {glance.version}", "bold"), ": ", mood))
    facts: dict[str, str | tuple[str, str]] = {
        "url": glance.url,
        "pid": str(glance.pid),
        "node": glance.node,
        "home": tilde(Path(glance.home)),
        "store": glance.store,
        "up": (_duration(glance.uptime_s), f" (since {moment(glance.started_at)})"),
        "running": (count(glance.running, "turn"), _beside(glance)),
        "turns": _tally(glance),
        "waiting": _waiting(glance),
        **({"damage": "\n".join((*glance.damage, "what to do: holdfast doctor"))} if glance.damage else {}),
        **({"memory": in_words(glance.memory)} if glance.memory else {}),
        **_agent(glance.agent),
        **_clock(glance),
    }
    for name, fact in facts.items():
        plain, dim = (fact, "") if isinstance(fact, str) else fact
        line = Table.grid(padding=(0, 0))
        look = "bold red" if name in ("damage", "clock") or (name == "sandbox" and glance.agent.unsafe) else ""
        line.add_row(Text(f"  {name:<9} ", "dim"), Text.assemble((visible(plain), look), (dim, "dim")))
        console.print(line)
    if glance.boot:
        console.print("  [dim]at start[/dim]")
        print_lines(glance.boot, indent=4)


def _beside(glance: Status) -> str:
    if glance.obligations is None:
        return ""
    waiting = [
        count(glance.processes, "background process", "background processes"),
        count(glance.questions, "open question"),
        *([f"{count(glance.pairings, 'request')} to be let in"] if glance.pairings else []),
    ]
    return f" ({', '.join(waiting)})"


def _agent(agent: AgentView) -> dict[str, str | tuple[str, str]]:
    """Return the model, the tools and the sandbox of the agent, as far as they are known."""
    demonstration = " (set model.name for a real one)" if agent.demonstration else ""
    facts: dict[str, str | tuple[str, str]] = {
        "model": (agent.model, demonstration),
        "tools": ", ".join(agent.tools),
        "sandbox": agent.sandbox,
        "mcp": "\n".join(f"{name}: {state}" for name, state in agent.mcp.items()),
    }
    return {name: fact for name, fact in facts.items() if (fact if isinstance(fact, str) else fact[0])}


def _clock(glance: Status) -> dict[str, str]:
    """Return which nodes have a wrong clock; empty if none has."""
    off = [f"{'this node' if each.node == glance.node else each.node}: {lead(each.off_ms)}" for each in glance.clocks_off]
    return {"clock": "\n".join(off)} if off else {}


def _mood(glance: Status) -> str:
    if glance.drain:
        return f"{verb(glance.drain).lower()}, {rest(glance.drain)}"
    return glance.problem or glance.state.value


def _tally(glance: Status) -> tuple[str, str]:
    # The counts of turns and of obligations come together or not at all.
    if glance.obligations is None:
        return UNKNOWN, ""
    states = ", ".join(f"{number} {state}" for state, number in glance.turns.items() if number)
    sum_ = f"{glance.accepted} accepted = {glance.settled} settled + {glance.in_flight} in flight"
    return sum_, f" ({states})" if states else ""


def _waiting(glance: Status) -> str:
    owed = glance.obligations
    if owed is None:
        return UNKNOWN
    waits = f" ({owed.retrying} waiting for the model)" if owed.retrying else ""
    return f"{count(owed.turns, 'answer')}{waits}, {count(owed.deliveries, 'delivery', 'deliveries')}"


def _duration(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, left = divmod(rest, 60)
    parts = [f"{number}{unit}" for number, unit in ((days, "d"), (hours, "h"), (minutes, "m"), (left, "s")) if number]
    return " ".join(parts[:2]) or "0s"
