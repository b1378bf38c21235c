"""A browser that is signed in, as far as the gateway can tell: it signs every request, as the page does."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Generator, Mapping

import httpx2

from holdfast.core import proofs
from holdfast.web.guard import NONCE, PROOF


class Signing(httpx2.Auth):
    """Signs with what a sign-in was answered with; where the gateway wants another nonce, once more."""

    requires_request_body = True

    def __init__(self, told: Mapping[str, str]) -> None:
        self.login = told["login"]
        self.secret = told["secret"]
        self.nonce = told["nonce"]

    def proof(self, method: str, target: str, body: bytes = b"") -> str:
        """Return the header of one request."""
        digest, number = hashlib.sha256(body).hexdigest(), secrets.token_hex(16)
        signature = proofs.sign(self.secret, method, target, digest, self.nonce, number)
        return f"{self.login}.{self.nonce}.{number}.{digest}.{signature}"

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response]:
        target = request.url.raw_path.decode()
        request.headers[PROOF] = self.proof(request.method, target, request.content)
        answer = yield request
        if NONCE in answer.headers:
            self.nonce = answer.headers[NONCE]
            request.headers[PROOF] = self.proof(request.method, target, request.content)
            yield request
