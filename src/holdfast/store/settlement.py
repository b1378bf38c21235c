"""How turns come to rest: finished by their worker, cancelled on request, or interrupted when their worker is lost.

Each is one transaction: the state, the closing entry, the deliveries, the memory debt and the end of a one-shot session
are all there, or none is.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core import notes, sessions
from holdfast.core.delivery import ASIDE_FIRST, NO_EXTRA, Delivery, Extra, delivery_id
from holdfast.core.ending import Ending
from holdfast.core.events import PENDING, Note, TurnInterrupted, TurnUndone
from holdfast.core.intake import Once
from holdfast.core.journal import DraftEntry, Entry
from holdfast.core.recovery import Interrupted
from holdfast.core.showing import go_on
from holdfast.core.turns import SETTLED, Aftermath, Cause, Mode, Policy, Turn, TurnState, after_loss, strikes_max
from holdfast.errors import IllegalMove
from holdfast.ids import DeliveryId, NodeId, SessionId, TurnId
from holdfast.store import cancellation, closing, dedupe, deliveries, journal, locks, recoveries, rows, segments, turns
from holdfast.store.database import Database, Dialect, Lock, Run, Together, Transaction

_SETTLE = f"""
    UPDATE turns
       SET state = :state, nth = nth + :count, node_id = NULL, cause = :cause, error = :error, answered_at = :now,
           generation = CASE WHEN CAST(:remembered AS BIGINT) = 1
                             THEN (SELECT generation + 1 FROM sessions WHERE sessions.id = turns.session_id) END
     WHERE id = :id AND fence = :fence AND state = 'running' AND nth = :nth
 RETURNING {rows.TURN}
"""
# A worker that gives up may leave calls behind that had started.
_WHOLE = "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM tool_calls c WHERE c.turn_id = :id AND c.state = 'started')"
_INTERRUPT = f"""
    UPDATE turns SET state = 'interrupted', cause = :cause, fence = fence + 1, node_id = NULL
     WHERE id IN {{ids}} AND state = 'running' AND node_id = :node_id
 RETURNING {rows.TURN}
"""
# An interruption is a strike while there are fewer than `strikes_max`.
_STRIKE = """
    UPDATE sessions SET seq = seq + 1, updated_at = :now,
           strikes = CASE WHEN strikes < CAST(:most AS BIGINT) THEN strikes + 1 ELSE strikes END
     WHERE id IN {ids}
 RETURNING id, seq, strikes, one_shot, state
"""
_GIVE_UP = "UPDATE turns SET error = :error WHERE id IN {ids}"
# They were interrupted in this very transaction; comparing the state, PostgreSQL would look for that first, in all turns.
_CONTINUE = "UPDATE turns SET state = 'queued' WHERE id IN {ids}"
# Asked behind the session's own row, so that what is accepted at the same moment is seen here, or sees this end.
_NEXT = "SELECT EXISTS (SELECT 1 FROM turns WHERE session_id = :id AND state = 'queued')"
_AT_WORK = "SELECT session_id FROM turns WHERE node_id = :node_id AND state = 'running'"
_RUNNING = f"SELECT {rows.TURN} FROM turns WHERE node_id = :node_id AND state = 'running' AND session_id IN {{ids}}"
_ANNOUNCED = """
    SELECT turn_id, attempt FROM entries WHERE turn_id IN {ids} AND kind = 'note' AND data ->> 'banner' IS NOT NULL
