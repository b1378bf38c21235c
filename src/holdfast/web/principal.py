"""Who makes a request, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.core.keys import ADMIN, API, LOCAL, allows
from holdfast.ids import KeyId
from holdfast.operations.caller import Caller


class How(StrEnum):
    """How the sender of a request is identified."""

    SOCKET = "socket"
    KEY = "key"
    BROWSER = "browser"
    GUEST = "guest"
    # Neither of these is identified: the first showed no key or sign-in, the second one that is not valid.
    ANONYMOUS = "anonymous"
    STRANGER = "stranger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The sender of a request.  A guest is a program on this machine that showed no key, where none is needed.

    `login` is the digest of the sign-in of a browser.  `wait_s` is not 0 after too many wrong keys: the sender has to
    wait that long.
    """

    owner: str = LOCAL
    scopes: frozenset[str] = frozenset()
    key_id: KeyId | None = None
    login: str = ""
    # SHA-256 of the body that a browser signed.
    body: str = ""
    how: How = How.KEY
    wait_s: int = 0

    def may(self, scope: str) -> bool:
        return allows(self.scopes, scope)

    @property
    def known(self) -> bool:
        return self.how in (How.SOCKET, How.KEY, How.BROWSER)

    @property
    def caller(self) -> Caller:
        return Caller(owner=self.owner, scopes=self.scopes)

    @property
    def operator(self) -> bool:
        return self.may(ADMIN)


_ALL = frozenset({API, ADMIN})
OPERATOR = Principal(scopes=_ALL)
AT_SOCKET = Principal(scopes=_ALL, how=How.SOCKET)
# A program of the operator's own: it may talk and read, and may not consent, change settings or make keys.
GUEST = Principal(scopes=frozenset({API}), how=How.GUEST)
ANONYMOUS = Principal(how=How.ANONYMOUS)
STRANGER = Principal(how=How.STRANGER)


def guest_of(uid: int) -> Principal:
    """Return a program of another user of this machine, which has an owner of its own; no key can have that name."""
    return Principal(owner=f"guest#{uid}", scopes=frozenset({API}), how=How.GUEST)


def signed_in(owner: str, login: str, body: str) -> Principal:
    """Return a person at a browser that has signed in and signed this request."""
    return Principal(owner=owner, scopes=_ALL, login=login, body=body, how=How.BROWSER)
