"""Webhook routes that were added while the gateway ran."""

from __future__ import annotations

from dataclasses import replace

from holdfast.config import RouteConfig
from holdfast.store.webhooks import WebhookRoute
from tests.conformance.scenes import Scene
from tests.conformance.test_wakes import listen

ALERTS = WebhookRoute(
    name="alerts",
    created_at=7,
    config=RouteConfig(
        secret="whsec_c2VjcmV0IG9mIGFsZXJ0cw==",
        prompt="Alert: {message}",
        deliver="telegram:1",
        events=("fired", "resolved"),
        filters={"all": [{"field": "level", "in": ["high", 1, None, 0.5]}, {"not": {"field": "test", "exists": True}}]},
        rate_limit=30,
        scheme="standard",
    ),
)


async def test_a_route_comes_back_as_it_was_saved(scene: Scene) -> None:
    """W1"""
    plain = WebhookRoute(name="Über", config=RouteConfig())
    for route in (ALERTS, plain):
        await scene.store.webhooks.save(route)
    await scene.reopen()
    found = await scene.store.webhooks.list()
    assert {route.name: route for route in found} == {"alerts": ALERTS, "Über": plain}


async def test_saving_a_route_again_changes_it(scene: Scene) -> None:
    """P1: it was added when it was first added."""
    await scene.store.webhooks.save(ALERTS)
    changed = replace(ALERTS, config=replace(ALERTS.config, enabled=False))
    await scene.store.webhooks.save(replace(changed, created_at=9))
    assert await scene.store.webhooks.list() == [changed]


async def test_a_route_is_removed_once(scene: Scene) -> None:
    await scene.store.webhooks.save(ALERTS)
    assert await scene.store.webhooks.remove("alerts")
    assert not await scene.store.webhooks.remove("alerts")
    assert await scene.store.webhooks.list() == []


async def test_whoever_serves_routes_hears_of_every_change(scene: Scene) -> None:
    heard, _ = listen(scene.store)
    await scene.store.webhooks.save(ALERTS)
    await scene.store.webhooks.remove("alerts")
    assert heard == ["webhooks", "webhooks"]


async def test_a_route_of_another_version_closes_no_other(scene: Scene) -> None:
    """R11: a field that is missing has its default, one that is unknown is passed over, and garbage is left out."""
    await scene.store.webhooks.save(ALERTS)
    for name, route in (("bad", "[1]"), ("worse", "{"), ("later", '{"secret": "later", "colour": 1, "scheme": "hmac"}')):
        await scene.sql("INSERT INTO webhooks VALUES (:name, :route, 0)", name=name, route=route)
    later = WebhookRoute(name="later", config=RouteConfig(secret="later", scheme="hmac"))
    assert await scene.store.webhooks.list() == [ALERTS, later]
