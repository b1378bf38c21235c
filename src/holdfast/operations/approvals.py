"""Approvals: the questions that turns wait for, which are answered at their turn, and what may be done without asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.core.questions import About, short_id
from holdfast.errors import NotFound, Rejected
from holdfast.ids import SessionId, TurnId
from holdfast.operations import pages
from holdfast.operations.caller import Caller
from holdfast.operations.operation import operation
from holdfast.operations.pages import Cursor, Limit, OfSession, Page

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.core.questions import AskedQuestion, Grant
    from holdfast.store.store import Store

# Enough of a grant's digest to be told apart, and short enough to be typed.
_GRANT_CHARS = 12
_WITHOUT_ONE = "see `holdfast approvals list`"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalView:
    """A question that a turn waits with.  `id` is short, for people; the turn's id and the question's are the whole."""

    id: str
    turn_id: TurnId
    session_id: SessionId
    question_id: str
    about: About
    text: str
    choices: Sequence[str]
    detail: Mapping[str, object]
    asked_at: int
    expires_at: int | None

    @classmethod
    def of(cls, asked: AskedQuestion) -> ApprovalView:
        question = asked.question
        return cls(
            id=short_id(asked.turn_id, question.id),
            turn_id=asked.turn_id,
            session_id=asked.session_id,
            question_id=question.id,
            about=question.about,
            text=question.text,
            choices=question.choices,
            detail=question.detail,
            asked_at=asked.asked_at,
            expires_at=question.expires_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantView:
    """Something that is allowed without asking: in one session, or in all of them."""

    id: str
    text: str
    session_id: SessionId | None
    granted_at: int

    @classmethod
    def of(cls, grant: Grant) -> GrantView:
        return cls(
            id=grant.fingerprint[:_GRANT_CHARS],
            text=grant.text,
            session_id=grant.session_id,
            granted_at=grant.granted_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvals:
    """The open questions and the standing grants of the caller."""

    store: Store
    caller: Caller

    @operation("GET /api/approvals", "List the questions that turns wait for", offline=True)
    async def list(self, *, session_id: OfSession = None, cursor: Cursor = None, limit: Limit = 50) -> Page[ApprovalView]:
        """Return open questions, the oldest first."""
        after, limit = pages.position(cursor), pages.size(limit)
        found = await self.store.questions.open(self.caller.owner, session_id, after, limit)
        more = pages.after((found[-1].asked_at, found[-1].turn_id)) if len(found) == limit else None
        return Page(items=[ApprovalView.of(each) for each in found], next_cursor=more)

    @operation("GET /api/grants", "List what may be done unasked", offline=True)
    async def grants(self) -> Page[GrantView]:
        return Page(items=[GrantView.of(each) for each in await self.store.questions.grants(self.caller.owner)])

    @operation("DELETE /api/grants/{id}", "Take a grant back")
    async def revoke(self, grant_id: str) -> GrantView:
        """Ask again from now on.  Raises `NotFound`."""
        grants = await self.store.questions.grants(self.caller.owner)
        found = [each for each in grants if each.fingerprint.startswith(grant_id)]
        # The same thing may be granted in several sessions; two things are a different matter.
        if not grant_id or len({each.fingerprint for each in found}) != 1:
            raise NotFound(f"there is no grant {grant_id!r}; see `holdfast approvals grants`")
        await self.store.questions.revoke(self.caller.owner, found[0].fingerprint)
        return GrantView.of(found[0])


async def find(approvals: Approvals, name: str) -> ApprovalView:
    """Return the open question with an id, with a beginning of one, or of a turn.  Raises `Rejected` where it is not one."""
    found: list[ApprovalView] = []
    page = await approvals.list(limit=pages.SIZE_MAX)
    while True:
        found += [each for each in page.items if name and (each.id.startswith(name) or each.turn_id == name)]
        if page.next_cursor is None:
            break
        page = await approvals.list(cursor=page.next_cursor, limit=pages.SIZE_MAX)
    if not found:
        raise NotFound(f"nothing waits under {name!r}, or it has been answered; {_WITHOUT_ONE}")
    if len(found) > 1:
        raise Rejected(f"{name!r} could be {' or '.join(each.id for each in found)}; {_WITHOUT_ONE}")
    return found[0]
