"""The drill through Telegram: it kills and restarts a scratch gateway whose users write to it in chats.

The messages come and the answers go through the channel as it is, to a scripted Telegram.  That runs in this process, which
is not killed, so its phones show what the users saw.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast.drill.chat_verdict import ChatDrillResult, judge
from holdfast.drill.ends import Ends, end_of
from holdfast.drill.people import Crowd
from holdfast.drill.telegram.server import BotApiServer, telegram
from holdfast.drill.verdict import SETTLE_MAX_S, START_MAX_S, STOP_MAX_S
from holdfast.errors import StoreBroken
from holdfast.store.opening import open_store

# A life is cut this long after it begins to receive at the latest.
LIFE_MAX_S = 1.0
# How long the answer to a call is on its way at most, so that some lives end after a message is shown and before they know.
LAG_MAX_S = 0.02
LOOK_S = 0.005


def drill_chats(home: Path, url: str, kills: int, seed: int, progress: Callable[[int], None]) -> ChatDrillResult:
    """End a scratch gateway `kills` times at random moments while people write to it, and check every promise."""
    return asyncio.run(_drill(home, url, kills, random.Random(seed), progress))  # noqa: S311 - Variety, not a secret.


async def _drill(
    home: Path, url: str, kills: int, chance: random.Random, progress: Callable[[int], None]
) -> ChatDrillResult:
    ends = Ends()
    async with telegram() as server:
        server.lag_s = LAG_MAX_S
        crowd = Crowd(server, random.Random(chance.random()))  # noqa: S311 - The same.
        writing = asyncio.create_task(crowd.write())
        for life in range(kills):
            await _one_life(home, url, life, server, ends, chance.uniform(0, LIFE_MAX_S))
            progress(life + 1)
        writing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await writing
        crowd.say_one_more()
        await settle(home, url, kills, server)
        store = await open_store(url, home)
        try:
            return await judge(store, home, crowd, ends)
        finally:
            await store.close()


@asynccontextmanager
async def _spawned(home: Path, url: str, life: int, server: BotApiServer, purpose: str) -> AsyncGenerator[Process]:
    command = [sys.executable, "-m", "holdfast.drill.chat_life", str(home), url, str(life), server.url, purpose]
    with (home / "life.log").open("a") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=log)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _one_life(home: Path, url: str, life: int, server: BotApiServer, ends: Ends, cut_after_s: float) -> None:
    polls, by = len(server.bot.polled_at), end_of(life)
    async with _spawned(home, url, life, server, "live") as process:
        await _receiving(process, server, polls, home)
        await asyncio.sleep(cut_after_s)
        process.send_signal(by)
        try:
            async with asyncio.timeout(STOP_MAX_S):
                said, _ = await process.communicate()
        except TimeoutError:
            process.kill()
            said, _ = await process.communicate()
        # A kill cuts nothing off here: a life says one thing, at the end of its drain.
        if by is signal.SIGTERM:
            ends.drained += sum(int(words[1]) for line in said.splitlines() if (words := line.split())[0] == b"drained")
        assert process.returncode is not None  # noqa: S101 - It was waited for.
        ends.end(life, by, process.returncode)


async def _receiving(process: Process, server: BotApiServer, polls: int, home: Path) -> None:
    """Return when a life asks for updates."""
    deadline = asyncio.get_running_loop().time() + START_MAX_S
    while True:
        if len(server.bot.polled_at) > polls:
            return
        if process.returncode is not None or asyncio.get_running_loop().time() > deadline:
            raise StoreBroken(f"the scratch gateway did not start; see {home / 'life.log'}")
        await asyncio.sleep(LOOK_S)


async def settle(home: Path, url: str, life: int, server: BotApiServer) -> None:
    """Run lives to their end until Telegram has nothing left to hand out."""
    while server.bot.updates:
        async with _spawned(home, url, life, server, "settle") as process:
            try:
                async with asyncio.timeout(SETTLE_MAX_S):
                    await process.communicate()
            except TimeoutError:
                raise StoreBroken(
                    f"the scratch gateway did not settle in {SETTLE_MAX_S} s; see {home / 'life.log'}"
                ) from None
            if process.returncode != 0:
                raise StoreBroken(f"the scratch gateway failed while it settled; see {home / 'life.log'}")
