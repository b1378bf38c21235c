"""What turns wait for, and what may be done unasked."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.desk.views import ApprovalView, GrantView, Page
from holdfast.ids import SessionId
from holdfast.web.answers import answer
from holdfast.web.endpoints import Call, Endpoint


class Approvals:
    """Open questions, which are answered at their turn, and standing grants."""

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/approvals",
                handle=self.list,
                summary="List the questions that turns wait for",
                gives=Page[ApprovalView],
                query=("session", "cursor", "limit"),
            ),
            Endpoint(
                method="GET",
                path="/api/grants",
                handle=self.grants,
                summary="List what may be done unasked",
                gives=Page[GrantView],
            ),
            Endpoint(
                method="DELETE",
                path="/api/grants/{id}",
                handle=self.revoke,
                summary="Take a grant back",
                gives=GrantView,
            ),
        ]

    async def list(self, call: Call) -> Response:
        session_id = call.word("session")
        page = await call.desk.approvals.list(
            session_id=SessionId(session_id) if session_id else None,
            cursor=call.word("cursor"),
            limit=call.number("limit", 50),
        )
        return answer(page)

    async def grants(self, call: Call) -> Response:
        return answer(await call.desk.approvals.grants())

    async def revoke(self, call: Call) -> Response:
        return answer(await call.desk.approvals.revoke(call.name()))
