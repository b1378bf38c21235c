"""Routes: parsed and checked settings of one webhook address."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from holdfast.channels.webhook import filters, template
from holdfast.channels.webhook.payload import Payload
from holdfast.channels.webhook.signatures import Scheme, standard_key
from holdfast.channels.webhook.template import Template
from holdfast.config import Config, Problems, RouteConfig
from holdfast.errors import Rejected
from holdfast.offload.pool import Pool
from holdfast.targets import Targets

T = TypeVar("T")

LOG = "log"
TARGET_MAX = 1_000
BODY_MAX = 16 * 1024 * 1024
EVENTS_MAX = 100
RATE_MAX = 1_000_000_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# A payload must not choose these: a web address is as powerful as a command, and files belong to the operator.
_FIXED: Final = frozenset({"url", "file"})
_KIND = re.compile(r"[a-z][a-z0-9_]*")
_SAFE = re.compile(r"[A-Za-z0-9._/-]{1,200}")


class NoTarget(Rejected):
    """The payload names no valid target for the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route that is ready to take deliveries.  Without a `target`, answers stay in their sessions."""

    name: str
    config: RouteConfig
    secret: str
    prompt: Template
    target: Template | None
    events: frozenset[str]
    targets: Targets

    async def takes(self, payload: Payload, pool: Pool) -> bool:
        """Return whether a delivery starts a turn.  Raises `TooSlow`."""
        if self.events and payload.event_type not in self.events:
            return False
        return await filters.takes(self.config.filters, payload, pool, user=f"webhook:{self.name}")

    def address(self, payload: Payload) -> str | None:
        """Return the target of the answer; None if it stays in the session.  Raises `NoTarget`."""
        if self.target is None:
            return None
        for field in self.target.fields():
            value = field.value(payload)
            if value is None or not _SAFE.fullmatch(value) or ".." in value:
                shown = "is missing" if value is None else "has characters other than letters, digits and . _ / -"
                raise NoTarget(f"the answer would go to {self.config.deliver!r}, and {field.name!r} {shown}")
        return self._checked(self.target.render(payload).text)

    def _checked(self, target: str) -> str:
        try:
            self.targets.find(target)
        except Rejected as error:
            raise NoTarget(str(error)) from error
        return target


def ready(name: str, config: RouteConfig, secret: str, targets: Targets) -> Route:
    """Return a route that is ready to take deliveries.  Raises `Rejected` with what is wrong with it."""
    for key, problem in problems(name, config):
        raise Rejected(f"{key}: {problem}" if key else problem)
    route = Route(
        name=name,
        config=config,
        secret=secret,
        prompt=template.parse(config.prompt),
        target=None if config.deliver == LOG else template.parse(config.deliver),
        events=frozenset(config.events),
        targets=targets,
    )
    # If a payload chooses the address, only the channel can be checked in advance.
    open_ended = route.target is None or (any(route.target.fields()) and targets.has(config.deliver))
    if not open_ended and (problem := _refused(targets.find, config.deliver)):
        raise Rejected(f"deliver: {problem}")
    return route


def problems(name: str, config: RouteConfig) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a route, by key."""
    if not NAME.fullmatch(name):
        yield "", f"{name!r} is not a valid name of a route: use letters, digits, dots, - and _ only, 64 at most"
    if problem := _refused(template.parse, config.prompt):
        yield "prompt", problem
    if problem := _refused(filters.parse, config.filters):
        yield "filters", problem
    if not config.prompt.strip():
        yield "prompt", "is empty; remove it to give the agent the whole payload"
    if config.scheme == Scheme.STANDARD and (problem := _refused(standard_key, config.secret)):
        yield "secret", problem
    if not 1 <= config.body_limit <= BODY_MAX:
        yield "body_limit", f"must be between 1 and {BODY_MAX} bytes"
    if not 0 <= config.rate_limit <= RATE_MAX:
        yield "rate_limit", f"must be between 0 (no limit) and {RATE_MAX} deliveries per minute"
    if len(config.events) > EVENTS_MAX:
        yield "events", f"has more than {EVENTS_MAX} events"
    if problem := _wrong_with_target(config.deliver):
        yield "deliver", problem
    if config.deliver_only and config.deliver == LOG:
        yield "deliver_only", "needs a target in deliver; without an agent, an answer to the log is never read"


def misconfigured(config: Config) -> Problems:
    """Yield what is wrong with the routes of a configuration, and the path of each setting."""
    for name, route in config.channels.webhook.routes.items():
        for key, problem in problems(name, route):
            yield ("channels", "webhook", "routes", name, *((key,) if key else ())), problem


def _refused(parse: Callable[[T], object], said: T) -> str:
    try:
        parse(said)
    except Rejected as error:
        return str(error)
    return ""


def _wrong_with_target(deliver: str) -> str:
    kind, colon, rest = deliver.partition(":")
    if deliver == LOG:
        return ""
    if not colon or not rest or not _KIND.fullmatch(kind):
        return f'{deliver!r} is not a target; write "{LOG}", or a channel and an address, like "url:https://…"'
    if len(deliver) > TARGET_MAX:
        return f"is longer than {TARGET_MAX} characters"
    if kind in _FIXED and ("{" in rest or "}" in rest):
        return f"the payload must not choose the {kind}; write it without braces"
    return _refused(template.parse, deliver)
