"""The journal: the worker of a turn appends, and readers read from any cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from holdfast.core import effects
from holdfast.core.effects import Call
from holdfast.core.events import ContextCompacted, EntryKind, ToolFinished
from holdfast.core.journal import DraftEntry, Entry, takes_late
from holdfast.core.segments import Segment
from holdfast.core.sessions import NO_OWNER, Session
from holdfast.core.turns import Turn, TurnState
from holdfast.errors import NotFound, Stale
from holdfast.ids import SessionId, TurnId
from holdfast.store import locks, rows, spending
from holdfast.store.database import Add, Database, Dialect, Lock, Params, Row, Run, RunMany, Together, Transaction

READ_MAX = 1_000

_HOLD = """
    UPDATE turns SET nth = nth + :count
     WHERE id = :id AND fence = :fence AND state = 'running' AND nth = :nth
 RETURNING nth
"""
_NUMBER = "UPDATE sessions SET seq = seq + :count WHERE id = :id RETURNING seq"
_INSERT = """
    INSERT INTO entries (session_id, seq, turn_id, attempt, nth, kind, at, data)
    VALUES (:session_id, :seq, :turn_id, :attempt, :nth, :kind, :at, :data)
"""
# Behind the statement that gave them their numbers, and on the same trip.
_INSERT_NEXT = """
    INSERT INTO entries (session_id, seq, turn_id, attempt, nth, kind, at, data)
    VALUES (:session_id, (SELECT s.seq FROM sessions s WHERE s.id = :session_id) - :behind, :turn_id, :attempt, :nth, :kind,
            :at, :data)
"""
_INSERT_LATE = _INSERT + " ON CONFLICT (turn_id, attempt, nth) DO NOTHING RETURNING seq"
_STANDS = "SELECT state, attempt FROM turns WHERE id = :id"
# A session whose rows are on their way out is not shown in part.
_THERE = f"SELECT 1 FROM sessions WHERE id = :id AND owner <> '{NO_OWNER}'"
_READ = f"""
    SELECT {rows.ENTRY} FROM entries
     WHERE session_id = :id AND seq > :after AND EXISTS ({_THERE}) ORDER BY seq LIMIT :limit
"""
# From the beginning, where the context of the session begins there.
_READ_WHOLE = f"""
    SELECT {rows.ENTRY} FROM entries WHERE session_id = :id AND seq > :after AND EXISTS ({_THERE})
       AND NOT EXISTS (SELECT 1 FROM entries c WHERE c.session_id = :id AND c.kind = 'context.compacted')
     ORDER BY seq LIMIT :limit
"""
_READ_TURN = f"""
    SELECT {rows.ENTRY} FROM entries
     WHERE turn_id = :id AND EXISTS (SELECT 1 FROM turns t JOIN sessions s ON s.id = t.session_id
                                      WHERE t.id = :id AND s.owner <> '{NO_OWNER}')
     ORDER BY seq
"""
_READ_TURNS = f"""
    SELECT {rows.qualified(rows.ENTRY, "e")} FROM entries e JOIN turns t ON t.id = e.turn_id
     WHERE t.session_id = :id AND t.ordinal BETWEEN :first AND :last AND EXISTS ({_THERE}) ORDER BY e.seq
"""
_READ_ATTEMPT = f"""
    SELECT {rows.ENTRY} FROM entries
     WHERE turn_id = :id AND attempt = :attempt AND nth > :after AND nth <= :last ORDER BY nth
"""
_READ_SEGMENT = f"""
    SELECT {rows.qualified(rows.ENTRY, "e")} FROM entries e JOIN turns t ON t.id = e.turn_id
     WHERE t.session_id = :id AND t.generation BETWEEN :first AND :last
       AND e.kind IN ('turn.accepted', 'turn.revised', 'message.joined', 'turn.completed', 'turn.undone') ORDER BY e.seq
"""
_COMPACTED = """
    SELECT data FROM entries WHERE session_id = :id AND kind = 'context.compacted' ORDER BY seq DESC LIMIT 1
