"""The pool: calls run in children that are killed when they take too long, and that hold nothing of the gateway."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from pathlib import Path

import psutil
import pytest

from holdfast.agent.processes.patterns import Matches, MatchInput, compile_all, match
from holdfast.agent.tools.pages import Download, read_download
from holdfast.errors import Rejected, Unavailable
from holdfast.offload.function import Offloadable, offloadable
from holdfast.offload.pool import Pool
from tests.engine.world import until

FOREVER = MatchInput(patterns=("(a|a)*b",), lines=[b"a" * 100])


def children() -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for each in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            found += [each] if "holdfast.offload.child" in each.cmdline() else []
    return found


async def test_a_call_runs_in_a_child_that_is_kept_for_the_next_one(pool: Pool) -> None:
    output = MatchInput(patterns=("o+",), lines=[b"foo", b"bar"])
    assert (await pool.run(match, output, 5)).lines == ["foo"]
    (child,) = children()
    assert (await pool.run(match, output, 5)).lines == ["foo"]
    assert children() == [child]


async def test_a_call_that_takes_too_long_is_killed_with_its_child_and_the_loop_goes_on(pool: Pool) -> None:
    """S6: the expression holds the interpreter that runs it, which is not the gateway's."""
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - before)

    beating = asyncio.create_task(beat())
    with pytest.raises(TimeoutError):
        await pool.run(match, FOREVER, 1)
    beating.cancel()
    assert longest < 0.5
    assert children() == []


async def test_a_call_that_is_cancelled_is_killed_with_its_child(pool: Pool) -> None:
    task = asyncio.create_task(pool.run(match, FOREVER, 60))
    await until(children)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not children())


async def test_a_call_that_needs_too_much_memory_fails_alone(pool: Pool) -> None:
    html = b'<base href="http://a/' + b"x" * 100_000 + b'/">' + b"<a href=y>y</a>" * 100_000
    page = Download(body=html, charset=None, url="http://a/", is_html=True, chars_max=100)
    with pytest.raises((Rejected, Unavailable)):
        await pool.run(read_download, page, 60)
    await pool.run(compile_all, ["a"], 5)


async def test_what_a_call_raises_on_purpose_is_raised_here(pool: Pool) -> None:
    with pytest.raises(Rejected, match="is not a regular expression"):
        await pool.run(compile_all, ["("], 5)


def unmarked(text: str) -> str:
    return text


async def test_only_offloadable_functions_are_run(pool: Pool) -> None:
    pretender: Offloadable[str, str] = Offloadable(unmarked)
    with pytest.raises(Unavailable):
        await pool.run(pretender, "x", 5)


async def test_a_child_has_no_socket_of_the_gateway_and_none_of_its_environment(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret that a child does not have cannot be read by what runs in it."""
    monkeypatch.setenv("HOLDFAST_TEST_SECRET", "hunter22")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        os.set_inheritable(listener.fileno(), True)
        await pool.run(compile_all, ["a"], 5)
        (child,) = children()
        assert child.environ() == {}
        files = [str(each.readlink()) for each in Path(f"/proc/{child.pid}/fd").iterdir()]
        assert not any(each.startswith(f"socket:[{os.fstat(listener.fileno()).st_ino}]") for each in files)


async def test_one_user_never_takes_all_children() -> None:
    pool = Pool(2)
    greedy = [asyncio.create_task(pool.run(match, FOREVER, 60, user="greedy")) for _ in range(5)]
    await until(children)
    assert isinstance(await pool.run(match, MatchInput(patterns=("a",), lines=[b"a"]), 5, user="other"), Matches)
    assert not any(each.done() for each in greedy)
    for each in greedy:
        each.cancel()
    await asyncio.wait(greedy)
    await pool.close()


async def test_a_child_is_replaced_after_some_calls_and_ends_when_nobody_needs_it() -> None:
    pool = Pool(calls_max=2, idle_s=0.05)
    await pool.run(compile_all, ["a"], 5)
    (first,) = children()
    await pool.run(compile_all, ["a"], 5)
    assert children() == []
    await pool.run(compile_all, ["a"], 5)
    assert children() != [first]
    await until(lambda: not children())
    await pool.close()


async def test_a_child_that_died_is_replaced(pool: Pool) -> None:
    await pool.run(compile_all, ["a"], 5)
    (child,) = children()
    child.kill()
    await until(lambda: pool._idle[0].process.returncode is not None)
    await pool.run(compile_all, ["a"], 5)
    assert len(children()) == 1


def test_a_call_can_be_called_here_too() -> None:
    assert offloadable(unmarked)("x") == "x"
