"""What a person may do with background commands: read their output, and end them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast.agent.processes.background import BackgroundProcesses
from holdfast.agent.processes.folder import Condition, ProcessPhase, readable, whole
from holdfast.core.processes import Process, ProcessState
from holdfast.ids import ProcessId
from holdfast.ports import Output
from holdfast.store.processes import ProcessStore


@dataclass(frozen=True, slots=True)
class Control:
    """The background commands of this home."""

    processes: ProcessStore
    background: BackgroundProcesses

    async def output(self, process_id: ProcessId, after: int, limit: int, *, colours: bool = False) -> Output:
        """Return up to `limit` bytes of output after a position.  Raises `Rejected` if another home holds it."""
        piece = self.background.folder(await self.processes.get(process_id)).read(after, limit)
        data = whole(piece.data) or piece.data
        text = self.background.redaction.text(readable(data, colours=colours))
        return Output(text=text, begin=piece.start, end=piece.start + len(data))

    async def kill(self, process_id: ProcessId) -> Process:
        """End a process with everything it started, and return it.  A process that has already ended is unchanged."""
        process = await self.processes.get(process_id)
        if process.state is not ProcessState.RUNNING:
            return process
        return after(process, await self.background.kill(process))


def after(process: Process, condition: Condition) -> Process:
    """Return a process updated from its folder, which may be a moment ahead of its row."""
    if process.state is not ProcessState.RUNNING or condition.phase is not ProcessPhase.ENDED:
        return process
    return replace(process, state=ProcessState.EXITED, exit_code=condition.exit_code, ended_at=condition.ended_at)
