"""What is on its way out."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.core.delivery import Delivery, DeliveryState
from holdfast.ids import DeliveryId, SessionId
from holdfast.operations.pages import Page
from holdfast.web.answers import answer
from holdfast.web.endpoints import Call, Endpoint


class Deliveries:
    """The outbox."""

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/deliveries",
                handle=self.list,
                summary="List deliveries, the newest first",
                gives=Page[Delivery],
                query=("state", "session", "cursor", "limit"),
            ),
            Endpoint(
                method="GET",
                path="/api/deliveries/{id}",
                handle=self.show,
                summary="Show a delivery",
                gives=Delivery,
            ),
            Endpoint(
                method="POST",
                path="/api/deliveries/{id}/retry",
                handle=self.retry,
                summary="Send a delivery again that was given up",
                gives=Delivery,
                status=202,
            ),
        ]

    async def list(self, call: Call) -> Response:
        session_id = call.word("session")
        page = await call.desk.deliveries(
            state=call.choice("state", DeliveryState),
            session_id=SessionId(session_id) if session_id else None,
            cursor=call.word("cursor"),
            limit=call.number("limit", 50),
        )
        return answer(page)

    async def show(self, call: Call) -> Response:
        return answer(await call.desk.delivery(DeliveryId(call.name())))

    async def retry(self, call: Call) -> Response:
        return answer(await call.desk.retry_delivery(DeliveryId(call.name())), 202)
