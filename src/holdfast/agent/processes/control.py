"""What a person may do about background commands: look at what they print, and end them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast.agent.processes.folder import Condition, Phase, readable, whole
from holdfast.agent.processes.keeping import Keeping
from holdfast.core.processes import Process, ProcessState
from holdfast.ids import ProcessId
from holdfast.ports import Output
from holdfast.store.processes import ProcessStore


@dataclass(frozen=True, slots=True)
class Control:
    """The background commands of this home."""

    processes: ProcessStore
    keeping: Keeping

    async def output(self, process_id: ProcessId, after: int, limit: int, *, colours: bool = False) -> Output:
        """Return what was written after a byte, `limit` bytes at most.  Raises `Rejected` where it is kept elsewhere."""
        piece = self.keeping.folder(await self.processes.get(process_id)).read(after, limit)
        data = whole(piece.data) or piece.data
        text = self.keeping.redaction.text(readable(data, colours=colours))
        return Output(text=text, begin=piece.start, end=piece.start + len(data))

    async def kill(self, process_id: ProcessId) -> Process:
        """End a process with everything it started, and return what became of it.  One that has ended stays as it is."""
        process = await self.processes.get(process_id)
        if process.state is not ProcessState.RUNNING:
            return process
        return after(process, await self.keeping.kill(process))


def after(process: Process, condition: Condition) -> Process:
    """Return a process as its folder shows it, which may be a moment ahead of its row."""
    if process.state is not ProcessState.RUNNING or condition.phase is not Phase.ENDED:
        return process
    return replace(process, state=ProcessState.EXITED, exit_code=condition.exit_code, ended_at=condition.ended_at)
