"""Keys of programs."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.core.keys import ADMIN
from holdfast.desk.plans import KeyPlan
from holdfast.desk.views import KeyView, NewKey, RevokedKey
from holdfast.operations.pages import Page
from holdfast.web.answers import answer
from holdfast.web.endpoints import Call, Endpoint


class Keys:
    """Who may use the API."""

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET", path="/api/keys", handle=self.list, summary="List keys", scope=ADMIN, gives=Page[KeyView]
            ),
            Endpoint(
                method="POST",
                path="/api/keys",
                handle=self.create,
                summary="Make a key, which is shown only now",
                scope=ADMIN,
                takes=KeyPlan,
                gives=NewKey,
                status=201,
            ),
            Endpoint(
                method="DELETE",
                path="/api/keys/{id}",
                handle=self.revoke,
                summary="Let a key open nothing any more",
                scope=ADMIN,
                gives=RevokedKey,
            ),
        ]

    async def list(self, call: Call) -> Response:
        return answer(await call.desk.keys.list())

    async def create(self, call: Call) -> Response:
        return answer(await call.desk.keys.create(await call.body(KeyPlan)), 201)

    async def revoke(self, call: Call) -> Response:
        return answer(await call.desk.keys.revoke(call.name()))
