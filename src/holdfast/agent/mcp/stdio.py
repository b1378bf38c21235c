"""An MCP server as a child process: messages are lines on stdin and stdout, and the process ends with its connection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from holdfast.agent.mcp import die_with_parent

log = logging.getLogger(__name__)

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]

# A message may hold an image.
MESSAGE_MAX_BYTES = 8 * 1024 * 1024
# How long a server may take to end by itself, and then after SIGTERM.
GRACE_S = 2.0
# The server's stderr is logged, with limits per minute and per line.
LOG_LINES_MAX = 60
LOG_LINE_MAX_CHARS = 500
_LOG_PERIOD_S = 60
_CHUNK_BYTES = 65_536


class StdioServer:
    """One run of a server's command.  `on_end` is called as soon as no more messages can come from it."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], on_end: Callable[[], None]
    ) -> None:
        self._name = name
        self._command = command
        self._environment = environment
        self._on_end = on_end
        self._log = _ServerLog(name)
        self._process: Process | None = None
        self._is_closing = False
        self.has_ended = False

    @property
    def ending(self) -> str:
        """How the process ended, in words."""
        status = self._process.returncode if self._process else None
        if status is None:
            how = "it closed its output"
        elif status < 0:
            how = f"its process was ended by {signal.Signals(-status).name}"
        else:
            how = f"its process ended with status {status}"
        return f"{how}; it last said: {self._log.last}" if status and status > 0 and self._log.last else how

    @contextlib.asynccontextmanager
    async def streams(self) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
        """Run the server for as long as the context lasts."""
        arrived, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, leaving = anyio.create_memory_object_stream[SessionMessage](0)
        with arrived, incoming, outgoing, leaving:
            process = self._process = await self._start()
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [
                        group.create_task(self._read(process, arrived)),
                        group.create_task(self._write(process, leaving, arrived)),
                        group.create_task(self._log.keep(process)),
                    ]
                    try:
                        yield incoming, outgoing
                    finally:
                        self._is_closing = True
                        incoming.close()
                        outgoing.close()
                        await _end(process)
                        for task in tasks:
                            task.cancel()
            finally:
                # Kills the server if it has not ended, and everything that it left in its group.
                _signal(process, signal.SIGKILL)
                await _wait(process)

    async def _start(self) -> Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(Path(die_with_parent.__file__)),
            str(os.getpid()),
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(self._environment),
            limit=MESSAGE_MAX_BYTES,
            start_new_session=True,
        )

    async def _read(self, process: Process, arrived: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        stdout = cast("asyncio.StreamReader", process.stdout)
        heard = True
        try:
            while line := await stdout.readline():
                if heard and (message := self._parsed(line)) is not None:
                    try:
                        await arrived.send(SessionMessage(message))
                    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                        # The session has ended, but reading goes on: a server that cannot write cannot end.
                        heard = False
            # It ended by itself, not because the connection is being closed.
            self.has_ended = not self._is_closing
        except ValueError:
            raise ConnectionError(f"it sent a message of more than {MESSAGE_MAX_BYTES} bytes") from None
        finally:
            arrived.close()
            self._on_end()

    def _parsed(self, line: bytes) -> mcp_types.JSONRPCMessage | None:
        try:
            return mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            if line.strip():
                self._log.note(f"(no message, on stdout) {line[:LOG_LINE_MAX_CHARS].decode('utf-8', 'replace')}")
            return None

    async def _write(
        self,
        process: Process,
        leaving: MemoryObjectReceiveStream[SessionMessage],
        arrived: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        stdin = cast("asyncio.StreamWriter", process.stdin)
        try:
            async for each in leaving:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(text.encode("utf-8", "replace") + b"\n")
                await stdin.drain()
        except (OSError, RuntimeError):
            # The server reads no more: end the waiting calls.
            arrived.close()


class _ServerLog:
    """Writes the server's other output to the gateway's log, bounded."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._since = 0.0
        self._lines = 0
        self.last = ""

    async def keep(self, process: Process) -> None:
        stderr = cast("asyncio.StreamReader", process.stderr)
        rest = b""
        while chunk := await stderr.read(_CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self.note(line.decode("utf-8", "replace"))
            rest = rest[:LOG_LINE_MAX_CHARS]
        self.note(rest.decode("utf-8", "replace"))

    def note(self, line: str) -> None:
        if not (line := line.strip()[:LOG_LINE_MAX_CHARS]):
            return
        self.last = line
        now = asyncio.get_running_loop().time()
        if now - self._since >= _LOG_PERIOD_S:
            self._since, self._lines = now, 0
        self._lines += 1
        if self._lines <= LOG_LINES_MAX:
            log.info("MCP server %s: %s", self._name, line)
        elif self._lines == LOG_LINES_MAX + 1:
            log.info("MCP server %s says more than %s lines a minute; the rest is left out", self._name, LOG_LINES_MAX)


async def _end(process: Process) -> None:
    """Close the server's input and wait for its end; then terminate it."""
    if process.stdin:
        process.stdin.close()
    if not await _wait(process):
        _signal(process, signal.SIGTERM)
        await _wait(process)


async def _wait(process: Process) -> bool:
    """Wait for the end of a process, and return whether it has ended in time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GRACE_S):
            await process.wait()
            return True
    return False


def _signal(process: Process, number: signal.Signals) -> None:
    """Signal the process group of a server."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
