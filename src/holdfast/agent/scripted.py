"""A scripted agent, for tests, benchmarks and demonstrations.

Like a real one it may be cut off at any point and started again: it continues after the last line that it finished,
according to the transcript, and never repeats a tool call that has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from holdfast.agent.toolbox import Toolbox, prepare
from holdfast.clock import Clock, SystemClock
from holdfast.core.effects import Call, Effect
from holdfast.core.questions import Question
from holdfast.core.transcript import Item, Role
from holdfast.errors import Rejected
from holdfast.ids import CallId, SessionId
from holdfast.ports import Assignment, Stage, StageTool


@dataclass(frozen=True, slots=True)
class Say:
    """Show a piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """Show a piece of reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class UseTool:
    """Run a tool, and say what `report` makes of its end."""

    tool: StageTool
    args: Mapping[str, object] = field(default_factory=dict[str, object])
    report: Callable[[Call], str] | None = None


@dataclass(frozen=True, slots=True)
class CallTool:
    """Use one of the gateway's own tools by its name, as a model would, and say what `report` makes of its end."""

    name: str
    args: Mapping[str, object] = field(default_factory=dict[str, object])
    report: Callable[[Call], str] | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the person and wait, for days if need be; then say what `reply` makes of the answer."""

    text: str
    reply: Callable[[str], str] | None = None
    # What the person may choose from; with none they answer in their own words.
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pause:
    """Let time pass."""

    duration_ms: float


@dataclass(frozen=True, slots=True)
class Fail:
    """End the turn with an error."""

    text: str


Line = Say | Think | UseTool | CallTool | Ask | Pause | Fail
Script = Callable[[Assignment], Sequence[Line]]


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A tool made of a function."""

    name: str
    effect: Effect
    function: Callable[[Mapping[str, object], str], str]

    async def run(self, args: Mapping[str, object], key: str) -> str:
        return self.function(args, key)


class ScriptedAgent:
    """Plays a script, which may depend on the message."""

    def __init__(
        self,
        script: Script | Sequence[Line],
        clock: Clock | None = None,
        heeded: Callable[[str], str] | None = None,
        toolbox: Toolbox | None = None,
    ) -> None:
        self._script = script
        self._clock = clock or SystemClock()
        # What it says to a message that joins the turn while it plays.
        self._heeded = heeded or _heeded
        self._toolbox = toolbox or Toolbox()

    async def run(self, work: Assignment, stage: Stage) -> str:
        voice = _Voice(work, stage, self._heeded)
        await voice.catch_up()
        for number, line in enumerate(self._script(work) if callable(self._script) else self._script):
            for text in await stage.heed():
                await voice.interject(self._heeded(text))
            await self._play(number, line, voice, work, stage)
        return voice.answer

    async def release(self, session_id: SessionId) -> None:
        """Hold nothing between turns: all that they share is in the store."""

    async def _play(self, number: int, line: Line, voice: _Voice, work: Assignment, stage: Stage) -> None:
        match line:
            case Say(text):
                await voice.say(text)
            case Think(text):
                await voice.think(text)
            case UseTool(tool, args, report):
                call = await stage.use(tool, CallId(f"call_{number}"), args)
                if report:
                    await voice.say(report(call))
            case CallTool(name, args, report):
                tools = await self._toolbox.offered(work)
                use = await prepare(tools, name, args, CallId(f"call_{number}"), work, stage)
                (call,) = await stage.use_all([use])
                if report:
                    await voice.say(report(call))
            case Ask(text, reply, choices):
                answer = await stage.ask(Question(id=f"question_{number}", text=text, choices=choices))
                if reply:
                    await voice.say(reply(answer))
                else:
                    voice.keep(answer)
            case Pause(duration_ms):
                # An earlier attempt waited here before it showed what follows.
                if not voice.repeats:
                    await self._clock.sleep_ms(duration_ms)
            case Fail(text):
                raise Rejected(text)
            case _:
                assert_never(line)


class _Voice:
    """Says everything from the first word on, and shows what earlier attempts of the turn have not shown."""

    def __init__(self, work: Assignment, stage: Stage, heeded: Callable[[str], str]) -> None:
        self._said: list[str] = []
        self._stage = stage
        self._shown: dict[Role, int] = {Role.ASSISTANT: 0, Role.REASONING: 0}
        # What is said to a message that joined is in no script: it stands behind so many characters of what is.
        self._interjections: list[tuple[int, str]] = []
        self._owed = ""
        self._position = 0
        for item in work.history:
            if item.turn_id == work.turn.id:
                self._count(item, heeded)

    @property
    def answer(self) -> str:
        """Everything said in the whole turn, in the order in which it was shown."""
        return "".join((*self._said, *(text for _, text in self._interjections)))

    @property
    def repeats(self) -> bool:
        """Whether something that was shown before is still to be said again."""
        return self._shown[Role.ASSISTANT] > 0

    async def say(self, text: str) -> None:
        rest = self._rest(Role.ASSISTANT, text)
        self.keep(text)
        await self._stage.say(rest)

    async def think(self, text: str) -> None:
        await self._stage.think(self._rest(Role.REASONING, text))

    async def interject(self, text: str) -> None:
        """Say something that the script knows nothing of, below everything shown so far."""
        self._interjections.append((self._position + self._shown[Role.ASSISTANT], text))
        await self._stage.say(text)

    async def catch_up(self) -> None:
        """Say what an earlier attempt did not say about a message that had joined."""
        if self._owed:
            await self._stage.say(self._owed)

    def keep(self, text: str) -> None:
        """Add to the answer what the script says, around what was interjected."""
        while self._interjections and self._interjections[0][0] < self._position + len(text):
            at, interjection = self._interjections.pop(0)
            before = at - self._position
            self._said += (text[:before], interjection)
            text, self._position = text[before:], at
        self._said.append(text)
        self._position += len(text)

    def _count(self, item: Item, heeded: Callable[[str], str]) -> None:
        if item.role is Role.USER and item.kind == "joined":
            self._interjections.append((self._shown[Role.ASSISTANT], heeded(item.text)))
            self._owed += heeded(item.text)
        elif item.role is Role.ASSISTANT:
            paid = min(len(item.text), len(self._owed))
            self._owed = self._owed[paid:]
            self._shown[item.role] += len(item.text) - paid
        elif item.role is Role.REASONING:
            self._shown[item.role] += len(item.text)

    def _rest(self, role: Role, text: str) -> str:
        shown = min(self._shown[role], len(text))
        self._shown[role] -= shown
        return text[shown:]


def _heeded(text: str) -> str:
    return f"[{text}] "
