"""The least that can stand between a model and its reader: bytes are passed on, nothing is read and nothing is kept.

python -m bench.proxy PORT        passes on to that port of this machine, and prints its own
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio import StreamReader, StreamWriter

import uvloop

READ_BYTES = 1 << 16


async def pass_on(reader: StreamReader, writer: StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(READ_BYTES):
            writer.write(piece)
            await writer.drain()
    writer.close()


async def main(target: int) -> None:
    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(pass_on(reader, back), pass_on(there, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
