"""The tool calls of a running turn: approved first, started in parallel, and never started twice undecided."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import msgspec
from msgspec import UNSET

from holdfast.clock import Clock
from holdfast.core import effects, questions
from holdfast.core.effects import Call
from holdfast.core.events import ApprovalAsked, ToolFinished, ToolStarted
from holdfast.core.journal import DraftEntry
from holdfast.core.questions import About, Decision, Question
from holdfast.core.redaction import Redaction
from holdfast.core.turns import Turn
from holdfast.engine.persistence import persist
from holdfast.errors import HoldfastError, OutcomeUnknown
from holdfast.ids import CallId
from holdfast.ports import StageTool, Use
from holdfast.store.questions import QuestionStore

log = logging.getLogger(__name__)

Moves = Sequence[tuple[Call, Call]]
Record = Callable[[Sequence[DraftEntry], Moves], Awaitable[None]]

# This many calls of one step run at once; the others wait for them.
SIDE_BY_SIDE_MAX = 8

DENIED = "Not run: denied by the person. Do not try to reach the same end in another way; ask, or go on without it."
UNANSWERED = "Not run: nobody answered in time. Go on without it, and say so."


class Parked(Exception):
    """The agent asked a person; the turn is put away until they answer, with the calls that must not be forgotten."""

    def __init__(self, draft: DraftEntry, question: Question, calls: Moves = ()) -> None:
        super().__init__("waiting for an answer")
        self.draft = draft
        self.question = question
        self.calls = calls


class Calls:
    """What became of the calls of one turn, in all its attempts; `answers` are a person's, by the id of the question."""

    def __init__(
        self,
        turn: Turn,
        *,
        owner: str,
        questions: QuestionStore,
        redaction: Redaction,
        clock: Clock,
        record: Record,
        calls: Sequence[Call] = (),
        answers: Mapping[str, str] | None = None,
    ) -> None:
        self._turn = turn
        self._owner = owner
        self._questions = questions
        self._redaction = redaction
        self._clock = clock
        self._record = record
        self._calls = {call.id: call for call in calls}
        self._answers = answers or {}

    async def make(self, uses: Sequence[Use]) -> list[Call]:
        """Make calls in parallel.  Raises `Parked` before any of them starts, where a person must be asked first."""
        planned = [(use, self._known(use)) for use in uses]
        judged = [(use, call, await self._judged(use, call)) for use, call in planned if call.state not in effects.ENDED]
        for use, call, verdict in judged:
            if isinstance(verdict, Question):
                moves = [(each, _awaiting(each) if each is call else each) for _, each, _ in judged]
                raise Parked(self._asking(verdict, use, call), self._shown(verdict), moves)
        await self._close([(call, verdict) for _, call, verdict in judged if isinstance(verdict, Call)])
        allowed = [(use, call) for use, call, verdict in judged if verdict is None]
        # An approved call goes first, and alone, so that no other call can change what the approval was bound to.
        for each in allowed:
            if each[0].question:
                await self._run_all([each])
        free = [each for each in allowed if not each[0].question]
        for first in range(0, len(free), SIDE_BY_SIDE_MAX):
            await self._run_all(free[first : first + SIDE_BY_SIDE_MAX])
        return [self._calls[use.call_id] for use in uses]

    def answer(self, question: Question) -> str:
        """Return the answer to a question that belongs to no call.  Raises `Parked` while there is none."""
        if (answer := self._answers.get(question.id)) is not None:
            return answer
        raise Parked(self._asking(question), self._shown(question))

    async def _judged(self, use: Use, call: Call) -> Question | Call | None:
        """Return what must be asked before a call starts, the call as a person has ended it, or None when it is free."""
        question = _bound(use.question, call) if use.question else None
        answer = self._answer_about(call, question)
        if answer is None:
            return None if question is None or await self._is_granted(question) else question
        if answer == questions.EXPIRED:
            return replace(_awaiting(call).on(effects.CallEvent.DENY), result=UNANSWERED)
        if question is not None and question.about is About.ANSWER:
            return replace(call.on(effects.CallEvent.START).on(effects.CallEvent.SUCCEED), result=answer)
        if questions.decide(answer) is Decision.DENY:
            words = f" They said: {reason}" if (reason := questions.reason(answer)) else ""
            return replace(_awaiting(call).on(effects.CallEvent.DENY), result=f"{DENIED}{words}")
        return None

    def _answer_about(self, call: Call, question: Question | None) -> str | None:
        if question is not None:
            return self._answers.get(question.id)
        # The tool may ask nothing this time; what the person has said about this call still counts.
        said = [answer for asked, answer in self._answers.items() if _is_about(asked, call)]
        return said[-1] if said else None

    async def _is_granted(self, question: Question) -> bool:
        if question.about is not About.APPROVAL or not question.fingerprint:
            return False
        for each in question.fingerprint.split():
            if not await self._has_grant(each):
                return False
        return True

    async def _has_grant(self, fingerprint: str) -> bool:
        session_id = self._turn.session_id
        return await persist(self._clock, lambda: self._questions.is_granted(self._owner, session_id, fingerprint))

    def _shown(self, question: Question) -> Question:
        """Return a question as it may be stored."""
        detail = cast("Mapping[str, object]", self._redaction.value(question.detail))
        return replace(question, text=self._redaction.text(question.text), detail=detail)

    def _asking(self, question: Question, use: Use | None = None, call: Call | None = None) -> DraftEntry:
        shown = self._shown(question)
        asked = ApprovalAsked(
            question_id=shown.id,
            text=shown.text,
            about=shown.about.value,
            choices=tuple(shown.choices),
            detail=dict(shown.detail),
            expires_at=shown.expires_at,
            call_id=call.id if use and call else "",
            name=call.name if use and call else "",
            args=self._redaction.value(use.args) if use and call else UNSET,
        )
        return DraftEntry(at=self._clock.now_ms(), event=asked)

    async def _close(self, ended: Moves) -> None:
        """Record calls that a person has ended: they never started, and are shown with what was wanted."""
        if ended:
            await self._save([self._finished(after, args=msgspec.json.decode(after.args)) for _, after in ended], ended)

    async def _run_all(self, free: Sequence[tuple[Use, Call]]) -> None:
        starts = [(call, call.on(effects.CallEvent.START)) for _, call in free]
        await self._save([self._started(use, call) for use, call in free], starts)
        running = [
            asyncio.create_task(self._run(use, started), name=f"{started.turn_id}:{started.id}")
            for (use, _), (_, started) in zip(free, starts, strict=True)
        ]
        try:
            await asyncio.gather(*running)
        finally:
            # A call that cannot be recorded ends the turn, and with it the other calls.
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, use: Use, started: Call) -> None:
        ended = await self._ended(use.tool, use.args, started)
        await self._save([self._finished(ended)], [(started, ended)])

    async def _ended(self, tool: StageTool, args: Mapping[str, object], started: Call) -> Call:
        try:
            result = await tool.run(args, f"{started.turn_id}:{started.id}")
        except OutcomeUnknown as error:
            return replace(started.on(effects.CallEvent.LOSE), result=self._redaction.text(str(error)))
        except HoldfastError as error:
            return replace(started.on(effects.CallEvent.FAIL), result=self._redaction.text(str(error)))
        except asyncio.CancelledError:
            if _is_stopped():
                raise
            # Something that the tool waited for was cancelled, not the call.
            log.exception("tool %s failed", tool.name)
        except Exception:  # The edge to a tool, which may be a plugin: its bug is a failed call, not a failed turn.
            log.exception("tool %s failed", tool.name)
        else:
            return replace(started.on(effects.CallEvent.SUCCEED), result=self._redaction.text(result))
        return replace(started.on(effects.CallEvent.FAIL), result=f"{tool.name} failed; see the gateway's log")

    def _started(self, use: Use, call: Call) -> DraftEntry:
        started = ToolStarted(call_id=call.id, name=call.name, args=self._redaction.value(use.args))
        return DraftEntry(at=self._clock.now_ms(), event=started)

    def _finished(self, ended: Call, args: object = UNSET) -> DraftEntry:
        finished = ToolFinished(call_id=ended.id, name=ended.name, outcome=ended.state.value, result=ended.result, args=args)
        return DraftEntry(at=self._clock.now_ms(), event=finished)

    async def _save(self, drafts: Sequence[DraftEntry], moves: Moves) -> None:
        await self._record(drafts, moves)
        self._calls |= {after.id: after for _, after in moves}

    def _known(self, use: Use) -> Call:
        return self._calls.get(use.call_id) or Call(
            id=CallId(use.call_id),
            turn_id=self._turn.id,
            session_id=self._turn.session_id,
            name=use.tool.name,
            effect=use.tool.effect,
            args=msgspec.json.encode(self._redaction.value(use.args)).decode(),
        )


def _bound(question: Question, call: Call) -> Question:
    """Return a question whose id names its call: one answer is for one call, however often the same thing is wanted."""
    return question if _is_about(question.id, call) else replace(question, id=f"{question.id}:{call.id}")


def _is_about(question_id: str, call: Call) -> bool:
    return re.search(rf"(?<!\w){re.escape(call.id)}(?!\w)", question_id) is not None


def _awaiting(call: Call) -> Call:
    return call if call.state is effects.CallState.AWAITING_APPROVAL else call.on(effects.CallEvent.ASK)


def _is_stopped() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
