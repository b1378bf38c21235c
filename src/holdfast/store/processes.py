"""Background commands, which outlive the process that started them and are found again by their home."""

from __future__ import annotations

from holdfast.core.processes import Process, ProcessEvent, ProcessState
from holdfast.errors import NotFound
from holdfast.ids import ProcessId, SessionId
from holdfast.store import rows
from holdfast.store.database import Database, Params, Row, Run, Transaction

_PROCESS = (
    "id, session_id, turn_id, owner, home, command, workdir, started_at, pid, born, state, exit_code, ended_at, notifies, "
    "patterns, watched, reply_to"
)
_ADD = """
    INSERT INTO processes
        (id, session_id, turn_id, owner, home, command, workdir, started_at, pid, born, notifies, patterns, watched,
         reply_to)
    VALUES (:id, :session_id, :turn_id, :owner, :home, :command, :workdir, :started_at, :pid, :born, :notifies, :patterns,
            :watched, :reply_to)
"""
_BEGAN = "UPDATE processes SET pid = :pid, born = :born WHERE id = :id RETURNING id"
# Two who look at the same output cannot make it unseen again.
_WATCHED = "UPDATE processes SET watched = :position WHERE id = :id AND watched < :position"
_END = """
    UPDATE processes SET state = :state, exit_code = :exit_code, ended_at = :now WHERE id = :id AND state = 'running'
 RETURNING id
"""
_GET = f"SELECT {_PROCESS} FROM processes WHERE id = :id"
_RUNNING = f"SELECT {_PROCESS} FROM processes WHERE home = :home AND state = 'running' ORDER BY id"
_LIST = f"""
    SELECT {_PROCESS} FROM processes
     WHERE owner = :owner AND (CAST(:before_id AS TEXT) = '' OR id < :before_id)
       AND (CAST(:state AS TEXT) = '' OR state = :state)
     ORDER BY id DESC LIMIT :limit
"""
_LIST_OF_SESSION = f"""
    SELECT {_PROCESS} FROM processes
     WHERE session_id = :session_id AND owner = :owner AND (CAST(:before_id AS TEXT) = '' OR id < :before_id)
       AND (CAST(:state AS TEXT) = '' OR state = :state)
     ORDER BY id DESC LIMIT :limit
"""
_REMOVE = "DELETE FROM processes WHERE id = :id RETURNING id"


class ProcessStore:
    """Every background command whose session is kept."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, process: Process) -> None:
        """Remember a process before it is started, so that none runs unknown."""
        await self._database.write(lambda: _run(_ADD, _params(process)))

    async def began(self, process_id: ProcessId, pid: int, born: int) -> None:
        """Record under which pid a process runs.  Raises `NotFound`."""
        if not await self._database.write(lambda: _run(_BEGAN, {"id": process_id, "pid": pid, "born": born})):
            raise _missing(process_id)

    async def watched(self, process_id: ProcessId, position: int) -> None:
        """Record how far the output was looked at; it never goes back."""
        await self._database.write(lambda: _run(_WATCHED, {"id": process_id, "position": position}))

    async def end(self, process_id: ProcessId, event: ProcessEvent, exit_code: int | None, now_ms: int) -> Process:
        """Record how a process ended, unless that is recorded already; returns what is recorded.  Raises `NotFound`."""
        return await self._database.write(lambda: _end(process_id, event, exit_code, now_ms), essential=True)

    async def get(self, process_id: ProcessId) -> Process:
        """Return one process.  Raises `NotFound`."""
        return await self._database.read(lambda: _get(process_id))

    async def running(self, home: str) -> list[Process]:
        """Return what the gateway of a home has to look after, the oldest first."""
        return await self._database.read(lambda: _list(_RUNNING, {"home": home}))

    async def list(
        self,
        owner: str,
        session_id: SessionId | None = None,
        state: ProcessState | None = None,
        before: ProcessId | None = None,
        limit: int = 50,
    ) -> list[Process]:
        """Return processes, the newest first; `before` is the last one seen."""
        params: Params = {
            "owner": owner, "state": state.value if state else "", "before_id": before or "", "limit": limit
        }  # fmt: skip
        if session_id is not None:
            return await self._database.read(lambda: _list(_LIST_OF_SESSION, {**params, "session_id": session_id}))
        return await self._database.read(lambda: _list(_LIST, params))

    async def remove(self, process_id: ProcessId) -> bool:
        """Delete a process; False when there is none."""
        return bool(await self._database.write(lambda: _run(_REMOVE, {"id": process_id})))


def _end(process_id: ProcessId, event: ProcessEvent, exit_code: int | None, now_ms: int) -> Transaction[Process]:
    process = yield from _get(process_id)
    if process.state is ProcessState.RUNNING:
        ended = process.on(event).state.value
        # On a shared database another may be faster: then theirs stands.
        yield Run(_END, {"id": process_id, "state": ended, "exit_code": exit_code, "now": now_ms})
    return (yield from _get(process_id))


def _get(process_id: ProcessId) -> Transaction[Process]:
    found = yield from _list(_GET, {"id": process_id})
    if not found:
        raise _missing(process_id)
    return found[0]


def _missing(process_id: ProcessId) -> NotFound:
    return NotFound(f"there is no process {process_id}")


def _list(sql: str, params: Params) -> Transaction[list[Process]]:
    found = yield Run(sql, params)
    return [_process(row) for row in found]


def _run(sql: str, params: Params) -> Transaction[list[Row]]:
    return (yield Run(sql, params))


def _params(process: Process) -> Params:
    return {
        "id": process.id,
        "session_id": process.session_id,
        "turn_id": process.turn_id,
        "owner": process.owner,
        "home": process.home,
        "command": process.command,
        "workdir": process.workdir,
        "started_at": process.started_at,
        "pid": process.pid,
        "born": process.born,
        "notifies": int(process.notifies),
        "patterns": rows.encode(list(process.patterns)),
        "watched": process.watched,
        "reply_to": process.reply_to,
    }


_process = rows.reader(Process, _PROCESS, notifies=bool, patterns=rows.texts)
