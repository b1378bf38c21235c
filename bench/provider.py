"""A memory server as the provider `http` wants one, on its own port.

python -m bench.provider            answers at once, and prints its port
python -m bench.provider MS         answers after so many milliseconds
python -m bench.provider hung       takes every request, and never answers
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from asyncio import StreamReader, StreamWriter

import uvloop

MEMORIES = [{"text": f"Said in spring that the garden needs {what}."} for what in ("water", "a fence", "more roses")]
_RECALLED = json.dumps({"memories": MEMORIES}).encode()
_TAKEN = b'{"receipt": "taken"}'


async def main(how: str) -> None:
    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                path = await _read(reader)
                if how == "hung":
                    await asyncio.Event().wait()
                if how:
                    await asyncio.sleep(int(how) / 1000)
                body = _RECALLED if path.endswith("/recall") else _TAKEN
                head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _read(reader: StreamReader) -> str:
    """Read one request, and return its path."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    lengths = [line.partition(":")[2] for line in head.split("\r\n") if line.lower().startswith("content-length:")]
    await reader.readexactly(int(lengths[0]) if lengths else 0)
    return head.split(" ", 2)[1]


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1] if len(sys.argv) > 1 else ""))
