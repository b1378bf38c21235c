"""The caller of an operation: whose things it is about, and what the key of the caller covers."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.core.keys import ADMIN, API, LOCAL, allows
from holdfast.errors import ScopeMissing

_EVERYTHING = frozenset({API, ADMIN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The owner that asks.  What belongs to another owner is not there for it.  By default it is the operator."""

    owner: str = LOCAL
    scopes: frozenset[str] = _EVERYTHING

    @property
    def is_operator(self) -> bool:
        return allows(self.scopes, ADMIN)

    def demand(self, scope: str) -> None:
        """Let the caller pass whose key covers a scope.  Raises `ScopeMissing`."""
        if not allows(self.scopes, scope):
            raise ScopeMissing(scope)


OPERATOR = Caller()
