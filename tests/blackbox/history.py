"""The history checker: what all clients were told and shown, held against what is there in the end.

It shares no code with Holdfast: entries, transcripts and receipts are read from the wire, and each rule is stated anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

FINAL = frozenset({"completed", "failed", "cancelled"})
AT_REST = FINAL | {"interrupted", "waiting"}
_CLOSING = {f"turn.{state}" for state in (*FINAL, "interrupted")}
_OUTPUT = frozenset({"text", "reasoning", "tool.started", "tool.finished"})
_SHOWN = frozenset({"assistant", "reasoning", "tool"})
SYSTEM_NOTE = "[System note:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A journal entry as it came over the wire."""

    session_id: str
    seq: int
    turn_id: str
    attempt: int
    nth: int | None
    kind: str
    data: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def text(self) -> str:
        return str(self.data.get("text", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing of a transcript as it came over the wire."""

    role: str
    turn_id: str
    text: str = ""
    kind: str | None = None
    recovered: bool = False
    name: str | None = None
    args: Mapping[str, object] | None = None
    outcome: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a client was told about a turn."""

    id: str
    session_id: str
    state: str
    accepted_at: int
    started_at: int | None = None
    attempt: int = 0
    cause: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """A 202 for the message that carries a nonce."""

    nonce: str
    session_id: str
    turn_id: str


@dataclass(slots=True, kw_only=True)
class Stream:
    """Everything that one follower of a session saw over all its connections, from the cursor that it began with."""

    session_id: str
    after: int = 0
    entries: list[Entry] = field(default_factory=list[Entry])
    resets: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """A transcript as it was read at some time."""

    session_id: str
    seq: int
    items: Sequence[Item]


@dataclass(slots=True, kw_only=True)
class History:
    """What the clients did and saw, in the order in which they did.  One client at a time writes to a session.

    `sent` has the text of each message by its nonce, which is its first word, and `answers` the whole answer to it where the
    model says the same however often it is asked.
    """

    sent: dict[str, str] = field(default_factory=dict[str, str])
    answers: dict[str, str] = field(default_factory=dict[str, str])
    acknowledged: list[Acknowledgement] = field(default_factory=list[Acknowledgement])
    streams: list[Stream] = field(default_factory=list[Stream])
    polls: list[Poll] = field(default_factory=list[Poll])
    receipts: list[Receipt] = field(default_factory=list[Receipt])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is there after everything has settled: by session, by turn, and the lines of notes that were kept."""

    journals: Mapping[str, Sequence[Entry]]
    transcripts: Mapping[str, Sequence[Item]]
    turns: Mapping[str, Receipt]
    notes: Sequence[str] = ()


def check(history: History, outcome: Outcome) -> list[str]:
    """Return every broken promise, in words."""
    return [
        *_kept(history, outcome),
        *_accepted_once(history, outcome),
        *_gapless(outcome),
        *_streamed(history, outcome),
        *_read(history, outcome),
        *_answered_once(history, outcome),
        *_answered_in_full(history, outcome),
        *_ended_once(outcome),
        *_noted_once(outcome),
        *_marked(outcome),
        *_in_order(history, outcome),
        *_receipts_stand(history, outcome),
        *_told_once(outcome),
    ]


def _kept(history: History, outcome: Outcome) -> Iterator[str]:
    """Nothing acknowledged is missing, and all of it has come to an end that can be seen."""
    for ack in history.acknowledged:
        turn = outcome.turns.get(ack.turn_id)
        if turn is None:
            yield f"missing: {ack.nonce} was acknowledged as {ack.turn_id}, which is not there"
            continue
        if turn.state not in AT_REST:
            yield f"unsettled: {ack.turn_id} of {ack.nonce} is still {turn.state}"
        entries = _of(outcome.journals.get(ack.session_id, ()), ack.turn_id)
        if not any(entry.kind == "turn.accepted" and ack.nonce in entry.text for entry in entries):
            yield f"missing: {ack.nonce} is not in the journal of {ack.session_id} under {ack.turn_id}"
        items = outcome.transcripts.get(ack.session_id, ())
        if not _left_out(entries) and not any(each.role == "user" and ack.nonce in each.text for each in items):
            yield f"missing: {ack.nonce} is not in the transcript of {ack.session_id}"


def _accepted_once(history: History, outcome: Outcome) -> Iterator[str]:
    """A message is in the journals at most once, as it was sent; one that was acknowledged twice, as the same turn."""
    accepted: dict[str, list[str]] = {}
    for entry in _all(outcome):
        if entry.kind == "turn.accepted":
            accepted.setdefault(entry.text.partition(" ")[0], []).append(entry.text)
    for nonce, text in history.sent.items():
        found = accepted.get(nonce, [])
        if len(found) > 1:
            yield f"doubled: {nonce} was accepted {len(found)} times"
        if any(each != text for each in found):
            yield f"changed: {nonce} was sent as {text!r} and is there as {found!r}"
    turns: dict[str, str] = {}
    for ack in history.acknowledged:
        if turns.setdefault(ack.nonce, ack.turn_id) != ack.turn_id:
            yield f"doubled: {ack.nonce} was acknowledged as {turns[ack.nonce]} and as {ack.turn_id}"


def _gapless(outcome: Outcome) -> Iterator[str]:
    for session_id, journal in outcome.journals.items():
        if [entry.seq for entry in journal] != list(range(1, len(journal) + 1)):
            yield f"gap: the journal of {session_id} is not numbered from 1 without gaps"


def _streamed(history: History, outcome: Outcome) -> Iterator[str]:
    """A follower sees each entry exactly once, gapless, and as it is in the journal."""
    for stream in history.streams:
        journal = {entry.seq: entry for entry in outcome.journals.get(stream.session_id, ())}
        expected = stream.after
        if stream.resets:
            yield f"reset: a follower of {stream.session_id} was told to begin anew"
        for entry in stream.entries:
            expected += 1
            if entry.seq != expected:
                yield f"stream: a follower of {stream.session_id} got {entry.seq} where {expected} comes next"
                break
            if journal.get(entry.seq) != entry:
                yield f"stream: {entry} was shown, and {journal.get(entry.seq)} is in the journal"


def _read(history: History, outcome: Outcome) -> Iterator[str]:
    """A transcript shows exactly what the journal held when it was read."""
    final = [
        Poll(session_id=session_id, seq=len(outcome.journals.get(session_id, ())), items=items)
        for session_id, items in outcome.transcripts.items()
    ]
    for poll in (*history.polls, *final):
        entries = [entry for entry in outcome.journals.get(poll.session_id, ()) if entry.seq <= poll.seq]
        if len(entries) != poll.seq:
            yield f"read: a transcript of {poll.session_id} reached {poll.seq}, and the journal {len(entries)}"
        order = [turn_id for turn_id in _turns(entries) if not _left_out(_of(entries, turn_id))]
        if list(dict.fromkeys(item.turn_id for item in poll.items)) != order:
            yield f"read: a transcript of {poll.session_id} up to {poll.seq} has other turns than the journal"
        for turn_id in order:
            for role, kind in (("assistant", "text"), ("reasoning", "reasoning")):
                shown = "".join(item.text for item in poll.items if (item.turn_id, item.role) == (turn_id, role))
                if shown != _said(entries, turn_id, kind):
                    yield f"read: {turn_id} up to {poll.seq} is shown as {shown!r}, not {_said(entries, turn_id, kind)!r}"


def _answered_once(history: History, outcome: Outcome) -> Iterator[str]:
    """A completed turn repeats its nonce exactly once; any other turn at most once.

    What an attempt had said unheard before it was cut off does not count: whoever went on could not know of it.  Answers
    that are known in advance are compared word by word instead.
    """
    for ack in history.acknowledged:
        if ack.nonce in history.answers:
            continue
        entries = _of(outcome.journals.get(ack.session_id, ()), ack.turn_id)
        turn = outcome.turns.get(ack.turn_id)
        if turn is None or any("joined" in entry.data for entry in entries):
            continue
        times = _said(_punctual(entries), ack.turn_id).count(ack.nonce)
        if turn.state == "completed" and times != 1:
            yield f"answer: {ack.nonce} is {times} times in the answer of {ack.turn_id}"
        elif times > 1:
            yield f"answer: {ack.nonce} is {times} times in what {turn.state} {ack.turn_id} had said"


def _answered_in_full(history: History, outcome: Outcome) -> Iterator[str]:
    """A completed turn has said its whole answer, any other a beginning of it; each attempt goes on where the last one was.

    An attempt may or may not have known what another had said unheard before it was cut off.
    """
    for ack in history.acknowledged:
        whole, turn = history.answers.get(ack.nonce), outcome.turns.get(ack.turn_id)
        if whole is None or turn is None:
            continue
        entries = _of(outcome.journals.get(ack.session_id, ()), ack.turn_id)
        reached = _reach(whole, entries)
        if reached is None:
            yield f"answer: {ack.turn_id} said {_said(entries, ack.turn_id)!r}, which is no part of {whole!r}"
        elif turn.state == "completed" and reached != len(whole):
            yield f"answer: {ack.turn_id} is completed, and its answer ends at {whole[:reached]!r}"


def _reach(whole: str, entries: Sequence[Entry]) -> int | None:
    """Return how much of an answer was said; None where an attempt left something out, or repeated what it knew."""
    punctual = {id(entry) for entry in _punctual(entries)}
    known = far = 0
    for attempt in sorted({entry.attempt for entry in entries if entry.kind == "text"}):
        pieces = sorted(
            (entry for entry in entries if (entry.kind, entry.attempt) == ("text", attempt)), key=lambda each: each.nth or 0
        )
        said = "".join(entry.text for entry in pieces)
        begin = next((place for place in range(known, far + 1) if whole.startswith(said, place)), None)
        if begin is None:
            return None
        heard = sum(len(entry.text) for entry in pieces if id(entry) in punctual)
        known, far = max(known, begin + heard), max(far, begin + len(said))
    return far


def _ended_once(outcome: Outcome) -> Iterator[str]:
    """A turn has one final entry at most, nothing that it says follows it, and its receipt says the same.

    Only what an attempt said before it was cut off may still come in.
    """
    for turn_id, turn in outcome.turns.items():
        entries = _of(outcome.journals.get(turn.session_id, ()), turn_id)
        ends = [entry for entry in entries if entry.kind in _CLOSING and entry.kind != "turn.interrupted"]
        if len(ends) != (turn.state in FINAL) or any(end.kind != f"turn.{turn.state}" for end in ends):
            yield f"end: {turn_id} is {turn.state}, and its journal says {[end.kind for end in ends]}"
        for entry in _punctual(entries):
            if ends and entry.seq > ends[0].seq and entry.kind in _OUTPUT:
                yield f"end: {turn_id} went on after it was {turn.state}: {entry}"


def _noted_once(outcome: Outcome) -> Iterator[str]:
    """No note is kept twice, and each that is said to be kept has been."""
    keys = Counter(line.partition(" ")[0] for line in outcome.notes)
    texts = Counter(line.partition(" ")[2].strip() for line in outcome.notes)
    yield from (f"effect: {what!r} was noted {times} times" for what, times in (keys | texts).items() if times > 1)
    for item in (each for items in outcome.transcripts.values() for each in items):
        if item.name == "keep_note" and item.outcome == "ok" and not texts[str((item.args or {}).get("text"))]:
            yield f"effect: {item.args} is said to be noted, and is not"


def _marked(outcome: Outcome) -> Iterator[str]:
    """Each attempt that was interrupted has one marker, right below everything it had shown."""
    for turn_id, turn in outcome.turns.items():
        entries = _of(outcome.journals.get(turn.session_id, ()), turn_id)
        if _left_out(entries):
            continue
        cut = [entry.attempt for entry in entries if entry.kind == "turn.interrupted"]
        items = [item for item in outcome.transcripts.get(turn.session_id, ()) if item.turn_id == turn_id]
        places = [index for index, item in enumerate(items) if (item.role, item.kind) == ("marker", "interrupted")]
        if len(set(cut)) != len(cut) or len(places) != len(cut):
            yield f"marker: {turn_id} was interrupted in its attempts {cut} and has {len(places)} markers"
            continue
        if turn.state == "interrupted" and (not cut or any(each.role in _SHOWN for each in items[places[-1] :])):
            yield f"marker: {turn_id} is interrupted, and its marker does not stand below what it had shown"
        for attempt, (above, place) in zip(sorted(cut), pairwise((-1, *places)), strict=True):
            told = [entry for entry in entries if entry.attempt <= attempt]
            if "".join(item.text for item in items[:place] if item.role == "assistant") != _said(told, turn_id):
                yield f"marker: what attempt {attempt} of {turn_id} had said is not what stands above its marker"
            showed = any(entry.attempt == attempt and entry.kind in _OUTPUT - {"tool.finished"} for entry in entries)
            if showed and not any(item.recovered for item in items[above + 1 : place]):
                yield f"marker: nothing above the marker of attempt {attempt} of {turn_id} is marked as recovered"
        if any(item.recovered for item in items[places[-1] + 1 if places else 0 :]):
            yield f"marker: something of {turn_id} is marked as recovered and stands above no marker"


def _in_order(history: History, outcome: Outcome) -> Iterator[str]:
    """Turns of a session are accepted in the order of their acknowledgements, and run one at a time."""
    for session_id, journal in outcome.journals.items():
        acknowledged = list(dict.fromkeys(ack.turn_id for ack in history.acknowledged if ack.session_id == session_id))
        order = [entry.turn_id for entry in journal if entry.kind == "turn.accepted"]
        if [turn_id for turn_id in order if turn_id in acknowledged] != acknowledged:
            yield f"order: {session_id} acknowledged {acknowledged} and accepted {order}"
        yield from _one_by_one(session_id, journal)


def _one_by_one(session_id: str, journal: Sequence[Entry]) -> Iterator[str]:
    waiting: list[str] = []
    live: set[str] = set()
    for entry in journal:
        if entry.kind == "turn.accepted":
            waiting.append(entry.turn_id)
        elif entry.kind == "turn.started":
            before = waiting[: waiting.index(entry.turn_id)] if entry.turn_id in waiting else waiting
            if before and entry.attempt == 1:
                yield f"order: {entry.turn_id} of {session_id} began before {before}"
            if live - {entry.turn_id}:
                yield f"order: {entry.turn_id} of {session_id} began while {live} was live"
            live.add(entry.turn_id)
        if entry.kind == "turn.started" or entry.kind in _CLOSING:
            waiting = [turn_id for turn_id in waiting if turn_id != entry.turn_id]
        if entry.kind in _CLOSING:
            live.discard(entry.turn_id)


def _receipts_stand(history: History, outcome: Outcome) -> Iterator[str]:
    """What is final stays so, an attempt is never taken back, and the time of acceptance is a fact."""
    last: dict[str, Receipt] = {}
    for receipt in (*history.receipts, *outcome.turns.values()):
        before = last.get(receipt.id, receipt)
        if before.state in FINAL and (receipt.state, receipt.cause) != (before.state, before.cause):
            yield f"receipt: {receipt.id} was {before.state} ({before.cause}), then {receipt.state} ({receipt.cause})"
        if receipt.attempt < before.attempt or receipt.accepted_at != before.accepted_at:
            yield f"receipt: {receipt.id} went back from {before} to {receipt}"
        if (
            before.state != "queued"
            and receipt.state == "queued"
            and before.state not in ("interrupted", "waiting", "running")
        ):
            yield f"receipt: {receipt.id} is queued again after {before.state}"
        last[receipt.id] = receipt
    for turn_id in last.keys() - outcome.turns.keys():
        yield f"receipt: {turn_id} was shown, and is gone"


def _told_once(outcome: Outcome) -> Iterator[str]:
    """An attempt gets one banner at most, and a message one system note at most."""
    banners = Counter((entry.turn_id, entry.attempt) for entry in _all(outcome) if "banner" in entry.data)
    yield from (f"banner: {turn_id} was told {times} times" for (turn_id, _), times in banners.items() if times > 1)
    for journal in outcome.journals.values():
        for turn_id in _turns(journal):
            if _said(journal, turn_id, "reasoning").count(SYSTEM_NOTE) > 1:
                yield f"system note: {turn_id} has more than one"


def _all(outcome: Outcome) -> Iterator[Entry]:
    return (entry for journal in outcome.journals.values() for entry in journal)


def _of(journal: Sequence[Entry], turn_id: str) -> list[Entry]:
    return [entry for entry in journal if entry.turn_id == turn_id]


def _punctual(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the entries of a turn without those that came in after their attempt had been interrupted or cancelled."""
    cut: set[int] = set()
    for entry in entries:
        if entry.nth is None or entry.attempt not in cut:
            yield entry
        if entry.kind in ("turn.interrupted", "turn.cancelled"):
            cut.add(entry.attempt)


def came_late(journal: Sequence[Entry], turn_id: str) -> bool:
    """Return whether a turn has words that came in after their attempt had been cut off."""
    entries = _of(journal, turn_id)
    return len(list(_punctual(entries))) < len(entries)


def _turns(journal: Sequence[Entry]) -> list[str]:
    return list(dict.fromkeys(entry.turn_id for entry in journal))


def _left_out(entries: Sequence[Entry]) -> bool:
    """Whether the transcript shows nothing of a turn: it was undone, or joined another."""
    return any(
        entry.kind == "turn.undone" or (entry.kind == "turn.completed" and "joined" in entry.data) for entry in entries
    )


def _said(journal: Iterable[Entry], turn_id: str, kind: str = "text") -> str:
    """Return what a turn said, in the order of its own writing: what came in late has a place of its own."""
    pieces = sorted(
        ((entry.attempt, entry.nth or 0, entry.text) for entry in journal if (entry.turn_id, entry.kind) == (turn_id, kind)),
    )
    return "".join(text for _, _, text in pieces)
