"""A gateway in a process of its own, with a home of its own, whose agent counts aloud until somebody stops it.

`python -m tests.crash.speaker URL HOME [MESSAGE]` prints the turn's session and id once the message is accepted.  Without
a message it only lives, as a gateway does that nobody writes to.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from holdfast.core.intake import Inbound
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.spool import Spool
from holdfast.engine.tuning import Tuning
from holdfast.ports import Assignment, Stage
from holdfast.store.opening import open_store

LEASE_MS = 600


class Counting:
    async def run(self, work: Assignment, stage: Stage) -> str:
        for number in itertools.count(1):
            await stage.say(f"{number} ")
            await asyncio.sleep(0.005)
        raise AssertionError("there is always a next number")


def tuning() -> Tuning:
    return Tuning(batch_ms=5, poll_ms=50, beat_ms=50, lease_ms=LEASE_MS)


async def main(url: str, home: Path, text: str | None) -> None:
    store = await open_store(url, home)
    engine = Engine(Parts(store=store, agent=Counting(), tuning=tuning(), spool=Spool(home)))
    running = asyncio.create_task(engine.run())
    if text is not None:
        receipt = await engine.inbox.accept(Inbound(conversation="chat:1", text=text, channel="chat"))
        print(receipt.session_id, receipt.turn_id, flush=True)
    await running


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None))
