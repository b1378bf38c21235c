"""A memory that does as it is told: it recalls, hangs, fails, and says whom it was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from holdfast.core.facts import Recollection
from holdfast.core.segments import Segment, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.memory.provider import Provider
from tests.engine.world import Hang


class Oracle(Provider):
    """Plays what it is given for each recall and each note: an error, a `Hang`, or what it returns; then the last again."""

    def __init__(self, *answers: Any, notes: Sequence[Any] = (), owner: str = "oracle", mirrors: bool = False) -> None:
        super().__init__(owner)
        self.mirrors = mirrors
        self.asked: list[tuple[Session, str, int]] = []
        self.noted: list[tuple[Session, Segment, list[SpokenMessage]]] = []
        self.committed: list[list[SpokenMessage]] = []
        self.cancelled = 0
        self._answers = list(answers)
        self._notes = list(notes)

    async def recall(self, session: Session, query: str, limit: int) -> Any:
        self.asked.append((session, query, limit))
        return await self._play(self._answers)

    async def note(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> None:
        self.noted.append((session, segment, list(messages)))
        await self._play(self._notes)

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        self.committed.append(list(messages))
        return "taken"

    @property
    def queries(self) -> list[str]:
        return [query for _, query, _ in self.asked]

    async def _play(self, answers: list[Any]) -> Any:
        answer = (answers.pop(0) if len(answers) > 1 else answers[0]) if answers else ()
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Hang):
            try:
                await answer.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            return ()
        return answer


class Deaf(Oracle):
    """Hangs, and does not stop when it is told to."""

    async def _play(self, answers: list[Any]) -> Any:
        released = asyncio.create_task(answers[0].wait())
        while not released.done():
            try:
                await asyncio.shield(released)
            except asyncio.CancelledError:
                self.cancelled += 1
        return ()


def known(*texts: str) -> list[Recollection]:
    return [Recollection(text=text) for text in texts]
