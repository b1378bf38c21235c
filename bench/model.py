"""A model server in this process, which answers each request at once and notes when it came."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncGenerator

_PIECE = {"id": "1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "bench"}
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


class Model:
    """The requests that came, and a port."""

    def __init__(self) -> None:
        self.port = 0
        # When the first request with a message arrived, by `time.monotonic`.
        self.asked_at: dict[str, float] = {}

    @property
    def settings(self) -> str:
        """The settings of a gateway that asks it."""
        return f'[model]\nname = "openai:bench"\nbase_url = "http://127.0.0.1:{self.port}/v1"\napi_key = "bench-key"\n'

    async def converse(self, reader: StreamReader, writer: StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                text = _last_message(await _read(reader))
                self.asked_at.setdefault(text, time.monotonic())
                body = _answer(f"I heard: {text}")
                writer.write(_HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def model() -> AsyncGenerator[Model]:
    """Run a model server."""
    there = Model()
    server = await asyncio.start_server(there.converse, "127.0.0.1", 0)
    there.port = server.sockets[0].getsockname()[1]
    try:
        yield there
    finally:
        server.close()


async def _read(reader: StreamReader) -> bytes:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = next((line.partition(":")[2] for line in head.split("\r\n") if line.startswith("content-length:")), "0")
    return await reader.readexactly(int(length))


def _last_message(body: bytes) -> str:
    content = json.loads(body)["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _answer(text: str) -> bytes:
    said = {**_PIECE, "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}]}
    over = {**_PIECE, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return "".join(f"data: {json.dumps(each)}\n\n" for each in (said, over)).encode() + b"data: [DONE]\n\n"
