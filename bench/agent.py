"""What the gateway itself costs between a model and its reader: every token, every turn, the first word, and doing nothing.

The model server, the gateway and the readers are processes of their own; what is counted is the processor time of the
gateway's, all threads, less what it uses when nothing happens.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Literal

from bench.client import Client, Conversation
from bench.gateway import Gateway, cpu_s
from bench.ground import Ground
from bench.producers import median
from bench.report import Line, Unit

TOKENS_PER_S = 60
STREAMS = 50
TOKEN_MAX_US = 100.0
CORE_MAX = 0.40
FIRST_TOKEN_MAX_MS = 5.0
TURN_MAX_MS = 5.0
IDLE_CORE_MAX = 0.02
# How much a stream says that is as fast as it can.
BURST_TOKENS = 5_000

Format = Literal["openai", "anthropic"]
_FORMATS: tuple[Format, ...] = ("openai", "anthropic")
_PATHS: dict[Format, str] = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A gateway before a model server, and what it uses of a core while nothing happens."""

    gateway: Gateway
    client: Client
    model_port: int
    idle: float

    async def conversations(self, count: int) -> list[Conversation]:
        return [await Conversation.open(self.client, self.gateway.port) for _ in range(count)]

    async def cost(self, work: Callable[[], Awaitable[None]]) -> tuple[float, float]:
        """Return the seconds of the processor that some work takes the gateway, and how long it lasts."""
        return await _cost(self.gateway.cpu_s, work, self.idle)


async def run(ground: Ground) -> list[Line]:
    lines: list[Line] = []
    with printing_port("tests.models.servers") as (model_port, _):
        for each in _FORMATS:
            async with _scene(ground, each, model_port) as scene:
                lines += [*await _streams(ground, each, scene), await _first_token(ground, each, scene)]
                if each == "openai":
                    lines += [*await _turns(ground, scene), *await _idle(ground, scene)]
    return lines


async def _streams(ground: Ground, wire: Format, scene: Scene) -> list[Line]:
    """Measure tokens at the pace of people, of one stream and of many, and as fast as they come."""
    seconds = 3 if ground.quick else 10
    each = seconds * TOKENS_PER_S
    many, lasted = await _speak(scene, each, TOKENS_PER_S, STREAMS)
    one, _ = await _speak(scene, each, TOKENS_PER_S, 1)
    burst, _ = await _speak(scene, BURST_TOKENS, 0, 1)
    # What comes with every turn is no cost of its tokens.
    turns, _ = await _speak(scene, 1, 0, STREAMS)
    raw = await _passed_on(scene.model_port, wire, f"stream {each} at {TOKENS_PER_S}", STREAMS)
    tokens = STREAMS * each
    token = (many - turns) / tokens * 1e6
    alone = (one - turns / STREAMS) / each * 1e6
    rush = (burst - turns / STREAMS) / BURST_TOKENS * 1e6
    core = many / seconds
    return [
        Line(
            what=f"{wire}: a token, {STREAMS} streams at {TOKENS_PER_S}/s",
            measured=token,
            unit=Unit.MICROSECONDS,
            detail=f"{alone:.0f} for one stream alone, {rush:.0f} in a burst",
            raw=raw / tokens * 1e6,
            bar=f"< {TOKEN_MAX_US:.0f} µs",
            met=token < TOKEN_MAX_US,
            note="processor time, less what the turns around them cost; raw: a proxy that passes bytes on",
        ),
        Line(
            what=f"{wire}: {STREAMS} streams at {TOKENS_PER_S}/s",
            measured=core * 100,
            unit=Unit.PERCENT,
            detail=f"of one core; they took {lasted:.1f} s for {seconds} s of tokens",
            raw=raw / seconds * 100,
            bar=f"< {CORE_MAX:.0%}",
            met=core < CORE_MAX,
        ),
    ]


async def _speak(scene: Scene, tokens: int, rate: int, streams: int) -> tuple[float, float]:
    """Let the model speak in many conversations at once until all is told; return what that costs and how long it lasts."""
    conversations = await scene.conversations(streams)

    async def work() -> None:
        for each in conversations:
            await each.say(f"script: stream {tokens} at {rate}")
        for each in conversations:
            await each.heard(f" word{tokens - 1}")
            await each.completed()

    try:
        return await scene.cost(work)
    finally:
        for each in conversations:
            each.close()


async def _passed_on(model_port: int, wire: Format, script: str, streams: int) -> float:
    """Return what the same tokens cost a proxy that does nothing with them."""
    with printing_port("bench.proxy", str(model_port)) as (port, pid):

        async def work() -> None:
            clients = [await Client.of(port) for _ in range(streams)]
            for each in clients:
                each.send("POST", _PATHS[wire], _request(script))
            await asyncio.gather(*(each.until(b"\r\n0\r\n") for each in clients))
            for each in clients:
                each.close()

        return (await _cost(lambda: cpu_s(pid), work))[0]


