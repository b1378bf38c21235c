"""Scheduled jobs and their slots: one row per due instant, so that none fires twice."""

from __future__ import annotations

from holdfast.core.intake import Inbound, Receipt
from holdfast.core.keys import LOCAL
from holdfast.core.quotas import Quota
from holdfast.core.schedule import Fired, Job, outcome
from holdfast.core.timekeeping import STEP_MAX_MS
from holdfast.core.turns import TurnState
from holdfast.errors import Rejected, Stale
from holdfast.ids import SessionId, TurnId
from holdfast.store import intake, locks, quotas, removal, rows
from holdfast.store.database import Database, Dialect, Lock, Params, Row, Run, Transaction

_COLUMNS = "name, owner, schedule, prompt, deliver, paused, created_at, last_instant"
# A changed schedule counts from the time of the change: instants before it are not due.
_ADD = f"""
    INSERT INTO jobs ({_COLUMNS})
    VALUES (:name, :owner, :schedule, :prompt, :deliver, :paused, :created_at, :last_instant)
    ON CONFLICT (name) DO UPDATE SET schedule = excluded.schedule, prompt = excluded.prompt, deliver = excluded.deliver,
       paused = excluded.paused,
       last_instant = CASE WHEN jobs.schedule = excluded.schedule OR jobs.last_instant > excluded.last_instant
                           THEN jobs.last_instant ELSE excluded.last_instant END
     WHERE jobs.owner = excluded.owner
 RETURNING name
"""
_ALL = f"SELECT {_COLUMNS} FROM jobs ORDER BY name"
_OF_OWNER = f"SELECT {_COLUMNS} FROM jobs WHERE owner = :owner AND name > :after ORDER BY name LIMIT :limit"
_FIND = f"SELECT {_COLUMNS} FROM jobs WHERE name = :name"
_REMOVE = "DELETE FROM jobs WHERE name = :name RETURNING name"
# Where the database has a clock of its own, it has the last word on whether an instant has come.
_ADVANCE = """
    UPDATE jobs SET last_instant = :instant WHERE name = :name AND last_instant < :instant AND {come} RETURNING name
"""
_SKIP = """
    UPDATE jobs SET last_instant = :instant WHERE name = :name AND last_instant < :instant
       AND EXISTS (SELECT 1 FROM slots s WHERE s.job = jobs.name AND s.instant = :instant)
 RETURNING name
"""
_REWIND = f"""
    UPDATE jobs SET last_instant = CASE WHEN forgotten > :now THEN forgotten ELSE :now END
     WHERE name = :name AND last_instant = :last_instant AND last_instant > forgotten
 RETURNING {_COLUMNS}
"""
# What has fired keeps its slot, so that it does not fire again.
_UNMISS = "DELETE FROM slots WHERE job = :name AND instant > :last_instant AND turn_id IS NULL"
_SLOT = "INSERT INTO slots (job, instant, turn_id) VALUES (:name, :instant, :turn_id)"
_SLOTS = """
    SELECT s.instant, s.turn_id, t.state FROM slots s LEFT JOIN turns t ON t.id = s.turn_id
     WHERE s.job = :name ORDER BY s.instant DESC LIMIT :limit
"""
_NOTE_FORGOTTEN = """
    UPDATE jobs SET forgotten = (SELECT MAX(s.instant) FROM slots s WHERE s.job = jobs.name AND s.instant <= :before)
     WHERE EXISTS (SELECT 1 FROM slots s WHERE s.job = jobs.name AND s.instant <= :before)
"""


