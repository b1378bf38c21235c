"""Proofs: a signed-in browser signs every request with a key that it never shows.

The gateway and the browser share one secret per sign-in.  It is told once, when the browser signs in.  Afterwards requests
carry only a signature, over what is asked and over a nonce of the gateway, so that a signature is good once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass

# Login, nonce, number, digest of the body, signature.  A page that has no nonce yet leaves it empty.
_PROOF = re.compile(
    r"([A-Za-z0-9_-]{20,100})\.([A-Za-z0-9_-]{0,64})\.([A-Za-z0-9_-]{8,64})\.([0-9a-f]{64})\.([0-9a-f]{64})", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a browser shows with one request."""

    # Which sign-in it is.
    login: str
    # The last nonce of the gateway that the page has heard of.
    nonce: str
    # Different in every request.
    number: str
    # SHA-256 of the body, in hexadecimal digits.
    body: str
    # HMAC-SHA-256 over the rest, in hexadecimal digits.
    signature: str

    def is_of(self, secret: str, method: str, target: str) -> bool:
        """Return whether the holder of a secret signed this very request; `target` is the path with its query."""
        return hmac.compare_digest(self.signature, sign(secret, method, target, self.body, self.nonce, self.number))


def parse(shown: str) -> Proof | None:
    """Return a proof as it stands in its header; None for anything else."""
    if (match := _PROOF.fullmatch(shown)) is None:
        return None
    login, nonce, number, body, signature = match.groups()
    return Proof(login=login, nonce=nonce, number=number, body=body, signature=signature)


def sign(secret: str, method: str, target: str, body: str, nonce: str, number: str) -> str:
    """Return the signature of a request."""
    text = f"{method}\n{target}\n{body}\n{nonce}\n{number}"
    return hmac.new(secret.encode(), text.encode("latin-1"), hashlib.sha256).hexdigest()


def secret_of(root: str, login: str, port: int) -> str:
    """Return the secret that a login signs with at one port.

    It is computed rather than kept: the store holds one root for all logins.  The port is a part of it, so that a program on
    the gateway's old port cannot pass requests on to the new one.
    """
    made = hmac.new(root.encode(), f"{login}@{port}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(made).decode().rstrip("=")
