"""Signing in: a browser exchanges a code that is good once, or a password, for a secret that it signs requests with."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from holdfast.clock import Clock, SystemClock
from holdfast.operations.logins import Admission
from holdfast.web.answers import Refused, answer
from holdfast.web.endpoints import Endpoint, EndpointCall
from holdfast.web.guard import port_of
from holdfast.web.nonces import Nonces
from holdfast.web.throttle import Bucket

# A password can be guessed, unlike a key: after so many wrong ones none is looked at for a while, and links still work.
GUESSES_PER_MINUTE = 10
# No password is longer on purpose, and a long one takes long to hash.
PASSWORD_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a person signs in with: the code of a link, or the password."""

    code: str = ""
    password: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """Who the caller is to the gateway, and how it was identified."""

    owner: str
    scopes: Sequence[str]
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How one can sign in here; there is always the link."""

    password: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """Whether a browser is signed in now.  Each request of its page names `login` and is signed with `secret`.

    Both are sent once.  The first request signs `nonce`; a 401 with the header X-Holdfast-Nonce has the next nonce.
    """

    signed_in: bool
    login: str | None = None
    secret: str | None = None
    nonce: str | None = None


class SignIn:
    """The door for people."""

    def __init__(self, nonces: Nonces, clock: Clock | None = None) -> None:
        self._nonces = nonces
        self._guesses = Bucket(GUESSES_PER_MINUTE, clock or SystemClock())
        # One at a time, so that a flood of guesses takes neither all memory nor all threads.
        self._checking = asyncio.Lock()

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/sign-in",
                handle=self.ways,
                summary="Say how one can sign in",
                scope=None,
                gives=Ways,
            ),
            Endpoint(
                method="POST",
                path="/api/sign-in",
                handle=self.enter,
                summary="Sign a browser in, with the code of a link or the password",
                scope=None,
                takes=Credentials,
                gives=SignedIn,
                refuses=(401,),
            ),
            Endpoint(
                method="POST",
                path="/api/sign-out",
                handle=self.leave,
                summary="Sign this browser out",
                scope=None,
                gives=SignedIn,
            ),
            Endpoint(method="GET", path="/api/me", handle=self.me, summary="Say who you are here", gives=Me),
        ]

    async def ways(self, call: EndpointCall) -> Response:
        return answer(Ways(password=call.services.logins.has_password))

    async def enter(self, call: EndpointCall) -> Response:
        shown = await call.body(Credentials)
        if bool(shown.code) == bool(shown.password):
            raise Refused(400, "bad_sign_in", "send either a code or a password", "a code comes from: holdfast link")
        port = port_of(call.request.scope)
        admission = await (
            self._by_code(call, shown.code, port) if shown.code else self._by_password(call, shown.password, port)
        )
        return answer(SignedIn(signed_in=True, login=admission.login, secret=admission.secret, nonce=self._nonces.current))

    async def _by_code(self, call: EndpointCall, code: str, port: int) -> Admission:
        if admission := await call.services.logins.by_code(code, port):
            return admission
        hint = "a link is good once, for fifteen minutes, until the gateway restarts; get a fresh one with: holdfast link"
        raise Refused(401, "wrong_code", "this link has been used, or is too old", hint)

    async def _by_password(self, call: EndpointCall, password: str, port: int) -> Admission:
        if not call.services.logins.has_password:
            raise Refused(401, "no_password", "there is no password here", "get a link with: holdfast link")
        async with self._checking:
            if wait_s := self._guesses.wait_s():
                hint = "wait, or get a link with: holdfast link"
                raise Refused(429, "too_many_failures", "too many wrong passwords were tried", hint, wait_s)
            if len(password) <= PASSWORD_MAX and (admission := await call.services.logins.by_password(password, port)):
                return admission
            self._guesses.take()
        raise Refused(401, "wrong_password", "this is not the password", "get a link with: holdfast link")

    async def leave(self, call: EndpointCall) -> Response:
        if login := call.principal.login:
            await call.services.logins.leave(login)
        return answer(SignedIn(signed_in=False))

    async def me(self, call: EndpointCall) -> Response:
        who = call.principal
        return answer(Me(owner=who.owner, scopes=sorted(who.scopes), how=who.how))
