"""The verdict: everything that clients, receiver and model saw in a round, held against what is there after it has calmed.

It shares no code with Holdfast, except for the audit of the rows, which is Holdfast's own and has run before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.blackbox.history import Acknowledgement, Entry, History, Outcome, came_late, check
from tests.chaos.receiver import Send

# So many interruptions in a row, and a session is suspended instead of being cut off for ever.
STRIKES = 3
# With these words a turn says that it failed because its model did not answer, or because there was no room.
MODEL = "openai:scripted"
DISK_FULL = "the disk is full"
_RAN = ("ran", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole answer that came back over HTTP."""

    nonce: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session as the API shows it in the end."""

    id: str
    state: str
    one_shot: bool
    end_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery as the API shows it in the end."""

    id: str
    turn_id: str
    part: int
    state: str
    repeats: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """What became of a job when it was due."""

    outcome: str
    turn_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What the gateway says about all its turns."""

    accepted: int
    settled: int
    in_flight: int
    turns: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Everything that is known of a round, when it is over.

    `alone` has the inputs with a session of their own, and how that must end; `delivered` those whose answer goes to the
    receiver; `cancels` the turns that a client wanted to cancel; `told` how often the end of each background command was
    announced; `excuses` are words with which a turn may say why it failed.
    """

    history: History
    outcome: Outcome
    tally: Tally
    sessions: Mapping[str, Session] = field(default_factory=dict[str, Session])
    deliveries: Sequence[Delivery] = ()
    sends: Sequence[Send] = ()
    replies: Sequence[Reply] = ()
    jobs: Mapping[str, Sequence[Slot]] = field(default_factory=dict[str, Sequence[Slot]])
    alone: Mapping[str, str] = field(default_factory=dict[str, str])
    delivered: frozenset[str] = frozenset()
    cancels: frozenset[str] = frozenset()
    began: Sequence[str] = ()
    told: Mapping[str, int] = field(default_factory=dict[str, int])
    odd: Sequence[str] = ()
    audit: Sequence[str] = ()
    excuses: frozenset[str] = frozenset()


def judge(found: Round) -> list[str]:
    """Return every broken promise, in words."""
    violations = [
        *check(found.history, found.outcome),
        *_conserved(found),
        *_given_up_with_reason(found),
        *_replied_alike(found),
        *_sent_once(found),
        *_delivered(found),
        *_ended(found),
        *_ran_once(found),
        *_took_effect_once(found),
        *(f"announcement: {each} was announced {times} times" for each, times in found.told.items() if times != 1),
        *(f"odd answer: {each}" for each in found.odd),
        *(f"audit: {each}" for each in found.audit),
    ]
    # A message that was acknowledged twice is judged twice.
    return list(dict.fromkeys(violations))


def _conserved(found: Round) -> Iterator[str]:
    tally = found.tally
    if tally.accepted != tally.settled + tally.in_flight or tally.accepted != sum(tally.turns.values()):
        yield f"conservation: {tally}"
    if tally.in_flight:
        yield f"unsettled: {tally.in_flight} turns are in flight after everything had calmed"


def _given_up_with_reason(found: Round) -> Iterator[str]:
    """A turn without an answer was cancelled by its client, failed for a good reason, or is of a session that struck out."""
    for ack in _first(found.history.acknowledged):
        turn = found.outcome.turns.get(ack.turn_id)
        if turn is None or turn.state == "completed":
            continue
        struck = _strikes(found.outcome.journals.get(ack.session_id, ())) >= STRIKES
        match turn.state:
            case "interrupted" if struck:
                pass
            case "cancelled" if ack.turn_id in found.cancels:
                pass
            case "failed" if any(excuse in _why(found, ack) for excuse in found.excuses):
                pass
            case _:
                why = _why(found, ack) or "nothing says why"
                yield f"lost: {ack.turn_id} of {ack.nonce} is {turn.state} ({turn.cause}): {why}"


def _why(found: Round, ack: Acknowledgement) -> str:
    """Return what the journal says of why a turn failed."""
    journal = found.outcome.journals.get(ack.session_id, ())
    ends = [entry for entry in journal if (entry.turn_id, entry.kind) == (ack.turn_id, "turn.failed")]
    return " ".join(str(entry.data.get("error", "")) for entry in ends)


