"""The model: what a store must hold after each step, in plain Python with no database.

Its methods have the names, arguments, answers and refusals of the store's ports, so that a machine can put every question
to both.  A refusal is raised before anything is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from holdfast.core import delivery, effects, notes, questions, segments, sessions
from holdfast.core.delivery import BACKOFF_MAX_MS, EXPIRES_AFTER_MS, SKEW_MAX_MS, Delivery
from holdfast.core.effects import Call, Effect
from holdfast.core.ending import Ending
from holdfast.core.events import ApprovalAnswered, EntryKind, TurnStarted
from holdfast.core.intake import Busy, Inbound, Receipt
from holdfast.core.journal import CLOSING, DraftEntry, Entry
from holdfast.core.questions import About, Decision, Question
from holdfast.core.recovery import Interrupted, Swept
from holdfast.core.segments import Segment
from holdfast.core.sessions import Session
from holdfast.core.turns import (
    IN_FLIGHT,
    Aftermath,
    Cause,
    Mode,
    Policy,
    Turn,
    TurnEvent,
    TurnState,
    after_loss,
    strikes_max,
)
from holdfast.errors import IllegalMove, KeyReused, NodeLost, NotFound, SessionBusy, Stale
from holdfast.ids import CallId, DeliveryId, NodeId, SegmentId, SessionId, TurnId


@dataclass
class Node:
    """A process that works on the store, or did."""

    alive: bool = True
    beat: int = 0


@dataclass(frozen=True)
class Key:
    """What a dedupe key remembers of the message it came with."""

    body: tuple[str, str]
    receipt: Receipt


@dataclass
class Model:
    """The whole store.  `exclusive` is true where a node that joins is the only one alive."""

    exclusive: bool
    sessions: dict[SessionId, Session] = field(default_factory=dict)
    turns: dict[TurnId, Turn] = field(default_factory=dict)
    entries: dict[SessionId, list[Entry]] = field(default_factory=dict)
    calls: dict[tuple[TurnId, CallId], Call] = field(default_factory=dict)
    deliveries: dict[DeliveryId, Delivery] = field(default_factory=dict)
    segments: dict[SegmentId, Segment] = field(default_factory=dict)
    nodes: dict[NodeId, Node] = field(default_factory=dict)
    keys: dict[str, Key] = field(default_factory=dict)
    cursors: dict[str, str] = field(default_factory=dict)
    # Every question with its answer, and what was granted by one: to whom, what, and in which session or in all.
    questions: dict[tuple[TurnId, str], tuple[Question, str | None]] = field(default_factory=dict)
    grants: set[tuple[str, str, SessionId | None]] = field(default_factory=set)
    # Who sends a delivery and who commits a segment; neither knows it itself.
    senders: dict[DeliveryId, NodeId] = field(default_factory=dict)
    refused: dict[DeliveryId, int] = field(default_factory=dict)
    committers: dict[SegmentId, NodeId] = field(default_factory=dict)

    def of_session(self, session_id: SessionId) -> list[Turn]:
        return sorted((t for t in self.turns.values() if t.session_id == session_id), key=lambda turn: turn.ordinal)

    def _dead(self, node_id: NodeId | None) -> bool:
        return node_id is not None and not self.nodes[node_id].alive

    # Turns

    def accept(self, message: Inbound, turn_id: TurnId, session_id: SessionId, now: int) -> Receipt:
        body = (message.conversation, message.text)
        first = self.keys.get(message.dedupe_key) if message.dedupe_key else None
        if first and first.body != body:
            raise KeyReused(str(message.dedupe_key), first.receipt.turn_id)
        if not first and turn_id in self.turns:
            raise Stale(turn_id)
        superseded = self._family(self._in_flight(message)) if not first and message.busy is Busy.INTERRUPT else ()
        parent = None if first or message.parent_turn_id is None else self._turn(message.parent_turn_id)
        if parent and (parent.state is TurnState.CANCELLED or parent.id in superseded):
            raise IllegalMove(parent.id, TurnState.CANCELLED, "let others work for it")
        if not first and message.busy is Busy.REJECT and self._in_flight(message):
            raise SessionBusy(message.conversation)
        if message.cursor:
            self.cursors[message.cursor.channel] = message.cursor.position
        if first:
            state = self._repeated(first.receipt.turn_id)
            return replace(first.receipt, state=state, duplicate=True, superseded=())
        for each in superseded:
            self._cancel(each, Cause.SUPERSEDED, now)
        session = self._joined(message, session_id, parent, now)
        turn = Turn(
            id=turn_id,
            session_id=session.id,
            ordinal=session.turns + 1,
            accepted_at=now,
            mode=message.mode,
            delivers_later=message.delivers_later,
            remembers=message.remembers,
            reply_to=message.reply_to,
            steers=message.busy is Busy.STEER,
            parent_turn_id=message.parent_turn_id,
            owner=message.owner,
        )
        self.turns[turn_id] = turn
        self.sessions[session.id] = replace(session, turns=turn.ordinal)
        self._write(turn, None, [DraftEntry.read(kind=EntryKind.TURN_ACCEPTED, at=now, data={"text": message.text})])
        receipt = Receipt(
            turn_id=turn_id, session_id=session.id, state=TurnState.QUEUED, accepted_at=now, superseded=superseded
        )
        if message.dedupe_key:
            self.keys[message.dedupe_key] = Key(body, receipt)
        return receipt

    def _in_flight(self, message: Inbound) -> tuple[TurnId, ...]:
        """Return what a message finds before it in its session, oldest first."""
        found = [
            turn
            for turn in self.turns.values()
            if turn.state in IN_FLIGHT
            and (session := self.sessions[turn.session_id]).state is sessions.SessionState.OPEN
            and (session.owner, session.key) == (message.owner, message.conversation)
        ]
        return tuple(turn.id for turn in sorted(found, key=lambda turn: turn.ordinal))

    def _family(self, turn_ids: Iterable[TurnId]) -> tuple[TurnId, ...]:
        """Return turns in flight with all that works for them, each before what works for it."""
        family: list[TurnId] = []
        for turn_id in turn_ids:
            helpers = sorted(t.id for t in self.turns.values() if t.parent_turn_id == turn_id and t.state in IN_FLIGHT)
            family += [each for each in (turn_id, *self._family(helpers)) if each not in family]
        return tuple(family)

    def _joined(self, message: Inbound, session_id: SessionId, parent: Turn | None, now: int) -> Session:
        same = [s for s in self.sessions.values() if (s.owner, s.key) == (message.owner, message.conversation)]
        for session in same:
            if session.state is sessions.SessionState.OPEN:
                return session
        # A suspended session is followed once: by the next one of its key.
        followed = {session.parent_id for session in same}
        suspended = [s.id for s in same if s.state is sessions.SessionState.SUSPENDED and s.id not in followed]
        self.entries[session_id] = []
        return Session(
            id=session_id,
            key=message.conversation,
            channel=message.channel,
            owner=message.owner,
            one_shot=message.one_shot,
            created_at=now,
            updated_at=now,
            parent_id=parent.session_id if parent else suspended[-1] if suspended else None,
            auto_reset_reason="suspended" if suspended and not parent else None,
        )

    def _repeated(self, turn_id: TurnId) -> TurnState:
        """Return the state of a turn whose message came again; a synchronous one that was cut off goes on."""
        turn = self.turns.get(turn_id)
        if turn is None:
            return TurnState.COMPLETED
        session = self.sessions[turn.session_id]
        parent = self.turns.get(turn.parent_turn_id) if turn.parent_turn_id else None
        usable = session.strikes < sessions.STRIKES_MAX and (session.state is sessions.SessionState.OPEN or session.one_shot)
        usable = usable and not (parent and parent.state is TurnState.CANCELLED)
        if (
            turn.state is TurnState.INTERRUPTED
            and turn.mode is Mode.SYNCHRONOUS
            and usable
            and turn.ordinal == session.turns
        ):
            turn = self._save(replace(turn, state=TurnState.QUEUED, cause=None))
        return turn.state

    def claim(self, node_id: NodeId, limit: int) -> list[Turn]:
        if self._dead(node_id):
            return []
        flying = [turn for turn in self.turns.values() if turn.state in IN_FLIGHT]
        heads = [
            min((t for t in flying if t.session_id == s), key=lambda t: t.ordinal) for s in {t.session_id for t in flying}
        ]
        free = [turn for turn in heads if turn.state is TurnState.QUEUED and turn.node_id is None]
        oldest = sorted(free, key=lambda turn: (turn.accepted_at, turn.id))[:limit]
        return [self._save(replace(turn, node_id=node_id, fence=turn.fence + 1)) for turn in oldest]

    def release(self, turn: Turn) -> None:
        now = self.turns.get(turn.id)
        if now and (now.fence, now.state) == (turn.fence, TurnState.QUEUED):
            self._save(replace(now, node_id=None, fence=now.fence + 1))

    def start(self, turn: Turn, now: int) -> tuple[Turn, list[Entry]]:
        held = self._same_fence(turn)
        if (held.state, held.nth) == (TurnState.RUNNING, 1):
            return held, self._attempt(held, 0)
        if held.state is not TurnState.QUEUED or held.node_id is None:
            raise Stale(turn.id)
        running = replace(
            held,
            state=TurnState.RUNNING,
            attempt=held.attempt + 1,
            nth=0,
            started_at=now if held.started_at is None else held.started_at,
        )
        return self._wrote(running, [DraftEntry(at=now, event=TurnStarted(attempt=running.attempt))])

    def heed(self, turn: Turn, now: int) -> tuple[Turn, list[Entry]]:
        host = self._same_fence(turn)
        if host.state is not TurnState.RUNNING:
            raise Stale(turn.id)
        if host.nth != turn.nth:
            return host, self._attempt(host, turn.nth)
        behind = [t for t in self.turns.values() if t.session_id == turn.session_id and t.ordinal > turn.ordinal]
        waiting = sorted((t for t in behind if t.state is TurnState.QUEUED), key=lambda t: t.ordinal)
        drafts: list[DraftEntry] = []
        reader = (turn.mode, turn.delivers_later, turn.reply_to)
        for each in takewhile(lambda t: t.steers and (t.mode, t.delivers_later, t.reply_to) == reader, waiting):
            text = next(e.data["text"] for e in self.entries[each.session_id] if e.turn_id == each.id)
            joined = replace(each.on(TurnEvent.JOIN), joined_to=turn.id, answered_at=now, fence=each.fence + 1)
            self._write(
                self._save(joined), None, [DraftEntry.read(kind=EntryKind.TURN_COMPLETED, at=now, data={"joined": turn.id})]
            )
            drafts.append(DraftEntry.read(kind=EntryKind.MESSAGE_JOINED, at=now, data={"text": text, "turn_id": each.id}))
        return self._wrote(host, drafts) if drafts else (turn, [])

    def park(
        self, turn: Turn, drafts: Sequence[DraftEntry], question: Question, moves: Sequence[tuple[Call, Call]] = ()
    ) -> tuple[Turn, list[Entry]]:
        turn.on(TurnEvent.ASK)
        found = self._same_fence(turn)
        if (found.state, found.nth) == (TurnState.WAITING, turn.nth + len(drafts)):
            return found, self._attempt(found, turn.nth)
        held = self._held(turn)
        if (turn.id, question.id) in self.questions:
            raise Stale(question.id)
        moved = {(turn.id, after.id): self._moved(before, after) for before, after in moves}
        self._decide_calls(held, drafts[-1].at)
        self.calls.update(moved)
        self.questions[turn.id, question.id] = (question, None)
        return self._wrote(replace(held, state=TurnState.WAITING, node_id=None), drafts)

    def answer(self, turn_id: TurnId, given: ApprovalAnswered, at: int) -> Turn:
        turn = self._turn(turn_id)
        after = replace(turn.on(TurnEvent.ANSWER), fence=turn.fence + 1)
        question, text = self._open_question(turn_id), given.text
        late = question.expires_at is not None and question.expires_at <= at and text != questions.EXPIRED
        if given.question_id != question.id or late:
            raise IllegalMove(turn_id, turn.state, TurnEvent.ANSWER)
        self.questions[turn_id, question.id] = (question, text)
        decision = questions.decide(text)
        if question.about is About.APPROVAL and decision in (Decision.SESSION, Decision.ALWAYS):
            session = self.sessions[turn.session_id]
            self.grants.add((session.owner, question.fingerprint, session.id if decision is Decision.SESSION else None))
        self._write(turn, None, [DraftEntry(at=at, event=given)])
        return self._save(after)

    def _open_question(self, turn_id: TurnId) -> Question:
        (question,) = [q for (turn, _), (q, answer) in self.questions.items() if turn == turn_id and answer is None]
        return question

    # Settlement

    def finish(self, turn: Turn, ending: Ending) -> tuple[Turn, list[Entry]]:
        state = turn.on(ending.event).state
        drafts = [*ending.drafts, _closing(state, ending.at, ending.text, ending.error, ending.cause)]
        found = self._same_fence(turn)
        if (found.state, found.nth) == (state, turn.nth + len(drafts)):
            return found, self._attempt(found, turn.nth)
        held = self._held(turn)
        session = self.sessions[turn.session_id]
        remembered = state is TurnState.COMPLETED and turn.remembers and ending.memory_owner is not None
        generation = session.generation + 1 if remembered else None
        if state is TurnState.COMPLETED:
            self.sessions[session.id] = replace(session, strikes=0, generation=generation or session.generation)
        ended = replace(
            held,
            state=state,
            node_id=None,
            cause=ending.cause,
            error=ending.error,
            answered_at=ending.at,
            generation=generation,
        )
        self._decide_calls(held, ending.at)
        wrote = self._wrote(ended, drafts)
        if generation:
            self._owe(turn.session_id, generation, ending)
        self._close(turn.session_id, ending.at)
        self.deliveries.update({each.id: each for each in ending.deliveries})
        return wrote

    def _owe(self, session_id: SessionId, generation: int, ending: Ending) -> None:
        owner = ending.memory_owner or ""
        unsealed = next((s for s in self._dirty(session_id) if s.state is segments.SegmentState.OPEN), None)
        if unsealed and unsealed.owner == owner:
            self.segments[unsealed.id] = replace(unsealed, last_generation=generation, due_at=ending.at)
            return
        self.seal(session_id, ending.at)
        assert ending.segment_id
        self.segments[ending.segment_id] = Segment(
            id=ending.segment_id,
            session_id=session_id,
            owner=owner,
            first_generation=generation,
            last_generation=generation,
            created_at=ending.at,
            due_at=ending.at,
        )

    def _close(self, session_id: SessionId, now: int) -> None:
        """End a one-shot session with its turn."""
        session = self.sessions[session_id]
        if session.one_shot and session.state is sessions.SessionState.OPEN:
            self._end(session, session.channel + sessions.COMPLETE_SUFFIX, now)
        if self.sessions[session_id].state is sessions.SessionState.ENDED:
            self.seal(session_id, now)

    def _end(self, session: Session, reason: str, now: int) -> None:
        self.sessions[session.id] = replace(session, state=sessions.SessionState.ENDED, end_reason=reason, ended_at=now)

    def cancel(self, turn_id: TurnId, cause: Cause, now: int) -> Turn:
        self._turn(turn_id).on(TurnEvent.CANCEL)
        first, *helpers = self._family([turn_id])
        cancelled = self._cancel(first, cause, now)
        for helper in helpers:
            self._cancel(helper, cause, now)
        return cancelled

    def _cancel(self, turn_id: TurnId, cause: Cause, now: int) -> Turn:
        turn = self._turn(turn_id)
        if turn.state is TurnState.WAITING:
            question = self._open_question(turn_id)
            self.questions[turn_id, question.id] = (question, questions.CANCELLED)
        cancelled = self._save(replace(turn.on(TurnEvent.CANCEL), cause=cause.value, fence=turn.fence + 1, node_id=None))
        self._decide_calls(turn, now)
        self._write(turn, None, [_closing(TurnState.CANCELLED, now, cause=cause.value)])
        self._close(turn.session_id, now)
        return cancelled

    def interrupt(
        self,
        node_id: NodeId,
        turn_ids: Iterable[TurnId],
        cause: Cause,
        policy: Policy,
        now: int,
        *,
        in_company: bool = False,
    ) -> Interrupted:
        after: dict[Aftermath, list[TurnId]] = {each: [] for each in Aftermath}
        held = [self.turns[each] for each in turn_ids if each in self.turns]
        cut = [turn for turn in held if (turn.state, turn.node_id) == (TurnState.RUNNING, node_id)]
        for turn in cut:
            after[self._cut(turn, cause, policy, now, in_company)].append(turn.id)
        # Sessions are left behind that: a task whose giver is cancelled with its session was interrupted by then.
        left = {*after[Aftermath.SUSPEND], *after[Aftermath.GIVE_UP]}
        ends = {turn.id for turn in cut if self.sessions[turn.session_id].one_shot} - {*after[Aftermath.CONTINUE]}
        for turn in sorted((turn for turn in cut if turn.id in left | ends), key=lambda turn: turn.id in ends):
            self._leave(turn.session_id, now)
        return Interrupted(
            continued=tuple(after[Aftermath.CONTINUE]),
            rested=tuple(after[Aftermath.REST]),
            suspended=tuple(after[Aftermath.SUSPEND]),
            given_up=tuple(after[Aftermath.GIVE_UP]),
        )

    def _leave(self, session_id: SessionId, now: int) -> None:
        """Suspend or end a session for what one of its turns did; those that wait in it are still answered."""
        session = self.sessions[session_id]
        if session.state is sessions.SessionState.ENDED:
            return
        if session.one_shot:
            self._end(session, session.channel + sessions.COMPLETE_SUFFIX, now)
        else:
            self.sessions[session_id] = replace(session, state=sessions.SessionState.SUSPENDED)
        self.seal(session_id, now)

    def _cut(self, turn: Turn, cause: Cause, policy: Policy, now: int, in_company: bool) -> Aftermath:
        session = self.sessions[turn.session_id]
        counts = session.strikes < strikes_max(cause, in_company=in_company)
        session = replace(session, strikes=session.strikes + counts)
        self.sessions[session.id] = session
        mode = Mode.DETACHED if session.state is sessions.SessionState.SUSPENDED else turn.mode
        fate = after_loss(mode, policy, cause, session.strikes, in_company=in_company)
        goes_on = fate is Aftermath.CONTINUE
        state = TurnState.QUEUED if goes_on else TurnState.INTERRUPTED
        error = notes.GIVEN_UP if fate is Aftermath.GIVE_UP else turn.error
        self._save(replace(turn, state=state, cause=cause.value, error=error, fence=turn.fence + 1, node_id=None))
        facts = {"error": error, "cause": cause.value} if fate is Aftermath.GIVE_UP else {"cause": cause.value}
        marker = DraftEntry.read(kind=EntryKind.TURN_INTERRUPTED, at=now, data={**facts, "continues": goes_on})
        self._decide_calls(turn, now)
        self._write(turn, None, [marker])
        if fate is Aftermath.GIVE_UP and turn.reply_to and turn.delivers_later:
            self._tell(turn, notes.failed(notes.GIVEN_UP), now)
        return fate

    def _tell(self, turn: Turn, text: str, now: int) -> None:
        """Send why a turn was given up where its answer would have gone."""
        each = Delivery(
            id=DeliveryId(f"dlv_{turn.id}"),
            turn_id=turn.id,
            session_id=turn.session_id,
            target=turn.reply_to or "",
            part=1,
            text=text,
            created_at=now,
            due_at=now,
        )
        self.deliveries[each.id] = each

    def end_session(self, session_id: SessionId, reason: str | None, now: int) -> None:
        session = self.sessions.get(session_id)
        if session and session.state is not sessions.SessionState.ENDED:
            self._end(session, reason or session.channel + sessions.COMPLETE_SUFFIX, now)
            self._empty(session_id, Cause.SESSION_ENDED, now)

    def suspend_session(self, session_id: SessionId, now: int) -> None:
        session = self.sessions.get(session_id)
        if session and session.one_shot:
            # No message would follow, so it would stay suspended for ever.
            self.end_session(session_id, None, now)
        elif session and session.state is sessions.SessionState.OPEN:
            self.sessions[session_id] = replace(session, state=sessions.SessionState.SUSPENDED)
            self._empty(session_id, Cause.SESSION_SUSPENDED, now)

    def _empty(self, session_id: SessionId, cause: Cause, now: int) -> None:
        for turn in self.of_session(session_id):
            if self.turns[turn.id].state in IN_FLIGHT:
                self.cancel(turn.id, cause, now)
        self.seal(session_id, now)

    # Journal

    def append(
        self, turn: Turn, drafts: Sequence[DraftEntry], moves: Sequence[tuple[Call, Call]] = ()
    ) -> tuple[Turn, list[Entry]]:
        found, last = self._same_fence(turn), replace(turn, nth=turn.nth + len(drafts))
        stored = self._attempt(last, turn.nth)
        if (found.state, found.nth) == (TurnState.RUNNING, last.nth) and _same(stored, drafts):
            return last, stored
        held = self._held(turn)
        moved = {(turn.id, after.id): self._moved(before, after) for before, after in moves}
        self.calls.update(moved)
        return self._wrote(held, drafts)

    def _moved(self, before: Call, after: Call) -> Call:
        known = self.calls.get((after.turn_id, after.id))
        if known and known.state is not before.state:
            raise Stale(after.id)
        starts = (known.starts if known else 0) + (after.state is effects.CallState.STARTED)
        if after.effect is Effect.EFFECTFUL and starts > 1:
            raise Stale(after.id)
        return replace(after, starts=starts)

    def append_late(self, entries: Sequence[Entry]) -> int:
        new = 0
        for entry in entries:
            journal = self.entries.get(entry.session_id)
            place = (entry.turn_id, entry.attempt, entry.nth)
            turn = self.turns.get(entry.turn_id)
            if turn is None or (
                turn.attempt > entry.attempt and entry.kind not in (EntryKind.TOOL_FINISHED, EntryKind.USAGE)
            ):
                continue
            if turn.state is TurnState.CANCELLED and entry.kind is not EntryKind.USAGE:
                continue
            if journal is not None and place not in {(e.turn_id, e.attempt, e.nth) for e in journal}:
                journal.append(replace(entry, seq=len(journal) + 1))
                new += 1
        return new

    def _decide_calls(self, turn: Turn, now: int) -> None:
        """Decide about the calls that were cut off, and show those whose outcome nobody knows."""
        for key, call in sorted(self.calls.items()):
            if key[0] == turn.id and call.state is effects.CallState.STARTED:
                self.calls[key] = decided = call.on(effects.after_cut(call.effect))
                if decided.state is effects.CallState.UNKNOWN:
                    card = {"call_id": call.id, "name": call.name, "outcome": decided.state.value}
                    self._write(turn, None, [DraftEntry.read(kind=EntryKind.TOOL_FINISHED, at=now, data=card)])

    # Deliveries

    def due(self, now: int) -> list[Delivery]:
        """Return what may be sent: due, and with no earlier part that may still be."""
        return [
            each
            for each in self.deliveries.values()
            if _sendable(each)
            and each.due_at <= now
            and not any(
                (other.turn_id, other.target) == (each.turn_id, each.target)
                and other.part < each.part
                and (_sendable(other) or other.state is delivery.DeliveryState.SENDING)
                for other in self.deliveries.values()
            )
        ]

    def send(self, node_id: NodeId, now: int) -> list[Delivery]:
        sending: list[Delivery] = []
        for each in [] if self._dead(node_id) else self.due(now):
            self.refused.pop(each.id, None)
            unknown = each.state is delivery.DeliveryState.UNKNOWN
            if now - each.created_at > EXPIRES_AFTER_MS:
                # Whoever revives one of which nobody knows sends what may be a repeat.
                repeats = 1 if unknown else each.repeats
                self.deliveries[each.id] = replace(
                    each.on(delivery.DeliveryEvent.EXPIRE), fence=each.fence + 1, repeats=repeats
                )
                continue
            moved = each.on(delivery.DeliveryEvent.REPEAT if unknown else delivery.DeliveryEvent.SEND)
            moved = replace(moved, attempt=each.attempt + 1, repeats=each.repeats + unknown, fence=each.fence + 1)
            self.deliveries[each.id], self.senders[each.id] = moved, node_id
            sending.append(moved)
        return sending

    def settle(self, sent: Delivery, event: delivery.DeliveryEvent, now: int, *, due_at: int | None = None) -> Delivery:
        after = sent.on(event)
        known = self.deliveries.get(sent.id)
        if known is None or (known.fence, known.state) != (sent.fence, sent.state):
            raise Stale(sent.id)
        moved = replace(after, fence=sent.fence + 1, due_at=now if due_at is None else due_at)
        self.deliveries[sent.id] = moved
        self.senders.pop(sent.id, None)
        if moved.state is delivery.DeliveryState.RETRY:
            self.refused[sent.id] = now
        if moved.state is delivery.DeliveryState.FAILED:
            for each in list(self.deliveries.values()):
                later = (each.turn_id, each.target) == (sent.turn_id, sent.target) and each.part > sent.part
                if later and each.state in (delivery.DeliveryState.PENDING, delivery.DeliveryState.RETRY):
                    self.deliveries[each.id] = replace(each, state=delivery.DeliveryState.FAILED)
        return moved

    def hasten(self, now: int) -> int:
        far = [each for each in self.deliveries.values() if _sendable(each) and each.due_at > now + BACKOFF_MAX_MS]
        far = [each for each in far if each.state is not delivery.DeliveryState.RETRY or self._is_ahead(each, now)]
        self.deliveries.update({each.id: replace(each, due_at=now) for each in far})
        return len(far)

    def _is_ahead(self, each: Delivery, now: int) -> bool:
        return each.created_at > now or self.refused.get(each.id, now) > now + SKEW_MAX_MS

    # Segments

    def hasten_memory(self, now: int) -> int:
        owed = [s for s in self.segments.values() if s.state is segments.SegmentState.SEALED]
        far = [segment for segment in owed if segment.due_at > now + BACKOFF_MAX_MS]
        self.segments.update({segment.id: replace(segment, due_at=now) for segment in far})
        return len(far)

    def seal(self, session_id: SessionId, now: int) -> bool:
        for segment in self._dirty(session_id):
            if segment.state is segments.SegmentState.OPEN:
                self.segments[segment.id] = replace(segment, state=segments.SegmentState.SEALED, due_at=now)
                return True
        return False

    def close_off(self, session_id: SessionId, due_at: int) -> Segment | None:
        self.seal(session_id, due_at)
        return next(iter(self._dirty(session_id)), None)

    def waive(self, segment_id: SegmentId, now: int) -> Segment:
        if segment_id not in self.segments:
            raise NotFound(segment_id)
        waived = self.segments[segment_id].on(segments.SegmentEvent.WAIVE)
        self.segments[segment_id] = replace(waived, fence=waived.fence + 1, settled_at=now)
        return self.segments[segment_id]

    def owners_due(self, now: int) -> list[str]:
        due = [s for s in self.segments.values() if s.state is segments.SegmentState.SEALED and s.due_at <= now]
        return sorted({s.owner for s in due if self._dirty(s.session_id)[0] == s})

    def _dirty(self, session_id: SessionId) -> list[Segment]:
        mine = [s for s in self.segments.values() if s.session_id == session_id and s.state in segments.DIRTY]
        return sorted(mine, key=lambda segment: segment.first_generation)

    def commit_due(self, node_id: NodeId, owner: str, now: int) -> list[Segment]:
        due = [s.session_id for s in self.segments.values() if s.state is segments.SegmentState.SEALED and s.due_at <= now]
        oldest = [self._dirty(session_id)[0] for session_id in dict.fromkeys(due)]
        ready = [s for s in oldest if s.owner == owner and s.state is segments.SegmentState.SEALED and s.due_at <= now]
        return [] if self._dead(node_id) else [self._commit(node_id, segment) for segment in ready]

    def commit_one(self, node_id: NodeId, session_id: SessionId, owner: str) -> Segment | None:
        dirty = self._dirty(session_id)
        if self._dead(node_id) or not dirty or dirty[0].owner != owner or dirty[0].state is not segments.SegmentState.SEALED:
            return None
        return self._commit(node_id, dirty[0])

    def _commit(self, node_id: NodeId, segment: Segment) -> Segment:
        moved = segment.on(segments.SegmentEvent.COMMIT)
        moved = replace(moved, attempt=segment.attempt + 1, fence=segment.fence + 1)
        self.segments[segment.id], self.committers[segment.id] = moved, node_id
        return moved

    def committed(self, segment: Segment, event: segments.SegmentEvent, now: int, due_at: int) -> Segment:
        after = segment.on(event)
        known = self.segments.get(segment.id)
        if known is None or (known.fence, known.state) != (segment.fence, segment.state):
            raise Stale(segment.id)
        settled_at = now if event is segments.SegmentEvent.SUCCEED else None
        self.segments[segment.id] = replace(after, fence=segment.fence + 1, due_at=due_at, settled_at=settled_at)
        self.committers.pop(segment.id, None)
        return self.segments[segment.id]

    # Nodes

    def join(self, node_id: NodeId) -> None:
        if self.exclusive:
            for node in self.nodes.values():
                node.alive = False
        self.nodes[node_id] = Node()

    def beat(self, node_id: NodeId) -> None:
        node = self.nodes[node_id]
        if self.exclusive:
            return
        if not node.alive:
            raise NodeLost(node_id)
        node.beat += 1

    def bury(self, node_id: NodeId, beat: int) -> bool:
        node = self.nodes[node_id]
        if not node.alive or node.beat != beat:
            return False
        node.alive = False
        return True

    def leave(self, node_id: NodeId) -> None:
        self.nodes[node_id].alive = False

    def sweep(self, cause: Cause, policy: Policy, now: int) -> Swept:
        claimed = [t for t in self.turns.values() if t.state is TurnState.QUEUED and self._dead(t.node_id)]
        for turn in claimed:
            self._save(replace(turn, node_id=None, fence=turn.fence + 1))
        turns = Interrupted()
        held = [turn for turn in self.turns.values() if turn.state is TurnState.RUNNING]
        for node_id in dict.fromkeys(turn.node_id for turn in held if turn.node_id and self._dead(turn.node_id)):
            ran = [turn.id for turn in held if turn.node_id == node_id]
            turns += self.interrupt(node_id, ran, cause, policy, now, in_company=len(ran) > 1)
        sending = [each for each, node_id in self.senders.items() if self._dead(node_id)]
        for each in sending:
            self.settle(self.deliveries[each], delivery.DeliveryEvent.LOSE, now)
        committing = [each for each, node_id in self.committers.items() if self._dead(node_id)]
        for segment in [self.segments[each] for each in committing]:
            self.committed(segment, segments.SegmentEvent.FAIL, now, segment.due_at)
        return Swept(turns=turns, released=len(claimed), deliveries=len(sending), segments=len(committing))

    # Retention

    def prune(self, channel: str, ended_before: int) -> int:
        gone = {s.id for s in self.sessions.values() if s.channel == channel and self._over(s, ended_before)}
        turns = {turn.id for turn in self.turns.values() if turn.session_id in gone}
        for session_id in gone:
            del self.sessions[session_id], self.entries[session_id]
        self.turns = {key: turn for key, turn in self.turns.items() if key not in turns}
        self.calls = {key: call for key, call in self.calls.items() if key[0] not in turns}
        self.deliveries = {key: each for key, each in self.deliveries.items() if each.turn_id not in turns}
        self.questions = {key: each for key, each in self.questions.items() if key[0] not in turns}
        self.grants = {grant for grant in self.grants if grant[2] not in gone}
        self.segments = {key: segment for key, segment in self.segments.items() if segment.session_id not in gone}
        return len(gone)

    def _at_work_for(self, session_id: SessionId) -> list[Turn]:
        parents = {turn.id for turn in self.of_session(session_id)}
        return [turn for turn in self.turns.values() if turn.parent_turn_id in parents]

    def _over(self, session: Session, ended_before: int) -> bool:
        return (
            session.ended_at is not None
            and session.ended_at <= ended_before
            and not any(turn.state in IN_FLIGHT for turn in self.of_session(session.id))
            and not any(child.state in IN_FLIGHT for child in self._at_work_for(session.id))
            and not any(
                each.session_id == session.id and (_sendable(each) or each.state is delivery.DeliveryState.SENDING)
                for each in self.deliveries.values()
            )
            and not self._dirty(session.id)
        )

    def forget_keys(self, before: int) -> int:
        old = [key for key, known in self.keys.items() if known.receipt.accepted_at <= before]
        for key in old:
            del self.keys[key]
        return len(old)

    # What every write needs

    def _turn(self, turn_id: TurnId) -> Turn:
        if turn_id not in self.turns:
            raise NotFound(turn_id)
        return self.turns[turn_id]

    def _same_fence(self, turn: Turn) -> Turn:
        known = self.turns.get(turn.id)
        if known is None or known.fence != turn.fence:
            raise Stale(turn.id)
        return known

    def _held(self, turn: Turn) -> Turn:
        known = self._same_fence(turn)
        if (known.state, known.nth) != (TurnState.RUNNING, turn.nth):
            raise Stale(turn.id)
        return known

    def _save(self, turn: Turn) -> Turn:
        self.turns[turn.id] = turn
        return turn

    def _wrote(self, turn: Turn, drafts: Sequence[DraftEntry]) -> tuple[Turn, list[Entry]]:
        """Save a turn with entries of its worker."""
        entries = self._write(turn, turn.nth + 1, drafts)
        return self._save(replace(turn, nth=turn.nth + len(drafts))), entries

    def _write(self, turn: Turn, first_nth: int | None, drafts: Sequence[DraftEntry]) -> list[Entry]:
        journal = self.entries[turn.session_id]
        entries = [
            Entry(
                session_id=turn.session_id,
                seq=len(journal) + 1 + index,
                turn_id=turn.id,
                attempt=turn.attempt,
                nth=None if first_nth is None else first_nth + index,
                at=draft.at,
                event=draft.event,
            )
            for index, draft in enumerate(drafts)
        ]
        journal.extend(entries)
        return entries

    def _attempt(self, turn: Turn, after: int) -> list[Entry]:
        mine = [e for e in self.entries[turn.session_id] if (e.turn_id, e.attempt) == (turn.id, turn.attempt)]
        return [entry for entry in mine if entry.nth is not None and after < entry.nth <= turn.nth]


def _closing(state: TurnState, at: int, text: str = "", error: str | None = None, cause: str | None = None) -> DraftEntry:
    facts = {"text": text, "error": error, "cause": cause}
    return DraftEntry.read(kind=CLOSING[state].kind, at=at, data={name: value for name, value in facts.items() if value})


def _same(stored: Sequence[Entry], drafts: Sequence[DraftEntry]) -> bool:
    return [(e.event, e.at) for e in stored] == [(d.event, d.at) for d in drafts]


def _sendable(each: Delivery) -> bool:
    """Return whether a delivery is still to be sent, for the first time or, after an unknown outcome, once more."""
    if each.state is delivery.DeliveryState.UNKNOWN:
        return each.repeats == 0
    return each.state in (delivery.DeliveryState.PENDING, delivery.DeliveryState.RETRY)
