"""What is remembered."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from holdfast.core.memories import Memory
from holdfast.desk.views import Page, Removed
from holdfast.ids import MemoryId
from holdfast.web.answers import answer
from holdfast.web.operations import Call, Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What a client wants to be remembered."""

    text: str


class Memories:
    """Facts that outlast their conversation."""

    def operations(self) -> list[Operation]:
        return [
            Operation(
                method="GET",
                path="/api/memory",
                handle=self.list,
                summary="List what is remembered, or find some of it",
                gives=Page[Memory],
                query=("q", "cursor", "limit"),
            ),
            Operation(
                method="POST",
                path="/api/memory",
                handle=self.add,
                summary="Remember something",
                takes=Remembered,
                gives=Memory,
                status=201,
            ),
            Operation(
                method="DELETE", path="/api/memory/{id}", handle=self.remove, summary="Forget something", gives=Removed
            ),
        ]

    async def list(self, call: Call) -> Response:
        limit = call.number("limit", 200)
        if query := call.word("q"):
            return answer(await call.desk.memories.search(query, limit))
        return answer(await call.desk.memories.list(cursor=call.word("cursor"), limit=limit))

    async def add(self, call: Call) -> Response:
        return answer(await call.desk.memories.add((await call.body(Remembered)).text), 201)

    async def remove(self, call: Call) -> Response:
        await call.desk.memories.remove(MemoryId(call.name()))
        return answer(Removed())
