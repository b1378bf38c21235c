"""Webhook routes: what is done with the deliveries that arrive at an address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.channels.webhook import signatures
from holdfast.channels.webhook.delivery import checked_id
from holdfast.channels.webhook.signatures import ANY, Scheme, answers_secret
from holdfast.clock import Clock
from holdfast.config import BODY_LIMIT, RouteConfig, SchemeChoice
from holdfast.core.keys import ADMIN
from holdfast.errors import NotFound, Rejected
from holdfast.ids import new_id
from holdfast.operations.operation import operation
from holdfast.operations.pages import Page, Removed
from holdfast.operations.projection import project

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.channels.webhook.payload import Payload
    from holdfast.channels.webhook.route import Route
    from holdfast.channels.webhook.routes import Routes
    from holdfast.store.store import Store

ADDED_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePlan:
    """A webhook route to be added, or changed where one of that name was added before.

    Without a `secret` a new route gets a random one, and a changed route keeps its own.
    """

    name: str
    secret: str = ""
    prompt: str = "{__raw__}"
    deliver: str = "log"
    deliver_only: bool = False
    events: tuple[str, ...] = ()
    filters: object = None
    enabled: bool = True
    rate_limit: int = 0
    body_limit: int = BODY_LIMIT
    scheme: SchemeChoice = "any"
    insecure_no_auth: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Signing:
    """A delivery to be signed as its sender would.  Without a `scheme`, that of the route is used."""

    body: str
    scheme: Scheme | None = None
    delivery_id: str = ""


class RouteSource(StrEnum):
    """Where a webhook route stands: in the configuration, or in the store."""

    CONFIGURATION = "configuration"
    ADDED = "added"


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteView:
    """A webhook route as it is shown: never with its secret.  Only one that was added can be removed."""

    name: str
    path: str
    source: RouteSource
    signed: bool
    prompt: str
    deliver: str
    deliver_only: bool
    events: Sequence[str]
    filters: object
    enabled: bool
    rate_limit: int
    body_limit: int
    scheme: str
    created_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRoute:
    """A webhook route and its address.  Its secret is shown only when it is new."""

    route: RouteView
    url: str
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A delivery as its sender would send it."""

    url: str
    headers: Mapping[str, str]
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningSecret:
    """What answers to `url:` targets are signed with."""

    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """The webhook routes of a gateway.  `configured` are those of its configuration, and `url` is its address."""

    store: Store
    configured: Mapping[str, RouteConfig]
    routes: Routes
    clock: Clock
    url: str
    signing_secret: str

    @operation("GET /api/webhooks", "List webhook routes", scope=ADMIN, offline=True)
    async def list(self) -> Page[RouteView]:
        added = {each.name: _view(each.name, each.config, each.created_at) for each in await self.store.webhooks.list()}
        fixed = {name: _view(name, config) for name, config in self.configured.items()}
        return Page(items=[view for _, view in sorted({**added, **fixed}.items())])

    @operation("GET /api/webhooks/{id}", "Show a webhook route", scope=ADMIN, offline=True)
    async def get(self, name: str) -> RouteView:
        for each in (await self.list()).items:
            if each.name == name:
                return each
        raise NotFound(f"there is no webhook route {name!r}; see `holdfast webhooks list`")

    @operation(
        "POST /api/webhooks", "Add a webhook route; a secret that is made up is shown only now", scope=ADMIN, status=201
    )
    async def add(self, plan: RoutePlan) -> NewRoute:
        """Add a route, or change it.  It takes deliveries from then on.  Raises `Rejected` with what is wrong with it."""
        self._refuse_configured(plan.name)
        added = {each.name: each for each in await self.store.webhooks.list()}
        before = added.get(plan.name)
        if before is None and len(added) >= ADDED_MAX:
            raise Rejected(f"there are {ADDED_MAX} webhook routes already; remove one first")
        kept = before.config.secret if before and not plan.insecure_no_auth else ""
        random = "" if plan.secret or kept or plan.insecure_no_auth else signatures.new_secret()
        config = _config(plan, plan.secret or kept or random)
        created_at = before.created_at if before else self.clock.now_ms()
        await self.routes.save(plan.name, config, created_at)
        view = _view(plan.name, config, created_at)
        return NewRoute(route=view, secret=plan.secret or random, url=self.url + view.path)

    @operation("DELETE /api/webhooks/{id}", "Remove a webhook route that was added", scope=ADMIN)
    async def remove(self, name: str) -> Removed:
        """Remove a route, which takes no more deliveries.  Raises `Rejected` for one of the configuration."""
        self._refuse_configured(name)
        if not await self.store.webhooks.remove(name):
            raise NotFound(f"there is no webhook route {name!r}; see `holdfast webhooks list`")
        await self.routes.load()
        return Removed()

    @operation("POST /api/webhooks/{id}/sign", "Sign a delivery as its sender would", scope=ADMIN)
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

    @operation("GET /api/signing-secret", "Show what answers to url: targets are signed with", scope=ADMIN)
    async def secret(self) -> SigningSecret:
        if self.signing_secret:
            raise Rejected("answers are signed with channels.url.secret of the configuration, which is not shown")
        return SigningSecret(secret=await answers_secret(self.store.secrets))

    def find(self, name: str) -> Route:
        """Return a route that takes deliveries.  Raises `NotFound`."""
        return self.routes.find(name)

    async def takes(self, route: Route, payload: Payload) -> bool:
        """Return whether a delivery of a route counts.  Raises `TooSlow`."""
        return await route.takes(payload, self.routes.pool)

    def _refuse_configured(self, name: str) -> None:
        if name in self.configured:
            raise Rejected(f"the webhook route {name!r} is one of the configuration; change it there")


def path_of(name: str) -> str:
    """Return where deliveries of a route go."""
    return f"/webhooks/{name}"


def _config(plan: RoutePlan, secret: str) -> RouteConfig:
    return project(RouteConfig, plan, secret=secret)


def _view(name: str, config: RouteConfig, created_at: int | None = None) -> RouteView:
    source = RouteSource.CONFIGURATION if created_at is None else RouteSource.ADDED
    signed = not config.insecure_no_auth
    return project(RouteView, config, name=name, path=path_of(name), source=source, signed=signed, created_at=created_at)
