"""What a chat channel costs: a thousand chats at once, one that is idle, the way of a message to the model, and the start.

The scripted Telegram and the model server are in the process of the benchmark, and share the cores with the gateway.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

from bench.client import Client, Conversation
from bench.gateway import Gateway
from bench.ground import Ground
from bench.model import Model, model
from bench.producers import median, percentile
from bench.report import Line, Unit
from holdfast.core.joining import WINDOW_MS
from holdfast.drill.telegram.chats import Chat, Person
from holdfast.drill.telegram.server import TOKEN, BotApiServer, telegram

CHATS = 1_000
ROUNDS = 3
FEW = 50
# Over so many connections messages are sent over HTTP.
CLIENTS = 32
IDLE_MAX_PERCENT = 1.0
REQUEST_MAX_MS = 10.0
START_MAX_S = 0.2
WAIT_MAX_S = 300
_FIRST_PERSON = 10_001


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A gateway with an account of Telegram, the phones of its users, and its model."""

    gateway: Gateway
    server: BotApiServer
    model: Model
    rooms: list[tuple[Chat, Person]]

    async def say(self, room: tuple[Chat, Person], text: str) -> float:
        """Let a person write, and return when Telegram handed that out, once it is answered."""
        chat, person = room
        self.server.says(chat, person, text)
        update = self.server.bot.next_update - 1
        await heard(chat, f"I heard: {text}")
        return self.server.bot.handed_out.pop(update)

    async def request_ms(self, room: tuple[Chat, Person], text: str) -> float:
        """Return how long after a message was handed out the model was asked, beside the time it waits to be joined."""
        at = await self.say(room, text)
        return (self.model.asked_at[text] - at) * 1000 - WINDOW_MS


async def run(ground: Ground) -> list[Line]:
    chats = 100 if ground.quick else CHATS
    async with scene(ground, chats) as crowd:
        alone, few = await _requests(ground, crowd)
        lines = [alone, few, *await _crowd(ground, crowd)]
    return [*lines, await _idle(ground), await _start(ground)]


@contextlib.asynccontextmanager
async def scene(ground: Ground, chats: int) -> AsyncGenerator[Scene]:
    """Run a gateway whose operator has so many private chats."""
    home = ground.home()
    async with telegram() as server, model() as asked:
        people = [server.person(_FIRST_PERSON + nth, f"Person {nth}") for nth in range(chats)]
        allow = ", ".join(f'"{each.id}"' for each in people)
        (home / "holdfast.toml").write_text(asked.settings + _account(server) + f"allow = [{allow}]\n")
        (home / "holdfast.toml").chmod(0o600)
        with Gateway(home) as gateway:
            await gateway.ready()
            rooms = [(server.private(each), each) for each in people]
            there = Scene(gateway=gateway, server=server, model=asked, rooms=rooms)
            # What is imported and made when it is first needed is no cost of the load.
            await there.say(rooms[0], "first of all")
            yield there


def _account(server: BotApiServer) -> str:
    return f'[channels.telegram]\ntoken = "{TOKEN}"\napi_base = "{server.url}"\n'


async def heard(chat: Chat, text: str) -> None:
    """Return when the bot has said something in a chat."""
    async with asyncio.timeout(WAIT_MAX_S):
        while not any(each.text == text for each in reversed(chat.of_bot())):
            chat.news.clear()
            await chat.news.wait()


async def _requests(ground: Ground, there: Scene) -> tuple[Line, Line]:
    """Measure the way of a message from Telegram to the model, of one person alone and of many at any time."""
    rounds = 20 if ground.quick else 100
    alone = [await there.request_ms(there.rooms[0], f"alone {nth}") for nth in range(rounds)]
    each = 4 if ground.quick else 10

    async def person(number: int) -> list[float]:
        found: list[float] = []
        for nth in range(each):
            await asyncio.sleep(random.uniform(0, 4))
            found.append(await there.request_ms(there.rooms[number], f"one of {FEW}: {number}, {nth}"))
        return found

    few = [one for some in await asyncio.gather(*map(person, range(FEW))) for one in some]
    return _request_line("1 chat", alone), _request_line(f"{FEW} chats", few)


def _request_line(who: str, found: list[float]) -> Line:
    p99 = percentile(found, 99)
    return Line(
        what=f"from Telegram to the model, {who}",
        measured=median(found),
        unit=Unit.MILLISECONDS,
        detail=f"median of {len(found)}, p99 {p99:.1f}, fastest {min(found):.1f} ms; beside the {WINDOW_MS} ms for joining",
        bar=f"p99 < {REQUEST_MAX_MS:.0f} ms",
        met=p99 < REQUEST_MAX_MS,
        note="from handing out the update to the arrival of the request at the model, less that time",
    )


