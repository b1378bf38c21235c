"""What one streamed token costs in CPU, from the socket of a model server to the event: `python -m tests.models.cost`."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import uvloop

from holdfast.agent.models.anthropic import Anthropic
from holdfast.agent.models.client import ModelClient
from holdfast.agent.models.failures import ModelEndpoint
from holdfast.agent.models.openai import OpenAI
from holdfast.agent.models.port import Done, Facts, Model, Request, UserMessage

STREAMS = 50
TOKENS = 300
FACTS = Facts(context_tokens=100_000)


async def read(model: Model, script: str) -> int:
    events = 0
    async for event in model.stream(Request(messages=[UserMessage(text=f"script: {script}")])):
        events += not isinstance(event, Done)
    return events


async def measure(port: int) -> None:
    client = ModelClient()
    url = f"http://127.0.0.1:{port}/v1"
    models: list[Model] = [
        OpenAI(
            client=client,
            endpoint=ModelEndpoint(name="openai", url=f"{url}/chat/completions", headers={}),
            model="m",
            facts=FACTS,
        ),
        Anthropic(
            client=client,
            endpoint=ModelEndpoint(name="anthropic", url=f"{url}/messages", headers={}),
            model="m",
            facts=FACTS,
        ),
    ]
    for model in models:
        await asyncio.gather(*[read(model, "stream 10 at 0") for _ in range(STREAMS)])
        for rate in (60, 0):
            begun = time.process_time()
            events = sum(await asyncio.gather(*[read(model, f"stream {TOKENS} at {rate}") for _ in range(STREAMS)]))
            cost = (time.process_time() - begun) / (STREAMS * TOKENS) * 1e6
            pace = f"{rate} per second" if rate else "as fast as they come"
            print(f"{model.name:10} {pace:22} {cost:5.1f} µs per token, {STREAMS * TOKENS / events:4.1f} tokens per event")
    await client.close()


def main() -> None:
    command = [sys.executable, "-m", "tests.models.servers"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            uvloop.run(measure(int(server.stdout.readline())))
        finally:
            server.kill()


if __name__ == "__main__":
    main()
