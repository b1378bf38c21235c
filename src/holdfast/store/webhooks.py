"""Webhook routes that were added while the gateway ran; those of the configuration file are not here."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import msgspec

from holdfast.config import RouteConfig
from holdfast.store import rows
from holdfast.store.database import Database, Params, Row, Run, Transaction

log = logging.getLogger(__name__)

_SAVE = """
    INSERT INTO webhooks (name, route, created_at) VALUES (:name, :route, :created_at)
    ON CONFLICT (name) DO UPDATE SET route = excluded.route
"""
_ALL = "SELECT name, route, created_at FROM webhooks ORDER BY name"
_REMOVE = "DELETE FROM webhooks WHERE name = :name RETURNING name"

_decode = msgspec.json.Decoder(RouteConfig).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRoute:
    """A webhook route by its name, as it was configured or added."""

    name: str
    config: RouteConfig
    created_at: int = 0


class WebhookStore:
    """Every added route by its name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, route: WebhookRoute) -> None:
        """Add a route, or change the one of that name."""
        params: Params = {"name": route.name, "route": rows.encode(route.config), "created_at": route.created_at}
        await self._database.write(lambda: _run(_SAVE, params), wakes=lambda _: ("webhooks",))

    async def list(self) -> list[WebhookRoute]:
        """Return all routes by name."""
        found = [_route(*row) for row in await self._database.read(lambda: _run(_ALL, {}))]
        return [route for route in found if route is not None]

    async def remove(self, name: str) -> bool:
        """Delete a route; False when there is none of that name."""
        params = {"name": name}
        return bool(await self._database.write(lambda: _run(_REMOVE, params), wakes=lambda _: ("webhooks",)))


def _route(name: str, text: str, created_at: int) -> WebhookRoute | None:
    try:
        return WebhookRoute(name=name, config=_decode(text), created_at=created_at)
    except msgspec.MsgspecError as error:
        # What another version wrote and this one cannot read closes one route, not all of them.
        log.warning("webhook route %s cannot be read, add it again: %s", name, error)
        return None


def _run(sql: str, params: Params) -> Transaction[list[Row]]:
    return (yield Run(sql, params))
