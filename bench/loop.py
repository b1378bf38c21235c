"""How quickly the gateway answers while somebody tries to hold its event loop.

The attacks are those of tests/blackbox/test_holding.py: an expression that never ends, pages that are slow to parse, an
edit of 200,000 lines, and a body that is hard to look through.  The model server, the hostile pages, this client and the
gateway's children share the same cores, and the raw figure is the same client on the same gateway at rest.
"""

from __future__ import annotations

import asyncio

from tests.blackbox.holding import Attack, attacked

from bench.ground import Ground
from bench.producers import percentile
from bench.report import Line, Unit

P99_MAX_MS = 100.0
REST_S = 5


async def run(ground: Ground) -> list[Line]:
    lines: list[Line] = []
    async with attacked() as attack:
        await asyncio.sleep(1 if ground.quick else REST_S)
        rest = _p99_ms(attack)
        for what, calls in (("search", [attack.searches]), ("pages", attack.fetches), ("edit", [attack.edits])):
            attack.took_s.clear()
            await attack.somebody.answered(await attack.begin(*calls))
            lines.append(_line(f"/health during a hostile {what}", attack, rest))
        attack.took_s.clear()
        for _ in range(50):
            await attack.ask_in_bad_json()
        await attack.look_again()
        lines.append(_line("/health during hostile bodies", attack, rest))
    return lines


def _line(what: str, attack: Attack, rest: float) -> Line:
    p99 = _p99_ms(attack)
    detail = f"p99 of {len(attack.took_s)}; longest {max(attack.took_s) * 1000:.0f} ms"
    bar = f"< {P99_MAX_MS:g} ms"
    return Line(what=what, measured=p99, unit=Unit.MILLISECONDS, detail=detail, raw=rest, bar=bar, met=p99 < P99_MAX_MS)


def _p99_ms(attack: Attack) -> float:
    return percentile(attack.took_s, 99) * 1000
