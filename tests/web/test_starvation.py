"""A request that there is no memory for is refused as one that may come again; neither it nor the gateway is to blame."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import zlib
from pathlib import Path

import httpx2
import pytest
import uvicorn
from uvicorn.server import ServerState

from holdfast.web import requests
from holdfast.web.protocol import BoundedProtocol
from tests.blackbox.gateway import gateways

ROOM = 48 * 1024 * 1024
# Far more than that when it is decoded.
LARGE = b'{"input": [' + b"[]," * (2 * 1024 * 1024) + b"[]]}"
JSON = {"Content-Type": "application/json"}

_DECODING = """
import resource
from holdfast.web import requests
raw = b'{"text": "' + b"x" * (32 << 20) + b'"}'
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (16 << 20),) * 2)
try:
    requests._parse(raw, dict)
except MemoryError:
    print("refused")
"""


class StarvedAtBody(BoundedProtocol):
    """Has no memory for any body."""

    def on_body(self, body: bytes) -> None:
        raise MemoryError


class StarvedAtOnce(BoundedProtocol):
    """Has not even memory to read a head."""

    def on_url(self, url: bytes) -> None:
        raise MemoryError


async def asked(protocol: type[BoundedProtocol]) -> httpx2.Response:
    """Return what a client is answered that sends a good request."""
    config = uvicorn.Config(lambda *_: None, http=protocol, ws="none", lifespan="off", log_config=None)
    config.load()
    loop = asyncio.get_running_loop()
    state = ServerState()
    server = await loop.create_server(lambda: protocol(config, state, {}), "127.0.0.1", 0)
    async with server, httpx2.AsyncClient(verify=False, trust_env=False, timeout=20) as web:
        host, port = server.sockets[0].getsockname()
        return await web.post(f"http://{host}:{port}/", json={"text": "good"})


@pytest.mark.parametrize("protocol", [StarvedAtBody, StarvedAtOnce])
async def test_a_request_that_cannot_be_read_for_want_of_memory_is_no_bad_request(protocol: type[BoundedProtocol]) -> None:
    """The parser tells every error of ours as one of the client's; this one is told apart, and may be sent again."""
    answer = await asked(protocol)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_memory")
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.headers["Connection"] == "close"


async def test_a_body_that_cannot_be_decoded_for_want_of_memory_is_refused_and_taken_later() -> None:
    with gateways() as (gateway,):
        await gateway.start()
        async with httpx2.AsyncClient(base_url=gateway.url, verify=False, trust_env=False, timeout=40) as web:
            await web.post("/v1/runs", json={"input": "hello"})
            process = gateway.process.pid
            pages = int(Path(f"/proc/{process}/statm").read_text().split()[0])
            before = resource.prlimit(process, resource.RLIMIT_AS)
            resource.prlimit(process, resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, before[1]))
            answer = await web.post("/v1/runs", content=LARGE, headers=JSON)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_memory"), answer.text
            assert int(answer.headers["Retry-After"]) > 0
            # Others are answered meanwhile.
            assert (await web.post("/v1/runs", json={"input": "hello"})).status_code == 202
            resource.prlimit(process, resource.RLIMIT_AS, before)
            answer = await web.post("/v1/runs", content=LARGE, headers=JSON)
            # It is read now, and found to be no message.
            assert (answer.status_code, answer.json()["error"]["code"] != "no_memory") == (400, True), answer.text


def test_the_decoder_does_not_crash_the_process_for_want_of_memory() -> None:
    """It does not look whether it was given the memory for a long text, so that is looked at before."""
    found = subprocess.run([sys.executable, "-c", _DECODING], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout) == (0, "refused\n"), found.stderr


def test_a_packed_body_that_finds_no_memory_is_told_from_a_bad_one() -> None:
    with pytest.raises(zlib.error) as bad:
        zlib.decompress(b"not packed")
    assert not requests._lacks_memory(bad.value)
    # As zlib tells it, which cannot be made to run out of memory by itself.
    assert requests._lacks_memory(zlib.error("Error -4 while decompressing data"))