"""


class Settlement:
    """The ways in which turns come to rest."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def finish(self, turn: Turn, ending: Ending) -> tuple[Turn, list[Entry]]:
        """End a running turn as its worker.  Raises `Stale` when it is not ours; repeating a lost answer is safe."""
        dialect = self._database.dialect
        ended, entries, _ = await self._database.write(
            lambda: _finish(dialect, turn, ending),
            wakes=lambda result: (
                *(("turns",) if result[2] else ()),
                *(("deliveries",) if ending.deliveries else ()),
                "segments",
                f"appended:{turn.session_id}",
            ),
            essential=True,
        )
        return ended, entries

    async def cancel(self, turn_id: TurnId, cause: Cause, now_ms: int) -> Turn:
        """Cancel a turn in flight.  Its fence moves, so the next write of its worker changes nothing.

        Its child turns are cancelled too.  Raises `IllegalMove` when it is at rest already.
        """
        dialect = self._database.dialect
        turn, *_ = await self._database.write(
            lambda: _cancel(dialect, turn_id, cause, now_ms),
            wakes=cancellation.topics,
            essential=True,
        )
        return turn

    async def interrupt(
        self, node_id: NodeId, turn_ids: Sequence[TurnId], cause: Cause, policy: Policy, now_ms: int
    ) -> Interrupted:
        """Record that these running turns of a node were cut off, and let those that may go on queue again."""
        dialect = self._database.dialect
        return await self._database.write(
            lambda: _interrupt(dialect, node_id, turn_ids, cause, policy, now_ms),
            wakes=interrupted_topics,
            essential=True,
        )

    async def announce(
        self, node_id: NodeId, banner: str, text: str, now_ms: int, policy: Policy | None = None
    ) -> list[Turn]:
        """Tell every chat with a turn running on a node what is about to happen, once; returns the turns told."""
        dialect = self._database.dialect
        return await self._database.write(
            lambda: _announce(dialect, node_id, banner, text, now_ms, policy or Policy()),
            wakes=lambda told: ("deliveries", *(f"session:{turn.session_id}" for turn in told)),
            essential=True,
        )

    async def undo(self, session_id: SessionId, now_ms: int, once: Once | None = None) -> Turn | None:
        """Leave the last exchange out of a conversation from now on.  Its entries stay.

        Returns its turn, or None when there is none.  Raises `IllegalMove` while it is in flight.
        """
        return await self._database.write(
            lambda: _undo_once(session_id, now_ms, once),
            wakes=lambda _: (f"session:{session_id}",),
        )

    async def end_session(self, session_id: SessionId, reason: str, now_ms: int, once: Once | None = None) -> None:
        """End a session for good and cancel what still waits in it.  The first reason wins; `Repeated` the second time."""
        await self._leave(session_id, sessions.SessionEvent.END, reason, now_ms, once)

    async def suspend_session(self, session_id: SessionId, now_ms: int, once: Once | None = None) -> None:
        """Suspend a session: the next message of its key starts a new one.  Raises `Repeated` the second time."""
        await self._leave(session_id, sessions.SessionEvent.SUSPEND, None, now_ms, once)

    async def _leave(
        self, session_id: SessionId, event: sessions.SessionEvent, reason: str | None, now_ms: int, once: Once | None
    ) -> None:
        dialect = self._database.dialect
        await self._database.write(
            lambda: _leave_once(dialect, session_id, event, reason, now_ms, once),
            wakes=lambda cancelled: (f"session:{session_id}", *cancellation.topics(cancelled)),
            essential=True,
        )


def interrupted_topics(cut: Interrupted) -> tuple[str, ...]:
    """Name what interrupting turns concerns."""
    readers = (f"session:{session_id}" for session_id in cut.sessions)
    return ("turns", *(("deliveries",) if cut.given_up else ()), *readers)


def _finish(dialect: Dialect, turn: Turn, ending: Ending) -> Transaction[tuple[Turn, list[Entry], bool]]:
    """End a turn; also returns whether another of its session waits for that."""
    yield Lock([locks.session(turn.session_id)])
    state = turn.on(ending.event).state
    completed = state is TurnState.COMPLETED
    remembered = int(completed and turn.remembers and ending.memory_owner is not None)
    drafts = [*ending.drafts, closing.draft(state, ending.at, ending.text, ending.error, ending.cause)]
    settle = Run(
        _SETTLE,
        {
            "id": turn.id,
            "fence": turn.fence,
            "nth": turn.nth,
            "state": state.value,
            "count": len(drafts),
            "cause": ending.cause,
            "error": ending.error,
            "now": ending.at,
            "remembered": remembered,
        },
        needed=True,
    )
    move = closing.moving(turn.session_id, len(drafts), remembered, completed, ending.at)
    rest = [move, Run(_NEXT, {"id": turn.session_id}), *(segments.looking(turn.session_id, ending) if remembered else ())]
    settled, whole, *found = yield Together((settle, Run(_WHOLE, {"id": turn.id}, needed=True), *rest))
    if not settled:
        return (yield from _already_finished(turn, state, len(drafts)))
    if not whole:
        # No call is left running behind it, and what became of each stands before the end.
        yield from journal.decide_calls(dialect, [turn], ending.at)
        found = yield Together(rest)
    moved, ((others_wait,),), *segment = found
    last, generation, ended, owes = closing.moved(moved)
    entries = journal.numbered(turn, last, turn.nth + 1, drafts)
    yield from journal.insert(entries)
    if segment:
        yield from segments.record(turn.session_id, generation, ending, *segment)
    if ended and (owes or remembered):
        yield segments.sealing(turn.session_id, ending.at)
    yield from deliveries.insert(ending.deliveries)
    return rows.turn(settled[0]), entries, bool(others_wait)


def _already_finished(turn: Turn, state: TurnState, count: int) -> Transaction[tuple[Turn, list[Entry], bool]]:
    """Answer a repeated finish like the first."""
    ended = yield from turns.unmoved(turn, state, turn.nth + count)
    return ended, (yield from journal.written(ended, turn.nth)), True


