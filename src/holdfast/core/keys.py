"""Keys: what a program shows to be let in.  Only its digest is kept, so a key cannot be read out of the store."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from holdfast.ids import KeyId

PREFIX = "hf_"
# The operator, who owns everything that comes in without another owner's key.
LOCAL = "local"
API = "api"
# A key with this scope may do everything, in the operator's name.
ADMIN = "admin"
# And the name of a route: the key may hand in deliveries of that route, and nothing else.
WEBHOOK = "webhook:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key that was given out.  `rate_limit` is requests per minute, with 0 any number."""

    id: KeyId
    name: str
    owner: str
    digest: str
    scopes: tuple[str, ...]
    created_at: int
    rate_limit: int = 0
    revoked_at: int | None = None


class Purpose(StrEnum):
    """What a login is: the code of a link, which is good once, or a browser that used one."""

    CODE = "code"
    # The schema was written when browsers showed a cookie.
    BROWSER = "cookie"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A person at a browser, known by the digest of what the browser shows."""

    digest: str
    purpose: Purpose
    owner: str
    created_at: int
    expires_at: int


def digest(secret: str) -> str:
    """Return what is kept of a key or code.  Both are random and long, so they cannot be guessed from it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def allows(scopes: Collection[str], wanted: str) -> bool:
    """Return whether scopes cover what is wanted."""
    return ADMIN in scopes or wanted in scopes


def is_scope(word: str) -> bool:
    """Return whether there is such a scope."""
    return word in (API, ADMIN) or (word.startswith(WEBHOOK) and len(word) > len(WEBHOOK))
