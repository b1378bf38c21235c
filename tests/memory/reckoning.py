"""The reckoning behind a storm: what people said, what servers were given and what the ledger says, held side by side."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from holdfast.core.segments import NOTHING_SAID
from holdfast.store.audit import audit
from holdfast.store.store import Store
from tests.crash.world import query
from tests.memory.weather import COMMIT_MAX_S, Given

BUILTIN = "builtin"
# Between the look into the journal and the arrival of what was found there, on a machine with much to do.
IN_FLIGHT_MS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """When something was so; of a life, under which owner's name it remembered."""

    begun: int
    ended: int
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Everything that the store knows about memory, by id."""

    turns: Mapping[str, Any]
    segments: Mapping[str, Any]
    completed: Mapping[str, int]
    took_ms: Mapping[str, int]
    undone: Mapping[str, int]
    facts: Sequence[Any]
    absorbed: Mapping[str, int]

    def of(self, segment: Any) -> list[Any]:
        """Return the turns of a segment."""
        first, last = segment["first_generation"], segment["last_generation"]
        found = (turn for turn in self.turns.values() if turn["session_id"] == segment["session_id"])
        return sorted(
            (t for t in found if t["generation"] and first <= t["generation"] <= last), key=lambda t: t["generation"]
        )


async def read(store: Store) -> Ledger:
    turns = await _table(store, "turns", "id", "session_id", "state", "generation", "attempt")
    segments = await _table(
        store, "segments", "id", "session_id", "owner", "first_generation", "last_generation", "state", "attempt", "receipt"
    )
    at = "SELECT turn_id, at FROM entries WHERE kind = '{}'"
    accepted, completed, undone = [
        dict(await query(store.database, at.format(kind))) for kind in ("turn.accepted", "turn.completed", "turn.undone")
    ]
    facts = await _table(store, "memories", "id", "text", "turn_id", "segment_id")
    return Ledger(
        turns={each["id"]: each for each in turns},
        segments={each["id"]: each for each in segments},
        completed=completed,
        took_ms={id_: at - accepted[id_] for id_, at in completed.items()},
        undone=undone,
        facts=facts,
        absorbed=dict(await query(store.database, "SELECT segment_id, at FROM absorbed")),
    )


async def _table(store: Store, table: str, *columns: str) -> list[dict[str, Any]]:
    found = await query(store.database, f"SELECT {', '.join(columns)} FROM {table}")
    return [dict(zip(columns, row, strict=True)) for row in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoning:
    """What a storm left behind.  `pauses` are when some process stood still."""

    ledger: Ledger
    given: Sequence[Given]
    lives: Sequence[Span]
    pauses: Sequence[Span]
    said: Mapping[str, str]

    def violations(self) -> list[str]:
        checks = (self._remembered(), self._owners(), self._paid(), self._strangers(), self._order(), self._facts())
        return [violation for check in checks for violation in check]

    def _remembered(self) -> Iterator[str]:
        for turn in self.ledger.turns.values():
            if (turn["state"] == "completed") != (turn["generation"] is not None):
                yield f"M1 {turn['id']} is {turn['state']} with generation {turn['generation']}"
        for segment in self.ledger.segments.values():
            if segment["state"] != "committed":
                yield f"M2 {segment['id']} is {segment['state']}"

    def _owners(self) -> Iterator[str]:
        """M3: what a turn left behind is owed to whom its gateway had when it completed."""
        for segment in self.ledger.segments.values():
            for turn in self.ledger.of(segment):
                at = self.ledger.completed[turn["id"]]
                if segment["owner"] not in {life.owner for life in self.lives if life.begun <= at <= life.ended}:
                    yield f"M3 {turn['id']} completed at {at} and is owed to {segment['owner']}"

    def _paid(self) -> Iterator[str]:
        """M2 M4 M6: whoever is owed a segment has taken it, whole, and under one id never two things."""
        given = _by_segment(self.given)
        for segment in self.ledger.segments.values():
            deliveries = given.get(segment["id"], [])
            if segment["owner"] == BUILTIN:
                continue
            turns = [turn["id"] for turn in self.ledger.of(segment)]
            lasting = [turn for turn in turns if turn not in self.ledger.undone]
            nothing = segment["receipt"] == NOTHING_SAID
            if (nothing and lasting) or not (nothing or any(each.taken for each in deliveries)):
                yield f"M6 {segment['id']} says {segment['receipt']!r}, was given {len(deliveries)} times, and has {lasting}"
            for each in deliveries:
                yield from self._delivered(segment, each, turns, lasting)
            contents = {str([m for m in each.body["messages"] if m["turn_id"] in lasting]) for each in deliveries}
            if len(contents) > 1:
                yield f"M4 {segment['id']} was given with different messages"

    def _delivered(self, segment: Any, given: Given, turns: Sequence[str], lasting: Sequence[str]) -> Iterator[str]:
        body, name = given.body, f"delivery {given.number} of {given.segment_id}"
        if (given.key, body["owner"], body["session_id"]) != (segment["id"], given.owner, segment["session_id"]):
            yield f"M4 {name} has other names than its segment"
        if body["generations"] != [segment["first_generation"], segment["last_generation"]]:
            yield f"M2 {name} is of generations {body['generations']}"
        told = list(dict.fromkeys(message["turn_id"] for message in body["messages"]))
        if [turn for turn in told if turn in lasting] != lasting or not set(told) <= set(turns):
            yield f"M1 {name} told {told} of {turns}, of which {lasting} last"
        for turn in set(told) - set(lasting):
            if (
                turn in self.ledger.undone
                and given.at_ms - self._awake(self.ledger.undone[turn], given.at_ms) > IN_FLIGHT_MS
            ):
                yield f"M1 {name} told {turn}, which was undone long before"
        for message in body["messages"]:
            if message["role"] == "user" and message["text"] != self.said.get(message["turn_id"]):
                yield f"M1 {name} told {message['text']!r}"

    def _awake(self, since: int, until: int) -> int:
        """Return a moment moved by as long as some process stood still since."""
        return since + sum(max(0, min(p.ended, until) - max(p.begun, since)) for p in self.pauses)

    def _strangers(self) -> Iterator[str]:
        """M3: nobody is given what is owed to somebody else."""
        for each in self.given:
            segment = self.ledger.segments.get(each.segment_id)
            if segment is None or segment["owner"] != each.owner:
                yield f"M3 {each.owner} was given {each.segment_id}, of {segment and segment['owner']}"

    def _order(self) -> Iterator[str]:
        """M2: per session one segment is taken before the next is even given, counted by the first time."""
        given = _by_segment(self.given)
        by_session: defaultdict[str, list[Any]] = defaultdict(list)
        for segment in self.ledger.segments.values():
            if segment["id"] in given and segment["receipt"] != NOTHING_SAID:
                by_session[segment["session_id"]].append(segment)
        for segments in by_session.values():
            segments.sort(key=lambda segment: segment["first_generation"])
            for early, late in pairwise(segments):
                taken = min((each.taken for each in given[early["id"]] if each.taken), default=None)
                if taken is None or taken > min(each.number for each in given[late["id"]]):
                    yield f"M2 {late['id']} was given before {early['id']} was taken"

    def _facts(self) -> Iterator[str]:
        """M4: whatever the builtin was told is known once, from the turn and the segment that it is of."""
        owed = {id_: segment for id_, segment in self.ledger.segments.items() if segment["owner"] == BUILTIN}
        known = Counter((fact["turn_id"], fact["segment_id"], _nonce(fact["text"])) for fact in self.ledger.facts)
        wanted: set[tuple[str, str, str]] = set()
        tolerated: set[tuple[str, str, str]] = set()
        for id_, segment in owed.items():
            # The other way round is possible: absorbed in a commit that was cut off, and undone before it was made again.
            if segment["receipt"] != NOTHING_SAID and id_ not in self.ledger.absorbed:
                yield f"M4 {id_} says {segment['receipt']!r} and was never absorbed"
            for turn in self.ledger.of(segment):
                fact = (turn["id"], id_, self.said[turn["id"]].split()[0])
                if turn["id"] not in self.ledger.undone:
                    wanted.add(fact)
                elif id_ in self.ledger.absorbed and not self._was_undone(turn["id"], self.ledger.absorbed[id_]):
                    tolerated.add(fact)
        yield from (f"M4 {fact} is known {count} times" for fact, count in known.items() if count > 1)
        yield from (f"M6 {fact} was lost" for fact in wanted - set(known))
        yield from (f"M1 {fact} is known" for fact in set(known) - wanted - tolerated)

    def _was_undone(self, turn_id: str, at_ms: int) -> bool:
        """Return whether a turn had been undone before the extraction that ended then could begin."""
        return at_ms - self._awake(self.ledger.undone[turn_id], at_ms) > IN_FLIGHT_MS + COMMIT_MAX_S * 1000

    def waits(self, disturbed: Sequence[Span]) -> list[int]:
        """Return how long replies took in whose time nothing was struck, the longest last."""
        found = [
            took
            for id_, took in self.ledger.took_ms.items()
            if self.ledger.turns[id_]["attempt"] == 1
            and not _overlaps(disturbed, self.ledger.completed[id_] - took, self.ledger.completed[id_])
        ]
        return sorted(found)


async def violations(store: Store, reckoning: Reckoning) -> list[str]:
    return [*await audit(store.database), *reckoning.violations()]


def _by_segment(given: Iterable[Given]) -> dict[str, list[Given]]:
    found: defaultdict[str, list[Given]] = defaultdict(list)
    for each in given:
        found[each.segment_id].append(each)
    return dict(found)


def _overlaps(spans: Sequence[Span], begun: int, ended: int) -> bool:
    return any(span.begun <= ended and begun <= span.ended for span in spans)


def _nonce(text: str) -> str:
    return text.split()[2]
