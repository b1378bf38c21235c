"""The guard: who may speak to the gateway over TCP, judged before anything else looks at a request."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.clock import Clock
from holdfast.config import is_loopback
from holdfast.core import proofs
from holdfast.core.keys import PREFIX, digest
from holdfast.errors import Unavailable
from holdfast.store.access import LoginStore
from holdfast.web.answers import Refused, refusal
from holdfast.web.keyring import Keyring
from holdfast.web.nonces import Nonces
from holdfast.web.open_connections import OpenConnections
from holdfast.web.principal import ANONYMOUS, AT_SOCKET, GUEST, STRANGER, How, Principal, guest_of, signed_in
from holdfast.web.protocol import Connection, connection_of
from holdfast.web.throttle import Bucket

PROOF = "x-holdfast-proof"
# Tells a page with which nonce to sign its request again.
NONCE = "X-Holdfast-Nonce"
# Monitoring needs no valid key, and is answered while the store is down too.
OPEN_PATHS = frozenset({"/health", "/ready"})
# A client that revokes its own key, or signs out, still gets the answer before its connections are closed.
KEYS_PATH = "/api/keys"
SIGN_OUT_PATH = "/api/sign-out"
# Enough for typing mistakes and for a script with an old key, but too few for guessing a key.
FAILURES_PER_MINUTE = 30
_OWN_SITE = frozenset({"same-origin", "none"})
# Headers that a proxy adds to the requests that it forwards.
_FORWARDED = frozenset({"forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"})
_PAGE = "/"
ROOT = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the operator configured about access.

    `host` is where the gateway listens; `allowed_hosts` are further names of it, as a proxy in front of it has one.
    With `closed` something has to be shown, even by this machine.  `guests` says what becomes of programs of other users
    of this machine that show nothing.
    """

    host: str = "127.0.0.1"
    allowed_hosts: tuple[str, ...] = ()
    closed: bool = False
    guests: Literal["refuse", "own"] = "refuse"