def _strikes(journal: Sequence[Entry]) -> int:
    """Return the most interruptions in a row."""
    most = row = 0
    for entry in journal:
        if entry.kind == "turn.interrupted":
            row += 1
        elif entry.kind == "turn.completed":
            row = 0
        most = max(most, row)
    return most


def _replied_alike(found: Round) -> Iterator[str]:
    """What comes back over HTTP is the whole answer, however often the same request is made.

    Where words came in late, some may be there twice: the attempt that went on did not know them.
    """
    turns = {ack.nonce: ack for ack in found.history.acknowledged}
    for reply in found.replies:
        whole, ack = found.history.answers[reply.nonce], turns[reply.nonce]
        late = came_late(found.outcome.journals.get(ack.session_id, ()), ack.turn_id)
        if reply.text != whole and not (late and set(reply.text.split()) == set(whole.split())):
            yield f"reply: {reply.nonce} was answered {reply.text!r}"


def _sent_once(found: Round) -> Iterator[str]:
    """The receiver reads a part at most once without the label of a repeat; nothing that it was not to get."""
    sends = Counter((send.turn_id, send.part, send.repeat) for send in found.sends)
    for (turn_id, part, repeat), times in sends.items():
        if times > 1 and not repeat:
            yield f"delivery: part {part} of {turn_id} came {times} times and not as a repeat"
    known = {each.id for each in found.deliveries}
    yield from (f"delivery: {each.id} came, and is in no outbox" for each in found.sends if each.id not in known)


def _delivered(found: Round) -> Iterator[str]:
    """A completed turn with a target has one answer in the outbox, and one that is called delivered has arrived, whole."""
    parts: dict[str, list[Delivery]] = {}
    for each in found.deliveries:
        if each.part > 0:
            parts.setdefault(each.turn_id, []).append(each)
    read = {send.id: send for send in found.sends}
    for ack in _first(found.history.acknowledged):
        turn = found.outcome.turns.get(ack.turn_id)
        if ack.nonce not in found.delivered or turn is None or turn.state != "completed":
            continue
        mine = parts.get(ack.turn_id, [])
        if len(mine) != 1:
            yield f"delivery: {ack.turn_id} has {len(mine)} answers in the outbox"
        for each in mine:
            # The receiver drops repeats by their id, so it gets as many as it takes.
            if each.state != "delivered":
                yield f"delivery: {each.id} of {ack.turn_id} is {each.state}: {each.error}"
            if each.state == "delivered" and each.id not in read:
                yield f"delivery: {each.id} of {ack.turn_id} is called delivered, and never came"
            elif each.id in read and ack.nonce not in read[each.id].text:
                yield f"delivery: {each.id} of {ack.turn_id} came as {read[each.id].text!r}"


def _ended(found: Round) -> Iterator[str]:
    """A session for one input is over, for the right reason."""
    for ack in _first(found.history.acknowledged):
        reason, session = found.alone.get(ack.nonce), found.sessions.get(ack.session_id)
        if reason is None:
            continue
        if session is None:
            yield f"session: {ack.session_id} of {ack.nonce} is not there"
        elif not session.one_shot or session.state != "ended" or session.end_reason != reason:
            yield f"session: {ack.session_id} of {ack.nonce} is {session.state} ({session.end_reason})"


def _ran_once(found: Round) -> Iterator[str]:
    """A job that was due once has run once, or is said to have been missed."""
    for nonce, slots in found.jobs.items():
        if len(slots) != 1:
            yield f"job: {nonce} was due once, and has {len(slots)} slots"
        elif slots[0].outcome not in (*_RAN, "missed") or (slots[0].turn_id is None) != (slots[0].outcome == "missed"):
            yield f"job: {nonce} is {slots[0].outcome} with {slots[0].turn_id}"


def _took_effect_once(found: Round) -> Iterator[str]:
    yield from (f"effect: {word} began {times} times" for word, times in Counter(found.began).items() if times > 1)


def _first(acknowledged: Sequence[Acknowledgement]) -> list[Acknowledgement]:
    """Return one acknowledgement of each input."""
    return list({ack.nonce: ack for ack in reversed(acknowledged)}.values())
