"""Logins: people at a browser, who come in by a link that is good once, or with the operator's password."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.clock import Clock
from holdfast.core.keys import LOCAL, Login, Purpose, digest
from holdfast.core.proofs import secret_of
from holdfast.desk.views import Admission, SignInLink
from holdfast.passwords import matches
from holdfast.store.access import SecretStore
from holdfast.store.store import Store

CODE_MS = 15 * 60_000
BROWSER_MS = 30 * 24 * 3_600_000
SECRET_BYTES = 32
# Under this name the store keeps what the secrets of all browsers are made of.
ROOT = "browsers"
# Addresses that mean every one of this machine; a browser needs one of them.
_EVERY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - Nothing listens here.


@dataclass(frozen=True, slots=True)
class LocalLogins:
    """Lets people in to a gateway at `url`.

    `process` names the process that runs now.  A code is good in the process that made it: a program that took the port
    while the gateway was down, and was shown a code there, has nothing that opens the next one.
    """

    store: Store
    owner: str
    clock: Clock
    password: str
    url: str
    process: str
    # The file through which the browser was opened; it goes when its code is used.
    opening: Path

    @property
    def has_password(self) -> bool:
        return bool(self.password)

    async def link(self) -> SignInLink:
        code = secrets.token_urlsafe(SECRET_BYTES)
        login = await self._add(self._bound(code), Purpose.CODE, self.owner, CODE_MS)
        # Behind the # it stays in the browser: no server and no proxy on the way gets to log it.
        return SignInLink(url=f"{reachable(self.url)}/#code={code}", expires_at=login.expires_at)

    async def by_code(self, code: str, port: int) -> Admission | None:
        login = await self.store.logins.take(digest(self._bound(code)), self.clock.now_ms())
        if login is None:
            return None
        self.opening.unlink(missing_ok=True)
        return await self._admit(login.owner, port)

    async def by_password(self, password: str, port: int) -> Admission | None:
        if not self.has_password or not await asyncio.to_thread(matches, self.password, password):
            return None
        # The password is the operator's, whoever shows a key beside it.
        return await self._admit(LOCAL, port)

    async def leave(self, login: str) -> None:
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
    """Return what the secrets of all browsers are made of."""
    return await kept.get_or_add(ROOT, secrets.token_urlsafe(SECRET_BYTES))


def reachable(url: str) -> str:
    """Return an address that a browser on this machine can open, for one that may stand for all of them."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host not in _EVERY:
        return url
    named = _EVERY[host]
    shown = f"[{named}]" if ":" in named else named
    return f"{parts.scheme}://{shown}:{parts.port}"
