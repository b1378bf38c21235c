"""A scripted model: it answers each request with the next step of a script, for tests, benchmarks and demonstrations."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from holdfast.agent.models.port import Called, Done, Event, Facts, ReasoningDelta, Request, StopReason, TextDelta, ToolCall
from holdfast.core.usage import Usage
from holdfast.errors import HoldfastError

# A part of a step: an event, text to say, an error to raise, or a function to await.
Piece = Event | str | HoldfastError | Callable[[], Awaitable[object]]
Step = Sequence[Piece]
Script = Callable[[Request], Step]

USAGE = Usage(input_tokens=100, output_tokens=10)


def call(name: str, /, **args: object) -> Called:
    """Return the event of a tool call."""
    return Called(ToolCall(id="theirs", name=name, args=json.dumps(args)))


class ScriptedModel:
    """Plays a script: a list of steps, one per request, or a function of the request.  `requests` records the requests.

    A step without `Done` gets one, with the reason of its calls if it has any.
    """

    def __init__(self, script: Sequence[Step] | Script, *, name: str = "scripted", facts: Facts | None = None) -> None:
        self.name = name
        self.facts = facts or Facts(context_tokens=100_000)
        self.requests: list[Request] = []
        self._script = script

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        self.requests.append(request)
        step = self._script(request) if callable(self._script) else self._script[len(self.requests) - 1]
        for piece in step:
            match piece:
                case HoldfastError():
                    raise piece
                case str():
                    yield TextDelta(piece)
                case TextDelta() | ReasoningDelta() | Called() | Done():
                    yield piece
                case _:
                    await piece()
        if not step or not isinstance(step[-1], Done):
            calls = any(isinstance(piece, Called) for piece in step)
            yield Done(reason=StopReason.CALLS if calls else StopReason.END, usage=USAGE)

    async def close(self) -> None:
        """Do nothing."""
