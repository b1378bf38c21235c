"""Tools of a plugin, one for each way of taking effect, that can be held in the middle of it and count how often they began.

A folder that is named in the environment has a file for all of them, with a line for each beginning; a call that is told to
waits there until somebody opens the gate, and one that is told to kills the gateway.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import msgspec

from holdfast.agent.tools.port import CallContext, StructTool
from holdfast.core.effects import Effect

FOLDER = "PROBE_FOLDER"
LINES, GATE = "lines", "gate"
_LOOK_S = 0.02


class ProbeArgs(msgspec.Struct):
    word: str
    waits: bool = False
    kills: bool = False


def tools() -> Sequence[StructTool[ProbeArgs]]:
    """Return what the entry point offers."""
    return [_tool(effect) for effect in Effect]


def _tool(effect: Effect) -> StructTool[ProbeArgs]:
    async def run(args: ProbeArgs, call_context: CallContext) -> str:
        folder = Path(os.environ[FOLDER])
        with (folder / LINES).open("a") as file:
            file.write(f"{args.word} {call_context.key}\n")
        if args.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        while args.waits and not (folder / GATE).exists():  # noqa: ASYNC110 - Who opens it is another process.
            await asyncio.sleep(_LOOK_S)
        return f"{args.word} is done"

    return StructTool(name=f"probe_{effect}", description="Probes.", args=ProbeArgs, effect=effect, action=run)
