"""Deliveries: messages on their way out, and what is known of their arrival."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from holdfast.clock import Clock
from holdfast.core.delivery import Delivery, DeliveryState
from holdfast.errors import NotFound
from holdfast.ids import DeliveryId
from holdfast.operations import pages
from holdfast.operations.caller import Caller
from holdfast.operations.operation import Query, operation
from holdfast.operations.ownership import own_session
from holdfast.operations.pages import Cursor, Limit, OfSession, Page

if TYPE_CHECKING:
    # A command that asks a running gateway does not import it.
    from holdfast.store.store import Store

OfState = Annotated[DeliveryState | None, Query("Only those in this state.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliveries:
    """The deliveries of the caller's sessions, and the notices to them."""

    store: Store
    caller: Caller
    clock: Clock

    @operation("GET /api/deliveries", "List deliveries, the newest first", offline=True)
    async def list(
        self, *, state: OfState = None, session_id: OfSession = None, cursor: Cursor = None, limit: Limit = 50
    ) -> Page[Delivery]:
        if session_id is not None:
            await own_session(self.store, self.caller, session_id)
        before, limit = pages.position(cursor), pages.size(limit)
        found = await self.store.catalog.deliveries(self.caller.owner, before, limit, state, session_id)
        more = pages.after((found[-1].created_at, found[-1].id)) if len(found) == limit else None
        return Page(items=found, next_cursor=more)

    @operation("GET /api/deliveries/{id}", "Show a delivery", offline=True)
    async def get(self, delivery_id: DeliveryId) -> Delivery:
        found = await self.store.deliveries.get(delivery_id)
        missing = f"there is no delivery {delivery_id}"
        if found.session_id is not None:
            await own_session(self.store, self.caller, found.session_id, missing)
        elif found.owner != self.caller.owner:
            raise NotFound(missing)
        return found

    @operation("POST /api/deliveries/{id}/retry", "Send a delivery again that was given up", status=202)
    async def retry(self, delivery_id: DeliveryId) -> Delivery:
        await self.get(delivery_id)
        return await self.store.deliveries.retry(delivery_id, self.clock.now_ms())
