"""One life of the scratch gateway behind an account of Telegram, in a process of its own: it works until it is ended.

Messages come and answers go through the channel, as in a gateway that people use.  What they saw is on their phones, which
the parent has.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop

from holdfast.channels.chat.account import ChatContext
from holdfast.channels.chat.channel import ChatChannel, ChatSurroundings, at_work, open_account
from holdfast.channels.chat.receiver import Timing
from holdfast.channels.telegram.channel import TELEGRAM
from holdfast.channels.telegram.config import TelegramSettings
from holdfast.clock import SystemClock
from holdfast.config import Config, GatewayConfig
from holdfast.core.chats import AccountState
from holdfast.core.redaction import Redaction
from holdfast.drill.life import Ledger, is_settled, scripted, stopped
from holdfast.drill.people import ACCOUNT, PEOPLE
from holdfast.drill.telegram.server import TOKEN
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.inbox import Inbox
from holdfast.engine.tuning import Tuning
from holdfast.ids import NodeId, new_node_id
from holdfast.store.opening import open_store
from holdfast.store.store import Store

# No one sends follow-ups to go on, so conversations go on by themselves.
CONFIG = Config(gateway=GatewayConfig(resume="auto"))
# How often a life looks whether the lease of the account is free.
LOOK_MS = 50


async def live(home: Path, url: str, life: int, api_base: str, settle: bool) -> None:
    """Run one life: until killed or drained, or with `settle` until everything that came has come to rest."""
    clock = SystemClock()
    store, node_id = await open_store(url, home), new_node_id(clock.now_ms())
    async with _account(home, store, node_id, api_base) as chat:
        parts = Parts(
            store=store,
            agent=scripted(Ledger(home / "ledger.txt"), life),
            carriers={ACCOUNT: chat.carrier},
            components={ACCOUNT: chat.run},
            config=CONFIG,
            tuning=Tuning(beat_ms=100, lease_ms=500),
            node_id=node_id,
        )
        engine = Engine(parts)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(engine.run())
            await (_settled(store, node_id) if settle else stopped(engine))
            running.cancel()
    await store.close()


@asynccontextmanager
async def _account(home: Path, store: Store, node_id: NodeId, api_base: str) -> AsyncGenerator[ChatChannel]:
    clock = SystemClock()
    settings = TelegramSettings(token=TOKEN, api_base=api_base, allow=tuple(str(each) for each in PEOPLE))
    context = ChatContext(name=ACCOUNT, home=home, environment={}, clock=clock)
    accept = Inbox(store, CONFIG.gateway, CONFIG.sessions, Redaction(), clock).accept
    timing = Timing(lease_ms=LOOK_MS)
    async with open_account(TELEGRAM, settings, context) as account:
        around = ChatSurroundings(store=store, clock=clock, node_id=node_id, accept=accept, timing=timing)
        yield at_work({ACCOUNT: account}, around)[ACCOUNT]


async def _settled(store: Store, node_id: NodeId) -> None:
    """Return when what was received is at rest: in the order in which one becomes the other."""
    while True:
        if await _is_read(store) and await is_settled(store, node_id) and not await store.status_lines.at_work(ACCOUNT):
            return
        await asyncio.sleep(0.05)


async def _is_read(store: Store) -> bool:
    """Return whether this life has received, and handled all of it."""
    record = await store.channels.find(ACCOUNT)
    return record is not None and record.state is AccountState.CONNECTED and not await store.channels.staged(ACCOUNT)


if __name__ == "__main__":
    uvloop.run(live(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5] == "settle"))
