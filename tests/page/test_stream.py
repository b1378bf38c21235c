"""An answer that streams through failures: each word is on the page exactly once, at every moment."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from playwright.async_api import expect

from tests.blackbox.gateway import gateways
from tests.line import Line, line
from tests.page.browser import Visit, at_home, needs_browser, say, visiting
from tests.page.words import Reader, answers

pytestmark = needs_browser
COUNT = 24
# More than what is streamed while the connection is down.
LONG_COUNT = 90
CUT_S = 10
# How long a page waits on a silent connection, plus the time to reconnect.
DEAD_S = 60
# A number at the edge may grow by a digit; a line that shifts the text is more than this.
SHIFT_MAX = 0.005
GOES_ON = {"gateway__resume": "auto"}


@contextlib.asynccontextmanager
async def over_a_line() -> AsyncIterator[tuple[Visit, httpx2.AsyncClient, Line]]:
    """A browser behind a proxy, and a client directly at the gateway."""
    with gateways() as (gateway,):
        await gateway.start()
        async with (
            line(gateway) as cable,
            httpx2.AsyncClient(base_url=gateway.url, verify=False, trust_env=False) as web,
            visiting(gateway, cable.url) as visit,
        ):
            yield visit, web, cable


@contextlib.asynccontextmanager
async def reading(visit: Visit, count: int = COUNT) -> AsyncIterator[Reader]:
    """Start a reader who has asked for a slow answer and has seen its fifth word."""
    reader = Reader(await visit.tab())
    await reader.begin()
    await say(reader.page, f"count to {count}, slowly")
    await reader.has_read("5")
    yield reader


async def check(reader: Reader, web: httpx2.AsyncClient, count: int = COUNT) -> None:
    """Check that the answer completes, and that every moment showed a prefix of it."""
    await reader.has_read(f"{count}.")
    answer = await answers(web)
    assert answer.split()[-count:] == [*map(str, range(1, count)), f"{count}."]
    reader.check(answer)
    await expect(reader.page.get_by_role("button", name="Copy the answer")).to_be_visible()


async def test_a_page_that_is_reloaded_goes_on_where_it_was() -> None:
    async with at_home() as (visit, web), reading(visit) as reader:
        await reader.page.reload()
        await reader.has_read("12")
        await reader.page.reload()
        await check(reader, web)
        assert len(reader.documents) == 3
        assert all(len(moments) > 1 for moments in reader.documents.values()), "one has shown nothing as it came in"


async def test_ten_seconds_without_a_network_cost_no_word() -> None:
    async with over_a_line() as (visit, web, cable), reading(visit, LONG_COUNT) as reader:
        cable.cut()
        await asyncio.sleep(CUT_S)
        seen = reader.now.split()[-1]
        assert (await answers(web)).split()[-1] != seen, "nothing was said meanwhile"
        cable.mend()
        await check(reader, web, LONG_COUNT)


@pytest.mark.long
async def test_a_connection_that_died_without_a_word_is_given_up() -> None:
    """No error is reported and a new connection would work: the browser has to notice the silence itself."""
    async with over_a_line() as (visit, web, cable), reading(visit) as reader:
        cable.cut()
        cable.replace()
        await reader.has_read(f"{COUNT}.", patience_s=DEAD_S)
        await check(reader, web)


async def test_a_gateway_that_is_stopped_and_started_again_goes_on_and_says_so() -> None:
    async with at_home(GOES_ON | {"gateway__drain_timeout": "0.2"}) as (visit, web), reading(visit) as reader:
        visit.gateway.signal(signal.SIGTERM)
        assert await visit.gateway.ended() == 0
        await visit.gateway.start()
        await check(reader, web)
        told = reader.page.get_by_role("article")
        await expect(told).to_contain_text("The gateway is shutting down. Your conversation is saved.")
        await expect(told).to_contain_text("Interrupted by a gateway shutdown.")
        await expect(told).to_contain_text("Resumed after the restart. It continues below.")


async def test_a_gateway_that_is_killed_goes_on_and_says_so() -> None:
    async with at_home(GOES_ON) as (visit, web), reading(visit) as reader:
        await visit.gateway.kill()
        away = reader.page.get_by_text("The gateway has not answered since")
        await expect(away).to_be_visible()
        await expect(reader.page.get_by_text("Reconnecting…")).to_be_visible()
        await visit.gateway.start()
        await check(reader, web)
        await expect(away).to_be_hidden()
        told = reader.page.get_by_role("article")
        await expect(told).to_contain_text("Interrupted: the gateway stopped without warning.")
        await expect(told).to_contain_text("Resumed after the restart. It continues below.")


async def test_a_gateway_that_is_killed_and_does_not_go_on_by_itself_goes_on_when_it_is_told_to() -> None:
    async with at_home() as (visit, web), reading(visit) as reader:
        await visit.gateway.kill()
        await visit.gateway.start()
        await expect(reader.page.get_by_role("button", name="Go on")).to_be_visible()
        cut_off = await answers(web)
        assert reader.now == " ".join(cut_off.split())
        await reader.page.get_by_role("button", name="Go on").click()
        await check(reader, web)


async def test_nothing_jumps_while_an_answer_comes_in() -> None:
    async with at_home() as (visit, _):
        page = await visit.tab()
        reader = Reader(page)
        await reader.begin()
        await say(page, f"count to 6; wait 0.2 seconds; count to {3 * COUNT}")
        await reader.has_read("2")
        await page.evaluate(_OBSERVE_SHIFTS)
        await reader.has_read(f"{3 * COUNT}.")
        await expect(page.get_by_role("button", name="Copy the answer")).to_be_visible()
        shifts: list[dict[str, Any]] = await page.evaluate("window.shifts")
        assert sum(each["value"] for each in shifts) < SHIFT_MAX, shifts


# Shifts caused by the person do not count, as in every browser metric.
_OBSERVE_SHIFTS = """
() => {
  window.shifts = [];
  const told = (entry) => ({
    value: entry.value,
    nodes: entry.sources.map((source) => source.node?.className ?? String(source.node?.nodeName)),
  });
  const keep = (list) => window.shifts.push(...list.getEntries().filter((each) => !each.hadRecentInput).map(told));
  new PerformanceObserver(keep).observe({ type: "layout-shift" });
}
"""
