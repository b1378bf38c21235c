"""What stands between a program and its model when Holdfast does: over HTTP, beside asking the model server directly.

The model server, the gateway and this load client share the same cores, and each ratio is to the same load on the model
server in the same run.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import random
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench import load
from bench.agent import printing_port
from bench.client import Client
from bench.gateway import Gateway
from bench.ground import Ground
from bench.load import Heard, Marks, Reader
from bench.producers import median, percentile
from bench.report import Line, Unit

BURST_STREAMS = 50
BURST_TOKENS = 200
BURST_SHARE_MIN = 0.3
FIRST_MAX_MS = 5.0
CROWD = 200
CROWD_TOKENS = 100
CROWD_TOKENS_PER_S = 20
CROWD_P99_MAX_MS = 150.0
READERS = 1_000
READERS_P99_MAX_MS = 100.0
HOOKS_PER_S = 1_000
HOOK_LINES = 64
HOOKS_P99_MAX_MS = 50.0
IDLE_AFTER_S = 10
IDLE_MAX_MB = 80.0
ANSWERED_MAX_S = 1.5

_PATH = "/v1/chat/completions"
_SECRET = "a secret of this benchmark alone"
_END = b"data: [DONE]"
_TAKEN = Marks(first=b"HTTP/1.1 202", last=b'"missing"')
_WRITTEN_AT = re.compile(rb'"kind":"text","at":(\d+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a load goes: to the gateway, or past it to the model server."""

    port: int
    model: str


async def run(ground: Ground) -> list[Line]:
    home = ground.home()
    with printing_port("tests.models.servers") as (model_port, _):
        _configure(home, model_port)
        answered = await _first_answer(home)
        idle = await _idle(ground, model_port)
        with Gateway(home) as gateway:
            await gateway.ready()
            direct, through = Place(port=model_port, model="bench"), Place(port=gateway.port, model="holdfast")
            # What is imported and made when it is first needed is no cost of the load.
            await _ask_all(through, "say hello", 2, 2)
            return [
                await _burst(ground, direct, through),
                await _first_token(ground, direct, through),
                await _crowd(ground, direct, through),
                await _readers(ground, gateway),
                *await _hooks(ground, gateway),
                idle,
                answered,
            ]


def _configure(home: Path, model_port: int) -> None:
    (home / "holdfast.toml").write_text(
        f'[model]\nname = "openai:bench"\nbase_url = "http://127.0.0.1:{model_port}/v1"\napi_key = "bench-key"\n'
        f'[channels.webhook.routes.bench]\nsecret = "{_SECRET}"\nprompt = "script: say {{id}}"\n'
    )
    (home / "holdfast.toml").chmod(0o600)


def _request(place: Place, script: str) -> bytes:
    messages = [{"role": "user", "content": f"script: {script}"}]
    return load.post(_PATH, json.dumps({"model": place.model, "messages": messages, "stream": True}).encode())


def _marks(script: str) -> Marks:
    return Marks(first=b"hello" if script == "say hello" else b"word0", last=_END)


async def _ask_all(place: Place, script: str, lines: int, each: int) -> tuple[list[Heard], float]:
    """Let many clients ask the same, each again as soon as it was answered; return what they heard, and how long it took."""
    request, marks = _request(place, script), _marks(script)

    async def client() -> list[Heard]:
        line = await load.Line.to(place.port)
        heard = [await line.ask(request, marks) for _ in range(each)]
        line.close()
        return heard

    began = time.perf_counter()
    heard = await asyncio.gather(*(client() for _ in range(lines)))
    return [one for some in heard for one in some], time.perf_counter() - began


async def _burst(ground: Ground, direct: Place, through: Place) -> Line:
    """Measure answers that come as fast as they can."""
    each = 2 if ground.quick else 6
    script = f"stream {BURST_TOKENS} at 0"
    raw, short_raw = [await _rate(direct, each_script, each) for each_script in (script, "say hello")]
    rate, short = [await _rate(through, each_script, each) for each_script in (script, "say hello")]
    return Line(
        what=f"answers of {BURST_TOKENS} tokens at once, {BURST_STREAMS} clients",
        measured=rate,
        unit=Unit.RATE,
        detail=f"{rate * BURST_TOKENS:,.0f} tokens/s; answers of one token {short:.0f}/s of {short_raw:.0f}",
        raw=raw,
        bar=f"≥ {BURST_SHARE_MIN} of direct",
        met=rate >= BURST_SHARE_MIN * raw,
        note="each client asks again as soon as it was answered; raw: the same clients at the model server itself",
    )


async def _rate(place: Place, script: str, each: int) -> float:
    heard, seconds = await _ask_all(place, script, BURST_STREAMS, each)
    return len(heard) / seconds


