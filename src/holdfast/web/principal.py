"""Who makes a request, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.core.keys import ADMIN, API, LOCAL, allows
from holdfast.ids import KeyId


class How(StrEnum):
    """How somebody is known."""

    SOCKET = "socket"
    KEY = "key"
    COOKIE = "cookie"
    GUEST = "guest"
    # Of these two nobody knows who they are: one showed nothing, the other something that opens nothing.
    NOBODY = "nobody"
    STRANGER = "stranger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Whoever asks.  A guest is somebody on this machine who showed nothing, where nothing has to be shown.

    `login` is the digest of the cookie that a browser showed.  With `wait_s` there were too many before them who showed
    something wrong.
    """

    owner: str = LOCAL
    scopes: frozenset[str] = frozenset()
    key_id: KeyId | None = None
    login: str = ""
    how: How = How.KEY
    wait_s: int = 0

    def may(self, scope: str) -> bool:
        return allows(self.scopes, scope)

    @property
    def known(self) -> bool:
        return self.how in (How.SOCKET, How.KEY, How.COOKIE)

    @property
    def operator(self) -> bool:
        return self.may(ADMIN)


_ALL = frozenset({API, ADMIN})
OPERATOR = Principal(scopes=_ALL)
AT_SOCKET = Principal(scopes=_ALL, how=How.SOCKET)
GUEST = Principal(scopes=frozenset({API}), how=How.GUEST)
NOBODY = Principal(how=How.NOBODY)
STRANGER = Principal(how=How.STRANGER)


def reader(owner: str, login: str) -> Principal:
    """Return whoever shows the cookie of a browser and cannot prove to be its page."""
    return Principal(owner=owner, scopes=frozenset({API}), login=login, how=How.COOKIE)


def signed_in(owner: str, login: str) -> Principal:
    """Return a person at a browser that has signed in."""
    return Principal(owner=owner, scopes=_ALL, login=login, how=How.COOKIE)
