"""Keys: they are made, listed and revoked here.  What a program shows is told once, to whoever made it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.clock import Clock
from holdfast.core.keys import ADMIN, API, LOCAL, WEBHOOK, Key, digest, is_scope
from holdfast.desk.plans import KeyPlan
from holdfast.desk.views import KeyView, NewKey, RevokedKey
from holdfast.errors import NotFound, Rejected
from holdfast.ids import new_key_id
from holdfast.operations.pages import Page
from holdfast.store.store import Store

NAME_MAX = 100
RATE_MAX = 1_000_000
SCOPES_MAX = 20
SECRET_BYTES = 32
# It becomes a part of other names, between colons.
_OWNER = re.compile(r"[A-Za-z0-9_.@-]{1,64}")


@dataclass(frozen=True, slots=True)
class StoreKeys:
    """What the store knows of them."""

    store: Store

    async def list(self) -> Page[KeyView]:
        return Page(items=[KeyView.of(each) for each in await self.store.keys.list()])

    async def _find(self, name: str) -> Key:
        keys = await self.store.keys.list()
        exact = [each for each in keys if each.id == name]
        found = exact or [each for each in keys if each.revoked_at is None and name in (each.name, KeyView.of(each).prefix)]
        if not found:
            raise NotFound(f"there is no key {name!r}; see `holdfast keys list`")
        if len(found) > 1:
            raise Rejected(f"{name!r} is the name of {len(found)} keys; say which by its id: {', '.join(_ids(found))}")
        return found[0]


@dataclass(frozen=True, slots=True)
class LocalKeys(StoreKeys):
    """The same, to be changed.  `closed` is whether the configuration asks for a key or a password already."""

    clock: Clock
    closed: bool = False

    async def create(self, plan: KeyPlan) -> NewKey:
        check(plan)
        now = self.clock.now_ms()
        key_id = new_key_id(now)
        shown = f"{KeyView.prefix_of(key_id)}_{secrets.token_urlsafe(SECRET_BYTES)}"
        key = Key(
            id=key_id,
            name=plan.name,
            owner=plan.owner,
            digest=digest(shown),
            scopes=plan.scopes,
            created_at=now,
            rate_limit=plan.rate_limit,
        )
        first = opens_api(key) and not self.closed and not any(map(opens_api, await self.store.keys.list()))
        await self.store.keys.add(key)
        return NewKey(key=shown, first=first, made=KeyView.of(key))

    async def revoke(self, name: str) -> RevokedKey:
        key = await self.store.keys.revoke((await self._find(name)).id, self.clock.now_ms())
        left = any(map(opens_api, await self.store.keys.list()))
        last = opens_api(replace(key, revoked_at=None)) and not self.closed and not left
        return RevokedKey(revoked=KeyView.of(key), last=last)


def opens_api(key: Key) -> bool:
    """Return whether a key opens the API, so that one has to be shown while there is such a key."""
    return key.revoked_at is None and (API in key.scopes or ADMIN in key.scopes)


def check(plan: KeyPlan) -> None:
    """Refuse a key that nobody could mean.  Raises `Rejected`."""
    if not plan.name.isprintable() or len(plan.name) > NAME_MAX:
        raise Rejected(f"the name of a key has printable characters only, {NAME_MAX} at most")
    if not _OWNER.fullmatch(plan.owner):
        raise Rejected("an owner has letters, digits and _.@- only, 64 at most")
    if not 0 <= plan.rate_limit <= RATE_MAX:
        raise Rejected(f"rate_limit must be between 0, any number, and {RATE_MAX} requests per minute")
    if not plan.scopes or len(plan.scopes) > SCOPES_MAX:
        raise Rejected(f"a key needs a scope: {API}, {ADMIN} or {WEBHOOK}ROUTE; {SCOPES_MAX} at most")
    for scope in plan.scopes:
        if not is_scope(scope) or not scope.isprintable() or len(scope) > NAME_MAX:
            raise Rejected(f"there is no scope {scope!r}; there are {API}, {ADMIN} and {WEBHOOK}ROUTE")
    if ADMIN in plan.scopes and plan.owner != LOCAL:
        raise Rejected(f"{ADMIN} is the operator's own scope; give {plan.owner!r} a key with the scope {API}")


def _ids(keys: Sequence[Key]) -> list[str]:
    return [each.id for each in keys]
