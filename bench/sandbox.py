"""What confining a command costs: `true` in each mechanism that this machine has, beside `true` as it is.

Plain and confined runs alternate, so a busy machine slows both.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.ground import Ground
from bench.producers import median
from bench.report import Line, Unit
from holdfast.sandbox import Sandbox, SandboxKind, profile, scrubbed
from holdfast.sandbox.proxy import HostRules, Network

MORE_MAX_MS = 15.0
RUNS = 100


async def run(ground: Ground) -> list[Line]:
    workspace = ground.home()
    lines: list[Line] = []
    for kind in (SandboxKind.BUBBLEWRAP, SandboxKind.LAUNCHER, SandboxKind.LANDLOCK):
        box = await Sandbox.find("auto", profile(workspace), kinds=[kind])
        if box.kind is SandboxKind.NONE:
            lines.append(Line(what=kind, measured=0, unit=Unit.MILLISECONDS, note=box.description))
            continue
        async with Network(ground.home()).opened(HostRules()) as access:
            argv, variables = box.wrap(["true"], workspace)
            with_proxy, more = box.wrap(["true"], workspace, access)
            lines.append(_compared(ground, f"true, {kind}", argv, variables, workspace))
            if box.has_proxy:
                lines.append(_compared(ground, f"true, {kind}, with its proxy", with_proxy, more, workspace))
    return lines


def _compared(ground: Ground, what: str, argv: Sequence[str], variables: Mapping[str, str], workspace: Path) -> Line:
    environment = {**scrubbed(os.environ), **variables}
    plain: list[float] = []
    confined: list[float] = []
    for _ in range(RUNS // 5 if ground.quick else RUNS):
        plain.append(_took_ms(["true"], environment, workspace))
        confined.append(_took_ms(argv, environment, workspace))
    more = median(confined) - median(plain)
    return Line(
        what=what,
        measured=median(confined),
        unit=Unit.MILLISECONDS,
        detail=f"{more:.1f} ms more than plain",
        raw=median(plain),
        bar=f"< {MORE_MAX_MS:g} ms more",
        met=more < MORE_MAX_MS,
    )


def _took_ms(argv: Sequence[str], environment: Mapping[str, str], workspace: Path) -> float:
    began = time.perf_counter()
    subprocess.run(argv, env=environment, cwd=workspace, start_new_session=True, check=True)
    return (time.perf_counter() - began) * 1000
