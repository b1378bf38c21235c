"""The guard: who may speak to the gateway over TCP, judged before anything else looks at a request."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.clock import Clock
from holdfast.config import is_loopback
from holdfast.core.keys import PREFIX, digest
from holdfast.desk.logins import PROVED
from holdfast.errors import Unavailable
from holdfast.ports import Logins
from holdfast.web.answers import Refused, refusal
from holdfast.web.keyring import Keyring
from holdfast.web.presence import Presence
from holdfast.web.principal import AT_SOCKET, GUEST, NOBODY, STRANGER, Principal, reader, signed_in
from holdfast.web.protocol import Connection, connection_of
from holdfast.web.throttle import Bucket

COOKIE = "holdfast"
PROOF = "x-holdfast-proof"
# Whoever watches over a gateway is answered whatever they show, and while the store is away.
OPEN_PATHS = frozenset({"/health", "/ready"})
# Whoever revokes the very key that it shows is told that it is done, and so is whoever signs out.
KEYS_PATH = "/api/keys"
SIGN_OUT_PATH = "/api/sign-out"
# Enough for whoever mistypes, and for a script that has not heard of a new key; little for whoever guesses.
FAILURES_PER_MINUTE = 30
_OWN_SITE = frozenset({"same-origin", "none"})
# What a proxy says of those it speaks for.
_FORWARDED = frozenset({"forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"})
_READS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the operator configured about access.

    `host` is where the gateway listens; `allowed_hosts` are further names of it, as a proxy in front of it has one.
    With `closed` something has to be shown, even by this machine.
    """

    host: str = "127.0.0.1"
    allowed_hosts: tuple[str, ...] = ()
    closed: bool = False


def check_origin(rules: Rules, headers: Mapping[str, str]) -> None:
    """Refuse whatever a page elsewhere could have sent.  Raises `Refused`."""
    host = headers.get("host", "")
    if not _is_ours(rules, host):
        # A name that only resolves to this machine is how a web page elsewhere would get in.
        hint = "use 127.0.0.1 or localhost, or add the name to server.allowed_hosts"
        raise Refused(421, "foreign_host", f"this gateway does not answer for {host[:100]!r}", hint)
    origin = headers.get("origin")
    if (origin is not None and not _is_own(rules, origin, host)) or headers.get("sec-fetch-site", "none") not in _OWN_SITE:
        hint = "only the gateway's own page may; the name that a proxy has, with its port, belongs in server.allowed_hosts"
        raise Refused(403, "foreign_origin", "another site sent this request", hint)


def is_near(headers: Mapping[str, str]) -> bool:
    """Return whether a request is this machine's own: whoever comes by another name or through a proxy may be anybody."""
    return is_loopback(_name(headers.get("host", ""))) and _FORWARDED.isdisjoint(headers)


def cookie_name(port: int) -> str:
    """Return the name of the cookie: browsers do not keep those of several ports apart."""
    return f"{COOKIE}_{port}"


def cookie_of(headers: Mapping[str, str], port: int) -> str | None:
    """Return what a browser shows to this very port."""
    if "cookie" not in headers:
        return None
    # Whatever else is served on this machine may have cookies here too, in any form.
    return cookie_parser(headers["cookie"]).get(cookie_name(port))


def shown_by(cookie: str, headers: Mapping[str, str]) -> str:
    """Return all that a browser shows of a login: its cookie, with the proof that only its page has."""
    return f"{cookie}{PROVED}{headers[PROOF]}" if PROOF in headers else cookie


def port_of(scope: Scope) -> int:
    """Return on which port a request came in."""
    _, port = scope.get("server") or ("", 0)
    return port or 0


def bearer_of(headers: Mapping[str, str]) -> str | None:
    """Return the key that is shown; empty for a header that holds none, None without one."""
    authorization = headers.get("authorization")
    if authorization is None:
        return None
    scheme, _, key = authorization.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