async def _first_token(ground: Ground, direct: Place, through: Place) -> Line:
    """Measure how much later a single client has the first token."""
    rounds = 40 if ground.quick else 200
    lines = [await load.Line.to(place.port) for place in (direct, through)]
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for line, place, found in zip(lines, (direct, through), times, strict=True):
            found.append((await line.ask(_request(place, "say hello"), _marks("say hello"))).first_ms)
    for line in lines:
        line.close()
    later = median(times[1]) - median(times[0])
    return Line(
        what="the first token, 1 client",
        measured=median(times[1]),
        unit=Unit.MILLISECONDS,
        detail=f"{later:.1f} ms later at the median of {rounds}; p99 {percentile(times[1], 99):.1f} ms",
        raw=median(times[0]),
        bar=f"< {FIRST_MAX_MS:.0f} ms later",
        met=later < FIRST_MAX_MS,
    )


async def _crowd(ground: Ground, direct: Place, through: Place) -> Line:
    """Measure the first token of each of many answers that are told at the pace of people."""
    each = 1 if ground.quick else 2
    raw = await _spread(direct, each)
    found = await _spread(through, each)
    later = percentile(found, 99) - percentile(raw, 99)
    return Line(
        what=f"the first token, {CROWD} clients",
        measured=percentile(found, 99),
        unit=Unit.MILLISECONDS,
        detail=f"p99, {later:.0f} ms later; median {median(found):.1f} ms of {len(found)}",
        raw=percentile(raw, 99),
        bar=f"p99 < {CROWD_P99_MAX_MS:.0f} ms later",
        met=later < CROWD_P99_MAX_MS,
        note=f"{CROWD} answers at any time, each of {CROWD_TOKENS} tokens at {CROWD_TOKENS_PER_S} a second; they do not "
        "begin at the same instant",
    )


async def _spread(place: Place, each: int) -> list[float]:
    """Return how long each first token took, in milliseconds, while many answers are under way."""
    script = f"stream {CROWD_TOKENS} at {CROWD_TOKENS_PER_S}"
    request, marks = _request(place, script), _marks(script)
    lasts_s = CROWD_TOKENS / CROWD_TOKENS_PER_S

    async def client(nth: int) -> list[float]:
        line = await load.Line.to(place.port)
        await asyncio.sleep((nth + random.random()) * lasts_s / CROWD)
        # The first answers begin before the others have, in a place that is still empty.
        await line.ask(request, marks)
        heard = [(await line.ask(request, marks)).first_ms for _ in range(each)]
        line.close()
        return heard

    return [first for some in await asyncio.gather(*map(client, range(CROWD))) for first in some]


