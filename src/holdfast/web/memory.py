"""What is remembered, and what is owed to memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.responses import Response

from holdfast.core.keys import ADMIN, LOCAL
from holdfast.core.segments import SegmentState
from holdfast.desk.debts import Committed, Document, Edited, Forgotten, MemoryStatus, Recalled, Replayed, SegmentView
from holdfast.desk.plans import Edit, Forgetting, Replaying
from holdfast.desk.views import MemoryView
from holdfast.errors import Rejected
from holdfast.ids import MemoryId, SegmentId, SessionId
from holdfast.operations.pages import Page, Removed
from holdfast.web.answers import Refused, answer
from holdfast.web.endpoints import Call, Endpoint

# A person's facts and profile, as they were and as they are to be, with every character escaped.
DOCUMENTS_MAX = 32 * 1024 * 1024
# Sessions that one tenant has committed at once: each is a call of a provider, and of a model behind it.
PAYING_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What a client wants to be remembered."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A session whose debt is to be paid.  Whoever does not `wait` is told at once where somebody else pays it already."""

    session_id: str | None = None
    wait: bool = True


class Memories:
    """Facts that outlast their conversation."""

    def __init__(self) -> None:
        self._paying: Counter[str] = Counter()

    def endpoints(self) -> list[Endpoint]:
        # Behind all that has a name of its own there.
        return [*self._facts(), *self._debts(), self._fact()]

    def _fact(self) -> Endpoint:
        return Endpoint(
            method="GET",
            path="/api/memory/{id}",
            handle=self.get,
            summary="Show one thing that is remembered, and where it was said",
            gives=MemoryView,
        )

    def _facts(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/memory",
                handle=self.list,
                summary="List what is remembered, or find some of it",
                gives=Page[MemoryView],
                query=("q", "cursor", "limit"),
            ),
            Endpoint(
                method="POST",
                path="/api/memory",
                handle=self.add,
                summary="Remember something",
                takes=Remembered,
                gives=MemoryView,
                status=201,
            ),
            Endpoint(
                method="PATCH",
                path="/api/memory/{id}",
                handle=self.change,
                summary="Remember something else instead",
                takes=Remembered,
                gives=MemoryView,
            ),
            Endpoint(
                method="DELETE", path="/api/memory/{id}", handle=self.remove, summary="Forget something", gives=Removed
            ),
            Endpoint(
                method="POST",
                path="/api/memory/forget",
                handle=self.forget,
                summary="Forget memories by id, all that came from a session, or everything",
                takes=Forgetting,
                gives=Forgotten,
            ),
            Endpoint(
                method="GET",
                path="/api/memory/recall",
                handle=self.recall,
                summary="Ask a memory provider elsewhere what it recalls",
                gives=Recalled,
                query=("q", "limit"),
            ),
            Endpoint(
                method="GET",
                path="/api/memory/document",
                handle=self.document,
                summary="Read what is remembered as Markdown",
                gives=Document,
            ),
            Endpoint(
                method="PUT",
                path="/api/memory/document",
                handle=self.edit,
                summary="Change what is remembered as Markdown was edited",
                takes=Edit,
                body_max=DOCUMENTS_MAX,
                gives=Edited,
            ),
        ]

    def _debts(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/memory/status",
                handle=self.status,
                summary="Show how memory stands, and what is owed to it",
                gives=MemoryStatus,
            ),
            Endpoint(
                method="GET",
                path="/api/memory/segments",
                handle=self.segments,
                summary="List the receipts of memory, the newest first",
                gives=Page[SegmentView],
                query=("session", "state", "unpaid", "cursor", "limit"),
            ),
            Endpoint(
                method="POST",
                path="/api/memory/commit",
                handle=self.commit,
                summary="Commit what a session has to remember, now",
                takes=Payment,
                gives=Committed,
            ),
            Endpoint(
                method="POST",
                path="/api/memory/segments/{id}/waive",
                handle=self.waive,
                summary="Give up that something is remembered",
                scope=ADMIN,
                gives=SegmentView,
            ),
            Endpoint(
                method="POST",
                path="/api/memory/replay",
                handle=self.replay,
                summary="Give some of what was committed once to another provider",
                scope=ADMIN,
                takes=Replaying,
                gives=Replayed,
            ),
        ]

    async def list(self, call: Call) -> Response:
        limit = call.number("limit", 200)
        if query := call.word("q"):
            return answer(await call.desk.memories.search(query, limit))
        return answer(await call.desk.memories.list(cursor=call.word("cursor"), limit=limit))

    async def get(self, call: Call) -> Response:
        return answer(await call.desk.memories.get(MemoryId(call.name())))

    async def add(self, call: Call) -> Response:
        return answer(await call.desk.memories.add((await call.body(Remembered)).text), 201)

    async def change(self, call: Call) -> Response:
        text = (await call.body(Remembered)).text
        return answer(await call.desk.memories.change(MemoryId(call.name()), text))

    async def remove(self, call: Call) -> Response:
        await call.desk.memories.remove(MemoryId(call.name()))
        return answer(Removed())

    async def forget(self, call: Call) -> Response:
        return answer(await call.desk.memories.forget(await call.body(Forgetting)))

    async def recall(self, call: Call) -> Response:
        return answer(await call.desk.memories.recall(call.word("q") or "", call.number("limit", 20)))

    async def document(self, call: Call) -> Response:
        return answer(await call.desk.memories.document())

    async def edit(self, call: Call) -> Response:
        return answer(await call.desk.memories.edit(await call.body(Edit)))

    async def status(self, call: Call) -> Response:
        return answer(await call.desk.memories.status())

    async def segments(self, call: Call) -> Response:
        session = call.word("session")
        page = await call.desk.memories.segments(
            session_id=SessionId(session) if session else None,
            state=call.choice("state", SegmentState),
            unpaid=call.flag("unpaid") or False,
            cursor=call.word("cursor"),
            limit=call.number("limit", 50),
        )
        return answer(page)

    async def commit(self, call: Call) -> Response:
        payment = await call.body(Payment)
        session_id = SessionId(payment.session_id or "")
        if not session_id.isprintable():
            raise Rejected("an id has printable characters only")
        with self._one_more(call.principal.owner):
            paid = await call.desk.memories.commit(session_id, wait=payment.wait)
        return answer(Committed(committed=paid))

    @contextmanager
    def _one_more(self, owner: str) -> Generator[None]:
        """Count who has how many commits under way.  Raises `Refused` for a tenant with too many; the operator pays."""
        if self._paying[owner] >= PAYING_MAX and owner != LOCAL:
            hint = "wait for one of them; what is owed is committed by itself too, once its conversation is over"
            raise Refused(429, "too_many_commits", f"{PAYING_MAX} commits are under way already", hint)
        self._paying[owner] += 1
        try:
            yield
        finally:
            self._paying[owner] -= 1
            if not self._paying[owner]:
                del self._paying[owner]

    async def waive(self, call: Call) -> Response:
        return answer(await call.desk.memories.waive(SegmentId(call.name())))

    async def replay(self, call: Call) -> Response:
        return answer(await call.desk.memories.replay(await call.body(Replaying)))