async def _first_token(ground: Ground, wire: Format, scene: Scene) -> Line:
    """Measure how much later a reader has the first word than one who asks the model itself."""
    rounds = 20 if ground.quick else 100
    straight = await Client.of(scene.model_port)
    direct: list[float] = []
    through: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        straight.send("POST", _PATHS[wire], _request("say hello"))
        await straight.until(b"hello")
        direct.append((time.perf_counter() - began) * 1000)
        await straight.until(b"\r\n0\r\n")
        (conversation,) = await scene.conversations(1)
        began = time.perf_counter()
        await conversation.say("script: say hello")
        await conversation.heard('"kind":"text"')
        through.append((time.perf_counter() - began) * 1000)
        await conversation.completed()
        conversation.close()
    straight.close()
    later = median(through) - median(direct)
    return Line(
        what=f"{wire}: the first token",
        measured=median(through),
        unit=Unit.MILLISECONDS,
        detail=f"{later:.1f} ms later, at the median of {rounds}",
        raw=median(direct),
        bar=f"< {FIRST_TOKEN_MAX_MS:.0f} ms later",
        met=later < FIRST_TOKEN_MAX_MS,
        note="from sending the message; raw: straight from the model server",
    )


async def _turns(ground: Ground, scene: Scene) -> list[Line]:
    count = 30 if ground.quick else 200
    new = await scene.conversations(count)
    (old,) = await scene.conversations(1)
    call = 'call todo {"items": [{"text": "look", "state": "open"}]} | say done'
    return [
        await _turn(scene, "a turn in a new session", new, "say hello"),
        await _turn(scene, f"a turn in a session of {count}", [old] * count, "say hello"),
        await _turn(scene, "a turn with a tool call", new, call),
    ]


async def _turn(scene: Scene, what: str, conversations: list[Conversation], script: str) -> Line:
    async def work() -> None:
        for each in conversations:
            await each.say(f"script: {script}")
            await each.completed()

    used, _ = await scene.cost(work)
    each_ms = used / len(conversations) * 1000
    return Line(
        what=what,
        measured=each_ms,
        unit=Unit.MILLISECONDS,
        detail=f"of processor time, mean of {len(conversations)}",
        bar=f"< {TURN_MAX_MS:.0f} ms",
        met=each_ms < TURN_MAX_MS,
    )


async def _idle(ground: Ground, scene: Scene) -> list[Line]:
    """Measure a gateway that has nothing to do, alone and with a reader."""
    seconds = 5 if ground.quick else 20
    await scene.conversations(1)
    followed, _ = await _cost(scene.gateway.cpu_s, lambda: asyncio.sleep(seconds))
    core = followed / seconds
    return [
        Line(
            what="doing nothing",
            measured=core * 100,
            unit=Unit.PERCENT,
            detail=f"of one core, with readers of old sessions; {scene.idle * 100:.2g} before anybody came",
            bar=f"< {IDLE_CORE_MAX:.0%}",
            met=core < IDLE_CORE_MAX,
        )
    ]


def _request(script: str) -> dict[str, object]:
    messages = [{"role": "user", "content": f"script: {script}"}]
    return {"model": "bench", "messages": messages, "stream": True, "max_tokens": 1_000}


async def _cost(used_s: Callable[[], float], work: Callable[[], Awaitable[None]], idle: float = 0.0) -> tuple[float, float]:
    began, before = time.perf_counter(), used_s()
    await work()
    lasted = time.perf_counter() - began
    return used_s() - before - idle * lasted, lasted


@contextlib.asynccontextmanager
async def _scene(ground: Ground, wire: Format, model_port: int) -> AsyncGenerator[Scene]:
    home = ground.home()
    (home / "holdfast.toml").write_text(
        f'[model]\nname = "{wire}:bench"\nbase_url = "http://127.0.0.1:{model_port}/v1"\napi_key = "bench-key"\n'
        '[tools.terminal]\nsandbox = "off"\napproval = "allow"\n'
    )
    (home / "holdfast.toml").chmod(0o600)
    with Gateway(home) as gateway:
        await gateway.ready()
        seconds = 5 if ground.quick else 20
        idle, _ = await _cost(gateway.cpu_s, lambda: asyncio.sleep(seconds))
        client = await Client.of(gateway.port)
        scene = Scene(gateway=gateway, client=client, model_port=model_port, idle=idle / seconds)
        # What is imported and made when it is first needed is no cost of a turn.
        await _speak(scene, 3, 0, 1)
        yield scene
        client.close()


@contextlib.contextmanager
def printing_port(module: str, *args: str) -> Generator[tuple[int, int]]:
    """Run a module that prints its port; yields that and its process."""
    command = [sys.executable, "-m", module, *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout
        try:
            yield int(process.stdout.readline()), process.pid
        finally:
            process.kill()
