"""Background commands of one owner."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.core.processes import Process, ProcessState
from holdfast.desk import cursors
from holdfast.desk.port import OUTPUT_MAX
from holdfast.desk.views import Page, ProcessView
from holdfast.errors import NotFound, Rejected
from holdfast.ids import ProcessId, SessionId
from holdfast.ports import Output, ProcessControl
from holdfast.store.store import Store


class NoProcesses:
    """The control of a gateway that keeps no background commands."""

    async def output(
        self,
        process_id: ProcessId,
        after: int,  # noqa: ARG002 - The shape of the port.
        limit: int,  # noqa: ARG002
        *,
        colours: bool = False,  # noqa: ARG002
    ) -> Output:
        raise Rejected(f"the output of {process_id} is not kept here")

    async def kill(self, process_id: ProcessId) -> Process:
        raise Rejected(f"{process_id} does not run here")


@dataclass(frozen=True, slots=True)
class StoreProcesses:
    """What the store knows of them."""

    store: Store
    owner: str

    async def list(
        self,
        *,
        session_id: SessionId | None = None,
        state: ProcessState | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[ProcessView]:
        before, limit = cursors.position(cursor), cursors.size(limit)
        last = ProcessId(before[1]) if before else None
        found = await self.store.processes.list(self.owner, session_id, state, last, limit)
        more = cursors.after((found[-1].started_at, found[-1].id)) if len(found) == limit else None
        return Page(items=[ProcessView.of(each) for each in found], next_cursor=more)

    async def get(self, process_id: ProcessId) -> ProcessView:
        found = await self.store.processes.get(process_id)
        if found.owner != self.owner:
            raise NotFound(f"there is no process {process_id}")
        return ProcessView.of(found)


@dataclass(frozen=True, slots=True)
class LocalProcesses(StoreProcesses):
    """The same, with the commands themselves within reach."""

    control: ProcessControl

    async def output(
        self, process_id: ProcessId, after: int = 0, limit: int = OUTPUT_MAX, *, colours: bool = False
    ) -> Output:
        await self.get(process_id)
        return await self.control.output(process_id, max(after, 0), max(1, min(limit, OUTPUT_MAX)), colours=colours)

    async def kill(self, process_id: ProcessId) -> ProcessView:
        await self.get(process_id)
        return ProcessView.of(await self.control.kill(process_id))
