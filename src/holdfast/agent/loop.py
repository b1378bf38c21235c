"""The loop of model and tools: it asks the model, makes its calls, and asks again until there is an answer.

It may be cut off at any point and started again: its whole state is in the transcript and the calls of the turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import assert_never

import msgspec

from holdfast.agent import budget, compaction, context, steps, toolbox
from holdfast.agent.context_files import IsGranted, is_approved, nothing_granted
from holdfast.agent.models.port import (
    AssistantMessage,
    Called,
    Done,
    Message,
    Model,
    ReasoningDelta,
    Request,
    StopReason,
    TextDelta,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from holdfast.agent.prompt import Prompt
from holdfast.agent.toolbox import RefusedCall, Toolbox
from holdfast.agent.tools.port import Tool
from holdfast.clock import Clock
from holdfast.config import AgentConfig, BudgetConfig
from holdfast.core import commands, effects
from holdfast.core.effects import Call
from holdfast.core.redaction import MASK
from holdfast.core.transcript import Role
from holdfast.core.usage import Limit, Spent, Usage
from holdfast.errors import ConfigInvalid, ContextTooLong, ModelRejected, ModelUnavailable, Rejected, Unavailable
from holdfast.ids import SessionId, TurnId
from holdfast.ports import Assignment, Stage, Use
from holdfast.store.spending import SpendingStore

log = logging.getLogger(__name__)

# How often an answer goes on after it broke off in its middle, in one step.
CUTS_MAX = 3
_WAIT_FIRST_MS = 500
_WAIT_MAX_MS = 30_000
# Steps in a row in which no call could be made at all.
REFUSED_STEPS_MAX = 3
CALLS_PER_STEP_MAX = 64
_DAY_MS = 86_400_000
_STORE_WAIT_MS = 1_000

CUT_AT_LIMIT = "[The answer was cut here: it reached the limit of what the model writes at once.]"
NOTHING_AT_LIMIT = "[The model reached the limit of what it writes at once before it had said anything.]"
REFUSED_TO_ANSWER = "[The model declined to answer this.]"
NOTHING_SAID = "[The model gave no answer.]"
_LAST_WORDS = (CUT_AT_LIMIT, NOTHING_AT_LIMIT, REFUSED_TO_ANSWER, NOTHING_SAID)
NOT_STORED = "not made: its arguments held a secret, which is not kept while a turn waits; ask for the call again"
TOO_MANY = f"not made: no more than {CALLS_PER_STEP_MAX} calls can be made at once; ask for it again in the next step"


class ModelAgent:
    """Answers with a model and tools."""

    def __init__(
        self,
        model: Model,
        toolbox: Toolbox,
        prompt: Prompt,
        spending: SpendingStore,
        *,
        agent: AgentConfig,
        budget: BudgetConfig,
        clock: Clock,
        is_granted: IsGranted = nothing_granted,
        chosen: Callable[[str], Model] | None = None,
    ) -> None:
        self._model = model
        # Opens the model that a conversation has chosen.
        self._chosen = chosen
        self._toolbox = toolbox
        self._is_granted = is_granted
        self._prompt = prompt
        self._spending = spending
        self._agent = agent
        self._budget = budget
        self._clock = clock

    async def run(self, work: Assignment, stage: Stage) -> str:
        tools = await self._toolbox.offered(work)
        told = await self._prompt.told(work, lambda file: is_approved(file, work, stage, self._is_granted))
        if told.recalled:
            # In front of what the person said now, so that everything above reads as it did before.
            work = replace(work, message=f"{told.recalled}\n\n{work.message}")
        answer = _Answer(
            work=work,
            stage=stage,
            model=await self._model_of(work, stage),
            tools=tools,
            system=told.system,
            agent=self._agent,
            limits=(limits := budget.limits(self._budget)),
            spent=await self._spent(work) if limits else Spent(),
            clock=self._clock,
        )
        return await answer.give()

    async def _model_of(self, work: Assignment, stage: Stage) -> Model:
        """Return the model of a conversation; the usual one if the chosen model cannot be opened any more."""
        name = work.session.model
        if name is None or name == self._model.name or self._chosen is None:
            return self._model
        try:
            return self._chosen(name)
        except ConfigInvalid as error:
            await stage.note(f"{name} was chosen here and cannot be used now: {error}. {self._model.name} answers.")
            return self._model

    async def release(self, session_id: SessionId) -> None:
        """Do nothing: no state is kept between turns outside the store."""

    async def _spent(self, work: Assignment) -> Spent:
        """Return what has been used so far.  While the store is away this waits, because a budget may be used up."""
        now = self._clock.now_ms()
        while True:
            try:
                return await self._spending.spent(work.turn, work.session.owner, now - now % _DAY_MS)
            except Unavailable as error:
                log.warning("cannot read what has been spent: %s", error)
                await self._clock.sleep_ms(_STORE_WAIT_MS)


@dataclass(slots=True)
class _Step:
    """What the model has said and asked for since the last results, in one request or in several."""

    # A long answer arrives in very many pieces.
    pieces: list[str] = field(default_factory=list[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    sealed: Sequence[Mapping[str, object]] = ()
    # Whether a model has begun to answer; thoughts are a beginning too.
    has_begun: bool = False
    # How often an answer broke off.
    breaks: int = 0

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class _Answer:
    """One turn on its way to its answer."""

    def __init__(
        self,
        *,
        work: Assignment,
        stage: Stage,
        model: Model,
        tools: Mapping[str, Tool],
        system: str,
        agent: AgentConfig,
        limits: tuple[Limit, ...],
        spent: Spent,
        clock: Clock,
    ) -> None:
        self._work = work
        self._stage = stage
        self._model = model
        self._tools = tools
        self._specs = toolbox.specs(tools)
        self._system = system
        self._chars_around = compaction.size_around(system, self._specs)
        self._agent = agent
        self._limits = limits
        self._spent = spent
        self._clock = clock
        self._history = list(work.history)
        self._older: list[Message] = []
        self._current: list[Message] = []
        self._said: list[str] = []
        self._step = _Step()
        self._refused_steps = 0
        self._chars_per_token = compaction.CHARS_PER_TOKEN
        self._is_thrifty = False
        self._has_compacted = False

    async def give(self) -> str:
        """Bring the turn to its answer, continuing where an earlier attempt stopped."""
        await self._catch_up()
        if self._has_concluded():
            return await self._close("")
        if self._is_compress():
            return await self._close(await self._stopped() or await self._compressed())
        for number in range(context.last_step(self._work) + 1, self._agent.steps_max + 1):
            await self._heed()
            if stopped := await self._stopped():
                return await self._close(stopped)
            reason = await self._ask()
            if not self._step.calls:
                return await self._conclude(reason)
            await self._make_calls(number)
        return await self._close(limit_reached(self._agent.steps_max))

    async def _stopped(self) -> str | None:
        return await budget.refusal(self._limits, self._spent, self._stage)

    async def _catch_up(self) -> None:
        """Make the calls that an earlier attempt planned, then read their results."""
        open_calls = [call for call in context.in_order(self._work.calls) if call.state not in effects.ENDED]
        uses = [await self._again(call) for call in open_calls]
        ended = {call.id: call for call in (await self._stage.use_all(uses) if uses else [])}
        calls = [ended.get(call.id, call) for call in self._work.calls]
        self._work = replace(self._work, calls=calls)
        read = context.rebuilt(self._work, calls)
        self._older, self._current, self._said = list(read.older), list(read.current), list(read.said)
        if read.is_cut and isinstance(cut := self._current.pop(), AssistantMessage):
            self._said.pop()
            self._step.pieces.append(cut.text)
            self._step.has_begun = True

    async def _heed(self) -> None:
        """Add the messages that joined the turn, after everything that was said before them."""
        if joined := await self._stage.heed():
            if self._step.pieces:
                self._current.append(AssistantMessage(text=self._step.text))
                self._said.append(self._step.text)
                self._step = _Step()
            self._current += [UserMessage(text=text) for text in joined]

    async def _again(self, call: Call) -> Use:
        if MASK in call.args:
            return Use(tool=RefusedCall(call.name, NOT_STORED), call_id=call.id)
        return await toolbox.prepare(self._tools, call.name, call.args, call.id, self._work, self._stage)

    async def _ask(self) -> StopReason:
        """Ask the model until a step is complete.  Raises errors that asking again cannot mend."""
        is_longer, has_made_room = False, False
        while True:
            await self._make_room()
            try:
                done = await self._listen()
            except ContextTooLong:
                if has_made_room:
                    raise
                has_made_room = self._is_thrifty = True
                await self._compact(0)
            except ModelUnavailable as error:
                # Before the first event, the chain of models has already retried.
                if not self._step.has_begun or self._step.breaks == CUTS_MAX:
                    raise
                self._step.breaks += 1
                log.warning("the model broke off, asking it to go on: %s", error)
                await self._clock.sleep_ms(_wait_ms(self._step.breaks, error.retry_after_s))
            else:
                if done.reason is not StopReason.LENGTH or self._step.calls or not self._step.pieces or is_longer:
                    return done.reason
                is_longer = True

    async def _listen(self) -> Done:
        """Show the text of the model as it arrives, and collect the calls that it asks for."""
        request = self._request()
        calls: list[ToolCall] = []
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                self._step.has_begun = True
                match event:
                    case TextDelta(text):
                        if text:
                            self._step.pieces.append(text)
                            await self._stage.say(text)
                    case ReasoningDelta(text):
                        await self._stage.think(text)
                    case Called(call):
                        calls.append(call)
                    case Done():
                        await self._finished(event, request)
                        self._step.calls, self._step.sealed = calls, event.sealed
                        return event
                    case _:
                        assert_never(event)
        raise ModelUnavailable("the model's answer ended in its middle")

    async def _finished(self, done: Done, request: Request) -> None:
        await self._spend(done.usage)
        if done.usage.input_tokens:
            # Better than any rule of thumb: what this very conversation came to.
            self._chars_per_token = min(max(self._size(request) / done.usage.input_tokens, 1.0), 8.0)

    async def _spend(self, used: Usage) -> None:
        self._spent = self._spent.plus(used)
        await self._stage.spend(used)

    def _request(self) -> Request:
        messages = [*self._older, *self._current]
        if self._is_thrifty:
            messages = context.thrifty(messages)
        if self._step.pieces:
            messages += [AssistantMessage(text=self._step.text), UserMessage(text=context.CONTINUE)]
        if not self._model.facts.images:
            messages = [_without_images(message) for message in messages]
        return Request(
            messages=context.joined(messages),
            system=self._system,
            tools=self._specs,
            output_tokens_max=self._model.facts.output_tokens_max or None,
            breaks=self._step.breaks,
        )

    async def _make_calls(self, number: int) -> None:
        """Make the calls of a step, and add their results to what the model reads."""
        step, self._step = self._step, _Step()
        uses = [await self._use(nth, call, number) for nth, call in enumerate(step.calls, 1)]
        calls = await self._stage.use_all(uses)
        self._work = replace(self._work, calls=[*self._work.calls, *calls])
        turn_id, text = self._work.turn.id, step.text
        wanted = [
            ToolCall(id=context.wire_id(turn_id, use.call_id), name=use.tool.name, args=_json(use.args)) for use in uses
        ]
        self._current.append(AssistantMessage(text=text, calls=wanted, sealed=step.sealed))
        self._current += [
            ToolMessage(call_id=context.wire_id(turn_id, call.id), text=context.outcome(call)) for call in calls
        ]
        self._said += [text] if text else []
        self._count_refused(uses)

    async def _use(self, nth: int, call: ToolCall, step: int) -> Use:
        call_id = steps.call_id(step, nth)
        if nth > CALLS_PER_STEP_MAX:
            return Use(tool=RefusedCall(call.name, TOO_MANY), call_id=call_id)
        return await toolbox.prepare(self._tools, call.name, call.args, call_id, self._work, self._stage)

    def _count_refused(self, uses: Sequence[Use]) -> None:
        refused = [use.tool for use in uses if isinstance(use.tool, RefusedCall)]
        self._refused_steps = self._refused_steps + 1 if len(refused) == len(uses) else 0
        if self._refused_steps >= REFUSED_STEPS_MAX:
            times, last = REFUSED_STEPS_MAX, refused[-1]
            raise Rejected(f"the model asked {times} times in a row for what cannot be done; {last.name}: {last.reason}")

    async def _conclude(self, reason: StopReason) -> str:
        """End with what the model has said, and add a note if it is incomplete."""
        match reason:
            case StopReason.REFUSAL:
                return await self._close(REFUSED_TO_ANSWER)
            case StopReason.LENGTH:
                return await self._close(CUT_AT_LIMIT if self._step.pieces else NOTHING_AT_LIMIT)
            case StopReason.END | StopReason.CALLS:
                return await self._close("" if self._step.pieces or self._said else NOTHING_SAID)
            case _:
                assert_never(reason)

    def _has_concluded(self) -> bool:
        """Return whether an earlier attempt has already said the closing note, so that the model is not asked again."""
        return self._step.text.endswith((*_LAST_WORDS, limit_reached(self._agent.steps_max)))

    async def _close(self, note: str) -> str:
        """Say a closing note, if there is one, and return everything said."""
        # An earlier attempt may have said it already, and ended before the turn did.
        if note and not self._step.text.endswith(note):
            text = f"\n\n{note}" if self._step.pieces else note
            self._step.pieces.append(text)
            await self._stage.say(text)
        return "\n\n".join([*self._said, self._step.text] if self._step.pieces else self._said)

    async def _make_room(self) -> None:
        """Keep the request below what the model can read, by shortening old results first and old turns second."""
        if not self._is_too_long():
            return
        self._is_thrifty = True
        if self._is_too_long() and not self._has_compacted:
            try:
                await self._compact(compaction.TURNS_KEPT)
            except (ModelUnavailable, ModelRejected) as error:
                # It may still fit; if not, the model says so.
                log.warning("cannot make a summary: %s", error)

    def _is_too_long(self) -> bool:
        allowed = self._model.facts.context_tokens * self._agent.compact_at
        return 0 < allowed < self._size(self._request()) / self._chars_per_token

    def _size(self, request: Request) -> int:
        return self._chars_around + compaction.size(request.messages)

    async def _compact(self, kept: int) -> bool:
        """Replace the older turns, all but the last `kept`, with a summary; False if there are none."""
        turns = context.turns_before(self._work, self._history)
        if not turns:
            return False
        through = turns[-1 - min(kept, len(turns) - 1)]
        await self._summarise(through)
        return True

    async def _summarise(self, through: TurnId) -> None:
        self._has_compacted = True
        last = max(index for index, item in enumerate(self._history) if item.turn_id == through)
        summary = await compaction.summary(self._model, self._history[: last + 1], self._spend)
        await self._stage.compact(summary, through)
        self._history = context.without(self._history, through, summary)
        self._older = list(context.rebuilt(self._work, (), self._history).older)

    def _is_compress(self) -> bool:
        asked = (item for item in self._history if item.turn_id == self._work.turn.id and item.role is Role.USER)
        return commands.is_compress(next((item.text for item in asked), ""))

    async def _compressed(self) -> str:
        """Compress the conversation, and return in words how much shorter it is now for the model."""
        turns = context.turns_before(self._work, self._history)
        if len(turns) <= 1:
            return "There is nothing to compress yet: only the last exchange stands before this."
        before = self._tokens(self._older)
        await self._compact(1)
        return (
            f"Compressed: a summary stands for {len(turns) - 1} earlier turns now. What the model reads of this "
            f"conversation went from about {before:,} to {self._tokens(self._older):,} tokens. Nothing was deleted."
        )

    def _tokens(self, messages: Sequence[Message]) -> int:
        return round(compaction.size(messages) / self._chars_per_token)


def limit_reached(steps_max: int) -> str:
    """Return what is said when a turn has taken all its steps."""
    return f"[Stopped: the limit of {steps_max} steps in one turn is reached. Say so if I should go on.]"


def _without_images(message: Message) -> Message:
    if not isinstance(message, UserMessage) or not message.images:
        return message
    note = f"[{len(message.images)} picture(s) came with this message; this model cannot see them.]"
    return replace(message, text=f"{message.text}\n\n{note}", images=())


def _wait_ms(cuts: int, retry_after_s: float | None) -> float:
    wanted = _WAIT_FIRST_MS * 2 ** (cuts - 1) if retry_after_s is None else retry_after_s * 1000
    return min(wanted, _WAIT_MAX_MS)


def _json(args: Mapping[str, object]) -> str:
    return msgspec.json.encode(args).decode()
