"""The long run, by hand: many people use gateways that end again and again, in every way and at any moment.

    python -m tests.blackbox.long --kills 1000

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

from tests.blackbox.client import AWAY, SETTLED, Client, client
from tests.blackbox.gateway import Gateway, gateways
from tests.blackbox.history import Outcome, Receipt, check
from tests.blackbox.scenes import SHORT_DRAIN_S, SOON_S, End, Stage, State
from tests.postgres import Server

KILLS_PER_CHAPTER = 25
PEOPLE = 8
LIFE_MAX_S = 1.5
# Longer than the lease after which the others take a node for dead.
FROZEN_S = 8
ENDS = {End.KILL: 6, End.DRAIN: 1, End.SHORT: 2, End.FORCE: 1, End.RESTART: 1}
TEXTS = ("count to 5", "count to 60", "wait 0.4 seconds", "count to 8 slowly", "note: {}", "wait 0.2 seconds then note: {}",
         "note: {}; count to 20", "ask me which colour", "count to 9 then fail", "hello")  # fmt: skip


class Person:
    """Writes, reads, follows, changes its mind; one conversation at a time."""

    def __init__(self, somebody: Client, chance: random.Random, name: str, nodes: int) -> None:
        self._client = somebody
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
        return self._chance.choice(TEXTS).format(f"{self._name} {self._noted}")


class Run:
    """All chapters, with what they came to."""

    def __init__(self, nodes: Sequence[Gateway], chance: random.Random, kills: int) -> None:
        self.figures: Counter[str] = Counter()
        self.violations: list[str] = []
        self._nodes = nodes
        self._chance = chance
        self._kills = kills
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
            people = [Person(somebody, self._chance, f"{number}.{each}", len(self._nodes)) for each in range(PEOPLE)]
            async with asyncio.TaskGroup() as group:
                for person in people:
                    group.create_task(person.live(over))
                for _ in range(min(KILLS_PER_CHAPTER, self._kills - self.figures["ends"])):
                    await self._life(somebody)
                over.set()
            await asyncio.gather(*(person.finish(0) for person in people))
            await self._answer_all(somebody)
            outcome = await somebody.settle([line for node in self._nodes for line in _notes(node)])
            self.violations += check(somebody.history, outcome)
            self._count(somebody, outcome)

    async def _life(self, somebody: Client) -> None:
        """Let a gateway live for a while, end it in some way, and start it again."""
        node = self._chance.choice(self._nodes)
        stage = Stage(gateway=node, client=somebody, lasting_s=SOON_S, via=self._nodes.index(node))
        if self._chance.random() < 0.3:
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


def _notes(node: Gateway) -> list[str]:
    return node.notes.read_text().splitlines() if node.notes.exists() else []


@contextlib.contextmanager
def _store(nodes: int) -> Iterator[str]:
    """One node has its own store; several share a real PostgreSQL."""
    if nodes == 1:
        yield "sqlite"
        return
    with Server() as server:
        yield server.create_database("long")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=1000, help="how many ends, of all kinds")
    parser.add_argument("--nodes", type=int, default=1, help="with more than one, on PostgreSQL")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}, {chosen.kills} ends, nodes: {chosen.nodes}")
    with _store(chosen.nodes) as url, gateways(chosen.nodes, store__url=url) as nodes:
        run = Run(nodes, random.Random(chosen.seed), chosen.kills)
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
