"""Logins: people at a browser, who come in by a link that is good once, or with the operator's password."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from urllib.parse import urlsplit

from holdfast.clock import Clock
from holdfast.core.keys import LOCAL, Login, Purpose, digest
from holdfast.desk.views import SignInLink
from holdfast.passwords import matches
from holdfast.ports import Store

CODE_MS = 15 * 60_000
COOKIE_MS = 30 * 24 * 3_600_000
SECRET_BYTES = 32
# Stands between a cookie, which a browser shows to every port of a machine, and its proof, which one page alone can read.
PROVED = "."
# Addresses that mean every one of this machine; a browser needs one of them.
_EVERY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - Nothing listens here.


@dataclass(frozen=True, slots=True)
class LocalLogins:
    """Lets people in to a gateway at `url`."""

    store: Store
    owner: str
    clock: Clock
    password: str
    url: str

    @property
    def has_password(self) -> bool:
        return bool(self.password)

    async def link(self) -> SignInLink:
        code, expires_at = await self._add(Purpose.CODE, self.owner, CODE_MS)
        # Behind the # it stays in the browser: no server and no proxy on the way gets to log it.
        return SignInLink(url=f"{reachable(self.url)}/#code={code}", expires_at=expires_at)

    async def by_code(self, code: str) -> str | None:
        login = await self.store.logins.take(digest(code), self.clock.now_ms())
        return await self._enter(login.owner) if login else None

    async def by_password(self, password: str) -> str | None:
        if not self.has_password or not await asyncio.to_thread(matches, self.password, password):
            return None
        # The password is the operator's, whoever shows a key beside it.
        return await self._enter(LOCAL)

    async def leave(self, token: str) -> None:
        for each in {token, token.partition(PROVED)[0]}:
            await self.store.logins.remove(digest(each))

    async def _enter(self, owner: str) -> str:
        cookie, _ = await self._add(Purpose.COOKIE, owner, COOKIE_MS)
        return (await self._add(Purpose.COOKIE, owner, COOKIE_MS, f"{cookie}{PROVED}"))[0]

    async def _add(self, purpose: Purpose, owner: str, lasts_ms: int, before: str = "") -> tuple[str, int]:
        now = self.clock.now_ms()
        secret = before + secrets.token_urlsafe(SECRET_BYTES)
        login = Login(digest=digest(secret), purpose=purpose, owner=owner, created_at=now, expires_at=now + lasts_ms)
        await self.store.logins.add(login)
        return secret, login.expires_at


def reachable(url: str) -> str:
    """Return an address that a browser on this machine can open, for one that may stand for all of them."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host not in _EVERY:
        return url
    named = _EVERY[host]
    shown = f"[{named}]" if ":" in named else named
    return f"{parts.scheme}://{shown}:{parts.port}"
