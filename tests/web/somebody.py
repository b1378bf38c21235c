"""Another user of this machine, who asks the gateway something with a program of their own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
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
# Says how many of its connections are still open each time that it is sent a line.
_HOLD = """
use IO::Socket::INET; use IO::Select;
my ($where, $request, $count, @from) = @ARGV;
my @held;
$SIG{PIPE} = 'IGNORE';
for my $local (@from) {
    for (1 .. $count) {
        my $to = IO::Socket::INET->new(PeerAddr => $where, LocalAddr => $local) or next;
        syswrite $to, $request;
        push @held, $to;
    }
}
$| = 1;
while (<STDIN>) {
    my %ended = map { $_ => 1 } IO::Select->new(@held)->can_read(0);
    @held = grep { !$ended{$_} } @held;
    print scalar(@held), "\\n";
}
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    body: Any


@contextlib.asynccontextmanager
async def holding(where: str, request: str, count: int, *addresses: str) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    """Send a request by so many connections from each address as another user; tells how many of them are open."""
    program = [_found("perl"), "-e", _HOLD, urlsplit(where).netloc, request, str(count), *addresses]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*_being(UID), *program, stdin=pipe, stdout=pipe, cwd="/")
    told, asked = process.stdout, process.stdin
    assert told
    assert asked

    async def count_open() -> int:
        asked.write(b"\n")
        return int(await told.readline())

    try:
        yield count_open
    finally:
        process.kill()
        await process.wait()


async def ask(where: str | Path, method: str, path: str, body: object = None, *, uid: int = UID, **headers: str) -> Answer:
    """Ask as another user; `where` is the gateway's URL, or its socket."""
    address = str(where) if isinstance(where, Path) else urlsplit(where).netloc
    sent = json.dumps(body) if body is not None else ""
    shown = {"host": "127.0.0.1", "connection": "close", "content-type": "application/json", **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in shown.items())]
    request = "\r\n".join([*lines, f"content-length: {len(sent.encode())}", "", sent])
    program = [_found("perl"), "-e", _ASK, address, request]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*_being(uid), *program, stdout=pipe, stderr=pipe, cwd="/")
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert out, err.decode()
    head, _, answer = out.partition(b"\r\n\r\n")
    return Answer(int(head.split()[1]), json.loads(answer) if answer.startswith((b"{", b"[")) else answer.decode())


def _being(uid: int) -> list[str]:
    return [_found("setpriv"), f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


def _found(program: str) -> str:
    path = shutil.which(program)
    assert path, f"there is no {program} on this machine"
    return path
