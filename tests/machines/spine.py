"""The machine: everything channels, workers, senders, committers, operators and clocks may do to a store, in any order.

Each step is put to the real store and to the model, and both must answer alike or refuse alike.  After each step the whole
store must be what the model says, and the audit must find nothing.  Beside the model stand ledgers of what the world has
seen: starts, sends, commits.  They know nothing of states, and so cannot share a mistake with the store.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.core import delivery, effects, questions, segments
from holdfast.core.delivery import Delivery
from holdfast.core.effects import Call, Effect
from holdfast.core.ending import Ending
from holdfast.core.events import ApprovalAnswered, EntryKind
from holdfast.core.intake import Busy, Cursor, Inbound, Receipt
from holdfast.core.journal import LATE, DraftEntry, Entry
from holdfast.core.leases import Sighting, lapsed, watch
from holdfast.core.recovery import Interrupted, Swept
from holdfast.core.segments import Segment
from holdfast.core.sessions import STRIKES_MAX, Session
from holdfast.core.turns import FINAL, IN_FLIGHT, Cause, Mode, OnCrash, Policy, Resume, Turn, TurnEvent, TurnState
from holdfast.errors import HoldfastError
from holdfast.ids import CallId, DeliveryId, NodeId, SegmentId, SessionId, TurnId
from holdfast.store import rows
from holdfast.store.audit import audit
from holdfast.store.database import Row, Run, Transaction
from holdfast.store.store import Store
from tests.claims import claim
from tests.machines.model import Model

T = TypeVar("T")

START = 1_700_000_000_000
HOUR = 3_600_000
LEASE_MS = 5_000
MEMORY_OWNERS = ("memory:old", "memory:new")
CHANNELS = {"chat": "telegram", "hook": "webhook", "api": "api"}

# What is decided about a call by the store, not done by a worker.
_DECIDED = (effects.CallEvent.REPEAT, effects.CallEvent.LOSE)

_DEEDS = ("say", "use", "use", "heed", "heed", "park", "finish", "finish", "fail")
_DEBTS = ("seal", "seal", "close off", "claim", "claim", "claim one", "succeed", "succeed", "fail", "waive")
_CHANGES = (
    "crash",
    "resume",
    "resume",
    "hand over",
    "stick",
    "join",
    "beat",
    "leave",
    "bury",
    "take over",
    "drain",
    "drain",
)
_REPORTS = (
    delivery.DeliveryEvent.LOSE,
    delivery.DeliveryEvent.CONFIRM,
    delivery.DeliveryEvent.REFUSE,
    delivery.DeliveryEvent.FAIL,
)

picks = st.integers(0, 9)
policies = st.builds(Policy, resume=st.sampled_from(Resume), on_crash=st.sampled_from(OnCrash))
words = st.sampled_from(["hello", "again", "grüße \U0001f30a", "nul \0 and half \ud800"])


@st.composite
def _messages(draw: st.DrawFn) -> Inbound:
    """Messages of conversations, of one-shot deliveries and of API requests; a key says only whether there is one."""
    where = draw(st.sampled_from(["chat:1", "chat:2", "hook:1", "hook:2", "api:1"]))
    channel = CHANNELS[where.partition(":")[0]]
    position = draw(st.none() | picks)
    return Inbound(
        conversation=where,
        text=draw(words),
        channel=channel,
        owner=draw(st.sampled_from(["anna", "ben"])),
        mode=draw(st.sampled_from(Mode)),
        one_shot=channel != "telegram",
        remembers=draw(st.integers(0, 3)) > 0,
        reply_to=None if channel == "api" else f"{where}:reply",
        delivers_later=channel != "api",
        dedupe_key="key" if draw(st.booleans()) else None,
        busy=draw(st.sampled_from([None, None, None, *Busy, Busy.STEER])),
        cursor=None if position is None else Cursor(channel=channel, position=str(position)),
    )


messages = _messages()


@dataclass(frozen=True)
class Question:
    """Something put to the model and to the store, kept so that it can be put again."""

    what: str
    to_model: Callable[[], Any]
    to_store: Callable[[], Coroutine[Any, Any, Any]]
    answer: Any
    step: int


@dataclass(frozen=True)
class Snapshot:
    """All rows of a store."""

    turns: dict[TurnId, Turn]
    sessions: dict[SessionId, Any]
    entries: dict[SessionId, list[Entry]]
    calls: dict[tuple[TurnId, CallId], Call]
    deliveries: dict[DeliveryId, tuple[Any, ...]]
    segments: dict[SegmentId, tuple[Any, ...]]
    keys: dict[str, tuple[TurnId, SessionId]]
    cursors: dict[str, str]
    questions: dict[tuple[TurnId, str], str | None]
    grants: set[tuple[Any, ...]]
    nodes: dict[NodeId, tuple[bool, int]]


class _AllRules:
    """What Hypothesis asks about each rule of an example."""

    def is_enabled(self, _name: str) -> bool:
        return True


class Spine(RuleBasedStateMachine):
    """One store, several nodes, and a world around them.  A subclass says which kind of store."""

    exclusive: bool
    # What happened in all examples together, so that a machine which does nothing is not taken for a store without bugs.
    witnessed: ClassVar[Counter[tuple[str, str]]]

    def __init__(self) -> None:
        super().__init__()
        # Hypothesis would switch half of the rules off in each example, but hardly any of ours gets far without the rest.
        self._rules_strategy.enabled_rules_strategy = st.just(_AllRules())
        self.runner = asyncio.Runner()
        self.store: Store = self.run(self.open_it())
        self.model = Model(exclusive=self.exclusive)
        self.wall, self.monotonic = START, 0
        self.numbers = itertools.count(1)
        self.steps = self.opened_at = 0
        self.received: list[Inbound] = []
        # Every turn, delivery and segment that was ever handed out: with the old ones zombies write.
        self.turns: list[Turn] = []
        self.deliveries: list[Delivery] = []
        self.segments: list[Segment] = []
        self.last: Question | None = None
        self.seen: dict[NodeId, Sighting] = {}
        self.beaten_at: dict[NodeId, int] = {}
        # The ledgers.
        self.effectful_starts: Counter[tuple[TurnId, CallId]] = Counter()
        self.first_starts: defaultdict[SessionId, list[int]] = defaultdict(list)
        self.sends: defaultdict[DeliveryId, list[bool]] = defaultdict(list)
        self.commits: defaultdict[SessionId, list[int]] = defaultdict(list)
        self.waived: defaultdict[SessionId, set[int]] = defaultdict(set)
        self.finals: dict[TurnId, TurnState] = {}

    def open_it(self) -> Coroutine[Any, Any, Store]:
        raise NotImplementedError

    def forget_it(self) -> None:
        """Remove what the machine left behind."""

    def teardown(self) -> None:
        self.run(self.store.close())
        self.runner.close()
        self.forget_it()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def ask(self, what: str, to_model: Callable[[], T], to_store: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """Put a question to both: the answers are the same, or the refusals are, and then None is returned."""
        self.steps += 1
        expected, refusal = None, None
        try:
            expected = _plain(to_model())
        except HoldfastError as error:
            refusal = type(error)
        if refusal:
            with pytest.raises(HoldfastError) as refused:
                self.run(to_store())
            assert refused.type is refusal
            self.witnessed[what, refusal.__name__] += 1
            return None
        answer = self.run(to_store())
        assert _plain(answer) == expected
        self.witnessed[what, "nothing" if answer in (None, [], 0, False) else "done"] += 1
        # A worker repeats its writes and a sender its message; the others look again instead.
        if isinstance(answer, tuple | Receipt):
            self.last = Question(what, to_model, to_store, answer, self.steps)
        return answer

    def new(self, prefix: str) -> Any:
        """Return an id that sorts by the machine's wall clock, as real ones do."""
        return f"{prefix}_{self.wall:015}_{next(self.numbers):05}"

    def draft(self, kind: EntryKind, **data: object) -> DraftEntry:
        return DraftEntry.read(kind=kind, at=self.wall, data=data)

    def running(self) -> list[Turn]:
        return [turn for turn in self.model.turns.values() if turn.state is TurnState.RUNNING]

    def alive(self) -> list[NodeId]:
        return [node_id for node_id, node in self.model.nodes.items() if node.alive]

    def keep(self, answer: tuple[Turn, list[Entry]] | None) -> None:
        if answer:
            self.turns.append(answer[0])

    @initialize(first=st.lists(messages, min_size=1, max_size=6), started=st.booleans())
    def begin(self, first: list[Inbound], started: bool) -> None:
        self.join()
        for message in first:
            self.accept(message)
        if started:
            self.claim_and_start(self.alive()[0])

    # Channels

    @rule(message=messages)
    def receive(self, message: Inbound) -> None:
        """A1, A2: a message is a queued turn once its receipt is out.  Positions of a channel come in any order."""
        self.accept(message)

    @precondition(lambda self: self.model.turns)
    @rule(message=messages, pick=picks, at_work=st.booleans())
    def delegate(self, message: Inbound, pick: int, at_work: bool) -> None:
        """T3: whoever works for a turn is cancelled with it, and nobody works for one that was cancelled."""
        known = [turn.id for turn in self.model.turns.values() if turn.state in IN_FLIGHT or not at_work]
        self.accept(replace(message, parent_turn_id=_pick(known or list(self.model.turns), pick)))

    @precondition(lambda self: self.received)
    @rule(pick=picks, same=st.booleans())
    def receive_again(self, pick: int, same: bool) -> None:
        """A3: the same key with the same body is the same turn; with another body it is refused."""
        message = _pick(self.received, pick)
        self.ask_to_accept(message if same else replace(message, text=message.text + " and more"))

    def accept(self, message: Inbound) -> None:
        if message.dedupe_key:
            message = replace(message, dedupe_key=self.new("key"))
            self.received.append(message)
        self.ask_to_accept(message)

    def ask_to_accept(self, message: Inbound) -> None:
        ids = (self.new("trn"), self.new("ses"), self.wall)
        self.ask("accept", lambda: self.model.accept(message, *ids), lambda: self.store.intake.accept(message, *ids))
        if message.dedupe_key is None:
            self.last = None

    # Workers

    @precondition(lambda self: any(turn.state is TurnState.QUEUED for turn in self.model.turns.values()))
    @rule(data=st.data(), pick=picks)
    def dispatch(self, data: st.DataObject, pick: int) -> None:
        """T1, T2: a node takes the oldest turns; one that was declared dead, and may not know it yet, gets nothing."""
        claimed = [turn for turn in self.model.turns.values() if turn.state is TurnState.QUEUED and turn.node_id is not None]
        ways = ["claim and start", "claim and start", "claim", *(("start", "start", "release") if claimed else ())]
        match data.draw(st.sampled_from(ways), "deed"):
            case "claim and start":
                self.claim_and_start(_pick(self.alive() or self.model.nodes, pick))
            case "claim":
                self.claim(_pick(self.model.nodes, pick), limit=1 + pick % 3)
            case "start":
                self.start(_pick(claimed, pick))
            case _:
                self.release(_pick(claimed, pick))

    def claim_and_start(self, node_id: NodeId) -> None:
        for turn in self.claim(node_id, limit=10):
            self.start(turn)

    def claim(self, node_id: NodeId, limit: int) -> list[Turn]:
        claimed = self.ask("claim", lambda: self.model.claim(node_id, limit), lambda: claim(self.store, node_id, limit))
        self.turns.extend(claimed or ())
        return claimed or []

    def release(self, turn: Turn) -> None:
        self.ask("release", lambda: self.model.release(turn), lambda: self.store.turns.release(turn))

    def start(self, turn: Turn) -> None:
        now, before = self.wall, self.model.turns.get(turn.id)
        answer = self.ask("start", lambda: self.model.start(turn, now), lambda: self.store.turns.start(turn, now))
        self.keep(answer)
        if answer and before and before.attempt == 0 and before.state is TurnState.QUEUED:
            self.first_starts[turn.session_id].append(turn.ordinal)

    @precondition(lambda self: self.running())
    @rule(data=st.data(), pick=picks)
    def work(self, data: st.DataObject, pick: int) -> None:
        """J1, J2: what a worker shows is in the journal, numbered without gaps, before it is returned.

        A1, W5: how it ends is one step: state, last words, deliveries, memory debt, and the end of a one-shot session.
        """
        for deed in data.draw(st.lists(st.sampled_from(_DEEDS), min_size=1, max_size=3), "deeds"):
            if running := self.running():
                self.do(deed, _pick(running, pick), data)

    def do(self, deed: str, turn: Turn, data: st.DataObject) -> None:
        match deed:
            case "say":
                texts = data.draw(st.lists(words, min_size=1, max_size=3), "texts")
                kind = data.draw(st.sampled_from([EntryKind.TEXT, EntryKind.REASONING]), "kind")
                self.append(turn, [self.draft(kind, text=text) for text in texts])
            case "use":
                self.use_a_tool(turn, data)
            case "heed":
                self.heed(turn)
            case "park":
                call = self.call(turn, data.draw(st.integers(0, 1), "call"), data.draw(st.sampled_from(Effect), "effect"))
                moves = [(call, call.on(effects.CallEvent.ASK))] if call.state is effects.CallState.PLANNED else []
                self.park(turn, self.asking(data.draw(picks, "question")), *moves)
            case "finish":
                parts = data.draw(st.sampled_from([0, 1, 2, 3]), "parts")
                owner = data.draw(st.sampled_from([*MEMORY_OWNERS, None]), "memory owner")
                self.finish(turn, self.ending(turn, TurnEvent.FINISH, parts, owner, more=data.draw(st.booleans(), "more")))
            case _:
                self.finish(turn, self.ending(turn, TurnEvent.FAIL, data.draw(st.integers(0, 1), "parts")))

    def use_a_tool(self, turn: Turn, data: st.DataObject) -> None:
        """X1: intent before the effect, result after it; whatever a worker believes, an effectful call starts once."""
        call = self.call(turn, data.draw(st.integers(0, 1), "call"), data.draw(st.sampled_from(Effect), "effect"))
        ways = [event for state, event in effects.MOVES if state is call.state and event not in _DECIDED]
        event = data.draw(st.sampled_from([*ways, "start again"]), "event")
        after = call.on(event) if isinstance(event, effects.CallEvent) else replace(call, state=effects.CallState.STARTED)
        believed = call if after.state is not effects.CallState.STARTED else self.believed(call, data)
        self.append(turn, [self.draft(EntryKind.NOTE, text=event)], (believed, after))

    def believed(self, call: Call, data: st.DataObject) -> Call:
        return replace(call, state=data.draw(st.sampled_from([call.state, *effects.CallState]), "believed"))

    def append(self, turn: Turn, drafts: list[DraftEntry], *moves: tuple[Call, Call]) -> None:
        before = self.model.turns.get(turn.id)
        answer = self.ask(
            "append", lambda: self.model.append(turn, drafts, moves), lambda: self.store.journal.append(turn, drafts, moves)
        )
        self.keep(answer)
        if answer and self.model.turns.get(turn.id) != before:
            starts = (after for _, after in moves if after.state is effects.CallState.STARTED)
            self.effectful_starts.update((turn.id, call.id) for call in starts if call.effect is Effect.EFFECTFUL)

    def call(self, turn: Turn, number: int, effect: Effect) -> Call:
        call_id = CallId(f"call_{number}")
        fresh = Call(id=call_id, turn_id=turn.id, session_id=turn.session_id, name="tool", effect=effect)
        return self.model.calls.get((turn.id, call_id), fresh)

    def heed(self, turn: Turn) -> None:
        """T2, T4: messages that steer join the running turn in their order, and nobody else's."""
        now = self.wall
        answer = self.ask("heed", lambda: self.model.heed(turn, now), lambda: self.store.steering.heed(turn, now))
        self.keep(answer)
        if answer and answer[1]:
            self.witnessed["heed", "joined"] += 1

    def park(self, turn: Turn, question: questions.Question, *moves: tuple[Call, Call]) -> None:
        drafts = [self.draft(EntryKind.APPROVAL_ASKED, text=question.text, question_id=question.id)]
        asking = (turn, drafts, question, moves)
        self.keep(self.ask("park", lambda: self.model.park(*asking), lambda: self.store.turns.park(*asking)))

    def asking(self, pick: int) -> questions.Question:
        """Return a question: about anything, and one in three with an end."""
        return questions.Question(
            id=f"question_{pick}",
            text="may I?",
            about=_pick(list(questions.About), pick),
            fingerprint=f"print_{pick % 2}",
            expires_at=None if pick % 3 else self.wall + HOUR,
        )

    def finish(self, turn: Turn, ending: Ending) -> None:
        self.keep(
            self.ask("finish", lambda: self.model.finish(turn, ending), lambda: self.store.settlement.finish(turn, ending))
        )

    def ending(
        self, turn: Turn, event: TurnEvent, parts: int = 0, owner: str | None = None, *, more: bool = False
    ) -> Ending:
        deliveries = tuple(
            Delivery(
                id=self.new("dlv"),
                turn_id=turn.id,
                session_id=turn.session_id,
                target=turn.reply_to,
                part=part,
                text=f"part {part}",
                created_at=self.wall,
                due_at=self.wall,
            )
            for part in range(1, parts + 1)
            if turn.reply_to
        )
        return Ending(
            event=event,
            at=self.wall,
            text="done" if event is TurnEvent.FINISH else "",
            error=None if event is TurnEvent.FINISH else "it broke",
            drafts=(self.draft(EntryKind.TEXT, text="last words"),) if more else (),
            deliveries=deliveries,
            memory_owner=owner,
            segment_id=self.new("seg"),
        )

    @precondition(lambda self: any(turn.state is TurnState.WAITING for turn in self.model.turns.values()))
    @rule(pick=picks, any_turn=st.booleans(), text=st.sampled_from(["once", "session", "always", "no", questions.EXPIRED]))
    def answer(self, pick: int, any_turn: bool, text: str) -> None:
        """Q1, Q2: only a turn that waits takes an answer, to the question it waits with, and it grants what it says."""
        turns = [turn.id for turn in self.model.turns.values() if turn.state is TurnState.WAITING or any_turn]
        turn_id = _pick(turns, pick)
        waiting = [id_ for (turn, id_), (_, answer) in self.model.questions.items() if turn == turn_id and answer is None]
        question_id = f"question_{pick}" if any_turn or not waiting else waiting[0]
        given, at = ApprovalAnswered(question_id=question_id, text=text), self.wall
        self.ask(
            "answer", lambda: self.model.answer(turn_id, given, at), lambda: self.store.turns.answer(turn_id, given, at)
        )

    @precondition(lambda self: self.turns)
    @rule(
        pick=st.integers(0, 99), deed=st.sampled_from(["start", "release", "say", "use", "heed", "park", "finish", "fail"])
    )
    def act_as_a_zombie(self, pick: int, deed: str) -> None:
        """T4: a worker that holds any old idea of a turn writes with it; what is not its own it cannot change."""
        # What is begun is begun with a claim, everything else with a start.
        needed = TurnState.QUEUED if deed in ("start", "release") else TurnState.RUNNING
        ideas = [turn for turn in self.turns if turn.state is needed]
        # Most dangerous is an idea that only its fence tells from the truth.
        likely = [turn for turn in ideas if self.is_likely(turn)]
        if ideas:
            self.haunt(_pick(likely or ideas, pick), deed)

    def is_likely(self, turn: Turn) -> bool:
        true = self.model.turns.get(turn.id)
        return true is not None and true.fence != turn.fence and (true.state, true.nth) == (turn.state, turn.nth)

    def haunt(self, turn: Turn, deed: str) -> None:
        match deed:
            case "start":
                self.start(turn)
            case "release":
                self.release(turn)
            case "say":
                self.append(turn, [self.draft(EntryKind.TEXT, text="from beyond")])
            case "use":
                call = replace(self.call(turn, 0, Effect.EFFECTFUL), state=effects.CallState.PLANNED)
                moves = (call, call.on(effects.CallEvent.START))
                self.append(turn, [self.draft(EntryKind.TOOL_STARTED, call_id=call.id)], moves)
            case "heed":
                self.heed(turn)
            case "park":
                self.park(turn, self.asking(0))
            case "finish":
                self.finish(turn, self.ending(turn, TurnEvent.FINISH, 1, MEMORY_OWNERS[0]))
            case _:
                self.finish(turn, self.ending(turn, TurnEvent.FAIL, more=True))

    @precondition(lambda self: self.last is not None)
    @rule()
    def lose_the_last_answer(self) -> None:
        """A2, A3, T4: whoever repeats a question whose answer was lost gets that answer, and nothing happens twice."""
        last, first = self.last, self.last and self.last.answer
        assert last
        again = self.ask(f"{last.what} again", last.to_model, last.to_store)
        self.last = None
        at_once = last.step == self.steps - 1
        if at_once and isinstance(first, tuple):
            assert _plain(again) == _plain(first)
        if at_once and isinstance(first, Receipt):
            assert again == replace(first, duplicate=True, superseded=())

    # Users and operators

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, deed=st.sampled_from(["cancel", "cancel", "end", "suspend", "retire", "prune", "forget keys"]))
    def operate(self, pick: int, deed: str) -> None:
        """A1, J9, R7, S1: any turn in flight can be cancelled, in any state; one at rest cannot.

        Nothing in flight stays behind in a session that is over, and the first end reason wins.  What ended goes, with
        all that belongs to it, once nothing of it is on its way.
        """
        session, now, before = self.model.sessions[_pick(self.model.sessions, pick)], self.wall, self.wall - pick % 3 * HOUR
        match deed:
            case "cancel":
                turn_id = _pick(self.model.turns, pick)
                self.ask(
                    "cancel",
                    lambda: self.model.cancel(turn_id, Cause.USER, now),
                    lambda: self.store.settlement.cancel(turn_id, Cause.USER, now),
                )
            case "end":
                self.ask(
                    "end session",
                    lambda: self.model.end_session(session.id, "user", now),
                    lambda: self.store.settlement.end_session(session.id, "user", now),
                )
            case "suspend":
                self.ask(
                    "suspend session",
                    lambda: self.model.suspend_session(session.id, now),
                    lambda: self.store.settlement.suspend_session(session.id, now),
                )
            case "retire":
                self.claim_and_start(_pick(self.alive() or self.model.nodes, pick))
                owing = [self.model.sessions[turn.session_id] for turn in self.running() if turn.remembers]
                self.retire(_pick(owing or [session], pick))
            case "prune":
                self.prune(session.channel, before)
            case _:
                self.ask(
                    "forget keys", lambda: self.model.forget_keys(before), lambda: self.store.sessions.forget_keys(before)
                )

    def prune(self, channel: str, before: int) -> None:
        self.ask("prune", lambda: self.model.prune(channel, before), lambda: self.store.sessions.prune(channel, before))

    def retire(self, session: Session) -> None:
        """Finish what a session is at, end it, pay what it owes and deliver what it said, so that it can go."""
        now, node_id = self.wall, _pick(self.alive() or self.model.nodes, 0)
        for turn in [each for each in self.running() if each.session_id == session.id]:
            self.finish(turn, self.ending(turn, TurnEvent.FINISH, 2, MEMORY_OWNERS[0]))
        self.ask(
            "end session",
            lambda: self.model.end_session(session.id, "user", now),
            lambda: self.store.settlement.end_session(session.id, "user", now),
        )
        for owner in [segment.owner for segment in self.model.segments.values() if segment.session_id == session.id]:
            self.pay("claim one", session.id, owner, 0)
            if self.segments:
                self.settle_a_segment(self.segments[-1], segments.SegmentEvent.SUCCEED)
        for _ in range(3):
            self.claim_deliveries(node_id)
            for sent in [each for each in self.deliveries if self.is_current(each)]:
                self.settle_a_delivery(sent, delivery.DeliveryEvent.CONFIRM, now)
        self.prune(session.channel, now)

    # Nodes and clocks

    @rule(
        pick=picks,
        deed=st.sampled_from(_CHANGES),
        policy=policies,
    )
    def change_nodes(self, pick: int, deed: str, policy: Policy) -> None:
        """P1, D2, R4, S2: nodes come and go, with a word or without; others take over, and twice is the same as once."""
        node_id = _pick(self.alive() or self.model.nodes, pick)
        match deed:
            case "crash":
                self.crash(node_id, policy)
            case "resume":
                self.claim_and_start(node_id)
                self.crash(node_id, Policy(resume=Resume.AUTO))
                self.claim_and_start(self.alive()[0])
            case "hand over":
                self.claim(node_id, limit=3)
                self.crash(node_id, policy)
                self.claim(self.alive()[0], limit=3)
            case "stick":
                for _ in range(STRIKES_MAX):
                    self.claim_and_start(node_id)
                    self.crash(node_id, policy)
                    node_id = self.alive()[0]
            case "join":
                self.join()
            case "beat":
                node_id = _pick(self.model.nodes, pick)
                self.ask("beat", lambda: self.model.beat(node_id), lambda: self.store.nodes.beat(node_id))
                self.beaten_at[node_id] = self.monotonic
            case "leave":
                self.ask("leave", lambda: self.model.leave(node_id), lambda: self.store.nodes.leave(node_id))
            case "bury":
                self.bury(node_id, self.model.nodes[node_id].beat - pick % 2)
            case "take over":
                self.sweep(policy)
            case _:
                self.drain(_pick(self.model.nodes, pick), policy, (Cause.RESTART_TIMEOUT, Cause.DISK_FULL)[pick % 2])

    def crash(self, node_id: NodeId, policy: Policy) -> None:
        """Let a node go without a word, and another take over."""
        if not self.exclusive:
            self.bury(node_id, self.model.nodes[node_id].beat)
        if self.exclusive or not self.alive():
            self.join()
        self.sweep(policy)
        swept = self.sweep(policy)
        assert swept
        assert swept.total == 0, "P1"

    def join(self) -> None:
        node_id, now = self.new("nod"), self.wall
        self.ask("join", lambda: self.model.join(node_id), lambda: self.store.nodes.join(node_id, now))
        self.beaten_at[node_id] = self.monotonic

    def bury(self, node_id: NodeId, beat: int) -> None:
        self.ask("bury", lambda: self.model.bury(node_id, beat), lambda: self.store.nodes.bury(node_id, beat))

    def sweep(self, policy: Policy) -> Swept | None:
        now = self.wall
        swept = self.ask(
            "sweep",
            lambda: self.model.sweep(Cause.CRASH, policy, now),
            lambda: self.store.nodes.sweep(Cause.CRASH, policy, now),
        )
        self.witness(swept and swept.turns)
        return swept

    def drain(self, node_id: NodeId, policy: Policy, cause: Cause) -> None:
        now, turn_ids = self.wall, list(self.model.turns)
        cut = self.ask(
            "drain",
            lambda: self.model.interrupt(node_id, turn_ids, cause, policy, now),
            lambda: self.store.settlement.interrupt(node_id, turn_ids, cause, policy, now),
        )
        self.witness(cut)

    def witness(self, cut: Interrupted | None) -> None:
        for fate in ("continued", "rested", "suspended", "given_up"):
            self.witnessed["cut", fate] += len(getattr(cut, fate)) if cut else 0

    @rule(hours=st.integers(-60, 60), noticed=st.booleans())
    def jump(self, hours: int, noticed: bool) -> None:
        """C1: the wall clock goes wherever it likes; the monotonic one does not move with it.

        Once it is noticed, nothing waits longer than the longest wait that anyone could have meant.
        """
        self.wall = now = max(START // 2, self.wall + hours * HOUR + hours)
        if noticed:
            self.ask("hasten", lambda: self.model.hasten(now), lambda: self.store.deliveries.hasten(now))
            self.ask("hasten memory", lambda: self.model.hasten_memory(now), lambda: self.store.segments.hasten(now))

    @precondition(lambda self: len(self.alive()) > 1)
    @rule(duration_ms=st.integers(1, 4_000))
    def watch_the_others(self, duration_ms: int) -> None:
        """C1: only a node that was silent for a whole lease of the watcher's own clock is declared dead."""
        self.wall += duration_ms
        self.monotonic += duration_ms
        beats = self.run(self.store.nodes.beats())
        assert beats == {node_id: self.model.nodes[node_id].beat for node_id in self.alive()}
        del beats[self.alive()[0]]
        self.seen = watch(self.seen, beats, self.monotonic)
        for node_id, beat in lapsed(self.seen, self.monotonic, LEASE_MS).items():
            assert self.monotonic - self.beaten_at[node_id] >= LEASE_MS
            self.bury(node_id, beat)
            assert not self.model.nodes[node_id].alive

    @precondition(lambda self: self.steps > self.opened_at + 10)
    @rule()
    def reopen(self) -> None:
        """A2: what was answered is durable; a process that starts again finds all of it."""
        self.run(self.store.close())
        self.store, self.opened_at = self.run(self.open_it()), self.steps

    # The journal and its readers

    @precondition(lambda self: self.model.sessions)
    @rule(pick=picks, cursor=st.integers(0, 30), page=st.integers(1, 5))
    def replay(self, pick: int, cursor: int, page: int) -> None:
        """J3, J8: read in pages from any cursor, a journal is exactly its tail."""
        session_id = _pick(self.model.sessions, pick)
        tail = [entry for entry in self.model.entries[session_id] if entry.seq > cursor]
        read: list[Entry] = []
        while more := self.run(self.store.journal.read(session_id, read[-1].seq if read else cursor, page)):
            assert len(more) <= page
            read += more
        assert _plain(read) == _plain(tail)

    def cut_off(self) -> list[Entry]:
        closed = (EntryKind.TURN_INTERRUPTED, EntryKind.TURN_CANCELLED)
        return [e for journal in self.model.entries.values() for e in journal if e.kind in closed and e.attempt]

    @precondition(lambda self: self.cut_off())
    @rule(pick=picks, beyond=st.integers(0, 2))
    def arrive_late(self, pick: int, beyond: int) -> None:
        """J2, J4, J9: entries of an attempt that was cut off arrive after its end, and again; each is taken in once.

        Nothing that is shown is, once the turn is cancelled: the audit after each step sees to that.
        """
        marker = _pick(self.cut_off(), pick)
        attempt = (marker.turn_id, marker.attempt)
        last = max(e.nth or 0 for e in self.model.entries[marker.session_id] if (e.turn_id, e.attempt) == attempt)
        late = [
            Entry.read(
                session_id=marker.session_id,
                seq=0,
                turn_id=marker.turn_id,
                attempt=marker.attempt,
                nth=nth,
                kind=sorted(each.kind for each in LATE)[nth % len(LATE)],
                at=self.wall,
                data={"text": "late"},
            )
            for nth in range(last, last + 1 + beyond)
        ]
        self.ask("append late", lambda: self.model.append_late(late), lambda: self.store.journal.append_late(late))

    # Senders

    @precondition(lambda self: self.model.deliveries or self.deliveries)
    @rule(data=st.data(), pick=st.integers(0, 99))
    def send(self, data: st.DataObject, pick: int) -> None:
        """D1, D3, T4: what a sender is given it sends; a part leaves only when those before it are settled.

        Senders report in any order, also twice, and also those from whom nobody expects a word any more.
        """
        for _ in range(data.draw(st.integers(1, 4), "times")):
            if self.model.due(self.wall) and (not self.deliveries or data.draw(st.booleans(), "claim")):
                self.claim_deliveries(_pick(self.alive() or self.model.nodes, pick))
            elif self.deliveries:
                sending = [each for each in self.deliveries if self.is_current(each)]
                sent = _pick(sending if sending and data.draw(st.integers(0, 3), "old") < 3 else self.deliveries, pick)
                event = data.draw(st.sampled_from(_REPORTS), "event")
                self.settle_a_delivery(sent, event, self.wall + (HOUR if event is delivery.DeliveryEvent.REFUSE else 0))

    def is_current(self, each: Delivery) -> bool:
        known = self.model.deliveries.get(each.id)
        return known is not None and known.fence == each.fence and each.state is delivery.DeliveryState.SENDING

    def settle_a_delivery(self, sent: Delivery, event: delivery.DeliveryEvent, due_at: int) -> None:
        now = self.wall
        settled = self.ask(
            "settle",
            lambda: self.model.settle(sent, event, now, due_at=due_at),
            lambda: self.store.deliveries.settle(sent, event, now, due_at=due_at),
        )
        self.deliveries.extend([settled] if settled else [])
        if settled and event is delivery.DeliveryEvent.REFUSE:
            # It certainly did not arrive, so it was no send.
            self.sends[sent.id].remove(sent.outgoing != sent.text)

    def claim_deliveries(self, node_id: NodeId) -> None:
        now = self.wall
        sending = self.ask(
            "send", lambda: self.model.send(node_id, now), lambda: self.store.deliveries.claim(node_id, now, limit=1_000)
        )
        for sent in sending or ():
            self.deliveries.append(sent)
            self.sends[sent.id].append(sent.outgoing != sent.text)
            self.witnessed["send", "repeated" if sent.repeats else "first"] += 1

    # Committers

    @precondition(lambda self: self.model.segments or self.segments)
    @rule(pick=st.integers(0, 99), deeds=st.lists(st.sampled_from(_DEBTS), min_size=1, max_size=4))
    def remember(self, pick: int, deeds: list[str]) -> None:
        """M1, M2, T4: per session the oldest segment that is owed goes first, and only to its owner.

        Committers report in any order, also twice, and also those that lost the segment.
        """
        session_id = _pick([s.session_id for s in (*self.model.segments.values(), *self.segments)], pick)
        for deed in deeds:
            self.pay(deed, session_id, MEMORY_OWNERS[pick % 2], pick)

    def pay(self, deed: str, session_id: SessionId, owner: str, pick: int) -> None:
        node_id, now = _pick(self.alive() or self.model.nodes, pick), self.wall
        match deed:
            case "seal":
                self.ask("seal", lambda: self.model.seal(session_id, now), lambda: self.store.segments.seal(session_id, now))
            case "close off":
                self.ask(
                    "close off",
                    lambda: self.model.close_off(session_id, now + pick % 2),
                    lambda: self.store.segments.close_off(session_id, now, now + pick % 2),
                )
            case "waive":
                self.waive([s.id for s in (*self.model.segments.values(), *self.segments)], pick)
            case "claim":
                assert sorted(self.run(self.store.segments.owners_due(now))) == self.model.owners_due(now), "M3"
                due = self.ask(
                    "commit due",
                    lambda: self.model.commit_due(node_id, owner, now),
                    lambda: self.store.segments.claim(node_id, owner, now, limit=1_000),
                )
                self.segments.extend(due or ())
            case "claim one":
                taken = self.ask(
                    "commit one",
                    lambda: self.model.commit_one(node_id, session_id, owner),
                    lambda: self.store.segments.claim_one(node_id, session_id, owner),
                )
                self.segments.extend([taken] if taken else [])
            case _ if self.segments:
                self.settle_a_segment(_pick(self.segments, pick), segments.SegmentEvent(deed))
            case _:
                pass

    def waive(self, segment_ids: Sequence[SegmentId], pick: int) -> None:
        segment_id, now = _pick(segment_ids, pick), self.wall
        waived = self.ask(
            "waive", lambda: self.model.waive(segment_id, now), lambda: self.store.segments.waive(segment_id, now)
        )
        if waived:
            self.waived[waived.session_id].update(range(waived.first_generation, waived.last_generation + 1))

    def settle_a_segment(self, segment: Segment, event: segments.SegmentEvent) -> None:
        now, due_at = self.wall, self.wall + HOUR
        settled = self.ask(
            "committed",
            lambda: self.model.committed(segment, event, now, due_at),
            lambda: self.store.segments.settle(segment, event, now, due_at=due_at),
        )
        if settled and event is segments.SegmentEvent.SUCCEED:
            self.commits[segment.session_id].extend(range(segment.first_generation, segment.last_generation + 1))

    # What has more names happens more often: hours of work to a minute of trouble.

    work_on = keep_working = work_hard = work
    dispatch_more = dispatch
    send_more = send_on = send
    remember_more = remember_on = remember
    act_as_another_zombie = act_as_a_zombie
    answer_at_last = answer

    # What must hold after every step

    @invariant()
    def the_audit_finds_nothing(self) -> None:
        """A1 A3 T1 T2 T3 J2 D1 D2 D3 M1 M2 S1 S2 X1 CONSERVATION, as queries over the real rows."""
        assert self.run(audit(self.store.database)) == []

    @invariant()
    def the_store_is_what_the_model_says(self) -> None:
        """A1 A2 A3 T1 T2 T3 T4 J1 J2 S1 S2 X1 P1: no more, no less, and a refused step changed nothing."""
        found = self.run(self.store.database.read(_snapshot))
        model = self.model
        assert found.turns == model.turns, "A1 T3 T4: every accepted message is in the state that its steps led to"
        assert found.sessions == {key: _ageless(session) for key, session in model.sessions.items()}, "S1 S2"
        for session_id, journal in model.entries.items():
            entries = found.entries.get(session_id, [])
            assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1)), "J2"
            assert entries == _plain(journal), "J1: what was returned is what is read"
        assert found.entries.keys() == model.entries.keys()
        assert found.calls == model.calls, "X1"
        asked = {key: answer for key, (_, answer) in model.questions.items()}
        assert (found.questions, found.grants) == (asked, model.grants), "Q1 Q2"
        assert found.deliveries == {key: _facts(each, model.senders.get(key)) for key, each in model.deliveries.items()}, "D"
        assert found.segments == {key: _debt(each, model.committers.get(key)) for key, each in model.segments.items()}, "M"
        keys = {key: (known.receipt.turn_id, known.receipt.session_id) for key, known in model.keys.items()}
        assert found.keys == keys, "A3"
        assert found.cursors == model.cursors, "A2"
        assert found.nodes == {key: (node.alive, node.beat) for key, node in model.nodes.items()}

    @invariant()
    def what_was_accepted_is_conserved(self) -> None:
        """CONSERVATION: accepted = terminal + in flight."""
        tally = self.run(self.store.turns.tally())
        assert sum(tally.values()) == sum(session.turns for session in self.model.sessions.values())

    @invariant()
    def final_is_final(self) -> None:
        """T3: a turn never leaves a final state."""
        for turn in self.model.turns.values():
            assert self.finals.setdefault(turn.id, turn.state) is turn.state or self.finals[turn.id] not in FINAL
            self.finals[turn.id] = turn.state

    @invariant()
    def the_world_saw_nothing_twice(self) -> None:
        """X1, D1, T2, M1, M2, by the ledgers."""
        assert all(starts == 1 for starts in self.effectful_starts.values()), "X1: an effectful call starts once"
        for labels in self.sends.values():
            assert labels in ([], [False], [True], [False, True]), "D1: one plain send, and one that says it may be a repeat"
        for ordinals in self.first_starts.values():
            assert ordinals == sorted(set(ordinals)), "T2: turns of a session begin in acceptance order"
        for session_id, commits in self.commits.items():
            owed = [generation for generation in range(1, max(commits) + 1) if generation not in self.waived[session_id]]
            assert commits == owed, f"M1 M2: generations of {session_id} are committed once, oldest first: {commits}"