"""
_SESSION = f"SELECT {rows.SESSION} FROM sessions WHERE id = :id"
# Comes back as it would have been written: masked.
_WRITTEN_LIKE = "SELECT CAST(:data AS TEXT)"
_READ_HOLD = "SELECT fence, state, nth FROM turns WHERE id = :id"
_CALLS = f"SELECT {rows.CALL} FROM tool_calls WHERE turn_id = :id ORDER BY id"
_CUT_CALLS = f"SELECT {rows.CALL} FROM tool_calls WHERE state = 'started' AND turn_id IN {{ids}} ORDER BY turn_id, id"
_DECIDE_CALL = "UPDATE tool_calls SET state = :state WHERE turn_id = :turn_id AND id = :id AND state = 'started'"
# The first save plans the call; every later one is a compare-and-set on the state it was read in.
_SAVE_CALL = """
    INSERT INTO tool_calls (turn_id, id, session_id, name, effect, args, state, starts, result)
    VALUES (:turn_id, :id, :session_id, :name, :effect, :args, :state, :starts, :result)
    ON CONFLICT (turn_id, id) DO UPDATE
       SET state = excluded.state, result = excluded.result,
           starts = tool_calls.starts + CASE WHEN excluded.state = 'started' THEN 1 ELSE 0 END
     WHERE tool_calls.state = :before
 RETURNING state
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """What a turn begins with: its session, what the journal has behind some entry, and the calls of earlier attempts."""

    session: Session
    after: int
    entries: Sequence[Entry]
    calls: Sequence[Call] = ()


class JournalStore:
    """Entries of all sessions, and the tool calls whose intents and results they record."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(
        self, turn: Turn, drafts: Sequence[DraftEntry], moves: Sequence[tuple[Call, Call]] = (), *, essential: bool = False
    ) -> tuple[Turn, list[Entry]]:
        """Store entries and tool-call moves of a running turn; returns the turn to append with next.

        What is `essential` may use the room that is kept for the end of turns when the disk is full.  Raises `Stale` when
        the turn is not the caller's any more.  Repeating an append whose answer was lost is safe.
        """
        return await self._database.write(
            lambda: _append(turn, drafts, moves),
            wakes=lambda _: (f"appended:{turn.session_id}",),
            essential=essential,
        )

    async def append_late(self, entries: Sequence[Entry]) -> int:
        """Take in entries of a dead attempt that arrive after its end; returns how many were new.

        Words come too late once the next attempt has begun, or the turn is cancelled: see `takes_late`.
        """
        topics = tuple({f"session:{entry.session_id}" for entry in entries})
        return await self._database.write(
            lambda: _append_late(entries),
            wakes=lambda _: topics,
        )

    async def read(self, session_id: SessionId, after: int = 0, limit: int = READ_MAX) -> list[Entry]:
        """Return the entries after a cursor, oldest first."""
        return await self._database.read(lambda: _read(_READ, {"id": session_id, "after": after, "limit": limit}))

    async def news(self, session_id: SessionId, after: int, limit: int = READ_MAX) -> list[Entry]:
        """Return the entries after a cursor, as `read` does.  Raises `NotFound` where none will ever come: it is deleted."""
        return await self._database.read(lambda: _news({"id": session_id, "after": after, "limit": limit}))

    async def read_turn(self, turn_id: TurnId) -> list[Entry]:
        """Return the entries of one turn."""
        return await self._database.read(lambda: _read(_READ_TURN, {"id": turn_id}))

    async def read_turns(
        self, session_id: SessionId, *, after: int = 0, before: int | None = None, limit: int = 50
    ) -> list[Entry]:
        """Return the entries of `limit` turns behind the one with an ordinal, or of those in front of one.

        Ordinals are gapless, so a page is known before it is read: those of a session run from 1 to its `turns`.
        """
        first, last = (after + 1, after + limit) if before is None else (before - limit, before - 1)
        return await self._database.read(lambda: _read(_READ_TURNS, {"id": session_id, "first": first, "last": last}))

    async def read_segment(self, segment: Segment) -> list[Entry]:
        """Return what was said in the turns that a memory segment covers.

        What tools returned on the way may be a hundred times as much, and is for no memory.
        """
        params = {"id": segment.session_id, "first": segment.first_generation, "last": segment.last_generation}
        return await self._database.read(lambda: _read(_READ_SEGMENT, params))

    async def calls(self, turn_id: TurnId) -> list[Call]:
        """Return the tool calls of one turn, of all its attempts."""
        return await self._database.read(lambda: _calls(turn_id))

    async def brief(self, turn: Turn, after: int | None = None) -> Brief:
        """Return what a turn begins with: the first entries behind `after`, or behind where the context of its session
        begins, its session, and its calls.  Raises `NotFound`.
        """
        return await self._database.read(lambda: _brief(turn, after))


def _append(
    turn: Turn, drafts: Sequence[DraftEntry], moves: Sequence[tuple[Call, Call]]
) -> Transaction[tuple[Turn, list[Entry]]]:
    yield Lock([locks.session(turn.session_id)])
    hold = Run(_HOLD, {"id": turn.id, "fence": turn.fence, "nth": turn.nth, "count": len(drafts)}, needed=True)
    saves = [_saving(before, after) for before, after in moves]
    writes, entries = writing_next(turn, turn.nth + 1, drafts)
    held, *found = yield Together((hold, *saves, *writes), last=True)
    if not held:
        return (yield from _already_appended(turn, drafts))
    for (before, after), saved in zip(moves, found, strict=False):
        if not saved:
            raise _moved(before, after)
    return replace(turn, nth=turn.nth + len(drafts)), entries(found[len(saves)])


def writing_next(
    turn: Turn, first_nth: int | None, drafts: Sequence[DraftEntry]
) -> tuple[tuple[Run | RunMany | Add, ...], Callable[[Row], list[Entry]]]:
    """Return what writes entries in one go, and what makes them of the rows of the first of these statements."""
    unnumbered = numbered(turn, 0, first_nth, drafts)

    def entries(rows: Row) -> list[Entry]:
        ((last,),) = rows
        return [replace(entry, seq=entry.seq + last) for entry in unnumbered]

    number = Run(_NUMBER, {"id": turn.session_id, "count": len(drafts)})
    insert = Add(_INSERT_NEXT, [{**_params(entry), "behind": -entry.seq} for entry in unnumbered])
    return (number, insert, *spending.recording(unnumbered)), entries


def _already_appended(turn: Turn, drafts: Sequence[DraftEntry]) -> Transaction[tuple[Turn, list[Entry]]]:
    """Answer a repeated append like the first, if it is the same and no other append came after it."""
    last = turn.nth + len(drafts)
    found = yield Run(_READ_HOLD, {"id": turn.id})
    stands = replace(turn, nth=last)
    stored = yield from written(stands, turn.nth)
    expected = yield Together([Run(_WRITTEN_LIKE, {"data": rows.encode(rows.content_of(draft.event))}) for draft in drafts])
    facts = [(draft.event.kind, draft.at, data) for draft, ((data,),) in zip(drafts, expected, strict=True)]
    if not found or tuple(found[0]) != (turn.fence, "running", last) or _facts(stored) != facts:
        raise Stale(f"turn {turn.id} is not held with fence {turn.fence} at entry {turn.nth} any more")
    return stands, stored


def _facts(stored: Sequence[Entry]) -> list[tuple[str, int, str]]:
    return [(each.kind, each.at, rows.encode(each.data)) for each in stored]


def written(turn: Turn, after: int) -> Transaction[list[Entry]]:
    """Return what the worker of a turn wrote after its entry `after`, to answer a repeated request."""
    place = {"id": turn.id, "attempt": turn.attempt, "after": after, "last": turn.nth}
    return (yield from _read(_READ_ATTEMPT, place))


def hold(turn: Turn, count: int) -> Transaction[None]:
    """Reserve the next `count` entries of a running turn.  Raises `Stale` when it is not the caller's any more."""
    if not (yield Run(_HOLD, {"id": turn.id, "fence": turn.fence, "nth": turn.nth, "count": count})):
        raise Stale(f"turn {turn.id} is not held with fence {turn.fence} at entry {turn.nth} any more")


