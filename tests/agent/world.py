"""The world around a model agent under test: a scripted model, tools that remember, and the real engine and store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.agent.loop import ModelAgent
from holdfast.agent.models.port import AssistantMessage, Message, Model, Request, ToolMessage, UserMessage
from holdfast.agent.models.scripted import Script, ScriptedModel, Step
from holdfast.agent.prompt import Prompt
from holdfast.agent.toolbox import Toolbox
from holdfast.agent.tools.port import CallContext
from holdfast.clock import SystemClock
from holdfast.config import AgentConfig, BudgetConfig
from holdfast.core.effects import Effect
from holdfast.core.intake import Receipt
from holdfast.core.questions import About, AskedQuestion, Question, fingerprint
from holdfast.core.transcript import Item, fold
from holdfast.core.turns import TurnState
from holdfast.errors import Rejected
from holdfast.store.store import Store
from tests.engine.players import in_state, journal_of
from tests.engine.world import until

NOBODY_HOME = Path("/nonexistent")


@dataclass
class Lever:
    """A tool that remembers what it was pulled with; it asks first if told to, and can be held in the middle."""

    name: str = "lever"
    effect: Effect = Effect.EFFECTFUL
    asks: bool = False
    harmless: bool = True
    expires_at: int | None = None
    about: About = About.APPROVAL
    pulls: list[Mapping[str, object]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    description: str = "pulls a lever"
    schema: Mapping[str, object] = field(default_factory=lambda: {"type": "object"})

    def __post_init__(self) -> None:
        self.may_end.set()

    async def question(self, args: Mapping[str, object], call_context: CallContext) -> Question | None:
        if args.get("forbidden"):
            raise Rejected("that is never allowed")
        if not self.asks:
            return None
        bound = fingerprint(tool=self.name, args=args)
        return Question(
            id=f"approve:{call_context.call_id}:{bound[:8]}",
            text=f"may I pull with {args}?",
            about=self.about,
            fingerprint=bound,
            expires_at=self.expires_at,
        )

    async def run(self, args: Mapping[str, object], call_context: CallContext) -> str:
        self.pulls.append(args)
        self.keys.append(call_context.key)
        await self.may_end.wait()
        if args.get("jammed"):
            raise Rejected("it is jammed")
        return f"pulled {args.get('with', 'once')}"

    def hold(self) -> None:
        self.may_end.clear()


def agent_of(
    script: Sequence[Step] | Script | ScriptedModel,
    store: Any,
    *tools: Any,
    home: Path = NOBODY_HOME,
    agent: AgentConfig | None = None,
    budget: BudgetConfig | None = None,
    clock: Any = None,
    chosen: Callable[[str], Model] | None = None,
) -> tuple[ModelAgent, ScriptedModel]:
    """Return an agent and the model behind it."""
    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script)
    clock = clock or SystemClock()
    config = agent or AgentConfig()
    prompt = Prompt(config, home, store.memories, clock)
    made = ModelAgent(
        model,
        Toolbox(tools),
        prompt,
        store.spending,
        agent=config,
        budget=budget or BudgetConfig(),
        clock=clock,
        chosen=chosen,
    )
    return made, model


async def items_of(store: Store, receipt: Receipt) -> list[Item]:
    """Return the transcript of a turn."""
    return [item for item in fold(await journal_of(store, receipt.session_id)) if item.turn_id == receipt.turn_id]


async def question_of(store: Store, receipt: Receipt) -> AskedQuestion:
    """Return what a turn waits for, once it waits."""
    await in_state(store, receipt, TurnState.WAITING)
    return next(asked for asked in await store.questions.of_turn(receipt.turn_id) if asked.answer is None)


async def waits_again(store: Store, receipt: Receipt, times: int) -> AskedQuestion:
    """Return what a turn waits for, once it waits for the nth time."""

    async def look() -> bool:
        return len(await store.questions.of_turn(receipt.turn_id)) >= times

    await until(look)
    return await question_of(store, receipt)


def shape(request: Request | Sequence[Message]) -> list[tuple[Any, ...]]:
    """Return what a model was given, so that it reads well in a test."""
    messages = request.messages if isinstance(request, Request) else request
    return [_shape(message) for message in messages]


def _shape(message: Message) -> tuple[Any, ...]:
    match message:
        case UserMessage(text=text):
            return ("user", text)
        case AssistantMessage(text=text, calls=calls):
            return ("assistant", text, *(call.name for call in calls))
        case ToolMessage(text=text):
            return ("tool", text)


def assert_every_call_has_its_result(request: Request) -> None:
    """Hold a request to what every wire format demands."""
    asked: list[str] = []
    for message in request.messages:
        match message:
            case AssistantMessage(calls=calls):
                assert not asked, "calls without results"
                asked = [call.id for call in calls]
            case ToolMessage(call_id=call_id):
                assert call_id in asked, "a result of no call"
                asked.remove(call_id)
            case UserMessage():
                assert not asked, "calls without results"
    assert not asked, "calls without results"