def _pick(choices: Iterable[T], pick: int) -> T:
    listed = list(choices)
    return listed[pick % len(listed)]


def _plain(answer: Any) -> Any:
    """Return an answer as far as its meaning goes: sets of work have no order, and text is what a database can hold."""
    match answer:
        case Interrupted():
            return tuple(sorted(ids) for ids in (answer.continued, answer.rested, answer.given_up))
        case Swept():
            return (_plain(answer.turns), answer.released, answer.deliveries, answer.segments)
        case Entry():
            return replace(answer, event=rows.storable(answer.event))
        case Delivery():
            return (answer.id, *_facts(answer, None))
        case Segment():
            return (answer.id, *_debt(answer, None))
        case [Delivery() | Segment(), *_]:
            return sorted(map(_plain, answer))
        case list():
            return [_plain(each) for each in answer]
        case tuple():
            return tuple(_plain(each) for each in answer)
        case _:
            return answer


def _ageless(session: Any) -> Any:
    return replace(session, updated_at=0, seq=0)


def _facts(each: Delivery, sender: NodeId | None) -> tuple[Any, ...]:
    return (each.turn_id, each.part, each.state, each.attempt, each.repeats, each.fence, each.due_at, sender)


def _debt(each: Segment, committer: NodeId | None) -> tuple[Any, ...]:
    span = (each.first_generation, each.last_generation)
    when = (each.due_at, each.settled_at)
    return (each.session_id, each.owner, *span, each.state, each.attempt, each.fence, *when, committer)


