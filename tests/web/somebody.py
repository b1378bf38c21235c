"""Another user of this machine, who asks the gateway something with a program of their own."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

# Nobody that the gateway could be.
UID = 61_234
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
# Every Debian has it, and unlike the Python of this test, every user can start it.
_ASK = """
use IO::Socket::INET; use IO::Socket::UNIX;
my ($where, $request) = @ARGV;
my $to = $where =~ m{^/} ? IO::Socket::UNIX->new(Peer => $where) : IO::Socket::INET->new(PeerAddr => $where);
die "cannot connect: $!" unless $to;
print $to $request;
print while <$to>;
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    body: Any


async def ask(where: str | Path, method: str, path: str, body: object = None, *, uid: int = UID, **headers: str) -> Answer:
    """Ask as another user; `where` is the gateway's URL, or its socket."""
    address = str(where) if isinstance(where, Path) else urlsplit(where).netloc
    sent = json.dumps(body) if body is not None else ""
    shown = {"host": "127.0.0.1", "connection": "close", "content-type": "application/json", **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in shown.items())]
    request = "\r\n".join([*lines, f"content-length: {len(sent.encode())}", "", sent])
    program = [_found("perl"), "-e", _ASK, address, request]
    being = [_found("setpriv"), f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*being, *program, stdout=pipe, stderr=pipe, cwd="/")
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert out, err.decode()
    head, _, answer = out.partition(b"\r\n\r\n")
    return Answer(int(head.split()[1]), json.loads(answer) if answer.startswith((b"{", b"[")) else answer.decode())


def _found(program: str) -> str:
    path = shutil.which(program)
    assert path, f"there is no {program} on this machine"
    return path