def write_held(turn: Turn, drafts: Sequence[DraftEntry]) -> Transaction[tuple[Turn, list[Entry]]]:
    """Write the entries of a turn whose row was just moved by `len(drafts)`."""
    entries = yield from number(turn, turn.nth + 1, drafts)
    return replace(turn, nth=turn.nth + len(drafts)), entries


def number(turn: Turn, first_nth: int | None, drafts: Sequence[DraftEntry]) -> Transaction[list[Entry]]:
    """Give entries the next numbers of their session and write them; `first_nth` is None for what no worker wrote."""
    ((last,),) = yield Run(_NUMBER, {"id": turn.session_id, "count": len(drafts)})
    entries = numbered(turn, last, first_nth, drafts)
    yield from insert(entries)
    return entries


def numbered(turn: Turn, last_seq: int, first_nth: int | None, drafts: Sequence[DraftEntry]) -> list[Entry]:
    """Return the entries of drafts whose numbers end at `last_seq`."""
    first = last_seq - len(drafts) + 1
    return [
        Entry(
            session_id=turn.session_id,
            seq=first + index,
            turn_id=turn.id,
            attempt=turn.attempt,
            nth=None if first_nth is None else first_nth + index,
            at=draft.at,
            event=rows.storable(draft.event),
        )
        for index, draft in enumerate(drafts)
    ]


def insert(entries: Sequence[Entry]) -> Transaction[None]:
    """Write entries that have their numbers, and what they say was spent."""
    yield from copy(entries)
    yield from spending.record(entries)


def copy(entries: Sequence[Entry]) -> Transaction[None]:
    """Write entries that another session had first: what they cost counts there."""
    if entries:
        yield Add(_INSERT, [_params(entry) for entry in entries])