def _cancel(dialect: Dialect, turn_id: TurnId, cause: Cause, now_ms: int) -> Transaction[list[Turn]]:
    yield Lock([locks.turn(turn_id)])
    return (yield from cancellation.cancel(dialect, turn_id, cause, now_ms))


def _interrupt(
    dialect: Dialect, node_id: NodeId, turn_ids: Sequence[TurnId], cause: Cause, policy: Policy, now_ms: int
) -> Transaction[Interrupted]:
    yield Lock(list(map(locks.turn, turn_ids)))
    return (yield from interrupt(dialect, node_id, turn_ids, cause, policy, now_ms))


def interrupt(
    dialect: Dialect,
    node_id: NodeId,
    turn_ids: Sequence[TurnId],
    cause: Cause,
    policy: Policy,
    now_ms: int,
    *,
    home: str = "",
    in_company: bool = False,
) -> Transaction[Interrupted]:
    """Interrupt the running turns of a node, decide their tool calls, and let each go on, rest or be given up.

    `home` is where the node may have left more of them, if that is out of our own reach.  They were cut off `in_company`
    if the node crashed and ran others, so that each of them may be the cause.
    """
    # Every running turn has a session of its own, so both tables can be moved as sets.
    named = {"ids": rows.encode(list(turn_ids)), "node_id": node_id, "cause": cause.value}
    cut = yield Run(_INTERRUPT.format(ids=dialect.each("ids")), named)
    lost = {turn.session_id: turn for turn in map(rows.turn, cut)}
    if not lost:
        return Interrupted()
    yield from journal.decide_calls(dialect, list(lost.values()), now_ms)
    most = {"ids": rows.encode(list(lost)), "now": now_ms, "most": strikes_max(cause, in_company=in_company)}
    struck = yield Run(_STRIKE.format(ids=dialect.each("ids")), most)
    entries: list[Entry] = []
    after: dict[Aftermath, list[Turn]] = {each: [] for each in Aftermath}
    leaving: dict[sessions.SessionEvent, list[SessionId]] = {each: [] for each in sessions.SessionEvent}
    for session_id, seq, strikes, one_shot, state in struck:
        turn = lost[session_id]
        # No message will follow in a session that was suspended while this one waited, so it rests for none.
        mode = Mode.DETACHED if state == sessions.SessionState.SUSPENDED else turn.mode
        fate = after_loss(mode, policy, cause, strikes, in_company=in_company)
        after[fate].append(turn)
        event = TurnInterrupted(
            error=notes.GIVEN_UP if fate is Aftermath.GIVE_UP else "",
            cause=cause.value,
            continues=fate is Aftermath.CONTINUE,
            recovery=PENDING if home else "",
        )
        entries.extend(journal.numbered(turn, seq, None, [DraftEntry(at=now_ms, event=event)]))
        if one_shot and fate is not Aftermath.CONTINUE:
            leaving[sessions.SessionEvent.END].append(session_id)
        elif fate in (Aftermath.SUSPEND, Aftermath.GIVE_UP):
            leaving[sessions.SessionEvent.SUSPEND].append(session_id)
    yield from journal.insert(entries)
    if home:
        yield from recoveries.open_all(list(lost.values()), node_id, home, now_ms)
    going_on = [turn.id for turn in after[Aftermath.CONTINUE]]
    if going_on:
        yield Run(_CONTINUE.format(ids=dialect.each("ids")), {"ids": rows.encode(going_on)})
    for event, session_ids in leaving.items():
        if session_ids:
            yield from cancellation.leave_all(dialect, session_ids, event, now_ms)
    if after[Aftermath.GIVE_UP]:
        yield from _give_up(dialect, after[Aftermath.GIVE_UP], now_ms)
    yield from _tell(dialect, after[Aftermath.REST], policy, now_ms)
    return Interrupted(
        sessions=tuple(lost),
        continued=tuple(going_on),
        rested=tuple(turn.id for turn in after[Aftermath.REST]),
        suspended=tuple(turn.id for turn in after[Aftermath.SUSPEND]),
        given_up=tuple(turn.id for turn in after[Aftermath.GIVE_UP]),
    )


def _give_up(dialect: Dialect, given_up: Sequence[Turn], now_ms: int) -> Transaction[None]:
    """Say why turns are given up, also where their answers would have gone."""
    ids = rows.encode([turn.id for turn in given_up])
    yield Run(_GIVE_UP.format(ids=dialect.each("ids")), {"ids": ids, "error": notes.GIVEN_UP})
    yield from deliveries.insert(
        [
            Delivery(
                # A turn is given up once, so its name will do; a driver may run this again.
                id=DeliveryId(f"dlv_{turn.id}"),
                turn_id=turn.id,
                session_id=turn.session_id,
                target=turn.reply_to,
                part=1,
                text=notes.failed(notes.GIVEN_UP),
                created_at=now_ms,
                due_at=now_ms,
            )
            for turn in given_up
            if turn.reply_to is not None and turn.delivers_later
        ]
    )