def _snapshot() -> Transaction[Snapshot]:
    turns = [rows.turn(row) for row in (yield Run(f"SELECT {rows.TURN} FROM turns"))]
    sessions = [rows.session(row) for row in (yield Run(f"SELECT {rows.SESSION} FROM sessions"))]
    entries = [rows.entry(row) for row in (yield Run(f"SELECT {rows.ENTRY} FROM entries ORDER BY session_id, seq"))]
    calls = [rows.call(row) for row in (yield Run(f"SELECT {rows.CALL} FROM tool_calls"))]
    deliveries = yield Run(f"SELECT node_id, {rows.DELIVERY} FROM deliveries")
    segments = yield Run(f"SELECT node_id, {rows.SEGMENT} FROM segments")
    keys = yield Run("SELECT key, turn_id, session_id FROM dedupe")
    cursors = yield Run("SELECT channel, position FROM cursors")
    asked = yield Run("SELECT turn_id, id, answer FROM questions")
    grants = yield Run("SELECT owner, fingerprint, session_id FROM grants")
    nodes = yield Run("SELECT id, state, beat FROM nodes")
    journals: dict[SessionId, list[Entry]] = {}
    for entry in entries:
        journals.setdefault(entry.session_id, []).append(entry)
    return Snapshot(
        turns={turn.id: turn for turn in turns},
        sessions={session.id: _ageless(session) for session in sessions},
        entries=journals,
        calls={(call.turn_id, call.id): call for call in calls},
        deliveries=dict(_held(deliveries, rows.delivered, _facts)),
        segments=dict(_held(segments, rows.segment, _debt)),
        keys={key: (turn_id, session_id) for key, turn_id, session_id in keys},
        cursors=dict(tuple(row) for row in cursors),
        questions={(turn_id, id_): answer for turn_id, id_, answer in asked},
        grants={tuple(row) for row in grants},
        nodes={node_id: (state == "alive", beat) for node_id, state, beat in nodes},
    )


def _held(
    found: Sequence[Row], decode: Callable[[Row], Any], facts: Callable[[Any, NodeId | None], tuple[Any, ...]]
) -> Iterable[tuple[Any, tuple[Any, ...]]]:
    for node_id, *columns in found:
        each = decode(tuple(columns))
        yield each.id, facts(each, node_id)
