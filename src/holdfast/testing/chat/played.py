"""What the agents of the cases do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from holdfast.core.questions import Question
from holdfast.ports import Assignment, Stage

Play: TypeAlias = Callable[[Assignment, Stage], Awaitable[str]]


async def echo(work: Assignment, stage: Stage) -> str:
    """Answer a message with its own words."""
    return await _said(stage, f"You wrote: {work.message}")


async def _said(stage: Stage, text: str) -> str:
    await stage.say(text)
    return text


class Held:
    """Answers some messages only when they are released."""

    def __init__(self, *messages: str) -> None:
        self._released = {each: asyncio.Event() for each in messages}

    def release(self, message: str) -> None:
        self._released[message].set()

    async def __call__(self, work: Assignment, stage: Stage) -> str:
        if work.message in self._released:
            await self._released[work.message].wait()
        return await echo(work, stage)


class InTwoSteps:
    """Says the beginning of an answer, and the rest when it is released or started again."""

    def __init__(self, beginning: str, rest: str) -> None:
        self._beginning = beginning
        self._rest = rest
        self._has_begun = False
        self._released = asyncio.Event()

    def release(self) -> None:
        self._released.set()

    async def __call__(self, work: Assignment, stage: Stage) -> str:  # noqa: ARG002 - The shape of an agent.
        if not self._has_begun:
            self._has_begun = True
            await stage.say(self._beginning)
            await self._released.wait()
        await stage.say(self._rest)
        return self._beginning + self._rest


class Saying:
    """Answers everything with one text."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def __call__(self, work: Assignment, stage: Stage) -> str:  # noqa: ARG002 - The shape of an agent.
        return await _said(stage, self._text)


class Asking:
    """Asks a person, and answers with what they said."""

    def __init__(self, question: Question) -> None:
        self._question = question

    async def __call__(self, work: Assignment, stage: Stage) -> str:  # noqa: ARG002 - The shape of an agent.
        return await _said(stage, f"So {await stage.ask(self._question)}.")
