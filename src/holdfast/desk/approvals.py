"""Open questions and standing grants of one owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.desk import cursors
from holdfast.desk.port import ApprovalsReading
from holdfast.desk.views import ApprovalView, GrantView, Page
from holdfast.errors import NotFound, Rejected
from holdfast.ids import SessionId

if TYPE_CHECKING:
    # The command line imports this module, and must not load the store.
    from holdfast.store.store import Store

_WITHOUT_ONE = "see `holdfast approvals list`"


@dataclass(frozen=True, slots=True)
class StoreApprovals:
    """What the store knows of them."""

    store: Store
    owner: str

    async def list(
        self, *, session_id: SessionId | None = None, cursor: str | None = None, limit: int = 50
    ) -> Page[ApprovalView]:
        after, limit = cursors.position(cursor), cursors.size(limit)
        found = await self.store.questions.open(self.owner, session_id, after, limit)
        more = cursors.after((found[-1].asked_at, found[-1].turn_id)) if len(found) == limit else None
        return Page(items=[ApprovalView.of(each) for each in found], next_cursor=more)

    async def grants(self) -> Page[GrantView]:
        return Page(items=[GrantView.of(each) for each in await self.store.questions.grants(self.owner)])

    async def revoke(self, grant_id: str) -> GrantView:
        found = [each for each in await self.store.questions.grants(self.owner) if each.fingerprint.startswith(grant_id)]
        # The same thing may be granted in several sessions; two things are a different matter.
        if not grant_id or len({each.fingerprint for each in found}) != 1:
            raise NotFound(f"there is no grant {grant_id!r}; see `holdfast approvals grants`")
        await self.store.questions.revoke(self.owner, found[0].fingerprint)
        return GrantView.of(found[0])


async def find(approvals: ApprovalsReading, name: str) -> ApprovalView:
    """Return the open question with an id, with a beginning of one, or of a turn.  Raises `Rejected` where it is not one."""
    found: list[ApprovalView] = []
    page = await approvals.list(limit=cursors.SIZE_MAX)
    while True:
        found += [each for each in page.items if name and (each.id.startswith(name) or each.turn_id == name)]
        if page.next_cursor is None:
            break
        page = await approvals.list(cursor=page.next_cursor, limit=cursors.SIZE_MAX)
    if not found:
        raise NotFound(f"nothing waits under {name!r}, or it has been answered; {_WITHOUT_ONE}")
    if len(found) > 1:
        raise Rejected(f"{name!r} could be {' or '.join(each.id for each in found)}; {_WITHOUT_ONE}")
    return found[0]