class JobStore:
    """All scheduled work."""

    def __init__(self, database: Database, quota: Quota | None = None) -> None:
        self._database = database
        self._quota = quota

    async def save(self, job: Job) -> None:
        """Add a job, or change it; its past slots stay.

        Raises `Rejected` where the name is another owner's, and `OverQuota` where its owner has as many as they may.
        """
        params: Params = {
            "name": job.name,
            "owner": job.owner,
            "schedule": job.schedule,
            "prompt": job.prompt,
            "deliver": job.deliver,
            "paused": int(job.paused),
            "created_at": job.created_at,
            "last_instant": job.last_instant,
        }
        quota = self._quota if job.owner != LOCAL else None
        if not await self._database.write(lambda: _save(params, quota)):
            raise Rejected(f"the name {job.name!r} is taken; choose another")

    async def list(self) -> list[Job]:
        """Return all jobs by name."""
        return [_job(row) for row in await self._database.read(lambda: _run(_ALL, {}))]

    async def of_owner(self, owner: str, after: str = "", limit: int = 50) -> list[Job]:
        """Return jobs of an owner by name; `after` is the name of the last one seen."""
        params = {"owner": owner, "after": after, "limit": limit}
        return [_job(row) for row in await self._database.read(lambda: _run(_OF_OWNER, params))]

    async def find(self, name: str) -> Job | None:
        """Return the job of a name, of any owner."""
        found = await self._database.read(lambda: _run(_FIND, {"name": name}))
        return _job(found[0]) if found else None

    async def remove(self, name: str) -> bool:
        """Delete a job and its slots; False when there is none of that name."""
        return bool(await self._database.write(lambda: _run(_REMOVE, {"name": name})))

    async def fire(
        self, name: str, instant: int, message: Inbound, turn_id: TurnId, session_id: SessionId, now_ms: int
    ) -> Receipt:
        """Accept the turn of a due instant, with its slot.

        Raises `Stale` when the instant has one already, or has not come by the clock of the database.
        """
        dialect = self._database.dialect
        return await self._database.write(
            lambda: _fire(dialect, name, instant, message, turn_id, session_id, now_ms),
            wakes=lambda receipt: ("turns", f"session:{receipt.session_id}"),
        )

    async def miss(self, name: str, instant: int) -> None:
        """Record that an instant passed unserved.  Raises `Stale` when it has a slot already."""
        dialect = self._database.dialect
        await self._database.write(lambda: _miss(dialect, name, instant))

    async def skip(self, name: str, instant: int) -> None:
        """Go on behind an instant that has its slot from a time when the clock was ahead."""
        await self._database.write(lambda: _run(_SKIP, {"name": name, "instant": instant}))

    async def rewind(self, job: Job, now_ms: int) -> Job:
        """Bring a job back that a clock led into the future: what it missed there is due again, what it fired is not.

        It is brought back no further than its slots go.  A job that was changed meanwhile is returned as it was.
        """
        params = {"name": job.name, "last_instant": job.last_instant, "now": now_ms}
        return await self._database.write(lambda: _rewind(params)) or job

    async def slots(self, name: str, limit: int = 50) -> list[Fired]:
        """Return the newest slots of a job with what became of each."""
        found = await self._database.read(lambda: _run(_SLOTS, {"name": name, "limit": limit}))
        return [
            Fired(instant=instant, turn_id=turn_id, outcome=outcome(_state(turn_id, state)))
            for instant, turn_id, state in found
        ]

    async def forget_slots(self, before: int) -> int:
        """Delete slots older than their retention."""
        await self._database.write(lambda: _note_forgotten(before))
        return await removal.forget(self._database, "slots", ("job", "instant"), "instant <= :before", {"before": before})


def _save(params: Params, quota: Quota | None) -> Transaction[list[Row]]:
    if quota and not (yield Run(_FIND, {"name": params["name"]})):
        yield from quotas.check_job(quota, str(params["owner"]))
    return (yield Run(_ADD, params))


def _fire(
    dialect: Dialect, name: str, instant: int, message: Inbound, turn_id: TurnId, session_id: SessionId, now_ms: int
) -> Transaction[Receipt]:
    yield Lock([("job", name), locks.conversation(message.owner, message.conversation)], alone=True)
    yield from _advance(dialect, name, instant)
    receipt = yield from intake.accept(dialect, message, turn_id, session_id, now_ms)
    # The turn of a job of the same name that was removed may have the key already.
    yield Run(_SLOT, {"name": name, "instant": instant, "turn_id": receipt.turn_id})
    return receipt


def _miss(dialect: Dialect, name: str, instant: int) -> Transaction[None]:
    yield from _advance(dialect, name, instant)
    yield Run(_SLOT, {"name": name, "instant": instant, "turn_id": None})


def _advance(dialect: Dialect, name: str, instant: int) -> Transaction[None]:
    come = "TRUE" if dialect.now_ms is None else f":instant <= {dialect.now_ms} + {STEP_MAX_MS}"
    if not (yield Run(_ADVANCE.format(come=come), {"name": name, "instant": instant})):
        raise Stale(f"job {name} has dealt with {instant} already, or is gone, or the database says that it has not come")


def _rewind(params: Params) -> Transaction[Job | None]:
    rewound = [_job(row) for row in (yield Run(_REWIND, params))]
    if rewound:
        yield Run(_UNMISS, {"name": rewound[0].name, "last_instant": rewound[0].last_instant})
    return rewound[0] if rewound else None


def _note_forgotten(before: int) -> Transaction[None]:
    yield Run(_NOTE_FORGOTTEN, {"before": before})


def _state(turn_id: TurnId | None, state: str | None) -> TurnState | None:
    # A turn that retention pruned was settled long ago; only a slot without one was missed.
    return TurnState(state) if state else TurnState.COMPLETED if turn_id else None


def _run(sql: str, params: Params) -> Transaction[list[Row]]:
    return (yield Run(sql, params))


_job = rows.reader(Job, _COLUMNS, paused=bool)
