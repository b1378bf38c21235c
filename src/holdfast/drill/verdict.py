"""The drill: it kills and restarts a scratch gateway, and compares what a user saw with what is stored."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.core.journal import Entry
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import SETTLED, Cause, Turn, TurnState
from holdfast.drill.commits import COMMITTED, Commit, judge_commits
from holdfast.drill.ends import Ends, end_of
from holdfast.drill.nonces import words_for
from holdfast.drill.strikes import judge_strikes
from holdfast.errors import NotFound, StoreBroken
from holdfast.ids import SessionId, TurnId
from holdfast.store import rows
from holdfast.store.audit import audit
from holdfast.store.database import Row, Run, Transaction
from holdfast.store.opening import open_store
from holdfast.store.store import Store

# A life is cut this long after its first acknowledgement at the latest.
LIFE_MAX_S = 0.4
START_MAX_S = 30
STOP_MAX_S = 30
SETTLE_MAX_S = 120


@dataclass(slots=True)
class Seen(Ends):
    """Everything a user saw in all lives: acknowledgements by nonce, journal entries on screen, and how lives ended."""

    accepted: dict[str, TurnId] = field(default_factory=dict[str, TurnId])
    shown: set[tuple[str, int, str]] = field(default_factory=set[tuple[str, int, str]])
    doubled: list[str] = field(default_factory=list[str])

    def read(self, line: str) -> None:
        match line.split():
            case ["accepted", nonce, turn_id]:
                self.accepted[nonce] = TurnId(turn_id)
            case ["shown", session_id, seq, kind]:
                self.shown.add((session_id, int(seq), kind))
            case ["doubled", key]:
                self.doubled.append(key)
            case ["drained", cut]:
                self.drained += int(cut)
            case _:
                pass  # The kill cut the line off.


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillResult:
    """The result of a drill, which has passed if there are no violations.

    `kills` counts the ends of the gateway by either signal.  `drained` turns were interrupted by a stop with too short a
    timeout.  `given_up` turns were interrupted too often, and alone if by a crash.  `commits` counts the segments that were
    committed to memory, and `commits_repeated` those that were committed again because the outcome was unknown.
    """

    kills: int
    sigkills: int
    sigterms: int
    drained: int
    accepted: int
    completed: int
    continued: int
    given_up: int
    shown: int
    effects: int
    effects_unknown: int
    sends: int
    sends_labelled: int
    remembered: int
    commits: int
    commits_repeated: int
    violations: list[str]

    def told(self) -> Sequence[str]:
        """Return the result as lines of text."""
        remembered = f"{self.remembered} answers remembered in {self.commits} commits"
        return (
            f"{self.accepted} messages acknowledged",
            f"{self.completed} answered in full, {self.continued} of them across at least one such end",
            f"{self.drained} turns cut by a stop that gave them too little time, each with its cause recorded",
            f"{self.given_up} given up at the third interruption in a row or later, none by a crash beside others",
            f"{self.shown} journal entries on screen, all still there",
            f"{self.effects} effects on the world, none twice; {self.effects_unknown} reported as unknown",
            f"{self.sends} parts sent, {self.sends_labelled} labelled as possible repeats",
            f"{remembered}, {self.commits_repeated} of them made again as the same",
        )


def drill(home: Path, url: str, kills: int, seed: int, progress: Callable[[int], None]) -> DrillResult:
    """End a scratch gateway `kills` times at random moments, let it recover, and check every promise."""
    chance = random.Random(seed)  # noqa: S311 - Variety, not a secret.
    seen = Seen()
    for life in range(kills):
        _one_life(home, url, life, seen, chance.uniform(0, LIFE_MAX_S), end_of(life))
        progress(life + 1)
    _settle(home, url, kills, seen)
    return asyncio.run(_judge(home, url, kills, seen))


def _spawn(home: Path, url: str, life: int, purpose: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "holdfast.drill.life", str(home), url, str(life), purpose]
    with (home / "life.log").open("a") as log:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)  # noqa: S603 - Our own module.


def _one_life(home: Path, url: str, life: int, seen: Seen, cut_after_s: float, by: signal.Signals) -> None:
    with _spawn(home, url, life, "live") as process:
        # A life that never says anything is cut as well, and found out below.
        guard = threading.Timer(START_MAX_S, process.send_signal, (signal.SIGKILL,))
        guard.start()
        assert process.stdout is not None  # noqa: S101 - It was asked for as a pipe.
        first = process.stdout.readline()
        guard.cancel()
        if not first:
            raise StoreBroken(f"the scratch gateway did not start; see {home / 'life.log'}")
        seen.read(first)
        cut = threading.Timer(cut_after_s, process.send_signal, (by,))
        guard = threading.Timer(cut_after_s + STOP_MAX_S, process.send_signal, (signal.SIGKILL,))
        cut.start()
        guard.start()
        for line in process.stdout:
            if line.endswith("\n"):
                seen.read(line)
        cut.join()
        guard.cancel()
    seen.end(life, by, process.returncode)


def _settle(home: Path, url: str, life: int, seen: Seen) -> None:
    with _spawn(home, url, life, "settle") as process:
        try:
            output, _ = process.communicate(timeout=SETTLE_MAX_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise StoreBroken(f"the scratch gateway did not settle in {SETTLE_MAX_S} s; see {home / 'life.log'}") from None
        for line in output.splitlines():
            seen.read(line)
        if process.returncode != 0:
            raise StoreBroken(f"the scratch gateway failed while it settled; see {home / 'life.log'}")


async def _judge(home: Path, url: str, kills: int, seen: Seen) -> DrillResult:
    store = await open_store(url, home)
    try:
        turns = {nonce: await _turn(store, turn_id) for nonce, turn_id in seen.accepted.items()}
        journals = await journals_of(store, {turn.session_id for turn in turns.values() if turn})
        violations = [
            *await audit(store.database),
            *(f"A3 doubled: {key}" for key in seen.doubled),
            *seen.odd_ends,
            *await judge_drains(store, seen.drained),
            *_judge_turns(turns, journals),
            *_judge_shown(seen, journals),
        ]
        found = [turn for turn in turns.values() if turn]
        violations += judge_strikes(found, journals, seen.ends_ms)
        ledger = read_ledger(home)
        world, world_violations = await judge_world(ledger, store, found)
        commits = [Commit.read(words) for words in ledger if words[0] == COMMITTED]
        segments = {commit.segment_id for commit in commits}
        return DrillResult(
            kills=kills,
            sigkills=seen.ends[signal.SIGKILL],
            sigterms=seen.ends[signal.SIGTERM],
            drained=seen.drained,
            accepted=len(turns),
            completed=sum(turn.state is TurnState.COMPLETED for turn in found),
            continued=sum(turn.state is TurnState.COMPLETED and turn.attempt > 1 for turn in found),
            given_up=sum(turn.state is TurnState.INTERRUPTED for turn in found),
            shown=len(seen.shown),
            effects=world["effects"],
            effects_unknown=world["unknown"],
            sends=world["sends"],
            sends_labelled=world["labelled"],
            remembered=sum(turn.generation is not None for turn in found),
            commits=len(segments),
            commits_repeated=len(commits) - len(segments),
            violations=[*violations, *world_violations, *await judge_commits(store, commits, found)],
        )
    finally:
        await store.close()


async def _turn(store: Store, turn_id: TurnId) -> Turn | None:
    try:
        return await store.turns.get(turn_id)
    except NotFound:
        return None


async def journals_of(store: Store, session_ids: set[SessionId]) -> dict[SessionId, list[Entry]]:
    return {session_id: await store.journal.read(session_id, limit=1_000_000) for session_id in session_ids}


def _judge_turns(turns: dict[str, Turn | None], journals: dict[SessionId, list[Entry]]) -> list[str]:
    violations: list[str] = []
    for nonce, turn in turns.items():
        if turn is None:
            violations.append(f"A1 acknowledged and gone: {nonce}")
            continue
        if turn.state not in SETTLED:
            violations.append(f"A1 not settled: {turn.id}")
        items = [item for item in fold(journals[turn.session_id]) if item.turn_id == turn.id]
        said = "".join(item.text for item in items if item.role is Role.ASSISTANT)
        whole = "".join(words_for(nonce))
        if turn.state is TurnState.COMPLETED and said != whole:
            violations.append(f"J1 answer of {turn.id} is {said!r}")
        elif not whole.startswith(said):
            violations.append(f"J1 partial answer of {turn.id} is {said!r}")
    return violations


async def judge_drains(store: Store, drained: int) -> list[str]:
    """Compare how many turns each drain reported as interrupted with the causes in the journal."""
    found = await store.database.read(_interruptions)
    recorded = sum(rows.data(data).get("cause") == Cause.RESTART_TIMEOUT for (data,) in found)
    return [] if recorded == drained else [f"R4 {drained} turns cut by drains, and {recorded} in the journal"]


def _interruptions() -> Transaction[list[Row]]:
    return (yield Run("SELECT data FROM entries WHERE kind = 'turn.interrupted'"))


def _judge_shown(seen: Seen, journals: dict[SessionId, list[Entry]]) -> list[str]:
    there = {(entry.session_id, entry.seq, entry.kind) for entries in journals.values() for entry in entries}
    return [f"J1 shown and gone: {each}" for each in seen.shown - there if each[0] in journals]


def read_ledger(home: Path) -> list[list[str]]:
    """Return the lines of the file that has one for every effect on the world."""
    return [line.split() for line in (home / "ledger.txt").read_text().splitlines()]


async def judge_world(
    ledger: Sequence[Sequence[str]], store: Store, turns: Sequence[Turn]
) -> tuple[Counter[str], list[str]]:
    """Compare the ledger, which has a line for every effect, with what the store says about each."""
    effects = Counter(words[1] for words in ledger if words[0] == "effect")
    sends = Counter((words[1], words[2], words[3]) for words in ledger if words[0] == "sent")
    violations = [f"X1 effect ran {count} times: {key}" for key, count in effects.items() if count > 1]
    violations += [f"D1 sent {count} times: {key}" for key, count in sends.items() if count > 1]
    unknown = 0
    for turn in turns:
        for call in await store.journal.calls(turn.id):
            unknown += call.state.value == "unknown"
            if call.state.value == "ok" and not effects[f"{turn.id}:{call.id}"]:
                violations.append(f"X1 recorded as done, and never ran: {call.id} of {turn.id}")
    facts = Counter(
        effects=len(effects),
        unknown=unknown,
        sends=sum(sends.values()),
        labelled=sum(count for key, count in sends.items() if key[2] == "repeat"),
    )
    return facts, violations
