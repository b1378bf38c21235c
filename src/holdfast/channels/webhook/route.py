"""Routes: what an operator wants done with the deliveries of one address, understood once and refused early."""

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
# Where a payload must not decide: an address is as good as a command, and a file is the operator's own.
_FIXED: Final = frozenset({"url", "file"})
_KIND = re.compile(r"[a-z][a-z0-9_]*")
_SAFE = re.compile(r"[A-Za-z0-9._/-]{1,200}")


class NoTarget(Rejected):
    """The payload does not say where the answer should go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route that is ready to take deliveries.  Without a `target` their answers stay in their sessions."""

    name: str
    config: RouteConfig
    secret: str
    prompt: Template
    target: Template | None
    events: frozenset[str]
    targets: Targets

    async def takes(self, payload: Payload, pool: Pool) -> bool:
        """Return whether a delivery counts.  Raises `TooSlow`."""
        if self.events and payload.event_type not in self.events:
            return False
        return await filters.takes(self.config.filters, payload, pool, user=f"webhook:{self.name}")

    def address(self, payload: Payload) -> str | None:
        """Return where the answer goes; None where it stays.  Raises `NoTarget`."""
        if self.target is None:
            return None
        for field in self.target.fields():
            value = field.value(payload)
            if value is None or not _SAFE.fullmatch(value) or ".." in value:
                shown = "is missing" if value is None else "has other characters in it than letters, digits and . _ / -"
                raise NoTarget(f"the answer would go to {self.config.deliver!r}, and {field.name!r} {shown}")
        return self._checked(self.target.render(payload).text)

    def _checked(self, target: str) -> str:
        try:
            self.targets.find(target)
        except Rejected as error:
            raise NoTarget(str(error)) from error
        return target


def ready(name: str, config: RouteConfig, secret: str, targets: Targets) -> Route:
    """Return a route that can be used.  Raises `Rejected` with what is wrong with it."""
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
    # Where a payload decides about the address, only the channel can be told before one comes.
    open_ended = route.target is None or (any(route.target.fields()) and targets.has(config.deliver))
    if not open_ended and (problem := _refused(targets.find, config.deliver)):
        raise Rejected(f"deliver: {problem}")
    return route


def problems(name: str, config: RouteConfig) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a route, by key."""
    if not NAME.fullmatch(name):
        yield "", f"{name!r} cannot be the name of a route: use letters, digits, dots, - and _ only, 64 at most"
    if problem := _refused(template.parse, config.prompt):
        yield "prompt", problem
    if problem := _refused(filters.parse, config.filters):
        yield "filters", problem
    if not config.prompt.strip():
        yield "prompt", "is empty; leave it out to give the agent the whole payload"
    if config.scheme == Scheme.STANDARD and (problem := _refused(standard_key, config.secret)):
        yield "secret", problem
    if not 1 <= config.body_limit <= BODY_MAX:
        yield "body_limit", f"must be between 1 and {BODY_MAX} bytes"
    if not 0 <= config.rate_limit <= RATE_MAX:
        yield "rate_limit", f"must be between 0, any number, and {RATE_MAX} deliveries per minute"
    if len(config.events) > EVENTS_MAX:
        yield "events", f"has more than {EVENTS_MAX} in it"
    if problem := _wrong_with_target(config.deliver):
        yield "deliver", problem
    if config.deliver_only and config.deliver == LOG:
        yield "deliver_only", "needs a place in deliver to send to; without an agent nobody reads the log"


def misconfigured(config: Config) -> Problems:
    """Yield what is wrong with the routes of a configuration, and where."""
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
        return f'{deliver!r} is no place to deliver to; write "{LOG}", or a channel and an address, like "url:https://…"'
    if len(deliver) > TARGET_MAX:
        return f"is longer than {TARGET_MAX} characters"
    if kind in _FIXED and ("{" in rest or "}" in rest):
        return f"what is delivered must not choose the {kind}; write it out without braces"
    return _refused(template.parse, deliver)