class Door:
    """Tells who somebody is by what they show."""

    def __init__(self, rules: Rules, keyring: Keyring, logins: Logins, clock: Clock) -> None:
        self._rules = rules
        self._keyring = keyring
        self._logins = logins
        self._clock = clock
        self._failures = Bucket(FAILURES_PER_MINUTE, clock)
        self._browsers = Presence[str]()

    async def judge(self, method: str, path: str, headers: Mapping[str, str], port: int) -> Principal:
        """Return who is speaking.  Raises `Refused`."""
        check_origin(self._rules, headers)
        if path in OPEN_PATHS:
            return NOBODY
        await self._keyring.catch_up()
        if (key := bearer_of(headers)) is not None:
            return self._of_key(key, headers)
        if (cookie := cookie_of(headers, port)) is not None:
            return await self._of_cookie(cookie, method, headers)
        return GUEST if self._is_open(headers) else NOBODY

    def held(self, principal: Principal, connection: Connection) -> AbstractContextManager[None]:
        """Let a connection be used by the right of a key or a sign-in, for as long as there is one."""
        if principal.key_id:
            return self._keyring.held(principal.key_id, connection)
        return self._browsers.held(principal.login, connection)

    def leave(self, principal: Principal) -> None:
        """Close whatever else a browser has open that has signed out."""
        self._browsers.withdraw(principal.login)

    def _is_open(self, headers: Mapping[str, str]) -> bool:
        asked = self._rules.closed or self._keyring.closes
        return is_loopback(self._rules.host) and not asked and is_near(headers)

    def _of_key(self, key: str, headers: Mapping[str, str]) -> Principal:
        principal = self._keyring.find(key)
        if principal is None and self._is_open(headers) and key and not key.startswith(PREFIX):
            # Programs made for others cannot help showing something; it opens no more here than nothing would.
            return GUEST
        if principal is None:
            # The right key is found first, so that nobody can lock it out by showing wrong ones.
            return replace(STRANGER, wait_s=self._failures.take())
        if wait_s := self._keyring.admit(principal):
            hint = f"wait {wait_s} s, or make a key with a larger --rate-limit"
            raise Refused(429, "rate_limited", "this key has made too many requests", hint, wait_s)
        return principal

    async def _of_cookie(self, cookie: str, method: str, headers: Mapping[str, str]) -> Principal:
        login = await self._logins.find(digest(shown_by(cookie, headers)), self._clock.now_ms())
        if login is None:
            return STRANGER
        if PROOF not in headers:
            # Whatever else listens on this machine may have been shown the cookie, be it a server of the agent's own.
            return reader(login.owner, digest(cookie)) if method in _READS else STRANGER
        if method not in _READS and "origin" not in headers:
            # A browser shows its cookie whoever made it ask, and says of every write where it came from.
            hint = "send the Origin of the gateway's own page, or use a key"
            raise Refused(403, "no_origin", "a signed-in browser must say where this came from", hint)
        return signed_in(login.owner, digest(cookie))


def _is_ours(rules: Rules, host: str) -> bool:
    name = _name(host).lower()
    if is_loopback(name):
        return True
    allowed = {each.lower() for each in (rules.host, *rules.allowed_hosts) if each}
    return name.strip("[]") in allowed or name in allowed or host.lower() in allowed


def _is_own(rules: Rules, origin: str, host: str) -> bool:
    """Return whether a page was loaded from here: under the very host it asks, or one that a proxy has before it."""
    page = origin.partition("://")[2].lower()
    return page == host.lower() or page in {each.lower() for each in rules.allowed_hosts}


def _name(host: str) -> str:
    """Return the host without its port; an IPv6 address keeps its brackets."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def _headers(scope: Scope) -> Mapping[str, str]:
    """Return the headers by their names, in small letters; of what came twice the first counts."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}


class Guarded:
    """An application behind a door."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                principal = await self._door.judge(scope["method"], scope["path"], _headers(scope), port_of(scope))
            except Refused as error:
                await error.response(scope["path"])(scope, receive, send)
                return
            except Unavailable as error:
                await refusal(503, "store_down", str(error), "try again in a moment")(scope, receive, send)
                return
            scope.setdefault("state", {})["principal"] = principal
            await self._let_in(principal, scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _let_in(self, principal: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if not (principal.key_id or principal.login) or path.startswith(KEYS_PATH) or path == SIGN_OUT_PATH:
            await self._app(scope, receive, send)
        else:
            # A stream may last for weeks, and the right to it less.
            with self._door.held(principal, connection_of(scope)):
                await self._app(scope, receive, send)
        if path == SIGN_OUT_PATH and scope["method"] == "POST":
            self._door.leave(principal)


class Trusted:
    """An application behind a socket that only the operator can open."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope.setdefault("state", {})["principal"] = AT_SOCKET
        await self._app(scope, receive, send)
