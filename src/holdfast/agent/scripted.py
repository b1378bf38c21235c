"""A scripted agent: it does what its script says, for tests, benchmarks and demonstrations.

Like a real one it may be cut off anywhere and started again: it goes on behind the last line that it finished, as the
transcript shows it, and never repeats a tool call that has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from holdfast.clock import Clock, SystemClock
from holdfast.core.effects import Effect
from holdfast.core.transcript import Item, Role
from holdfast.errors import Rejected
from holdfast.ids import CallId
from holdfast.ports import Assignment, Stage, Tool


@dataclass(frozen=True, slots=True)
class Say:
    """Show a piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Think:
    """Show a piece of reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Use:
    """Run a tool."""

    tool: Tool
    args: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the person and wait, for days if need be."""

    text: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Let time pass."""

    duration_ms: float


@dataclass(frozen=True, slots=True)
class Fail:
    """End the turn with an error."""

    text: str


Line = Say | Think | Use | Ask | Pause | Fail
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

    def __init__(self, script: Script | Sequence[Line], clock: Clock | None = None) -> None:
        self._script = script
        self._clock = clock or SystemClock()

    async def run(self, work: Assignment, stage: Stage) -> str:
        lines = self._script(work) if callable(self._script) else self._script
        skip = _Shown(work)
        said: list[str] = []
        for number, line in enumerate(lines):
            match line:
                case Say(text):
                    said.append(text)
                    await stage.say(skip.rest(Role.ASSISTANT, text))
                case Think(text):
                    await stage.think(skip.rest(Role.REASONING, text))
                case Use(tool, args):
                    await stage.use(tool, CallId(f"call_{number}"), args)
                case Ask(text):
                    said.append(await stage.ask(f"question_{number}", text))
                case Pause(duration_ms):
                    await self._clock.sleep_ms(duration_ms)
                case Fail(text):
                    raise Rejected(text)
                case _:
                    assert_never(line)
        return "".join(said)


class _Shown:
    """What earlier attempts of the turn have shown already, which is not said twice."""

    def __init__(self, work: Assignment) -> None:
        mine = [item for item in work.history if item.turn_id == work.turn.id]
        self._left = {role: _length(mine, role) for role in (Role.ASSISTANT, Role.REASONING)}

    def rest(self, role: Role, text: str) -> str:
        """Return the part of the next piece that was not shown yet."""
        shown = min(self._left[role], len(text))
        self._left[role] -= shown
        return text[shown:]


def _length(items: Sequence[Item], role: Role) -> int:
    return sum(len(item.text) for item in items if item.role is role)
