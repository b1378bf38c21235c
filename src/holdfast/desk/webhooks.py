"""Webhook routes: those of the configuration and those that were added while the gateway runs, as one."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.channels.webhook import route as routes
from holdfast.channels.webhook import signatures
from holdfast.channels.webhook.delivery import checked_id
from holdfast.channels.webhook.payload import Payload
from holdfast.channels.webhook.route import Route
from holdfast.channels.webhook.signatures import ANY, Scheme
from holdfast.clock import Clock
from holdfast.config import SIGNING_PREFIX, RouteConfig, signing_weakness, wrong_with_route
from holdfast.core.redaction import Redaction
from holdfast.desk.mirror import Mirror
from holdfast.desk.plans import RoutePlan, Signing
from holdfast.desk.views import NewRoute, RouteSource, RouteView, Signed
from holdfast.errors import ConfigInvalid, NotFound, Rejected
from holdfast.ids import new_id
from holdfast.offload.pool import Pool
from holdfast.operations.pages import Page
from holdfast.store.access import SecretStore
from holdfast.store.database import Wakes
from holdfast.store.store import Store
from holdfast.store.webhooks import WebhookRoute, WebhookStore
from holdfast.targets import Targets

log = logging.getLogger(__name__)

TOPIC = "webhooks"
ADDED_MAX = 1_000
# Under which name the secret of answers to `url:` targets is kept.
ANSWERS = "url"


class Routes(Mirror):
    """Every route that takes deliveries here, ready to be used.  While the store is away, what was last known counts."""

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
        # Where the filters of routes are applied that search.
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

    def ready(self, name: str, config: RouteConfig) -> Route:
        """Return a route that is to be added.  Raises `Rejected`."""
        return added_route(name, config, self._host, self._targets)

    async def _look(self) -> None:
        found = await self._stored.list()
        if found != self._found:
            self._found = found
            # Whoever writes the configuration does.
            self._live = {**self._added(found), **self.configured}

    def _added(self, found: Sequence[WebhookRoute]) -> Mapping[str, Route]:
        added: dict[str, Route] = {}
        for each in found:
            self._hide(each.config.secret)
            try:
                added[each.name] = self.ready(each.name, each.config)
            except Rejected as error:
                log.warning("the webhook route %s is closed, add it again: %s", each.name, error)
        return added

    def _hide(self, secret: str) -> None:
        self._redaction.learn(told_of(secret))


def added_route(name: str, config: RouteConfig, host: str, targets: Targets) -> Route:
    """Return a route that was added, or is to be.  Raises `Rejected`."""
    for key, problem in wrong_with_route(config, host).items():
        raise Rejected(f"{key} {problem}")
    return routes.ready(name, config, config.secret, targets)


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
        return routes.ready(name, config, secret, targets)
    except Rejected as error:
        raise ConfigInvalid(f"{where}.{error}") from error


@dataclass(frozen=True, slots=True)
class StoreWebhooks:
    """What is known of the routes, also while no gateway runs."""

    store: Store
    configured: Mapping[str, RouteConfig]

    async def list(self) -> Page[RouteView]:
        added = {each.name: _view(each.name, each.config, each.created_at) for each in await self.store.webhooks.list()}
        fixed = {name: _view(name, config) for name, config in self.configured.items()}
        return Page(items=[view for _, view in sorted({**added, **fixed}.items())])

    async def get(self, name: str) -> RouteView:
        for each in (await self.list()).items:
            if each.name == name:
                return each
        raise NotFound(f"there is no webhook route {name!r}; see `holdfast webhooks list`")


@dataclass(frozen=True, slots=True)
class LocalWebhooks(StoreWebhooks):
    """The same, to be changed and used.  `url` is where the gateway is reached."""

    routes: Routes
    clock: Clock
    url: str
    signing_secret: str

    def find(self, name: str) -> Route:
        return self.routes.find(name)

    async def takes(self, route: Route, payload: Payload) -> bool:
        return await route.takes(payload, self.routes.pool)

    async def add(self, plan: RoutePlan) -> NewRoute:
        self._refuse_configured(plan.name)
        added = {each.name: each for each in await self.store.webhooks.list()}
        before = added.get(plan.name)
        if before is None and len(added) >= ADDED_MAX:
            raise Rejected(f"there are {ADDED_MAX} webhook routes already; remove one first")
        kept = before.config.secret if before and not plan.insecure_no_auth else ""
        made_up = "" if plan.secret or kept or plan.insecure_no_auth else signatures.new_secret()
        config = _config(plan, plan.secret or kept or made_up)
        self.routes.ready(plan.name, config)
        created_at = before.created_at if before else self.clock.now_ms()
        await self.store.webhooks.save(WebhookRoute(name=plan.name, config=config, created_at=created_at))
        await self.routes.load()
        view = _view(plan.name, config, created_at)
        return NewRoute(route=view, secret=plan.secret or made_up, url=self.url + view.path)

    async def remove(self, name: str) -> None:
        self._refuse_configured(name)
        if not await self.store.webhooks.remove(name):
            raise NotFound(f"there is no webhook route {name!r}; see `holdfast webhooks list`")
        await self.routes.load()

    async def sign(self, name: str, signing: Signing) -> Signed:
        route, now = self.find(name), self.clock.now_ms()
        scheme = signing.scheme or (Scheme.STANDARD if route.config.scheme == ANY else Scheme(route.config.scheme))
        headers = {"Content-Type": "application/json"}
        if scheme is Scheme.GITLAB:
            raise Rejected("GitLab's token is the secret itself, which is not shown again; send it as X-Gitlab-Token")
        if not route.config.insecure_no_auth:
            delivery = checked_id(signing.delivery_id or new_id("test", now), "delivery_id")
            headers |= signatures.sign(scheme, signing.body.encode(), route.secret, now, delivery)
        return Signed(url=f"{self.url}{path_of(name)}", headers=headers, body=signing.body)

    async def secret(self) -> str:
        if self.signing_secret:
            raise Rejected("answers are signed with channels.url.secret of the configuration, which is not shown")
        return await answers_secret(self.store.secrets)

    def _refuse_configured(self, name: str) -> None:
        if name in self.configured:
            raise Rejected(f"the webhook route {name!r} is one of the configuration; change it there")


def told_of(secret: str) -> tuple[str, ...]:
    """Return how a secret that signs may be told: as it is, and without what it begins with."""
    return secret, secret.removeprefix(SIGNING_PREFIX)


async def answers_secret(secrets: SecretStore) -> str:
    """Return what answers to `url:` targets are signed with where the operator chose nothing: made up once, and kept."""
    return await secrets.get_or_add(ANSWERS, signatures.new_secret())


def path_of(name: str) -> str:
    """Return where deliveries of a route go."""
    return f"/webhooks/{name}"


def _config(plan: RoutePlan, secret: str) -> RouteConfig:
    return RouteConfig(
        secret=secret,
        prompt=plan.prompt,
        deliver=plan.deliver,
        deliver_only=plan.deliver_only,
        events=plan.events,
        filters=plan.filters,
        enabled=plan.enabled,
        rate_limit=plan.rate_limit,
        body_limit=plan.body_limit,
        scheme=plan.scheme,
        insecure_no_auth=plan.insecure_no_auth,
    )


def _view(name: str, config: RouteConfig, created_at: int | None = None) -> RouteView:
    return RouteView(
        name=name,
        path=path_of(name),
        source=RouteSource.CONFIGURATION if created_at is None else RouteSource.ADDED,
        signed=not config.insecure_no_auth,
        prompt=config.prompt,
        deliver=config.deliver,
        deliver_only=config.deliver_only,
        events=config.events,
        filters=config.filters,
        enabled=config.enabled,
        rate_limit=config.rate_limit,
        body_limit=config.body_limit,
        scheme=config.scheme,
        created_at=created_at,
    )
