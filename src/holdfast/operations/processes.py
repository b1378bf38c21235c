"""Processes: commands that run in the background, beside the conversations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from holdfast.core.processes import Process, ProcessState
from holdfast.errors import NotFound
from holdfast.ids import ProcessId, SessionId, TurnId
from holdfast.operations import pages
from holdfast.operations.caller import Caller
from holdfast.operations.operation import Query, operation
from holdfast.operations.pages import Cursor, Limit, OfSession, Page
from holdfast.operations.projection import project
from holdfast.ports import Output

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.ports import ProcessControl
    from holdfast.store.store import Store

OUTPUT_MAX = 64 * 1024
POSITION_MAX = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """A background command as it is shown."""

    id: ProcessId
    session_id: SessionId
    turn_id: TurnId
    command: str
    workdir: str
    state: ProcessState
    pid: int
    exit_code: int | None
    started_at: int
    ended_at: int | None
    notifies: bool
    patterns: Sequence[str]

    @classmethod
    def of(cls, process: Process) -> ProcessView:
        return project(cls, process)


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """The background commands of the caller."""

    store: Store
    caller: Caller
    control: ProcessControl

    @operation("GET /api/processes", "List background commands", offline=True)
    async def list(
        self,
        *,
        session_id: OfSession = None,
        state: Annotated[ProcessState | None, Query("Only those in this state.")] = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[ProcessView]:
        """Return processes, the newest first."""
        before, limit = pages.position(cursor), pages.size(limit)
        last = ProcessId(before[1]) if before else None
        found = await self.store.processes.list(self.caller.owner, session_id, state, last, limit)
        more = pages.after((found[-1].started_at, found[-1].id)) if len(found) == limit else None
        return Page(items=[ProcessView.of(each) for each in found], next_cursor=more)

    @operation("GET /api/processes/{id}", "Show a background command", offline=True)
    async def get(self, process_id: ProcessId) -> ProcessView:
        found = await self.store.processes.get(process_id)
        if found.owner != self.caller.owner:
            raise NotFound(f"there is no process {process_id}")
        return ProcessView.of(found)

    @operation("GET /api/processes/{id}/log", "Read what a background command has written")
    async def output(
        self,
        process_id: ProcessId,
        after: Annotated[int, Query("Go on behind this one.", most=POSITION_MAX)] = 0,
        limit: Annotated[int, Query("How many at most.", least=1, most=OUTPUT_MAX)] = OUTPUT_MAX,
        *,
        colours: Annotated[bool, Query("Leave the escape sequences in the text that say colours.")] = False,
    ) -> Output:
        await self.get(process_id)
        return await self.control.output(process_id, max(after, 0), max(1, min(limit, OUTPUT_MAX)), colours=colours)

    @operation("POST /api/processes/{id}/kill", "End a background command")
    async def kill(self, process_id: ProcessId) -> ProcessView:
        await self.get(process_id)
        return ProcessView.of(await self.control.kill(process_id))
