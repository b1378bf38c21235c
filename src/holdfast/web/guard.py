"""The guard: who may speak to the gateway over TCP, judged before anything else looks at a request."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.config import is_loopback
from holdfast.web.answers import Refused, refusal
from holdfast.web.principal import GUEST, NOBODY, OPERATOR, Principal

# Answered without a key, because whoever watches over a gateway should not need one.
OPEN_PATHS = frozenset({"/health", "/ready"})
_OWN_SITE = frozenset({"same-origin", "none"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the operator configured about access.

    An empty key means that only this machine is let in.  `host` is where the gateway listens; `allowed_hosts` are further
    names of it, as a proxy in front of it has one.
    """

    api_key: str = ""
    host: str = ""
    allowed_hosts: tuple[str, ...] = ()


def judge(rules: Rules, path: str, headers: Mapping[str, str]) -> Principal:
    """Return who is speaking.  Raises `Refused`."""
    host = headers.get("host", "")
    if not _is_ours(rules, host):
        # A name that only resolves to this machine is how a web page elsewhere would get in.
        hint = "use 127.0.0.1 or localhost, or add the name to server.allowed_hosts"
        raise Refused(421, "foreign_host", f"this gateway does not answer for {host[:100]!r}", hint)
    origin = headers.get("origin")
    if (origin is not None and not _is_own(rules, origin, host)) or headers.get("sec-fetch-site", "none") not in _OWN_SITE:
        raise Refused(403, "foreign_origin", "another site sent this request", "only the gateway's own page may")
    if not rules.api_key:
        return GUEST
    if _has_key(rules, headers.get("authorization", "")):
        return OPERATOR
    if path in OPEN_PATHS:
        return NOBODY
    raise Refused(401, "unauthorized", "a key is needed here", "send Authorization: Bearer with server.api_key")


def _is_ours(rules: Rules, host: str) -> bool:
    name = _name(host).lower()
    allowed = {each.lower() for each in (rules.host, *rules.allowed_hosts) if each}
    return is_loopback(name) or name.strip("[]") in allowed or name in allowed or host.lower() in allowed


def _is_own(rules: Rules, origin: str, host: str) -> bool:
    """Return whether a page was loaded from here: under the very host it asks, or one that a proxy has before it."""
    page = origin.partition("://")[2].lower()
    return page == host.lower() or page in {each.lower() for each in rules.allowed_hosts}


def _name(host: str) -> str:
    """Return the host without its port; an IPv6 address keeps its brackets."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def _has_key(rules: Rules, authorization: str) -> bool:
    scheme, _, key = authorization.partition(" ")
    # Compared as bytes, because a key that is not ASCII is wrong, not an error.
    same = hmac.compare_digest(key.strip().encode(errors="replace"), rules.api_key.encode(errors="replace"))
    return same and scheme.lower() == "bearer"


class Guarded:
    """An application behind the guard."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                principal = judge(self._rules, scope["path"], Headers(scope=scope))
            except Refused as error:
                await refusal(error.status, error.code, str(error), error.hint)(scope, receive, send)
                return
            scope.setdefault("state", {})["principal"] = principal
        await self._app(scope, receive, send)


class Trusted:
    """An application behind a socket that only the operator can open."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope.setdefault("state", {})["principal"] = OPERATOR
        await self._app(scope, receive, send)
