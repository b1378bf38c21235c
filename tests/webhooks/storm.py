"""The storm, by hand: many deliveries at once to a gateway that is killed again and again.

    python -m tests.webhooks.storm --deliveries 10000 --kills 20

Senders are as good as real ones: they send a delivery until they are told that it was taken, and not once more.  At the end
every delivery that was ever answered with 2xx is one turn, completed, with one answer in the outbox; every session has
ended, and pruning removes them all.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from holdfast.channels.webhook.signatures import Scheme, sign
from tests.blackbox.gateway import Gateway, gateways, until
from tests.webhooks.sender import SECRET, now_ms

SENDERS = 24
RETRY_S = 0.05
# Long enough that no turn is cut off three times in a row, after which it would be given up.
LIFE_S = (1.0, 2.5)
CALM_S = 600.0
SCHEMES = (Scheme.STANDARD, Scheme.GITHUB, Scheme.HMAC)
# One in so many is answered by an agent; the others are their own answer.
AGENT_EVERY = 10
LATE_EVERY = 50
PAGE = 200


@dataclass(slots=True)
class Tally:
    """What the senders saw."""

    turns: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    sessions: dict[str, str] = field(default_factory=dict[str, str])
    statuses: Counter[int] = field(default_factory=Counter[int])
    lost: int = 0

    def note(self, delivery: str, status: int, said: dict[str, Any]) -> None:
        self.statuses[status] += 1
        if status in (200, 202):
            self.turns.setdefault(delivery, set()).add(said["turn_id"])
            self.sessions[delivery] = said["session_id"]


def settings() -> dict[str, str]:
    """Return two routes, as the environment of a gateway tells of them."""
    routes = {
        "agent": {"prompt": "count to 2: {nonce}", "deliver": "file:agent"},
        "plain": {"prompt": "seen {nonce}", "deliver": "file:plain", "deliver_only": "true"},
    }
    said = {
        f"channels__webhook__routes__{name}__{key}": value
        for name, route in routes.items()
        for key, value in {"secret": SECRET, **route}.items()
    }
    return said | {"gateway__max_running": "128"}


async def send(web: httpx2.AsyncClient, name: str, delivery: str, scheme: Scheme, tally: Tally) -> None:
    """Send a delivery until it is taken; each try is signed anew."""
    while True:
        body = json.dumps({"nonce": delivery}).encode()
        headers = {**sign(scheme, body, SECRET, now_ms(), delivery), "Content-Type": "application/json"}
        try:
            answer = await web.post(f"/webhooks/{name}", content=body, headers=headers)
        except httpx2.TransportError:
            tally.lost += 1
        else:
            tally.note(delivery, answer.status_code, answer.json())
            if answer.is_success:
                return
            assert answer.status_code == 503, answer.text
        await asyncio.sleep(RETRY_S)


async def pour(url: str, deliveries: int, tally: Tally) -> None:
    """Let all senders work until everything is taken."""
    numbers = iter(range(deliveries))

    async def work(web: httpx2.AsyncClient) -> None:
        for number in numbers:
            name = "agent" if number % AGENT_EVERY == 0 else "plain"
            delivery, scheme = f"{name}-{number}", SCHEMES[number % len(SCHEMES)]
            await send(web, name, delivery, scheme, tally)
            if number % LATE_EVERY == 0:
                # A sender that lost its own memory sends again what was taken long ago.
                await send(web, name, delivery, scheme, tally)

    async with httpx2.AsyncClient(base_url=url, timeout=20, trust_env=False) as web, asyncio.TaskGroup() as group:
        for _ in range(SENDERS):
            group.create_task(work(web))


async def strike(gateway: Gateway, kills: int, chance: random.Random, told: Callable[[str], None]) -> None:
    """Kill the gateway as often as was asked for, each time in the middle of something."""
    for number in range(1, kills + 1):
        await asyncio.sleep(chance.uniform(*LIFE_S))
        gateway.signal(signal.SIGKILL)
        assert await gateway.ended() == -signal.SIGKILL
        await gateway.start()
        told(f"kill {number} of {kills}")


async def pages(web: httpx2.AsyncClient, path: str, **query: str | int) -> AsyncIterator[dict[str, Any]]:
    cursor: dict[str, str] = {}
    while True:
        page = (await web.get(path, params={"limit": PAGE, **query, **cursor})).raise_for_status().json()
        for item in page["items"]:
            yield item
        if not page["next_cursor"]:
            return
        cursor = {"cursor": page["next_cursor"]}


async def calm(gateway: Gateway, web: httpx2.AsyncClient) -> dict[str, Any]:
    """Return the status once nothing is owed any more."""
    status: dict[str, Any] = {}

    async def is_calm() -> bool:
        nonlocal status
        status = (await web.get("/api/status")).raise_for_status().json()
        return not status["in_flight"] and not any(status["obligations"].values())

    await until(is_calm, f"everything is answered:\n{gateway.tail()}", CALM_S)
    return status


async def storm(
    gateway: Gateway, deliveries: int, kills: int, seed: int = 0, told: Callable[[str], None] = lambda _: None
) -> Tally:
    """Let it storm, and check what is left."""
    tally = Tally()
    await gateway.start(**settings())
    async with asyncio.TaskGroup() as group:
        group.create_task(pour(gateway.url, deliveries, tally))
        group.create_task(strike(gateway, kills, random.Random(seed), told))
    assert len(tally.turns) == deliveries
    torn = {delivery: turns for delivery, turns in tally.turns.items() if len(turns) != 1}
    assert not torn, f"one delivery became several turns: {torn}"
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=60, trust_env=False) as web:
        status = await calm(gateway, web)
        assert status["turns"] == {"completed": deliveries}, status["turns"]
        ended = {item["id"]: item["end_reason"] async for item in pages(web, "/api/sessions", state="ended")}
        assert ended == dict.fromkeys(tally.sessions.values(), "webhook_complete")
        assert [item async for item in pages(web, "/api/sessions", state="open")] == []
    check_outbox(gateway, tally)
    pruned = json.loads(await gateway.run("sessions", "prune", "--channel", "webhook", "--older-than-days", "0", "--json"))
    assert pruned == {"pruned": deliveries}, pruned
    gateway.signal(signal.SIGTERM)
    assert await gateway.ended() == 0
    return tally


def check_outbox(gateway: Gateway, tally: Tally) -> None:
    """Every delivery has one answer, and that is its own."""
    files = [gateway.home / "outbox" / f"{name}.jsonl" for name in ("agent", "plain")]
    lines = [
        json.loads(line) for file in files if file.exists() for line in file.read_text("utf-8").splitlines() if _whole(line)
    ]
    by_turn = Counter(line["turn_id"] for line in lines)
    assert by_turn == Counter(dict.fromkeys(itertools.chain(*tally.turns.values()), 1))
    deliveries = {turn: delivery for delivery, turns in tally.turns.items() for turn in turns}
    for line in lines:
        assert deliveries[line["turn_id"]] in line["text"], line


def _whole(line: str) -> bool:
    """Return whether a line was written to its end; of one that was cut off, the whole follows."""
    try:
        json.loads(line)
    except json.JSONDecodeError:
        return False
    return True


async def main() -> None:
    parser = argparse.ArgumentParser(description="Webhook deliveries to a gateway that is killed again and again.")
    parser.add_argument("--deliveries", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()

    def told(words: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {words}", file=sys.stderr, flush=True)

    began = time.monotonic()
    with gateways() as (gateway,):
        tally = await storm(gateway, chosen.deliveries, chosen.kills, chosen.seed, told)
    answers = ", ".join(f"{count} × {status}" for status, count in sorted(tally.statuses.items()))
    print(
        f"{chosen.deliveries} deliveries, {chosen.kills} kills, {time.monotonic() - began:.0f} s: answered {answers}, "
        f"{tally.lost} never answered and sent again; each became one turn with one answer, every session ended, all pruned"
    )


if __name__ == "__main__":
    asyncio.run(main())
