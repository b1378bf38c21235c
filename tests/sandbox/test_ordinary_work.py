"""Ordinary work in the sandbox: what a person has an agent for goes on working, offline and through the proxy."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import zipfile
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.sandbox import Sandbox, SandboxKind, profile, scrubbed
from holdfast.sandbox.proxy import HostRules, Network, NetworkAccess, is_named
from tests import machine

CONFINING = pytest.mark.parametrize("kind", machine.CONFINING)
KINDS = pytest.mark.parametrize("kind", [*machine.CONFINING, machine.LANDLOCK])

WORK = {
    "git": "git init -q . && git config user.name A && git config user.email a@example.org && echo x > f && git add f && "
    "git commit -qm first && git log --oneline | grep -q first && git status",
    "python3": "python3 -c 'import ssl, sqlite3, tempfile, asyncio; tempfile.TemporaryFile().write(b\"x\")'",
    "venv": "python3 -m venv --without-pip env && env/bin/python -c 'print(1)'",
    "node": 'echo \'require("fs").writeFileSync("n", "x"); require("child_process").execSync("true")\' > a.js && node a.js',
    "npm": 'echo \'{"name": "a", "version": "1.0.0", "scripts": {"go": "node -e 1"}}\' > package.json && npm run -s go',
    "make": "printf 'all:\\n\\techo made > out\\n' > Makefile && make && cat out",
    "gcc": "printf 'int main(){return 0;}' > a.c && gcc a.c -o a && ./a",
    "java": "java -version",
    "tar": "mkdir d && echo > d/f && tar czf d.tgz d && rm -r d && tar xzf d.tgz && cat d/f && chmod 755 d/f && cp -p d/f g",
    "bash": "bash -c 'diff <(echo a) <(echo a) && mktemp && nproc && echo $(id -un)'",
}


async def run(box: Sandbox, script: str, access: NetworkAccess | None = None) -> tuple[int | None, str]:
    argv, variables = box.wrap(["/bin/sh", "-ec", script], box.workspace, access)
    running = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        env={**scrubbed(os.environ), **variables},
        cwd=box.workspace,
        start_new_session=True,
    )
    output, _ = await running.communicate()
    return running.returncode, output.decode("utf-8", "replace")


@KINDS
@pytest.mark.parametrize("name", WORK)
async def test_tools_work_in_the_workspace_without_a_network(kind: SandboxKind, name: str, tmp_path: Path) -> None:
    """SECURITY 10: what people have an agent for."""
    if not shutil.which("python3" if name == "venv" else name):
        pytest.skip(f"there is no {name} on this machine")
    box = await Sandbox.find("auto", profile(tmp_path), kinds=[kind])
    code, output = await run(box, WORK[name])
    assert code == 0, output


@CONFINING
async def test_processes_share_memory_and_a_server_of_the_command_is_reached(kind: SandboxKind, tmp_path: Path) -> None:
    script = (
        "import http.server, multiprocessing, threading, urllib.request\n"
        "assert multiprocessing.Pool(2).map(abs, [-1, -2]) == [1, 2]\n"
        "server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n"
        "threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        "assert urllib.request.urlopen(f'http://localhost:{server.server_port}/').status == 200\n"
    )
    (tmp_path / "work").mkdir()
    (tmp_path / "work/share.py").write_text(script)
    box = await Sandbox.find("on", profile(tmp_path / "work"), kinds=[kind])
    async with Network(tmp_path).opened(HostRules()) as access:
        code, output = await run(box, "python3 share.py", access)
    assert code == 0, output


def wheel() -> bytes:
    """Return a package that can be installed."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("tiny.py", "ANSWER = 42\n")
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    return held.getvalue()


@asynccontextmanager
async def registry() -> AsyncGenerator[int]:
    """Run a registry with one package in it."""
    answers = {
        "/simple/tiny/": ("text/html", b'<!DOCTYPE html><a href="/tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>'),
        "/tiny-1.0-py3-none-any.whl": ("application/octet-stream", wheel()),
    }

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        kind, body = answers.get(path, ("text/plain", b"no"))
        writer.write(f"HTTP/1.1 {200 if path in answers else 404} .\r\nContent-Type: {kind}\r\n".encode())
        writer.write(f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def on_loopback(_host: str, _port: int) -> Sequence[str]:
    return ["127.0.0.1"]


@CONFINING
async def test_pip_installs_through_the_proxy_from_a_host_that_was_allowed(kind: SandboxKind, tmp_path: Path) -> None:
    """SECURITY 6: and says what it was refused where it was not."""
    (tmp_path / "work").mkdir()
    box = await Sandbox.find("on", profile(tmp_path / "work"), kinds=[kind])
    async with registry() as port:
        name = f"registry.test:{port}"
        network = Network(tmp_path, on_loopback, [name])
        pip = f"env/bin/pip install -q --retries 0 --disable-pip-version-check --index-url http://{name}/simple "
        pip += "--trusted-host registry.test tiny"
        code, output = await run(box, "python3 -m venv env")
        assert code == 0, output
        async with network.opened(HostRules()) as access:
            code, _ = await run(box, pip, access)
            assert (code, access.refused) == (1, {name})
        async with network.opened(HostRules(allowed=lambda host, at: is_named(host, at, [name]))) as access:
            code, output = await run(box, f"{pip} && env/bin/python -c 'import tiny; print(tiny.ANSWER)'", access)
            assert (code, output[-3:], access.refused) == (0, "42\n", set()), output
