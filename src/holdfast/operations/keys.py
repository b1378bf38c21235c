"""Keys of programs: they are made, listed and revoked here.  The key itself is shown once, to the caller that made it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.clock import Clock
from holdfast.core.keys import ADMIN, API, LOCAL, PREFIX, WEBHOOK, Key, digest, is_scope
from holdfast.errors import NotFound, Rejected
from holdfast.ids import KeyId, new_key_id
from holdfast.operations.operation import operation
from holdfast.operations.pages import Page

if TYPE_CHECKING:
    # A command that asks a running gateway does not import it.
    from holdfast.store.store import Store

NAME_MAX = 100
RATE_MAX = 1_000_000
SCOPES_MAX = 20
SECRET_BYTES = 32
# Random characters of its id that a key begins with.
_PREFIX_CHARS = 8
# It becomes a part of other names, between colons.
_OWNER = re.compile(r"[A-Za-z0-9_.@-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPlan:
    """A key to be made.  `rate_limit` is in requests per minute; 0 is no limit."""

    name: str = ""
    scopes: tuple[str, ...] = (API,)
    owner: str = LOCAL
    rate_limit: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyView:
    """A key as it is shown: only what it begins with, never the whole key."""

    id: KeyId
    name: str
    owner: str
    scopes: Sequence[str]
    prefix: str
    rate_limit: int
    created_at: int
    revoked_at: int | None

    @classmethod
    def of(cls, key: Key) -> KeyView:
        return cls(
            id=key.id,
            name=key.name,
            owner=key.owner,
            scopes=key.scopes,
            prefix=cls.prefix_of(key.id),
            rate_limit=key.rate_limit,
            created_at=key.created_at,
            revoked_at=key.revoked_at,
        )

    @staticmethod
    def prefix_of(key_id: KeyId) -> str:
        """Return what a key begins with.  It is a part of its id, so that a leaked key can be recognised."""
        return f"{PREFIX}{key_id[-_PREFIX_CHARS:]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key at the one time when it is shown.  After the `first` key, this machine needs one too."""

    key: str
    first: bool
    made: KeyView


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedKey:
    """A key that is no longer valid.  After the `last` key, this machine needs none again."""

    revoked: KeyView
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of a gateway.  `closed` is whether its configuration asks for a key or a password already."""

    store: Store
    clock: Clock
    closed: bool = False

    @operation("GET /api/keys", "List keys", scope=ADMIN, offline=True)
    async def list(self) -> Page[KeyView]:
        return Page(items=[KeyView.of(each) for each in await self.store.keys.list()])

    @operation("POST /api/keys", "Make a key, which is shown only now", scope=ADMIN, status=201)
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

    @operation("DELETE /api/keys/{id}", "Revoke a key", scope=ADMIN)
    async def revoke(self, name: str) -> RevokedKey:
        """Revoke the key with an id or a name.  Raises `NotFound`."""
        key = await self.store.keys.revoke((await self._find(name)).id, self.clock.now_ms())
        left = any(map(opens_api, await self.store.keys.list()))
        last = opens_api(replace(key, revoked_at=None)) and not self.closed and not left
        return RevokedKey(revoked=KeyView.of(key), last=last)

    async def _find(self, name: str) -> Key:
        keys = await self.store.keys.list()
        exact = [each for each in keys if each.id == name]
        found = exact or [each for each in keys if each.revoked_at is None and name in (each.name, KeyView.of(each).prefix)]
        if not found:
            raise NotFound(f"there is no key {name!r}; see `holdfast keys list`")
        if len(found) > 1:
            raise Rejected(f"{name!r} is the name of {len(found)} keys; say which by its id: {', '.join(_ids(found))}")
        return found[0]


def opens_api(key: Key) -> bool:
    """Return whether a key opens the API.  While there is such a key, requests need one."""
    return key.revoked_at is None and (API in key.scopes or ADMIN in key.scopes)


def check(plan: KeyPlan) -> None:
    """Check a key that is to be made.  Raises `Rejected`."""
    if not plan.name.isprintable() or len(plan.name) > NAME_MAX:
        raise Rejected(f"the name of a key has printable characters only, {NAME_MAX} at most")
    if not _OWNER.fullmatch(plan.owner):
        raise Rejected("an owner has letters, digits and _.@- only, 64 at most")
    if not 0 <= plan.rate_limit <= RATE_MAX:
        raise Rejected(f"rate_limit must be between 0, no limit, and {RATE_MAX} requests per minute")
    if not plan.scopes or len(plan.scopes) > SCOPES_MAX:
        raise Rejected(f"a key needs a scope: {API}, {ADMIN} or {WEBHOOK}ROUTE; {SCOPES_MAX} at most")
    for scope in plan.scopes:
        if not is_scope(scope) or not scope.isprintable() or len(scope) > NAME_MAX:
            raise Rejected(f"there is no scope {scope!r}; there are {API}, {ADMIN} and {WEBHOOK}ROUTE")
    if ADMIN in plan.scopes and plan.owner != LOCAL:
        raise Rejected(f"{ADMIN} is the operator's own scope; give {plan.owner!r} a key with the scope {API}")


def _ids(keys: Sequence[Key]) -> list[str]:
    return [each.id for each in keys]
