"""The `process` tool, for the background processes of a conversation."""

from __future__ import annotations

import json
from typing import Annotated, Literal, assert_never

import msgspec

from holdfast.agent.processes import notices
from holdfast.agent.processes.background import BackgroundProcesses
from holdfast.agent.processes.control import after
from holdfast.agent.processes.folder import Condition, Piece, ProcessPhase, readable, whole
from holdfast.agent.tools.port import CallContext, StructTool
from holdfast.clock import Clock, SystemClock
from holdfast.core.effects import Effect
from holdfast.core.processes import Process, ProcessState
from holdfast.core.questions import ONCE_CHOICES, About, Question, fingerprint
from holdfast.core.turns import Mode
from holdfast.errors import NotFound, Rejected
from holdfast.ids import ProcessId
from holdfast.store.processes import ProcessStore
from holdfast.store.sessions import SessionStore

NAME = "process"
LIST_MAX = 50
APPROVAL_EXPIRES_MS = 24 * 3_600_000
READ_DEFAULT_BYTES = 8_000
READ_MAX_BYTES = 40_000
WAIT_DEFAULT_S = 60
WAIT_MAX_S = 1_800
WRITE_MAX_CHARS = 60_000

Approval = Literal["ask", "smart", "deny", "allow"]
Position = Annotated[int, msgspec.Meta(ge=0)]

_DESCRIPTION = """Look after processes that were started with terminal(background=true) in this conversation.

list: all of them. poll: state, and output from `position` on; pass the returned position the next time. log: the end of \
the output, or from `position` on. wait: until it ends, at most `timeout` seconds. write: send `text` to its input (end a \
line with \\n). close: end its input. kill: end it with everything it started."""


class ProcessArgs(msgspec.Struct):
    """What the model may choose."""

    action: Literal["list", "poll", "log", "wait", "kill", "write", "close"]
    process_id: Annotated[str, msgspec.Meta(description="For every action but list.")] = ""
    position: Annotated[Position | None, msgspec.Meta(description="For poll and log: from which byte of output on.")] = None
    limit: Annotated[int, msgspec.Meta(description="For poll and log: how many bytes at most.", ge=1)] = READ_DEFAULT_BYTES
    timeout: Annotated[float, msgspec.Meta(description=f"For wait: seconds, {WAIT_MAX_S} at most.", ge=0)] = WAIT_DEFAULT_S
    text: Annotated[str, msgspec.Meta(description="For write.")] = ""


