"""Webhook routes: what is done with the deliveries of an address."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.core.keys import ADMIN
from holdfast.desk.plans import RoutePlan, Signing
from holdfast.desk.views import NewRoute, RouteView, Signed, SigningSecret
from holdfast.operations.pages import Page, Removed
from holdfast.web.answers import answer
from holdfast.web.endpoints import Call, Endpoint


class Webhooks:
    """The routes, and what their senders and receivers sign with."""

    def endpoints(self) -> list[Endpoint]:
        one = "/api/webhooks/{id}"
        return [
            Endpoint(
                method="GET",
                path="/api/webhooks",
                handle=self.list,
                summary="List webhook routes",
                scope=ADMIN,
                gives=Page[RouteView],
            ),
            Endpoint(
                method="POST",
                path="/api/webhooks",
                handle=self.add,
                summary="Add a webhook route; a secret that is made up is shown only now",
                scope=ADMIN,
                takes=RoutePlan,
                gives=NewRoute,
                status=201,
            ),
            Endpoint(method="GET", path=one, handle=self.show, summary="Show a webhook route", scope=ADMIN, gives=RouteView),
            Endpoint(
                method="DELETE",
                path=one,
                handle=self.remove,
                summary="Remove a webhook route that was added",
                scope=ADMIN,
                gives=Removed,
            ),
            Endpoint(
                method="POST",
                path=f"{one}/sign",
                handle=self.sign,
                summary="Sign a delivery as its sender would",
                scope=ADMIN,
                takes=Signing,
                gives=Signed,
            ),
            Endpoint(
                method="GET",
                path="/api/signing-secret",
                handle=self.secret,
                summary="Show what answers to url: targets are signed with",
                scope=ADMIN,
                gives=SigningSecret,
            ),
        ]

    async def list(self, call: Call) -> Response:
        return answer(await call.desk.webhooks.list())

    async def show(self, call: Call) -> Response:
        return answer(await call.desk.webhooks.get(call.name()))

    async def add(self, call: Call) -> Response:
        return answer(await call.desk.webhooks.add(await call.body(RoutePlan)), 201)

    async def remove(self, call: Call) -> Response:
        await call.desk.webhooks.remove(call.name())
        return answer(Removed())

    async def sign(self, call: Call) -> Response:
        return answer(await call.desk.webhooks.sign(call.name(), await call.body(Signing)))

    async def secret(self, call: Call) -> Response:
        return answer(SigningSecret(secret=await call.desk.webhooks.secret()))
