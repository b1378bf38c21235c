"""Logins: people sign a browser in by a link that works once, or with the operator's password."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.clock import Clock
from holdfast.core.keys import ADMIN, LOCAL, Login, Purpose, digest
from holdfast.core.proofs import secret_of
from holdfast.operations.caller import Caller
from holdfast.operations.operation import operation
from holdfast.passwords import matches

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.store.access import SecretStore
    from holdfast.store.store import Store

CODE_MS = 15 * 60_000
BROWSER_MS = 30 * 24 * 3_600_000
SECRET_BYTES = 32
# The secrets of all browsers are derived from what the store keeps under this name.
ROOT = "browsers"
# Addresses that stand for all addresses of this machine; a browser needs a single one.
_EVERY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - Nothing listens here.


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInLink:
    """An address that signs one browser in, once."""

    url: str
    expires_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What a browser gets when it signs in: the name of its login, and the secret that it signs requests with."""

    login: str
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Logins:
    """How people sign in to a gateway at `url`.

    `process` names the process that runs now.  A code works only in the process that made it.  So a program that took the
    port while the gateway was down, and was sent a code there, cannot use that code with the next gateway.
    """

    store: Store
    caller: Caller
    clock: Clock
    password: str
    url: str
    process: str
    # The file that opened the browser.  It is deleted when its code is used.
    opening: Path

    @property
    def has_password(self) -> bool:
        return bool(self.password)

    @operation("POST /api/sign-in/link", "Make a link that signs one browser in, once", scope=ADMIN, status=201)
    async def link(self) -> SignInLink:
        code = secrets.token_urlsafe(SECRET_BYTES)
        login = await self._add(self._bound(code), Purpose.CODE, self.caller.owner, CODE_MS)
        # What follows the # stays in the browser, so that no server and no proxy on the way can log it.
        return SignInLink(url=f"{reachable(self.url)}/#code={code}", expires_at=login.expires_at)

    async def by_code(self, code: str, port: int) -> Admission | None:
        """Sign a browser in at a port with the code of a link; None for a code that is not valid."""
        login = await self.store.logins.take(digest(self._bound(code)), self.clock.now_ms())
        if login is None:
            return None
        self.opening.unlink(missing_ok=True)
        return await self._admit(login.owner, port)

    async def by_password(self, password: str, port: int) -> Admission | None:
        """Sign a browser in at a port with the password; None for a wrong one."""
        if not self.has_password or not await asyncio.to_thread(matches, self.password, password):
            return None
        # The password is the operator's, also in a request with the key of another owner.
        return await self._admit(LOCAL, port)

    async def leave(self, login: str) -> None:
        """Sign out the browser with this login."""
        await self.store.logins.remove(login)

    async def _admit(self, owner: str, port: int) -> Admission:
        name = secrets.token_urlsafe(SECRET_BYTES)
        await self._add(name, Purpose.BROWSER, owner, BROWSER_MS)
        return Admission(login=name, secret=secret_of(await root_of(self.store.secrets), name, port))

    async def _add(self, secret: str, purpose: Purpose, owner: str, lasts_ms: int) -> Login:
        now = self.clock.now_ms()
        login = Login(digest=digest(secret), purpose=purpose, owner=owner, created_at=now, expires_at=now + lasts_ms)
        await self.store.logins.add(login)
        return login

    def _bound(self, code: str) -> str:
        return f"{self.process}.{code}"


async def root_of(kept: SecretStore) -> str:
    """Return what the secrets of all browsers are derived from."""
    return await kept.get_or_add(ROOT, secrets.token_urlsafe(SECRET_BYTES))


def reachable(url: str) -> str:
    """Return an address of the gateway that a browser on this machine can open."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host not in _EVERY:
        return url
    named = _EVERY[host]
    shown = f"[{named}]" if ":" in named else named
    return f"{parts.scheme}://{shown}:{parts.port}"
