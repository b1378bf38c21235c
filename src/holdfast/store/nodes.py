"""Nodes: who is alive, and the sweep that takes over from those who are not."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.core import news
from holdfast.core.recovery import Interrupted, Swept
from holdfast.core.timekeeping import BootClock
from holdfast.core.turns import Cause, Policy
from holdfast.errors import NodeLost
from holdfast.ids import NodeId, TurnId
from holdfast.store import deliveries, locks, segments
from holdfast.store.database import Database, Dialect, Params, Run, Transaction
from holdfast.store.rows import encode
from holdfast.store.settlement import interrupt, interrupted_topics

_JOIN = "INSERT INTO nodes (id, state, joined_at, home) VALUES (:id, 'alive', :now, :home)"
_BEAT = "UPDATE nodes SET beat = beat + 1 WHERE id = :id AND state = 'alive' RETURNING beat"
_BEATS = "SELECT id, beat FROM nodes WHERE state = 'alive'"
# A beat that came in between saves the node.
_BURY = "UPDATE nodes SET state = 'dead', crashed = 1 WHERE id = :id AND beat = :beat AND state = 'alive' RETURNING id"
_BURY_OTHERS = "UPDATE nodes SET state = 'dead', crashed = 1 WHERE id <> :id AND state = 'alive' RETURNING id"
# Each end is reported by one node.
_REPORT_CRASHED = "UPDATE nodes SET crashed = 0 WHERE crashed = 1 RETURNING id"
_NOTE_FOUND = """
    UPDATE nodes SET found = CASE WHEN found IS NULL THEN :found ELSE found || :line_end || :found END WHERE id = :id
 RETURNING id
"""
_LEAVE = "UPDATE nodes SET state = 'dead' WHERE id = :id"
# A node without a row counts as dead: otherwise what it holds would never be taken over.
# A dead node that is only frozen holds its locks until the database ends its transaction.  A sweep that waited for them
# would keep its own node silent until the others buried that one, too: it takes what is free, and comes back for the rest.
_CLAIMED = """
    SELECT t.id FROM turns t
     WHERE t.state = 'queued' AND t.node_id IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = t.node_id AND n.state = 'alive')
     ORDER BY t.node_id LIMIT :limit {skip_locked}
"""
_RELEASE = "UPDATE turns SET node_id = NULL, fence = fence + 1 WHERE id IN {ids}"
_CUT = """
    SELECT t.id, t.node_id, (SELECT n.home FROM nodes n WHERE n.id = t.node_id)
      FROM turns t JOIN sessions s ON s.id = t.session_id
     WHERE t.state = 'running' AND t.node_id IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = t.node_id AND n.state = 'alive')
     ORDER BY t.node_id LIMIT :limit {skip_locked}
"""
_NOTE_CLOCK = """
    UPDATE nodes SET clock_off_ms = :off_ms, boot = :boot, boot_clock_ms = :offset_ms WHERE id = :id RETURNING id
"""
_BOOT_CLOCK = """
    SELECT boot_clock_ms FROM nodes WHERE boot = :boot AND boot_clock_ms IS NOT NULL ORDER BY joined_at DESC, id DESC LIMIT 1
"""
_CLOCKS_OFF = "SELECT id, clock_off_ms FROM nodes WHERE state = 'alive' AND clock_off_ms <> 0 ORDER BY id"
# Counted once: a sweep that takes over a part of them leaves the others no more alone than they were.
_COMPANY = """
    UPDATE nodes SET ran = COALESCE(ran, (SELECT COUNT(*) FROM turns t WHERE t.node_id = nodes.id AND t.state = 'running'))
     WHERE id = :id
 RETURNING ran
"""
_FORGET = """
    DELETE FROM nodes WHERE state = 'dead' AND joined_at <= :before
       AND NOT EXISTS (SELECT 1 FROM turns WHERE node_id = nodes.id)
       AND NOT EXISTS (SELECT 1 FROM deliveries WHERE node_id = nodes.id)
       AND NOT EXISTS (SELECT 1 FROM segments WHERE node_id = nodes.id)
 RETURNING id
