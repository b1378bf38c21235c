"""The `delegate_task` tool: tasks run in parallel child sessions, and survive a crash of the turn that waits for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, TypeVar

import msgspec

from holdfast.agent.toolbox import shortened
from holdfast.agent.tools.port import CallContext, StructTool
from holdfast.config import DelegateConfig
from holdfast.core.delegation import DelegatedTask, child_message, depth, told
from holdfast.core.effects import Effect
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.sessions import Session
from holdfast.core.turns import SETTLED, Turn, TurnState
from holdfast.errors import NotFound, Rejected, Unavailable
from holdfast.store.store import Store

log = logging.getLogger(__name__)

T = TypeVar("T")

NAME = "delegate_task"
GOAL_MAX_CHARS = 4_000
CONTEXT_MAX_CHARS = 20_000
ANSWERS_MAX_CHARS = 45_000
# A hint that a child has ended may be lost, so the children are also polled this often.
LOOK_S = 2.0
# Shorter than the timeout of the call, so that the known answers can still be returned.
WAIT_MAX_S = 3_300.0
WAITS = "A helper (session {session}) waits for your word. {text}\n\nTo answer: `holdfast approvals list`."
NOTE = (
    "Note: background was not possible, because nothing can reach this conversation after its answer; "
    "the tasks were done now instead."
)


class TaskArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    goal: Annotated[
        str, msgspec.Meta(description="What is to be achieved, in full.", min_length=1, max_length=GOAL_MAX_CHARS)
    ]
    context: Annotated[
        str,
        msgspec.Meta(
            description="What has to be known for it: the task starts with nothing else.", max_length=CONTEXT_MAX_CHARS
        ),
    ] = ""


class DelegateArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    goal: Annotated[str, msgspec.Meta(description="The one task, in full.", max_length=GOAL_MAX_CHARS)] = ""
    context: Annotated[str, msgspec.Meta(description="What has to be known for it.", max_length=CONTEXT_MAX_CHARS)] = ""
    tasks: Annotated[list[TaskArgs], msgspec.Meta(description="Several tasks at once, instead of one goal.")] = []
    background: Annotated[
        bool, msgspec.Meta(description="Do not wait: the result arrives later as a new message, where that is possible.")
    ] = False


def may_delegate(config: DelegateConfig) -> Callable[[Session], bool]:
    """Return the condition under which a session may delegate: its depth of delegation is below the limit."""
    return lambda session: depth(session) < config.depth_max


def delegate_tool(
    store: Store,
    accept: Callable[[Inbound], Awaitable[Receipt]],
    config: DelegateConfig,
    look_s: float = LOOK_S,
    wait_max_s: float = WAIT_MAX_S,
) -> StructTool[DelegateArgs]:
    """Return the tool.  It creates child sessions by accepting messages, as a channel does."""
    delegation = _Delegation(store, accept, config, look_s, wait_max_s)
    return StructTool(
        name=NAME,
        description=(
            "Hand a task, or several at once, to helpers that work in sessions of their own with the same tools, and read "
            "their answers. They know nothing of this conversation but what you tell them. "
            f"{config.children_max} at once at most."
        ),
        args=DelegateArgs,
        effect=Effect.KEYED,
        action=delegation.run,
    )


class _Delegation:
    """Starts child sessions and collects their answers."""

    def __init__(
        self,
        store: Store,
        accept: Callable[[Inbound], Awaitable[Receipt]],
        config: DelegateConfig,
        look_s: float,
        wait_max_s: float,
    ) -> None:
        self._store = store
        self._accept = accept
        self._config = config
        self._look_s = look_s
        self._wait_max_s = wait_max_s
        # Parallel calls of one turn count their children one at a time, so that together they keep the limit.
        self._counting = asyncio.Lock()

    async def run(self, args: DelegateArgs, context: CallContext) -> str:
        if not may_delegate(self._config)(context.session):
            raise Rejected("this task was handed on often enough; do it yourself")
        tasks = _tasks(args)
        later = args.background and context.delivers_later
        receipts = await self._send(await self._messages(tasks, context, later=later), context)
        if later:
            return _handles(tasks, receipts)
        # A cancellation here means that the gateway stops, or that the turn was cancelled with its children.
        async with context.rest():
            children = await self._settled(receipts, context)
        answers = await self._report(tasks, receipts, children)
        return f"{NOTE}\n\n{answers}" if args.background else answers

    async def _messages(self, tasks: Sequence[DelegatedTask], context: CallContext, *, later: bool) -> list[Inbound]:
        """Return the messages that make the children.

        What an attempt knows of private reading may differ from what an earlier one knew; its children are found anyway.
        """
        knows, other = (
            [
                child_message(task, context.session, context.turn, context.key, number, later=later, private=private)
                for number, task in enumerate(tasks, 1)
            ]
            for private in (bool(context.private), not context.private)
        )
        return other if await self._is_known(other[0]) else knows

    async def _is_known(self, sent: Inbound) -> bool:
        return bool(await self._patiently(lambda: self._store.sessions.of_key(sent.owner, sent.conversation, limit=1)))

    async def _send(self, messages: Sequence[Inbound], context: CallContext) -> list[Receipt]:
        """Accept every child; one that an earlier attempt of the same call had accepted is found again."""
        async with self._counting:
            most = self._config.children_max
            if not await self._is_known(messages[0]):
                others = len(await self._patiently(lambda: self._store.turns.at_work_for(context.turn.id)))
                if len(messages) + others > most:
                    at_work = f" and {others} are at work for you already" if others else ""
                    raise Rejected(f"{len(messages)} tasks are too many: {most} at once are allowed{at_work}")
            return [await self._patiently(lambda each=each: self._accept(each)) for each in messages]

    async def _settled(self, receipts: Sequence[Receipt], context: CallContext) -> list[Turn | None]:
        """Return the children once all have settled or the time is up; None for a deleted one."""
        told_of: set[str] = set()
        changed = asyncio.Event()
        topics = {f"session:{receipt.session_id}" for receipt in receipts}
        deaf = self._store.wakes.listen(lambda topic: changed.set() if topic in topics else None)
        try:
            async with asyncio.timeout(self._wait_max_s):
                while True:
                    changed.clear()
                    if _are_settled(found := await self._patiently(lambda: self._look(receipts))):
                        return found
                    await self._speak_up(found, context, told_of)
                    try:
                        async with asyncio.timeout(self._look_s):
                            await changed.wait()
                    except TimeoutError:
                        continue
        except TimeoutError:
            return await self._patiently(lambda: self._look(receipts))
        finally:
            deaf()

    async def _speak_up(self, children: Sequence[Turn | None], context: CallContext, told_of: set[str]) -> None:
        """Tell the person once what a child asks: its own session has no reader."""
        for child in children:
            if child is None or child.state is not TurnState.WAITING:
                continue
            for asked in await self._patiently(lambda child=child: self._store.questions.of_turn(child.id)):
                if asked.answered_at is None and f"{child.id}:{asked.question.id}" not in told_of:
                    told_of.add(f"{child.id}:{asked.question.id}")
                    await context.note(WAITS.format(session=child.session_id, text=asked.question.text))

    async def _look(self, receipts: Sequence[Receipt]) -> list[Turn | None]:
        found: list[Turn | None] = []
        for receipt in receipts:
            try:
                found.append(await self._store.turns.get(receipt.turn_id))
            except NotFound:
                found.append(None)
        return found

    async def _report(
        self, tasks: Sequence[DelegatedTask], receipts: Sequence[Receipt], children: Sequence[Turn | None]
    ) -> str:
        share = ANSWERS_MAX_CHARS // len(tasks)
        told_of: list[str] = []
        for number, (task, receipt, child) in enumerate(zip(tasks, receipts, children, strict=True), 1):
            head = f"Task {number} (session {receipt.session_id}): {_title(task)}"
            told_of.append(f"{head}\n{shortened(await self._told(child), share)}")
        return "\n\n".join(told_of)

    async def _told(self, child: Turn | None) -> str:
        if child is None:
            return "Its session was deleted; there is no answer."
        if child.state not in SETTLED:
            return f"It is still {child.state} after {self._wait_max_s:g} s; look at its session later."
        return told(child, await self._patiently(lambda: self._store.journal.read_turn(child.id)))

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Retry until the store is available: giving up would leave the children without a reader."""
        while True:
            try:
                return await ask()
            except Unavailable as error:
                log.warning("a delegated task has to wait: %s", error)
                await asyncio.sleep(self._look_s)


def _tasks(args: DelegateArgs) -> list[DelegatedTask]:
    if bool(args.goal.strip()) == bool(args.tasks):
        raise Rejected("give either one goal or a list of tasks")
    if args.tasks:
        return [DelegatedTask(goal=each.goal, context=each.context or args.context) for each in args.tasks]
    return [DelegatedTask(goal=args.goal, context=args.context)]


def _are_settled(children: Sequence[Turn | None]) -> bool:
    return all(child is None or child.state in SETTLED for child in children)


def _handles(tasks: Sequence[DelegatedTask], receipts: Sequence[Receipt]) -> str:
    lines = (
        f"{number}. {_title(task)}: turn {receipt.turn_id} in session {receipt.session_id}"
        for number, (task, receipt) in enumerate(zip(tasks, receipts, strict=True), 1)
    )
    return "\n".join(
        ("At work in the background; each result arrives by itself as a new message. Do not wait for it.", *lines)
    )


def _title(task: DelegatedTask) -> str:
    return task.goal.partition("\n")[0][:100]