class ProcessTool:
    """Gives a conversation access to its own background processes."""

    def __init__(
        self,
        processes: ProcessStore,
        sessions: SessionStore,
        background: BackgroundProcesses,
        *,
        confines: bool = False,
        approval: Approval = "ask",
        clock: Clock | None = None,
    ) -> None:
        self._processes = processes
        self._sessions = sessions
        self._background = background
        self._confines = confines
        self._approval = approval
        self._clock = clock or SystemClock()

    def tool(self) -> StructTool[ProcessArgs]:
        return StructTool(
            name=NAME,
            description=_DESCRIPTION,
            args=ProcessArgs,
            effect=Effect.EFFECTFUL,
            action=self.run,
            asks=self.question,
            reads_private=lambda _args: not self._confines,
        )

    async def question(self, args: ProcessArgs, context: CallContext) -> Question | None:
        """Return the question before text is typed into a process: in a shell or a pager, it is a command like any other."""
        if args.action != "write" or self._confines or self._approval == "allow":
            return None
        process = await self._own(args.process_id, context)
        if self._approval == "deny" or context.turn.mode is Mode.SYNCHRONOUS:
            raise Rejected(
                "typing into a command that no sandbox confines needs a person's approval, and nobody can be asked here"
            )
        bound = fingerprint(tool=NAME, process=process.id, text=args.text)
        return Question(
            id=f"approve:{context.call_id}:{bound[:16]}",
            text=f"May I type this into the running command {notices.short(process.command)!r}?\n\n    {args.text}",
            about=About.APPROVAL,
            choices=ONCE_CHOICES,
            fingerprint=bound,
            expires_at=self._clock.now_ms() + APPROVAL_EXPIRES_MS,
            detail={"text": args.text, "process": process.id},
        )

    async def run(self, args: ProcessArgs, context: CallContext) -> str:
        """Run an action and return its result as JSON."""
        if args.action == "list":
            return json.dumps(await self._list(context), ensure_ascii=False)
        process = await self._own(args.process_id, context)
        match args.action:
            case "poll":
                answer = self._poll(process, args.position or 0, args.limit)
            case "log":
                answer = self._log(process, args.position, args.limit)
            case "wait":
                answer = await self._wait(process, args, context)
            case "kill":
                answer = await self._kill(process)
            case "write":
                answer = await self._write(process, args.text)
            case "close":
                answer = self._close(process)
            case _:
                assert_never(args.action)
        return json.dumps(answer, ensure_ascii=False)

    async def _own(self, process_id: str, context: CallContext) -> Process:
        """Return a process of this conversation, possibly from an earlier session of it."""
        missing = NotFound(f"this conversation has no process {process_id!r}; see process(action='list')")
        try:
            process = await self._processes.get(ProcessId(process_id))
        except NotFound:
            raise missing from None
        if process.session_id == context.session.id:
            return process
        session = context.session
        if process.owner != session.owner or (await self._sessions.get(process.session_id)).key != session.key:
            raise missing
        return process

    async def _list(self, context: CallContext) -> dict[str, object]:
        found = await self._processes.list(context.session.owner, context.session.id, limit=LIST_MAX)
        return {"processes": [self._summary(each) for each in found]}

    def _summary(self, process: Process) -> dict[str, object]:
        current = after(process, self._condition(process))
        return {
            "process_id": process.id,
            "command": notices.short(process.command),
            "pid": process.pid,
            "state": current.state.value,
            "exit_code": current.exit_code,
            "notify_on_complete": process.notifies,
            "watch_patterns": [*process.patterns],
        }

    def _condition(self, process: Process) -> Condition:
        """Return the condition of a process; lost if its folder is on another machine or gone."""
        if process.home != self._background.home_id:
            return Condition(phase=ProcessPhase.LOST)
        return self._background.condition(process)

    def _state(self, process: Process) -> dict[str, object]:
        condition = self._background.condition(process)
        current = after(process, condition)
        if current.state is ProcessState.RUNNING and condition.phase is ProcessPhase.LOST:
            return {"process_id": process.id, "state": ProcessState.LOST.value, "outcome": notices.outcome(condition)}
        found: dict[str, object] = {"process_id": process.id, "state": current.state.value}
        if current.state is not ProcessState.RUNNING:
            found |= {"exit_code": current.exit_code, "outcome": notices.outcome(condition)}
        return found

    def _poll(self, process: Process, position: int, limit: int) -> dict[str, object]:
        # The state first: when it shows the end, the output is complete.
        state = self._state(process)
        return {**state, **_shown(self._background.folder(process).read(position, min(limit, READ_MAX_BYTES)))}

    def _log(self, process: Process, position: int | None, limit: int) -> dict[str, object]:
        folder, limit = self._background.folder(process), min(limit, READ_MAX_BYTES)
        state = self._state(process)
        piece = folder.tail(limit) if position is None else folder.read(position, limit)
        return {**state, **_shown(piece), "output_bytes": folder.size()}

    async def _wait(self, process: Process, args: ProcessArgs, context: CallContext) -> dict[str, object]:
        if args.timeout > WAIT_MAX_S:
            raise Rejected(f"timeout is {WAIT_MAX_S} s at most; wait again, or have yourself told with notify_on_complete")
        async with context.rest():
            condition = await self._background.wait(process, args.timeout)
        answer = {**self._state(process), **_shown(self._background.folder(process).tail(min(args.limit, READ_MAX_BYTES)))}
        if condition.phase in (ProcessPhase.RUNNING, ProcessPhase.WAITING):
            answer["timed_out"] = f"it still runs after {args.timeout:g} s of waiting"
        return answer

    async def _kill(self, process: Process) -> dict[str, object]:
        if process.state is ProcessState.RUNNING:
            await self._background.kill(process)
        return self._state(process)

    async def _write(self, process: Process, text: str) -> dict[str, object]:
        if not text:
            raise Rejected("write needs a text; to end the input use process(action='close')")
        if len(text) > WRITE_MAX_CHARS:
            raise Rejected(f"write takes at most {WRITE_MAX_CHARS} characters at once; write the rest afterwards")
        data = text.encode("utf-8", "replace")
        written = await self._background.type(process, data)
        answer: dict[str, object] = {**self._state(process), "bytes_written": written}
        if written < len(data):
            answer["note"] = "it does not read its input fast enough; only the first bytes were taken"
        return answer

    def _close(self, process: Process) -> dict[str, object]:
        closed = self._background.close_input(process)
        return {**self._state(process), "input": "closed" if closed else "no longer read"}


def _shown(piece: Piece) -> dict[str, object]:
    data = whole(piece.data) or piece.data
    found: dict[str, object] = {"output": readable(data), "position": piece.start + len(data)}
    if piece.dropped:
        found["dropped_bytes"] = piece.dropped
    return found