async def _crowd(ground: Ground, there: Scene) -> list[Line]:
    """Measure many chats that are all active at once, beside the same turns over HTTP."""
    rounds = 2 if ground.quick else ROUNDS
    used, began = there.gateway.cpu_s(), time.perf_counter()

    async def talk(number: int) -> None:
        for nth in range(rounds):
            await there.say(there.rooms[number], f"crowd {number}, {nth}")

    await asyncio.gather(*(talk(number) for number in range(len(there.rooms))))
    lasted, cpu_s = time.perf_counter() - began, there.gateway.cpu_s() - used
    turns = rounds * len(there.rooms)
    over_http, http_cpu_s = await _over_http(there, rounds)
    wrong = sum(not _in_order(chat, number, rounds) for number, (chat, _) in enumerate(there.rooms))
    return [
        Line(
            what=f"{len(there.rooms):,} chats active at once",
            measured=turns / lasted,
            unit=Unit.RATE,
            detail=f"{turns:,} turns in {lasted:.1f} s, {cpu_s / turns * 1000:.1f} ms of processor each "
            f"(HTTP {http_cpu_s / turns * 1000:.1f}); {wrong} chats out of order",
            raw=turns / over_http,
            bar="all in order",
            met=not wrong,
            note=f"each person writes {rounds} times, again as soon as they were answered; raw: the same turns over HTTP, "
            "with a reader of each session",
        )
    ]


def _in_order(chat: Chat, number: int, rounds: int) -> bool:
    found = [text for text in chat.texts if text.startswith("I heard: crowd")]
    return found == [f"I heard: crowd {number}, {nth}" for nth in range(rounds)]


async def _over_http(there: Scene, rounds: int) -> tuple[float, float]:
    """Return how long the same turns take in sessions of the API, and the processor time of the gateway."""
    port = there.gateway.port
    opening = await Client.of(port)
    talks = [await Conversation.open(opening, port) for _ in there.rooms]
    clients = [await Client.of(port) for _ in range(CLIENTS)]
    # In turns, because the gateway closes what is idle.
    free: asyncio.Queue[Client] = asyncio.Queue()
    for each in clients:
        free.put_nowait(each)

    async def talk(number: int) -> None:
        for nth in range(rounds):
            client = await free.get()
            await talks[number].say(f"http {number}, {nth}", client)
            free.put_nowait(client)
            await talks[number].completed()

    used, began = there.gateway.cpu_s(), time.perf_counter()
    await asyncio.gather(*map(talk, range(len(talks))))
    lasted, cpu_s = time.perf_counter() - began, there.gateway.cpu_s() - used
    for each in (*talks, *clients, opening):
        each.close()
    return lasted, cpu_s


async def _idle(ground: Ground) -> Line:
    """Measure an account that waits for messages, beside a gateway that has none."""
    seconds = 5 if ground.quick else 40
    async with telegram() as server:
        with Gateway(_home(ground, server)) as account, Gateway(_home(ground, None)) as plain:
            for each in (account, plain):
                await each.ready()
            await asyncio.sleep(3)
            before = account.cpu_s(), plain.cpu_s()
            await asyncio.sleep(seconds)
            whole, without = (account.cpu_s() - before[0]) / seconds * 100, (plain.cpu_s() - before[1]) / seconds * 100
    return Line(
        what="an account that waits for messages",
        measured=whole - without,
        unit=Unit.PERCENT,
        detail=f"of one core, {whole:.2f} % with it and {without:.2f} % without; over {seconds} s",
        bar=f"< {IDLE_MAX_PERCENT:.0f} %",
        met=whole - without < IDLE_MAX_PERCENT,
    )


async def _start(ground: Ground) -> Line:
    """Measure from the start of the process to its being ready, with an account and without, in turns."""
    rounds = 2 if ground.quick else 10
    taken: list[tuple[float, float]] = []
    plain: list[tuple[float, float]] = []
    async with telegram() as server:
        homes = (_home(ground, server), taken), (_home(ground, None), plain)
        for nth in range(rounds + 1):
            for home, found in homes:
                with Gateway(home) as gateway:
                    ready = await gateway.ready()
                    if nth:
                        found.append((ready, gateway.cpu_s()))
    with_s, without_s = (median([ready for ready, _ in each]) for each in (taken, plain))
    later, cost = with_s - without_s, median([cpu for _, cpu in taken]) - median([cpu for _, cpu in plain])
    return Line(
        what="`serve` to ready, with an account",
        measured=with_s,
        unit=Unit.SECONDS,
        detail=f"{later:.2f} s later, {cost:.3f} s of processor more; medians of {rounds} of each in turns",
        raw=without_s,
        bar=f"< {START_MAX_S} s later",
        met=later < START_MAX_S,
    )


def _home(ground: Ground, server: BotApiServer | None) -> Path:
    home = ground.home()
    (home / "holdfast.toml").write_text(_account(server) if server else "")
    (home / "holdfast.toml").chmod(0o600)
    return home
