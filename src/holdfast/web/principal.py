"""Who makes a request, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.core.keys import ADMIN, API, allows
from holdfast.ids import KeyId

LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Whoever asks.  A guest is somebody on this machine who showed nothing, where nothing has to be shown."""

    owner: str = LOCAL
    scopes: frozenset[str] = frozenset()
    key_id: KeyId | None = None
    known: bool = True

    def may(self, scope: str) -> bool:
        return allows(self.scopes, scope)

    @property
    def operator(self) -> bool:
        return self.may(ADMIN)


OPERATOR = Principal(scopes=frozenset({API, ADMIN}))
GUEST = Principal(scopes=frozenset({API}), known=False)
NOBODY = Principal(known=False)