def _announce(
    dialect: Dialect, node_id: NodeId, banner: str, text: str, now_ms: int, policy: Policy
) -> Transaction[list[Turn]]:
    yield locks.UNNAMED
    at_work = [session_id for (session_id,) in (yield Run(_AT_WORK, {"node_id": node_id}))]
    # So that a turn that is cancelled at the same moment gets no banner.
    yield Lock(list(map(locks.session, at_work)))
    found = yield Run(_RUNNING.format(ids=dialect.each("ids")), {"node_id": node_id, "ids": rows.encode(at_work)})
    running = sorted(map(rows.turn, found), key=lambda turn: turn.id)
    told = yield from _untold(dialect, running)
    draft = DraftEntry(at=now_ms, event=Note(text=text, banner=banner))
    chats: set[str] = set()
    for turn in told:
        yield from journal.number(turn, None, [draft])
        # Several sessions may speak to one chat, which hears it once all the same.
        if turn.reply_to is not None and turn.delivers_later and turn.reply_to not in chats:
            chats.add(turn.reply_to)
            yield from deliveries.insert_banner(turn, turn.reply_to, text, now_ms, _offer(turn, policy))
    return told


def _untold(dialect: Dialect, cut_off: Sequence[Turn]) -> Transaction[list[Turn]]:
    """Return the turns to whose attempt no stop was announced."""
    ids = {"ids": rows.encode([turn.id for turn in cut_off])}
    told_before = {(turn_id, attempt) for turn_id, attempt in (yield Run(_ANNOUNCED.format(ids=dialect.each("ids")), ids))}
    return [turn for turn in cut_off if (turn.id, turn.attempt) not in told_before]


def _offer(turn: Turn, policy: Policy) -> Extra:
    """Return the button that lets a turn go on, where it would rest and is answered in a chat."""
    rests = after_loss(turn.mode, policy, Cause.SHUTDOWN_TIMEOUT, 0) is Aftermath.REST
    return Extra(buttons=go_on(turn.id)) if rests and _is_in_chat(turn, policy) else NO_EXTRA


def _is_in_chat(turn: Turn, policy: Policy) -> bool:
    return turn.delivers_later and turn.reply_to is not None and turn.reply_to.partition(":")[0] in policy.chats


def _tell(dialect: Dialect, rested: Sequence[Turn], policy: Policy, now_ms: int) -> Transaction[None]:
    """Tell chats that an answer was cut off, unless the stop was announced to them."""
    in_chats = [turn for turn in rested if _is_in_chat(turn, policy)]
    if not in_chats:
        return
    for turn in (yield from _untold(dialect, in_chats)):
        cut_off = Delivery(
            # An attempt is cut off once, so its number will do; a driver may run this again.
            id=delivery_id(f"{turn.id}:{turn.attempt}:cut off", 1),
            turn_id=turn.id,
            session_id=turn.session_id,
            target=turn.reply_to or "",
            part=ASIDE_FIRST,
            text=notes.CUT_OFF,
            created_at=now_ms,
            due_at=now_ms,
            extra=_offer(turn, policy),
        )
        yield from deliveries.insert_asides(turn, [cut_off])


def _undo_once(session_id: SessionId, now_ms: int, once: Once | None) -> Transaction[Turn | None]:
    yield Lock([locks.session(session_id)], alone=True)
    yield from dedupe.once(once, session_id, now_ms)
    return (yield from undo(session_id, now_ms))


def undo(session_id: SessionId, now_ms: int) -> Transaction[Turn | None]:
    """Leave the last exchange of a session out.  Raises `IllegalMove` while it is in flight."""
    found = yield Run(turns.LAST, {"id": session_id})
    if not found:
        return None
    turn = rows.turn(found[0])
    if turn.state not in SETTLED:
        raise IllegalMove(turn.id, turn.state, "be undone; stop it first")
    yield from journal.number(turn, None, [DraftEntry(at=now_ms, event=TurnUndone())])
    return turn


def _leave_once(
    dialect: Dialect,
    session_id: SessionId,
    event: sessions.SessionEvent,
    reason: str | None,
    now_ms: int,
    once: Once | None,
) -> Transaction[list[Turn]]:
    yield Lock([locks.session(session_id)], alone=True)
    yield from dedupe.once(once, session_id, now_ms)
    return (yield from cancellation.leave(dialect, session_id, event, reason, now_ms))
