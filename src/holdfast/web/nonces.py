"""Nonces: what a browser must sign with its request, so that no signature is good twice, or in another process."""

from __future__ import annotations

import secrets

# At most this many signatures are remembered per nonce.  There is a new nonce after half of them, so that requests which
# are on their way with the one before are still taken.
USES_MAX = 10_000


class Nonces:
    """The nonce of this process and the one before it, each with the signatures that used it."""

    def __init__(self, uses_max: int = USES_MAX) -> None:
        self._uses_max = uses_max
        self.current = _new()
        self._used: dict[str, set[str]] = {self.current: set()}

    def use(self, nonce: str, signature: str) -> bool:
        """Take a signature; False where its nonce is too old or used up, or where it was taken before."""
        used = self._used.get(nonce)
        if used is None or signature in used:
            return False
        if len(used) >= self._uses_max:
            return False
        used.add(signature)
        if nonce == self.current and len(used) >= self._uses_max / 2:
            self._used = {nonce: used, (fresh := _new()): set()}
            self.current = fresh
        return True


def _new() -> str:
    return secrets.token_urlsafe(16)