async def _readers(ground: Ground, gateway: Gateway) -> Line:
    """Measure how long an event takes to its readers while very many others wait for theirs."""
    sessions, per_session = (20, 10) if ground.quick else (100, READERS // 100)
    client = await Client.of(gateway.port)
    ids = [(await client.post("/api/sessions", {}))["id"] for _ in range(sessions)]
    client.close()
    latencies: list[float] = []

    def hear(data: bytes) -> None:
        now = time.time() * 1000
        latencies.extend(now - int(at) for at in _WRITTEN_AT.findall(data))

    readers = [await _reader(gateway.port, session_id, hear) for session_id in ids for _ in range(per_session)]
    client = await Client.of(gateway.port)
    idle_from, seconds = gateway.cpu_s(), 3
    await asyncio.sleep(seconds)
    idle = (gateway.cpu_s() - idle_from) / seconds
    for session_id in ids:
        await client.post(f"/api/sessions/{session_id}/messages", {"text": "script: say hello"})
        await asyncio.sleep(0.02)

    async def all_heard() -> bool:
        return len(latencies) >= len(readers)

    await _until(all_heard, 0.01)
    for reader in readers:
        reader.transport.close()
    client.close()
    p99 = percentile(latencies, 99)
    return Line(
        what=f"an event to its readers, {len(readers):,} readers",
        measured=p99,
        unit=Unit.MILLISECONDS,
        detail=f"p99 of {len(latencies):,}; median {median(latencies):.0f} ms; {idle:.1%} of a core while all wait",
        bar=f"p99 < {READERS_P99_MAX_MS:.0f} ms",
        met=p99 < READERS_P99_MAX_MS,
        note=f"{per_session} readers of each session, which are spoken to 50 a second; from the model's word, before it is "
        "written, to its reader",
    )


async def _reader(port: int, session_id: str, hear: Callable[[bytes], None]) -> Reader:
    request = f"GET /api/sessions/{session_id}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    _, reader = await asyncio.get_running_loop().create_connection(lambda: Reader(request, hear), "127.0.0.1", port)
    await reader.opened
    return reader


async def _hooks(ground: Ground, gateway: Gateway) -> list[Line]:
    """Measure deliveries that come at a steady rate, each signed and each with a turn of its own."""
    count = HOOKS_PER_S * (2 if ground.quick else 10)
    requests = [_delivery(number) for number in range(count)]
    free: asyncio.LifoQueue[load.Line] = asyncio.LifoQueue()
    for _ in range(HOOK_LINES):
        free.put_nowait(await load.Line.to(gateway.port))
    latencies: list[float] = []

    async def deliver(request: bytes, due: float) -> None:
        line = await free.get()
        heard = await line.ask(request, _TAKEN)
        if not heard.first:
            raise RuntimeError("a delivery was not accepted")
        latencies.append((heard.last - due) * 1000)
        free.put_nowait(line)

    mine, used, began = time.process_time(), gateway.cpu_s(), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number, request in enumerate(requests):
            due = began + number / HOOKS_PER_S
            if (early := due - time.perf_counter()) > 0:
                await asyncio.sleep(early)
            group.create_task(deliver(request, due))
    seconds = time.perf_counter() - began
    rate, p99 = count / seconds, percentile(latencies, 99)
    cost, own = (gateway.cpu_s() - used) / count * 1000, (time.process_time() - mine) / count * 1000
    answered, lasted = await _answered(gateway)
    while not free.empty():
        free.get_nowait().close()
    return [
        Line(
            what=f"webhook deliveries, {HOOKS_PER_S:,} a second",
            measured=rate,
            unit=Unit.RATE,
            detail=f"p50 {median(latencies):.1f}, p99 {p99:.1f} ms; {cost:.2f} ms of processor each, client {own:.2f}",
            bar=f"≥ {HOOKS_PER_S:,}/s, p99 < {HOOKS_P99_MAX_MS:.0f} ms",
            # The last of them is answered a moment after it was due.
            met=rate >= 0.99 * HOOKS_PER_S and p99 < HOOKS_P99_MAX_MS,
            note="signed, durable before each 202; from the instant at which each was due, so that falling behind shows",
        ),
        Line(
            what="their turns",
            measured=answered / lasted,
            unit=Unit.RATE,
            detail=f"the last of {answered:,} ended {lasted:.1f} s later",
        ),
    ]


def _delivery(number: int) -> bytes:
    body = json.dumps({"id": number, "repository": "bench", "status": "failed"}).encode()
    signature = hmac.new(_SECRET.encode(), body, "sha256").hexdigest()
    headers = (f"X-Hub-Signature-256: sha256={signature}", f"X-GitHub-Delivery: {number}", "X-GitHub-Event: status")
    return load.post("/webhooks/bench", body, *headers)


async def _answered(gateway: Gateway) -> tuple[int, float]:
    """Wait until nothing is left to answer; return how much was, and how long it took."""
    client = await Client.of(gateway.port)
    first, began = await _left(client), time.perf_counter()
    await _until(lambda: _none_left(client), 0.1)
    client.close()
    return first, time.perf_counter() - began


async def _left(client: Client) -> int:
    return (await client.get("/api/status"))["in_flight"]


async def _none_left(client: Client) -> bool:
    return await _left(client) == 0


async def _idle(ground: Ground, model_port: int) -> Line:
    home = ground.home()
    _configure(home, model_port)
    with Gateway(home) as gateway:
        await gateway.ready()
        await asyncio.sleep(IDLE_AFTER_S)
        resident = psutil.Process(gateway.pid).memory_info().rss / 2**20
    return Line(
        what="a gateway that has just started",
        measured=resident,
        unit=Unit.MEGABYTES,
        detail=f"resident, {IDLE_AFTER_S} s after its start",
        bar=f"< {IDLE_MAX_MB:.0f} MB",
        met=resident < IDLE_MAX_MB,
    )


async def _first_answer(home: Path) -> Line:
    """Measure from spawning the process to the end of its first answer; the second start finds its files in the cache."""
    taken: list[float] = []
    ready = 0.0
    for _ in range(4):
        with Gateway(home) as gateway:
            ready = await gateway.ready()
            heard, _ = await _ask_all(Place(port=gateway.port, model="holdfast"), "say hello", 1, 1)
            taken.append(heard[0].last - gateway.spawned_at)
    return Line(
        what="`serve` to the first answer",
        measured=median(taken[1:]),
        unit=Unit.SECONDS,
        detail=f"ready after {ready:.2f} s; the first of all starts {taken[0]:.2f} s",
        bar=f"< {ANSWERED_MAX_S} s",
        met=median(taken[1:]) < ANSWERED_MAX_S,
    )


async def _until(look: Callable[[], Awaitable[bool]], every_s: float) -> None:
    async with asyncio.timeout(load.WAIT_MAX_S):
        while True:
            if await look():
                return
            await asyncio.sleep(every_s)
