"""The storm, run by hand: a person writes in several tabs, over a bad connection, to a gateway that keeps failing.

    python -m tests.page.storm --messages 120 --kills 20 [--seed 0]

Tabs are reloaded, closed, sent offline and moved to other sessions while messages leave and answers arrive; the gateway is
killed, stopped and paused; the connection delays, stalls, and breaks anywhere.  At every moment each message is on a page
once, and what was read of an answer stays there.  At the end every message is one turn, or is shown as refused where it was
written, and every page shows what the gateway says, word for word.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from playwright.async_api import Error, Page

from tests.blackbox.gateway import Gateway, gateways, until
from tests.page.browser import Visit, close, visiting
from tests.page.rough import RoughLine, rough_line

TABS = 2
# Long enough that few turns are interrupted three times in a row, after which they are given up.
LIFE_S = (2.0, 9.0)
PAUSE_S = (0.5, 12.0)
OFFLINE_S = (0.2, 5.0)
REST_S = (0.0, 1.5)
CALM_S = 180.0
PATIENCE_MS = 5_000
STRIKES = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)
# Most are short, because the answers of one session are given one after another.
REQUESTS = ("count to 3", "count to 9", "note: here; count to 2", "wait 0.3 seconds; count to 4", "count to 20, slowly")
# What a browser reports when the service worker fails to load; the page works without it.
NO_WORKER = "error occurred when fetching the script"
SENDING_KEYS = ("Enter", "Enter", "Enter", "Control+Enter")
_NUMBER = re.compile(r"^m\d{5}\b")
_WATCH = (Path(__file__).parent / "watching.js").read_text()

# All messages that a browser stores, and the drafts in its fields.
_KEPT = """
async () => {
  const result = (asking) => new Promise((done, failed) => {
    asking.onsuccess = () => done(asking.result);
    asking.onerror = failed;
  });
  const database = await result(indexedDB.open("holdfast", 1));
  const items = await result(database.transaction("outbox").objectStore("outbox").getAll());
  database.close();
  const fields = Object.keys(localStorage).filter((each) => each.startsWith("holdfast.writing."));
  return { items, drafts: fields.map((each) => JSON.parse(localStorage[each]).text ?? "") };
}
"""

# Reads a conversation like a person: up to its beginning, then down to its end.
_READ = """
async () => {
  const drawn = () => new Promise((done) => setTimeout(done, 60));
  const scroller = document.querySelector("section.scroller");
  const turns = {};
  const orders = [];
  const look = () => {
    const rows = [...document.querySelectorAll("[data-turn]")];
    orders.push(rows.map((row) => row.dataset.turn));
    for (const row of rows) {
      const items = [...row.querySelectorAll("[data-role=user], [data-role=assistant]")];
      turns[row.dataset.turn] = items.map((each) => {
        const said = each.dataset.role === "user" ? each.querySelector(".message-text, .notice-text") : each;
        return [each.dataset.role, (said?.innerText ?? "").split(/\\s+/).filter(Boolean).join(" ")];
      });
    }
  };
  for (let still = 0, tries = 0; still < 4 && tries < 100; tries += 1) {
    const height = scroller.scrollHeight;
    scroller.scrollTop = 0;
    await drawn();
    const older = document.querySelector(".older");
    older?.querySelector("button")?.click();
    still = older || scroller.scrollHeight !== height ? 0 : still + 1;
  }
  for (let top = -1; scroller.scrollTop > top; ) {
    look();
    top = scroller.scrollTop;
    scroller.scrollTop += scroller.clientHeight / 2;
    await drawn();
  }
  look();
  return { turns, orders };
}
"""


@dataclass
class Storm:
    """The gateway under attack, its writers, and what was seen."""

    gateway: Gateway
    line: RoughLine
    visit: Visit
    chance: random.Random
    told: Callable[[str], None]
    messages: int
    kills: int
    # The tab in which each message was written.
    written: dict[str, int] = field(default_factory=dict[str, int])
    seen: Counter[str] = field(default_factory=Counter[str])
    violations: list[str] = field(default_factory=list[str])
    struck: int = 0
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def next_message(self, tab: int) -> tuple[str, str]:
        number = f"m{next(self._numbers):05d}"
        self.written[number] = tab
        return number, f"{number} {self.chance.choice(REQUESTS)}"

    def tell(self, violation: str) -> None:
        self.violations.append(violation)
        self.told(violation)

    @property
    def goes_on(self) -> bool:
        return len(self.written) < self.messages

    @property
    def wants_messages(self) -> bool:
        """Whether there is something to write before the next strike; each strike gets an equal share."""
        return len(self.written) * (self.kills + 1) < self.messages * (self.struck + 1)

    async def strike(self) -> None:
        for number in range(1, self.kills + 1):
            await asyncio.sleep(self.chance.uniform(*LIFE_S))
            by = self.chance.choice(STRIKES)
            await self._strike(by)
            self.struck += 1
            self.seen[by.name] += 1
            self.told(f"strike {number} of {self.kills}: {by.name}, {len(self.written)} written")

    async def _strike(self, by: signal.Signals) -> None:
        self.gateway.signal(by)
        if by is signal.SIGSTOP:
            await asyncio.sleep(self.chance.uniform(*PAUSE_S))
            self.gateway.signal(signal.SIGCONT)
            return
        assert await self.gateway.ended() == (0 if by is signal.SIGTERM else -by), self.gateway.tail()
        await asyncio.sleep(self.chance.uniform(0, 3))
        await self.gateway.start(gateway__drain_timeout=f"{self.chance.uniform(0.2, 3):.1f}")


class Tab:
    """A person in one tab who waits for nothing."""

    def __init__(self, storm: Storm, number: int) -> None:
        self._storm = storm
        self._chance = random.Random(storm.chance.random())
        self._number = number
        self._page: Page | None = None

    @property
    def page(self) -> Page:
        assert self._page, "the tab was never opened"
        return self._page

    async def use(self) -> None:
        """Do one thing after another until everything is written."""
        await self.open()
        while self._storm.goes_on:
            writing, others = (
                (self._say, self._leave),
                (self._reload, self._reopen, self._go_offline, self._switch, self._begin),
            )
            steps, weights = (
                (*writing, *others),
                (50 * self._storm.wants_messages, 10 * self._storm.wants_messages, 9, 5, 7, 14, 5),
            )
            step = self._chance.choices(steps, weights)[0]
            self._storm.seen[step.__name__.strip("_")] += 1
            await step()
            await asyncio.sleep(self._chance.uniform(*REST_S))

    async def open(self, address: str = "") -> None:
        self._page = await self._storm.visit.context.new_page()
        await self.load(address)

    async def load(self, address: str | None = None) -> None:
        """Load the page until there is a message field."""
        while True:
            with contextlib.suppress(Error):
                if address is None:
                    await self.page.reload(timeout=PATIENCE_MS)
                else:
                    await self.page.goto(f"{self._storm.visit.url}/{address}", timeout=PATIENCE_MS)
                await self.page.get_by_role("textbox", name="Message").wait_for(timeout=PATIENCE_MS)
                return
            self._storm.seen["loaded in vain"] += 1

    async def _write(self) -> str:
        """Write a message and send it."""
        number, text = self._storm.next_message(self._number)
        field = self.page.get_by_role("textbox", name="Message")
        await field.fill(text)
        await field.press(self._chance.choice(SENDING_KEYS))
        return number

    async def _say(self) -> None:
        for _ in range(self._chance.choice((1, 1, 1, 2, 3))):
            await until(self._is_empty, f"{await self._write()} was taken out of the field")

    async def _is_empty(self) -> bool:
        return not await self.page.get_by_role("textbox", name="Message").input_value()

    async def _leave(self) -> None:
        """Send a message, and reload or close the tab at the same moment."""
        await self._write()
        await (self._reload if self._chance.random() < 0.5 else self._reopen)()

    async def _reload(self) -> None:
        await self.load()

    async def _reopen(self) -> None:
        address = self.page.url.removeprefix(f"{self._storm.visit.url}/")
        await self.page.close()
        await self.open(address)

    async def _go_offline(self) -> None:
        await self._storm.visit.context.set_offline(True)
        await asyncio.sleep(self._chance.uniform(*OFFLINE_S))
        await self._storm.visit.context.set_offline(False)

    async def _switch(self) -> None:
        links = self.page.get_by_role("navigation", name="Sessions").locator("a[href^='#/s/']")
        if count := await links.count():
            with contextlib.suppress(Error):
                await links.nth(self._chance.randrange(count)).click(timeout=PATIENCE_MS)

    async def _begin(self) -> None:
        await self.page.evaluate("location.hash = '#/new'")


class Truth:
    """The messages according to the gateway."""

    def __init__(self, web: httpx2.AsyncClient) -> None:
        self._web = web
        self.sessions: dict[str, dict[str, list[list[str]]]] = {}

    async def learn(self) -> None:
        for session in [each async for each in self._pages("/api/sessions")]:
            turns: dict[str, list[list[str]]] = {}
            async for item in self._pages(f"/api/sessions/{session['id']}/messages"):
                if item["role"] in ("user", "assistant"):
                    turns.setdefault(item["turn_id"], []).append([item["role"], " ".join(item["text"].split())])
            self.sessions[session["id"]] = turns

    def numbers(self) -> Iterator[tuple[str, str]]:
        """Yield each message with its session, in the order of the sessions."""
        for session, turns in self.sessions.items():
            for role, text in itertools.chain.from_iterable(turns.values()):
                if role == "user" and (found := _NUMBER.match(text)):
                    yield session, found[0]

    async def _pages(self, path: str) -> AsyncIterator[dict[str, Any]]:
        cursor: dict[str, str] = {}
        while True:
            page = (await self._web.get(path, params={"limit": 100, **cursor})).raise_for_status().json()
            for item in page["items"]:
                yield item
            if not page["next_cursor"]:
                return
            cursor = {"cursor": page["next_cursor"]}


class Reckoning:
    """Compares what the pages show with what the gateway says."""

    def __init__(self, storm: Storm, truth: Truth) -> None:
        self._storm = storm
        self._truth = truth
        self.found: list[str] = list(storm.violations)

    def messages(self, kept: dict[str, Any]) -> None:
        """Every message is one turn, or still in its tab; those of one tab are in order."""
        taken = Counter(number for _, number in self._truth.numbers())
        refused = " ".join(each["text"] for each in kept["items"] if each["state"] == "refused")
        drafts = " ".join(kept["drafts"])
        for number in self._storm.written:
            if taken[number] != (0 if number in refused else 1):
                where = f"refused: {number in refused}, in a field: {number in drafts}"
                self.found.append(f"{number} is {taken[number]} turns, {where}")
        for key, group in itertools.groupby(sorted(self._truth.numbers(), key=self._lane), key=self._lane):
            numbers = [number for _, number in group]
            if numbers != sorted(numbers):
                self.found.append(f"out of order in {key}: {numbers}")

    def _lane(self, each: tuple[str, str]) -> tuple[str, int]:
        return each[0], self._storm.written.get(each[1], -1)

    async def page(self, page: Page, how: str) -> None:
        """Read what a page shows of its session."""
        session = page.url.partition("#/s/")[2].partition("?")[0]
        if session not in self._truth.sessions:
            return
        wanted = self._truth.sessions[session]
        shown: dict[str, Any] = {}

        async def is_right() -> bool:
            nonlocal shown
            shown = await page.evaluate(_READ)
            return shown["turns"] == wanted

        # Browsers do not draw a tab in the background.
        await page.bring_to_front()
        try:
            await until(is_right, "the page says the same", 20)
        except TimeoutError:
            for turn in {*wanted, *shown["turns"]}:
                if shown["turns"].get(turn) != wanted.get(turn):
                    place = f"{list(wanted).index(turn) + 1 if turn in wanted else 'none'} of {len(wanted)}"
                    self.found.append(f"{how}, {session} {place}: shown {shown['turns'].get(turn)}, said {wanted.get(turn)}")
        places = {turn: place for place, turn in enumerate(wanted)}
        for order in shown["orders"]:
            at = [places[turn] for turn in order if turn in places]
            if at != sorted(at):
                self.found.append(f"{how}, {session}: out of order: {order}")


async def calm(storm: Storm, tabs: list[Tab], web: httpx2.AsyncClient) -> dict[str, Any]:
    """Wait until everything has arrived and is answered.  Returns what the browser still stores."""
    storm.line.calm = True
    storm.line.hang_up()
    await storm.visit.context.set_offline(False)
    kept: dict[str, Any] = {}

    async def is_calm() -> bool:
        nonlocal kept
        kept = await tabs[0].page.evaluate(_KEPT)
        due = [each for each in kept["items"] if each["state"] not in ("accepted", "refused")]
        status = (await web.get("/api/status")).raise_for_status().json()
        return not due and not status["in_flight"] and not status["obligations"]["turns"]

    try:
        await until(is_calm, "everything is answered", CALM_S)
    except TimeoutError:
        storm.violations.append(f"never calm: {kept['items']}\n{storm.gateway.tail()}")
    return kept


async def reckon(storm: Storm, tabs: list[Tab], web: httpx2.AsyncClient, kept: dict[str, Any]) -> list[str]:
    truth = Truth(web)
    await truth.learn()
    reckoning = Reckoning(storm, truth)
    reckoning.messages(kept)
    for tab in tabs:
        await reckoning.page(tab.page, "as it was")
    for number, session in enumerate(truth.sessions):
        page = tabs[number % len(tabs)].page
        await page.evaluate("hash => { location.hash = hash; }", f"#/s/{session}")
        await page.locator("[data-turn]").first.wait_for()
        await reckoning.page(page, "gone to")
        await page.reload()
        await page.locator("[data-turn]").first.wait_for()
        await reckoning.page(page, "loaded anew")
    storm.told(f"{len(truth.sessions)} sessions, {sum(map(len, truth.sessions.values()))} turns")
    return reckoning.found


@contextlib.asynccontextmanager
async def house(messages: int, kills: int, seed: int, told: Callable[[str], None]) -> AsyncIterator[Storm]:
    """Set up a gateway, the proxy in front of it, and a browser."""
    chance = random.Random(seed)
    with gateways(gateway__resume="auto") as (gateway,):
        await gateway.start()
        async with rough_line(gateway, random.Random(seed)) as line, visiting(gateway, line.url) as visit:
            storm = Storm(gateway=gateway, line=line, visit=visit, chance=chance, told=told, messages=messages, kills=kills)
            await visit.context.expose_function("tellStorm", storm.tell)
            await visit.context.add_init_script(_WATCH)
            yield storm


async def storm_over(storm: Storm) -> list[str]:
    """Run the storm and check.  Returns the violations."""
    tabs = [Tab(storm, number) for number in range(TABS)]
    storm.line.calm = False
    async with asyncio.TaskGroup() as group:
        gusts = group.create_task(storm.line.blow())
        using = [group.create_task(tab.use()) for tab in tabs]
        await storm.strike()
        await asyncio.gather(*using)
        storm.line.calm = True
        gusts.cancel()
    storm.told("calm")
    async with httpx2.AsyncClient(base_url=storm.gateway.url, trust_env=False, timeout=30) as web:
        kept = await calm(storm, tabs, web)
        return await reckon(storm, tabs, web, kept)


async def main() -> None:
    parser = argparse.ArgumentParser(
        description="Somebody writes over a bad line to a gateway that is struck again and again."
    )
    parser.add_argument("--messages", type=int, default=120)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()

    def told(words: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {words}", file=sys.stderr, flush=True)

    began = time.monotonic()
    try:
        async with house(chosen.messages, chosen.kills, chosen.seed, told) as storm:
            found = await storm_over(storm)
            storm.visit.complaints[:] = [each for each in storm.visit.complaints if NO_WORKER not in each]
            print(f"{len(storm.written)} messages, {storm.struck} strikes, {time.monotonic() - began:.0f} s")
            print(f"seen: {dict(storm.seen)}; line: {dict(storm.line.seen)}")
            assert not found, "\n".join(found[:40])
    finally:
        await close()


if __name__ == "__main__":
    asyncio.run(main())
