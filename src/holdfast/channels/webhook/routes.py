"""The webhook routes of a gateway: those of its configuration, and those that were added while it runs."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence

from holdfast.channels.webhook import route as webhook_route
from holdfast.channels.webhook.route import Route
from holdfast.channels.webhook.signatures import spellings
from holdfast.config import RouteConfig, signing_weakness, wrong_with_route
from holdfast.core.redaction import Redaction
from holdfast.errors import ConfigInvalid, NotFound, Rejected
from holdfast.offload.pool import Pool
from holdfast.store.cache import Cache
from holdfast.store.database import Wakes
from holdfast.store.webhooks import WebhookRoute, WebhookStore
from holdfast.targets import Targets

log = logging.getLogger(__name__)

TOPIC = "webhooks"


class Routes(Cache):
    """Every route that takes deliveries here, ready to be used."""

    def __init__(
        self,
        stored: WebhookStore,
        wakes: Wakes,
        configured: Mapping[str, RouteConfig],
        *,
        host: str,
        targets: Targets,
        redaction: Redaction,
        pool: Pool | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        super().__init__(TOPIC, wakes)
        # The filters that search for a pattern run in it.
        self.pool = pool or Pool()
        self._stored = stored
        self._host = host
        self._targets = targets
        self._redaction = redaction
        self.configured = {
            name: configured_route(name, each, host, targets, environment) for name, each in configured.items()
        }
        self._found: Sequence[WebhookRoute] = ()
        self._live: Mapping[str, Route] = self.configured

    def find(self, name: str) -> Route:
        """Return a route that takes deliveries.  Raises `NotFound`."""
        found = self._live.get(name)
        if found is None or not found.config.enabled:
            raise NotFound(f"there is no webhook route {name[:100]!r}")
        return found

    async def save(self, name: str, config: RouteConfig, created_at: int) -> None:
        """Add a route, or change it.  It takes deliveries from then on.  Raises `Rejected` with what is wrong with it."""
        self._ready(name, config)
        await self._stored.save(WebhookRoute(name=name, config=config, created_at=created_at))
        await self.load()

    def _ready(self, name: str, config: RouteConfig) -> Route:
        return added_route(name, config, self._host, self._targets)

    async def _look(self) -> None:
        found = await self._stored.list()
        if found != self._found:
            self._found = found
            # A route of the configuration goes before one of that name that was added.
            self._live = {**self._added(found), **self.configured}

    def _added(self, found: Sequence[WebhookRoute]) -> Mapping[str, Route]:
        added: dict[str, Route] = {}
        for each in found:
            self._hide(each.config.secret)
            try:
                added[each.name] = self._ready(each.name, each.config)
            except Rejected as error:
                log.warning("the webhook route %s is closed, add it again: %s", each.name, error)
        return added

    def _hide(self, secret: str) -> None:
        self._redaction.learn(spellings(secret))


def added_route(name: str, config: RouteConfig, host: str, targets: Targets) -> Route:
    """Return a route that was added, or is to be.  Raises `Rejected`."""
    for key, problem in wrong_with_route(config, host).items():
        raise Rejected(f"{key} {problem}")
    return webhook_route.ready(name, config, config.secret, targets)


def configured_route(
    name: str, config: RouteConfig, host: str, targets: Targets, environment: Mapping[str, str] = os.environ
) -> Route:
    """Return a route of the configuration.  Raises `ConfigInvalid`."""
    where = f"channels.webhook.routes.{name}"
    secret = environment.get(config.secret_env, "") if config.secret_env else config.secret
    if config.secret_env and (problem := signing_weakness(secret) if secret else "is not set"):
        raise ConfigInvalid(f"{where}.secret_env: the variable {config.secret_env} {problem}")
    # The host may be another one than in the file.
    for key, problem in wrong_with_route(config, host).items():
        raise ConfigInvalid(f"{where}.{key}: {problem}")
    try:
        return webhook_route.ready(name, config, secret, targets)
    except Rejected as error:
        raise ConfigInvalid(f"{where}.{error}") from error