def _params(entry: Entry) -> dict[str, str | int | None]:
    return {
        "session_id": entry.session_id,
        "seq": entry.seq,
        "turn_id": entry.turn_id,
        "attempt": entry.attempt,
        "nth": entry.nth,
        "kind": entry.kind,
        "at": entry.at,
        "data": rows.encode(rows.content_of(entry.event) if entry.stored is None else entry.stored),
    }


def save_call(before: Call, after: Call) -> Transaction[None]:
    """Move a tool call.  Raises `Stale` when it is not in the state it was read in."""
    if not (yield _saving(before, after)):
        raise _moved(before, after)


def _moved(before: Call, after: Call) -> Stale:
    return Stale(f"tool call {after.id} is not {before.state} any more")


def _saving(before: Call, after: Call) -> Run:
    return Run(
        _SAVE_CALL,
        {
            "turn_id": after.turn_id,
            "id": after.id,
            "session_id": after.session_id,
            "name": after.name,
            "effect": after.effect.value,
            "args": after.args,
            "state": after.state.value,
            "starts": 1 if after.state.value == "started" else 0,
            "result": after.result,
            "before": before.state.value,
        },
        needed=True,
    )


def decide_calls(dialect: Dialect, cut: Sequence[Turn], now_ms: int) -> Transaction[None]:
    """Decide for every tool call that was cut off whether it may run again, and show those whose outcome is unknown."""
    by_id = {turn.id: turn for turn in cut}
    found = yield Run(_CUT_CALLS.format(ids=dialect.each("ids")), {"ids": rows.encode(list(by_id))})
    decided = [call.on(effects.after_cut(call.effect)) for call in map(rows.call, found)]
    if decided:
        yield RunMany(
            _DECIDE_CALL, [{"turn_id": call.turn_id, "id": call.id, "state": call.state.value} for call in decided]
        )
    for call in decided:
        if call.state is effects.CallState.UNKNOWN:
            lost = ToolFinished(call_id=call.id, name=call.name, outcome=call.state.value)
            yield from number(by_id[call.turn_id], None, [DraftEntry(at=now_ms, event=lost)])


def _append_late(entries: Sequence[Entry]) -> Transaction[int]:
    # So that no turn of theirs is started again or cancelled meanwhile.
    yield Lock([locks.session(session_id) for session_id in {entry.session_id for entry in entries}])
    stand: dict[TurnId, tuple[TurnState, int]] = {}
    for turn_id in sorted({entry.turn_id for entry in entries}):
        for state, attempt in (yield Run(_STANDS, {"id": turn_id})):
            stand[turn_id] = TurnState(state), attempt
    new = 0
    for entry in entries:
        if entry.turn_id not in stand or not takes_late(entry, *stand[entry.turn_id]):
            continue
        numbered = yield Run(_NUMBER, {"id": entry.session_id, "count": 1})
        inserted = yield Run(_INSERT_LATE, _params(replace(entry, seq=numbered[0][0])))
        if inserted:
            yield from spending.record([entry])
            new += 1
        else:
            yield Run(_NUMBER, {"id": entry.session_id, "count": -1})
    return new


def _read(sql: str, params: Params) -> Transaction[list[Entry]]:
    found = yield Run(sql, params)
    return [rows.entry(row) for row in found]


def _news(params: Params) -> Transaction[list[Entry]]:
    found = yield from _read(_READ, params)
    if not found and not (yield Run(_THERE, {"id": params["id"]})):
        raise NotFound(f"there is no session {params['id']} any more")
    return found


def _begins(compacted: Sequence[Row]) -> int:
    match rows.event(EntryKind.CONTEXT_COMPACTED, compacted[0][0]) if compacted else None:
        case ContextCompacted(after=after):
            return after
        case _:
            return 0


def _brief(turn: Turn, after: int | None) -> Transaction[Brief]:
    here = {"id": turn.session_id}
    read = Run(_READ_WHOLE if after is None else _READ, {**here, "after": after or 0, "limit": READ_MAX})
    calls = [Run(_CALLS, {"id": turn.id})] if turn.attempt > 1 else []
    found, compacted, read, *called = yield Together((Run(_SESSION, here), Run(_COMPACTED, here), read, *calls))
    if not found:
        raise NotFound(f"there is no session {turn.session_id}")
    if after is None and (after := _begins(compacted)):
        read = yield Run(_READ, {**here, "after": after, "limit": READ_MAX})
    return Brief(
        session=rows.session(found[0]),
        after=after,
        entries=[rows.entry(row) for row in read],
        calls=[rows.call(row) for row in (called[0] if called else ())],
    )


def _calls(turn_id: TurnId) -> Transaction[list[Call]]:
    found = yield Run(_CALLS, {"id": turn_id})
    return [rows.call(row) for row in found]
