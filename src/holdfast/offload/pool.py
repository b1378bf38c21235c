"""The pool: a few child processes that are kept warm and shared fairly between users.

A child starts on demand, ends when it is idle for long, and is replaced after a number of calls.  A call that takes too long
is killed with its child.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TypeVar, cast

import msgspec

from holdfast.errors import Rejected, Unavailable
from holdfast.offload.function import (
    HEAD_BYTES,
    INPUT_MAX_BYTES,
    OUT_OF_MEMORY,
    Offloadable,
    OffloadCall,
    OffloadReply,
    expected_error,
)

log = logging.getLogger(__name__)

A = TypeVar("A")
R = TypeVar("R")

# One more than a single user may have, so that one child is always left for the others.
CHILDREN = max(3, os.cpu_count() or 1)
CALLS_MAX = 200
IDLE_S = 60.0
START_MAX_S = 30.0
# The CPU limit has whole seconds, and only has to end a child whose gateway is gone.
CPU_MARGIN_S = 2

_decoder = msgspec.msgpack.Decoder(OffloadReply)
_encoder = msgspec.msgpack.Encoder()


class ChildLost(Exception):
    """A child process ended without a response."""


@dataclass(slots=True)
class _Child:
    """A child process."""

    process: Process
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    calls: int = 0
    idle: asyncio.TimerHandle | None = None

    async def ask(self, call: bytes) -> bytes:
        """Send a frame and return the response.  Raises `ChildLost`."""
        self.stdin.write(len(call).to_bytes(HEAD_BYTES, "big") + call)
        return await self.read()

    async def read(self) -> bytes:
        try:
            return await self.stdout.readexactly(int.from_bytes(await self.stdout.readexactly(HEAD_BYTES), "big"))
        except asyncio.IncompleteReadError as error:
            raise ChildLost from error

    async def kill(self) -> None:
        if self.idle:
            self.idle.cancel()
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()


class Pool:
    """Runs offloadable functions in child processes."""

    def __init__(self, children: int = CHILDREN, *, calls_max: int = CALLS_MAX, idle_s: float = IDLE_S) -> None:
        self._size = children
        self._calls_max = calls_max
        self._idle_s = idle_s
        self._idle: list[_Child] = []
        self._ending: set[asyncio.Task[None]] = set()
        self._busy: Counter[str] = Counter()
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []

    async def run(self, function: Offloadable[A, R], argument: A, timeout_s: float, *, user: str = "") -> R:
        """Return the result of a call.  One user, such as a session, never takes all children at once.

        Raises `TimeoutError` if the call itself takes longer than `timeout_s`, `Rejected` if it needs too much memory, and
        the expected errors of the function.
        """
        call = OffloadCall(
            function=function.name, argument=_encoder.encode(argument), cpu_s=math.ceil(timeout_s) + CPU_MARGIN_S
        )
        frame = _encoder.encode(call)
        if len(frame) > INPUT_MAX_BYTES:
            raise Rejected(f"{len(frame):,} bytes are too many; at most {INPUT_MAX_BYTES:,} can be processed")
        async with self._slot(user), self._child() as child:
            async with asyncio.timeout(timeout_s):
                reply = _decoder.decode(await child.ask(frame))
        if reply.result is not None:
            return cast("R", msgspec.msgpack.decode(reply.result, type=function.types()[1]))
        if error := expected_error(reply):
            raise error
        if reply.error == OUT_OF_MEMORY:
            raise Rejected("this needs too much memory; make it smaller")
        log.error("%s failed: %s: %s", function.name, reply.error, reply.message)
        raise Unavailable(f"this failed with {reply.error}; try another way")

    async def close(self) -> None:
        """End all idle children.  Call it when nothing runs any more."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(child.kill() for child in idle), *self._ending)

    @contextlib.asynccontextmanager
    async def _slot(self, user: str) -> AsyncGenerator[None]:
        """Wait until this user may have a child."""
        if not self._has_room(user):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append((user, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.cancelled():
                    self._waiting.remove((user, turn))
                else:
                    self._release(user)
                raise
        else:
            self._busy[user] += 1
        try:
            yield
        finally:
            self._release(user)

    def _has_room(self, user: str) -> bool:
        return self._busy.total() < self._size and self._busy[user] < max(self._size - 1, 1)

    def _release(self, user: str) -> None:
        self._busy[user] -= 1
        if not self._busy[user]:
            del self._busy[user]
        for place, (each, turn) in enumerate(self._waiting):
            if self._has_room(each):
                del self._waiting[place]
                self._busy[each] += 1
                turn.set_result(None)
                return

    @contextlib.asynccontextmanager
    async def _child(self) -> AsyncGenerator[_Child]:
        """Yield a child that is ready, and keep it for the next call unless this one broke off."""
        child = self._warm() or await self._start()
        done = False
        try:
            yield child
            child.calls += 1
            done = child.calls < self._calls_max
        except ChildLost:
            status = await child.process.wait()
            raise Unavailable(f"the process that did this ended with status {status}; try something simpler") from None
        finally:
            if done:
                child.idle = asyncio.get_running_loop().call_later(self._idle_s, self._retire, child)
                self._idle.append(child)
            else:
                await asyncio.shield(self._end(child))

    def _warm(self) -> _Child | None:
        """Return an idle child; None if all are busy or gone."""
        while self._idle:
            child = self._idle.pop()
            if child.idle:
                child.idle.cancel()
            if child.process.returncode is None:
                return child
        return None

    async def _start(self) -> _Child:
        # `-I`: neither the working folder nor the environment can replace a module of the program.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-m", "holdfast.offload.child"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={},
            start_new_session=True,
        )
        child = _Child(process, cast("asyncio.StreamWriter", process.stdin), cast("asyncio.StreamReader", process.stdout))
        try:
            async with asyncio.timeout(START_MAX_S):
                await child.read()
        except (ChildLost, TimeoutError):
            await asyncio.shield(self._end(child))
            raise Unavailable("a process for this could not be started; try again") from None
        except BaseException:
            await asyncio.shield(self._end(child))
            raise
        return child

    def _retire(self, child: _Child) -> None:
        self._idle.remove(child)
        self._end(child)

    def _end(self, child: _Child) -> asyncio.Task[None]:
        """Kill a child, in a task that is not cancelled with its caller."""
        ending = asyncio.create_task(child.kill())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return ending