def _unknown() -> int | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the door looks at of a request.  `target` is the path with its query; `uid` finds out whose the client is."""

    method: str
    target: str
    headers: Mapping[str, str]
    port: int
    uid: Callable[[], int | None] = _unknown

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


def check_origin(rules: Rules, asked: Asked) -> None:
    """Refuse a request that a page of another site could have sent.  Raises `Refused`."""
    headers = asked.headers
    host = headers.get("host", "")
    if not _is_ours(rules, host):
        # DNS rebinding: a page of another site can reach this machine by a name that resolves to it.
        hint = "use 127.0.0.1, or add the name to server.allowed_hosts"
        raise Refused(421, "foreign_host", f"this gateway does not answer for {host[:100]!r}", hint)
    if _opens_page(asked):
        # A link may lead here from anywhere: the page itself holds nothing, and opens nothing.
        return
    origin = headers.get("origin")
    if (origin is not None and not _is_own(rules, origin, host)) or headers.get("sec-fetch-site", "none") not in _OWN_SITE:
        hint = "only the gateway's own page may; the name that a proxy has, with its port, belongs in server.allowed_hosts"
        raise Refused(403, "foreign_origin", "another site sent this request", hint)


def is_near(headers: Mapping[str, str]) -> bool:
    """Return whether a request names this machine and has no proxy header; any other may come from another machine."""
    return is_loopback(_name(headers.get("host", ""))) and _FORWARDED.isdisjoint(headers)


def port_of(scope: Scope) -> int:
    """Return the port on which a request came in."""
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
    """Tells who a client is: by the key or the signature that it shows, else by its user.  `root` is that of all logins."""

    def __init__(self, rules: Rules, keyring: Keyring, logins: LoginStore, clock: Clock, root: str, nonces: Nonces) -> None:
        self._rules = rules
        self._keyring = keyring
        self._logins = logins
        self._clock = clock
        self._root = root
        self._nonces = nonces
        self._failures = Bucket(FAILURES_PER_MINUTE, clock)
        self._browsers = OpenConnections[str]()

    async def judge(self, asked: Asked) -> Principal:
        """Return who is speaking.  Raises `Refused`."""
        check_origin(self._rules, asked)
        if asked.path in OPEN_PATHS:
            return ANONYMOUS
        await self._keyring.catch_up()
        if (key := bearer_of(asked.headers)) is not None:
            return self._of_key(key, asked)
        if (shown := asked.headers.get(PROOF)) is not None:
            return await self._of_proof(shown, asked)
        return self._guest(asked)

    def held(self, principal: Principal, connection: Connection) -> AbstractContextManager[None]:
        """Let a connection be used by the right of a key or a sign-in, for as long as there is one."""
        if principal.key_id:
            return self._keyring.held(principal.key_id, connection)
        return self._browsers.held(principal.login, connection)

    def leave(self, principal: Principal) -> None:
        """Close the other connections of a browser that has signed out."""
        self._browsers.withdraw(principal.login)

    def _guest(self, asked: Asked) -> Principal:
        """Return the principal of a client without a key: loopback says only that it is on this machine."""
        needed = self._rules.closed or self._keyring.closes
        if needed or not is_loopback(self._rules.host) or not is_near(asked.headers):
            return ANONYMOUS
        uid = asked.uid()
        if uid == os.geteuid():
            return GUEST
        return ANONYMOUS if uid is None or self._rules.guests == "refuse" else guest_of(uid)

    def _of_key(self, key: str, asked: Asked) -> Principal:
        principal = self._keyring.find(key)
        if principal is None and key and not key.startswith(PREFIX):
            # Some API clients always send a key.  A key of another kind is treated like no key.
            guest = self._guest(asked)
            if guest.how is How.GUEST:
                return guest
        if principal is None:
            # Wrong keys shown by others cannot lock a valid key out, because it was found above.
            return replace(STRANGER, wait_s=self._failures.take())
        if wait_s := self._keyring.admit(principal):
            hint = f"wait {wait_s} s, or make a key with a larger --rate-limit"
            raise Refused(429, "rate_limited", "this key has made too many requests", hint, wait_s)
        return principal

    async def _of_proof(self, shown: str, asked: Asked) -> Principal:
        proof = proofs.parse(shown)
        login = proof and await self._logins.find(digest(proof.login), self._clock.now_ms())
        if proof is None or login is None:
            return STRANGER
        secret = proofs.secret_of(self._root, proof.login, asked.port)
        if not proof.is_of(secret, asked.method, asked.target):
            return STRANGER
        if not self._nonces.use(proof.nonce, proof.signature):
            # The page can sign its request again.  An attacker who recorded one cannot.
            hint = f"sign it again, with the nonce of the header {NONCE}"
            headers = {NONCE: self._nonces.current}
            raise Refused(401, "sign_again", "this signature is too old or was used before", hint, headers=headers)
        return signed_in(login.owner, login.digest, proof.body)


def _opens_page(asked: Asked) -> bool:
    """Return whether a browser goes to the page, in a tab of its own."""
    fetched = (asked.headers.get("sec-fetch-mode"), asked.headers.get("sec-fetch-dest"))
    return asked.method == "GET" and asked.path == _PAGE and fetched == ("navigate", "document")


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


def _asked(scope: Scope) -> Asked:
    """Return what the door looks at; header names are in small letters, and of what came twice the first counts."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
    target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    return Asked(
        method=scope["method"],
        target=target.decode("latin-1"),
        headers=headers,
        port=port_of(scope),
        uid=lambda: connection_of(scope).uid,
    )


class Guarded:
    """An application behind a door."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                principal = await self._door.judge(_asked(scope))
            except Refused as error:
                await error.response(scope["path"])(scope, receive, send)
                return
            except Unavailable as error:
                await refusal(503, "store_down", str(error), "try again in a moment")(scope, receive, send)
                return
            scope.setdefault("state", {})["principal"] = principal
            if principal.body:
                receive = _Signed(receive, principal.body)
            await self._let_in(principal, scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _let_in(self, principal: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if not (principal.key_id or principal.login) or path.startswith(KEYS_PATH) or path == SIGN_OUT_PATH:
            await self._app(scope, receive, send)
        else:
            # A stream may last for weeks, and end earlier when the key or sign-in is withdrawn.
            with self._door.held(principal, connection_of(scope)):
                await self._app(scope, receive, send)
        if path == SIGN_OUT_PATH and scope["method"] == "POST":
            self._door.leave(principal)


class _Signed:
    """A body that is read to its end only if it is the one that was signed."""

    def __init__(self, receive: Receive, wanted: str) -> None:
        self._receive = receive
        self._wanted = wanted
        self._read = hashlib.sha256()

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._read.update(message.get("body", b""))
            if not message.get("more_body", False) and self._read.hexdigest() != self._wanted:
                raise Refused(401, "wrong_body", "this body is not the one that was signed", "sign the body that is sent")
        return message


class Trusted:
    """An application behind a socket that only the operator can open."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # The mode of its file keeps others out; a descriptor could still have been handed to one of them.
            is_ours = connection_of(scope).uid in (None, os.geteuid(), ROOT)
            scope.setdefault("state", {})["principal"] = AT_SOCKET if is_ours else ANONYMOUS
        await self._app(scope, receive, send)
