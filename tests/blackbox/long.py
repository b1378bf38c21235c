"""The long run, by hand: many people use gateways that end again and again, in every way and at any moment.

    python -m tests.blackbox.long --kills 1000 [--nodes 2] [--model]

With `--model` everything is said and done by a scripted model at the other end of a wire, and not by the demonstration.
It comes in chapters, each with people, conversations and a history of its own, on the same homes and the same store.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.blackbox.client import AWAY, SETTLED, Client, client
from tests.blackbox.gateway import Gateway, gateways, until
from tests.blackbox.history import Outcome, Receipt, check
from tests.blackbox.models import Workshop, workshop
from tests.blackbox.scenes import SHORT_DRAIN_S, SOON_S, End, Stage, State
from tests.postgres import Server

KILLS_PER_CHAPTER = 25
PEOPLE = 8
LIFE_MAX_S = 1.5
ANSWER_S = 0.3
# Longer than the lease after which the others take a node for dead.
FROZEN_S = 8
ENDS = {End.KILL: 6, End.DRAIN: 1, End.SHORT: 2, End.FORCE: 1, End.RESTART: 1}
TEXTS = ("count to 5", "count to 60", "wait 0.4 seconds", "count to 8 slowly", "note: {}", "wait 0.2 seconds then note: {}",
         "note: {}; count to 20", "ask me which colour", "count to 9 then fail", "hello")  # fmt: skip
_PROBES = "; ".join(f'call probe_{each} {{"word": "{each}-{{}}"}}' for each in ("pure", "keyed", "effectful"))
SCRIPTS = (
    "script: stream 30 at 40",
    'script: stream 5 at 40; call probe_effectful {"word": "one-{}"} | stream 20 at 40',
    f"script: {_PROBES} | result",
    'script: call delegate_task {"goal": "script: stream 20 at 40"} | result',
    'script: call delegate_task {"goal": "script: stream 20 at 40", "background": true} | say sent',
    'script: call ask_user {"question": "Which colour?"} | result',
    'script: call terminal {"command": "echo {} >> ran && sleep 0.3"} | result',
    'script: call terminal {"command": "sleep 0.5 && echo {}", "background": true, "notify_on_complete": true} | say begun',
    "script: first 1 say half; first 1 cut; say  and half",
    "script: first 1 status 429; say was let in",
)
# A scripted model does not repeat the word by which a message is known.
NOT_SCRIPTED = "answer: "


class Person:
    """Writes, reads, follows, changes its mind; one conversation at a time."""

    def __init__(self, somebody: Client, chance: random.Random, name: str, nodes: int, texts: Sequence[str] = TEXTS) -> None:
        self._client = somebody
        self._texts = texts
        self._chance = chance
        self._name = name
        self._nodes = nodes
        self._session_id = ""
        self._noted = 0
        self._turns: list[Receipt] = []

    async def live(self, over: asyncio.Event) -> None:
        while not over.is_set():
            via = self._chance.randrange(self._nodes)
            if not self._session_id or self._chance.random() < 0.15:
                self._session_id = await self._client.session(via=via)
                self._client.follow(self._session_id, via)
            turn = await self._client.send(self._session_id, self._text(), via)
            self._turns.append(turn)
            if turn.session_id != self._session_id:
                # The conversation was suspended meanwhile, and this one follows it.
                self._session_id = turn.session_id
                self._client.follow(self._session_id, via)
            await self._look_after(turn, via, over)

    async def finish(self, via: int) -> None:
        """Answer whatever still waits for an answer."""
        for turn in self._turns:
            if (await self._client.comes_to(turn.id, *SETTLED, "waiting", via=via)).state == "waiting":
                await self._client.ask("POST", f"/api/turns/{turn.id}/answer", {"text": "blue"}, via)
                await self._client.comes_to(turn.id, via=via)

    async def _look_after(self, turn: Receipt, via: int, over: asyncio.Event) -> None:
        patient = self._chance.random() < 0.7
        while not over.is_set():
            await asyncio.sleep(self._chance.uniform(0, 0.3))
            with contextlib.suppress(*AWAY):
                turn = await self._client.turn(turn.id, via)
                await self._do_something(turn, via)
            if not patient or turn.state in SETTLED:
                return

    async def _do_something(self, turn: Receipt, via: int) -> None:
        whim = self._chance.random()
        if turn.state == "waiting" and whim < 0.5:
            await self._client.ask("POST", f"/api/turns/{turn.id}/answer", {"text": "blue"}, via)
        elif turn.state not in SETTLED and whim < 0.05:
            await self._client.ask("POST", f"/api/turns/{turn.id}/cancel", via=via)
        elif turn.state == "interrupted" and whim < 0.2:
            await self._client.ask("POST", f"/api/sessions/{self._session_id}/messages", {"text": "/resume"}, via)
        elif whim > 0.7:
            await self._client.poll(self._session_id, via)

    def _text(self) -> str:
        self._noted += 1
        return self._chance.choice(self._texts).replace("{}", f"{self._name}-{self._noted}")


class Run:
    """All chapters, with what they came to."""

    def __init__(self, nodes: Sequence[Gateway], chance: random.Random, kills: int, shop: Workshop | None = None) -> None:
        self.figures: Counter[str] = Counter()
        self.violations: list[str] = []
        self._nodes = nodes
        self._chance = chance
        self._kills = kills
        self._shop = shop
        self._texts = SCRIPTS if shop else TEXTS
        self._began = time.monotonic()

    async def play(self) -> None:
        for node in self._nodes:
            await node.start(**self._settings())
        for chapter in range(-(-self._kills // KILLS_PER_CHAPTER)):
            await self._chapter(chapter)
            if self.violations:
                return

    async def _chapter(self, number: int) -> None:
        over = asyncio.Event()
        async with client(*self._nodes) as somebody:
            names = [f"{number}.{each}" for each in range(PEOPLE)]
            people = [Person(somebody, self._chance, each, len(self._nodes), self._texts) for each in names]
            async with asyncio.TaskGroup() as group:
                for person in people:
                    group.create_task(person.live(over))
                for _ in range(min(KILLS_PER_CHAPTER, self._kills - self.figures["ends"])):
                    await self._life(somebody)
                over.set()
            answering = asyncio.create_task(self._answer_others(somebody))
            await asyncio.gather(*(person.finish(0) for person in people))
            answering.cancel()
            await self._answer_all(somebody)
            if self._shop:
                await self._promises_kept(somebody)
            outcome = await somebody.settle([line for node in self._nodes for line in _notes(node)])
            found = check(somebody.history, outcome)
            self.violations += [each for each in found if not (self._shop and each.startswith(NOT_SCRIPTED))]
            if self._shop:
                self.violations += _broken(self._shop)
            self._count(somebody, outcome)

    async def _life(self, somebody: Client) -> None:
        """Let a gateway live for a while, end it in some way, and start it again."""
        node = self._chance.choice(self._nodes)
        stage = Stage(gateway=node, client=somebody, lasting_s=SOON_S, via=self._nodes.index(node))
        if not self._shop and self._chance.random() < 0.3:
            await stage.set(*self._chance.sample(list(State), 3))
        await asyncio.sleep(self._chance.uniform(0, LIFE_MAX_S))
        if len(self._nodes) > 1 and self._chance.random() < 0.2:
            await self._freeze(node, stage)
        else:
            end = self._chance.choices(list(ENDS), list(ENDS.values()))[0]
            await stage.end(end)
            self.figures[f"{end}"] += 1
            if end is not End.RESTART:
                await node.start(**self._settings())
        self.figures["ends"] += 1
        self._show()

    async def _freeze(self, node: Gateway, stage: Stage) -> None:
        """Stop a node past its lease.  When it finds that the others took it for dead, it begins anew."""
        zombie = await node.node()
        node.signal(signal.SIGSTOP)
        await asyncio.sleep(FROZEN_S)
        node.signal(signal.SIGCONT)
        stage.release_notes()
        await node.begins_anew(zombie)
        self.figures["SIGSTOP past the lease"] += 1

    async def _promises_kept(self, somebody: Client) -> None:
        """Every command that runs in the background is told of once, and leaves nothing running."""

        async def all_told() -> bool:
            processes = await _all(somebody, "/api/processes")
            return all(each["state"] != "running" for each in processes) and await somebody.rests()

        await until(all_told, "every background command has ended, and nothing runs any more")
        said: Counter[str] = Counter()
        for session in await _all(somebody, "/api/sessions"):
            items = (await somebody.get(f"/api/sessions/{session['id']}/messages"))["items"]
            said.update(item["text"].split()[5] for item in items if "[System note: the background" in item["text"])
        processes = await _all(somebody, "/api/processes")
        self.violations += [f"promise: {each['id']} was told {said[each['id']]} times" for each in processes
                            if said[each["id"]] != 1]  # fmt: skip
        self.figures["background commands"] = len(processes)

    async def _answer_others(self, somebody: Client) -> None:
        """Answer what turns ask that nobody sent: whoever waits behind the news of a command that ended waits for them."""
        while True:
            for asked in await _all(somebody, "/api/approvals"):
                await somebody.ask("POST", f"/api/turns/{asked['turn_id']}/answer", {"text": "blue"})
            await asyncio.sleep(ANSWER_S)

    async def _answer_all(self, somebody: Client) -> None:
        for ack in somebody.history.acknowledged:
            if (await somebody.comes_to(ack.turn_id, *SETTLED, "waiting")).state == "waiting":
                await somebody.ask("POST", f"/api/turns/{ack.turn_id}/answer", {"text": "blue"})

    def _settings(self) -> dict[str, str]:
        return {
            "gateway__resume": self._chance.choice(["auto", "on_message"]),
            "gateway__drain_timeout": str(self._chance.choice([SHORT_DRAIN_S, 5])),
        }

    def _count(self, somebody: Client, outcome: Outcome) -> None:
        history = somebody.history
        self.figures["acknowledged"] += len(history.acknowledged)
        self.figures["entries seen by followers"] += sum(len(each.entries) for each in history.streams)
        self.figures["connections of followers"] += sum(each.connections for each in somebody.followers)
        self.figures["transcripts read"] += len(history.polls)
        self.figures["receipts read"] += len(history.receipts)
        self.figures["effects"] = len(outcome.notes)
        for turn in outcome.turns.values():
            self.figures[turn.state] += 1
            self.figures["went on after an interruption"] += turn.state == "completed" and turn.attempt > 1
        cards = (item for items in outcome.transcripts.values() for item in items if item.name == "keep_note")
        self.figures["effects unknown"] += sum(item.outcome == "unknown" for item in cards)

    def _show(self) -> None:
        if not sys.stderr.isatty():
            return
        ends, seconds = self.figures["ends"], time.monotonic() - self._began
        left = seconds / ends * (self._kills - ends)
        end = "\n" if ends == self._kills else ""
        sys.stderr.write(f"\r{ends}/{self._kills} ends, {seconds:.0f} s, about {left:.0f} s to go {end}")
        sys.stderr.flush()


async def _all(somebody: Client, path: str) -> list[Any]:
    found: list[Any] = []
    cursor = ""
    while True:
        page = await somebody.get(path, cursor=cursor)
        found += page["items"]
        if not (cursor := page.get("next_cursor") or ""):
            return found


def _broken(shop: Workshop) -> list[str]:
    """Return what the model and the tools saw that must not be."""
    wrong = [f"request: {line['problems']}" for line in shop.model.lines if line.get("problems")]
    twice = [word for word, times in shop.began.items() if times > 1 and word.startswith(("one-", "effectful-"))]
    ran = [line for node in shop.nodes for line in _lines(node.home / "workspace" / "ran")]
    twice += [word for word, times in Counter(ran).items() if times > 1]
    left = shop.processes()
    return [
        *wrong,
        *(f"effect: {word} was begun more than once" for word in twice),
        *(f"left running: {each}" for each in left),
    ]


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _notes(node: Gateway) -> list[str]:
    return _lines(node.notes)


@contextlib.contextmanager
def _store(nodes: int) -> Iterator[str]:
    """One node has its own store; several share a real PostgreSQL."""
    if nodes == 1:
        yield "sqlite"
        return
    with Server() as server:
        yield server.create_database("long")


@contextlib.contextmanager
def _homes(count: int, url: str, *, model: bool) -> Iterator[tuple[list[Gateway], Workshop | None]]:
    if model:
        with workshop(count, store__url=url) as shop:
            yield shop.nodes, shop
    else:
        with gateways(count, store__url=url) as nodes:
            yield nodes, None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=1000, help="how many ends, of all kinds")
    parser.add_argument("--nodes", type=int, default=1, help="with more than one, on PostgreSQL")
    parser.add_argument("--model", action="store_true", help="with a scripted model in place of the demonstration")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}, {chosen.kills} ends, nodes: {chosen.nodes}")
    with _store(chosen.nodes) as url, _homes(chosen.nodes, url, model=chosen.model) as (nodes, shop):
        run = Run(nodes, random.Random(chosen.seed), chosen.kills, shop)
        try:
            asyncio.run(run.play())
        except BaseException:
            for node in nodes:
                sys.stderr.write(f"\n{node.home.name}:\n{node.tail()}\n")
            raise
        for what, count in sorted(run.figures.items()):
            print(f"{count:>9,}  {what}")
        for violation in run.violations:
            print(f"VIOLATION {violation}")
        print("no violations" if not run.violations else f"{len(run.violations)} violations; seed {chosen.seed}")
    return bool(run.violations)


if __name__ == "__main__":
    sys.exit(main())