"""


class NodeStore:
    """The processes that work on this store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def join(self, node_id: NodeId, now_ms: int, home: str = "") -> None:
        """Register a node.  Where only one process can own the store, all earlier ones are dead from now on."""
        exclusive = self._database.exclusive
        await self._database.write(lambda: _join(node_id, now_ms, home, exclusive))

    async def beat(self, node_id: NodeId) -> None:
        """Show that a node lives.  Raises `NodeLost` when the others have declared it dead."""
        if self._database.exclusive:
            return  # There is no other node that could be watching.
        if not await self._database.write(lambda: _found(_BEAT, {"id": node_id}), essential=True):
            raise NodeLost(f"node {node_id} was silent for too long: its turns belong to others now")

    async def probe(self, node_id: NodeId) -> None:
        """Return once something new could be made durable.  Raises what a message would be refused with."""
        # A row that stays the same would not be written, and so never refused.
        await self._database.write(lambda: _found(_BEAT, {"id": node_id}))

    async def beats(self) -> dict[NodeId, int]:
        """Return the beat of every node that counts as alive."""
        return await self._database.read(_beats)

    async def bury(self, node_id: NodeId, beat: int) -> bool:
        """Declare a node dead that has not beaten since `beat`; False if it has."""
        return await self._database.write(lambda: _found(_BURY, {"id": node_id, "beat": beat}))

    async def note_found(self, node_id: NodeId, found: Sequence[str]) -> None:
        """Keep for the operator which nodes stopped without leaving, and what this one found that they had left behind."""
        await self._database.write(lambda: _note_found(node_id, found))

    async def leave(self, node_id: NodeId) -> None:
        """Leave: the other nodes take over what this node still holds."""
        await self._database.write(lambda: _found(_LEAVE, {"id": node_id}), essential=True)

    async def sweep(
        self,
        cause: Cause,
        policy: Policy,
        now_ms: int,
        limit: int = 500,
        home: str = "",
        dedupes: Collection[str] = (),
    ) -> Swept:
        """Take over up to `limit` of each kind from dead nodes.  Repeated until it finds nothing, it changes nothing.

        What such a node may have left in another home than ours is awaited from there.  `dedupes` names the kinds of
        targets that drop a delivery whose id they have already.
        """
        dialect = self._database.dialect
        return await self._database.write(
            lambda: _sweep(dialect, cause, policy, now_ms, limit, home, dedupes),
            wakes=_woken,
            essential=True,
        )

    async def database_ms(self) -> int | None:
        """Return the time by the clock of the database; None where that is the machine's own."""
        now_ms = self._database.dialect.now_ms
        return None if now_ms is None else await self._database.read(lambda: _number(f"SELECT {now_ms}", {}))

    async def note_clock(self, node_id: NodeId, clock: BootClock) -> None:
        """Record what a node knows of the time."""
        params = {"id": node_id, "boot": clock.boot, "offset_ms": clock.offset_ms, "off_ms": clock.off_ms}
        await self._database.write(lambda: _found(_NOTE_CLOCK, params), essential=True)

    async def boot_clock(self, boot: str) -> int | None:
        """Return what time it was at a start of the machine, as the last node since then knew it."""
        return await self._database.read(lambda: _number(_BOOT_CLOCK, {"boot": boot}))

    async def clocks_off(self) -> dict[NodeId, int]:
        """Return the living nodes whose clock is off, and by how much."""
        return await self._database.read(_clocks_off)

    async def forget(self, before: int) -> None:
        """Delete dead nodes that hold nothing."""
        await self._database.write(lambda: _found(_FORGET, {"before": before}))


def _woken(swept: Swept) -> tuple[str, ...]:
    return ("deliveries", "segments", *interrupted_topics(swept.turns)) if swept.total else ()


def _join(node_id: NodeId, now_ms: int, home: str, exclusive: bool) -> Transaction[None]:
    yield locks.UNNAMED
    yield Run(_JOIN, {"id": node_id, "now": now_ms, "home": home})
    if exclusive:
        yield Run(_BURY_OTHERS, {"id": node_id})
        yield from deliveries.expire_banners(now_ms)


def _note_found(node_id: NodeId, found: Sequence[str]) -> Transaction[None]:
    yield locks.UNNAMED
    gone = sorted(NodeId(id_) for (id_,) in (yield Run(_REPORT_CRASHED)))
    lines = [*([news.crashed(gone)] if gone else ()), *found]
    if lines:
        yield Run(_NOTE_FOUND, {"id": node_id, "found": "\n".join(lines), "line_end": "\n"})


def _found(sql: str, params: dict[str, str | int | None]) -> Transaction[bool]:
    return bool((yield Run(sql, params)))


def _number(sql: str, params: Params) -> Transaction[int | None]:
    found = yield Run(sql, params)
    return int(found[0][0]) if found else None


def _clocks_off() -> Transaction[dict[NodeId, int]]:
    found = yield Run(_CLOCKS_OFF)
    return {NodeId(node_id): off_ms for node_id, off_ms in found}


def _beats() -> Transaction[dict[NodeId, int]]:
    found = yield Run(_BEATS)
    return {NodeId(node_id): beat for node_id, beat in found}


def _sweep(
    dialect: Dialect, cause: Cause, policy: Policy, now_ms: int, limit: int, home: str, dedupes: Collection[str]
) -> Transaction[Swept]:
    yield locks.UNNAMED
    released = yield from _release(dialect, limit)
    cut = yield Run(
        _CUT.format(skip_locked=dialect.skip_locked and "FOR NO KEY UPDATE OF s, t SKIP LOCKED"), {"limit": limit}
    )
    held: dict[tuple[NodeId, str], list[TurnId]] = {}
    for turn_id, node_id, its_home in cut:
        held.setdefault((node_id, its_home if its_home and its_home != home else ""), []).append(turn_id)
    turns = Interrupted()
    for (node_id, elsewhere), turn_ids in held.items():
        in_company = yield from _in_company(node_id)
        turns += yield from interrupt(
            dialect, node_id, turn_ids, cause, policy, now_ms, home=elsewhere, in_company=in_company
        )
    return Swept(
        turns=turns,
        released=released,
        deliveries=(yield from deliveries.lose_held(dialect, now_ms, limit, dedupes)),
        segments=(yield from segments.return_held(dialect, limit)),
    )


def _in_company(node_id: NodeId) -> Transaction[bool]:
    """Return whether several turns ran on a node when it was found dead."""
    return any(ran > 1 for (ran,) in (yield Run(_COMPANY, {"id": node_id})))


def _release(dialect: Dialect, limit: int) -> Transaction[int]:
    """Give back what dead nodes had claimed and not started."""
    free = _CLAIMED.format(skip_locked=dialect.skip_locked and "FOR UPDATE OF t SKIP LOCKED")
    claimed = [turn_id for (turn_id,) in (yield Run(free, {"limit": limit}))]
    if claimed:
        yield Run(_RELEASE.format(ids=dialect.each("ids")), {"ids": encode(claimed)})
    return len(claimed)
