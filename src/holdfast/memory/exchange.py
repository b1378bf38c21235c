"""JSON requests to a memory server, with its failures translated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import msgspec

from holdfast.channels.status import is_good, may_pass, said
from holdfast.clock import Clock
from holdfast.core.redaction import Redaction
from holdfast.egress import Egress, FetchedResponse, retry_after_s
from holdfast.errors import OutcomeUnknown, Rejected, Unavailable
from holdfast.memory.address import Address

ANSWER_MAX_BYTES = 1024 * 1024
_MOVED = range(300, 400)
_KEY_WANTED = frozenset({401, 403})

Shape = TypeVar("Shape")


class Exchange:
    """Sends requests to the configured server, on this machine or elsewhere, with a timeout that the caller chooses."""

    def __init__(self, address: Address, *, timeout_s: float, redaction: Redaction, clock: Clock) -> None:
        redaction.learn(address.secrets)
        self.url = address.url
        self._address = address
        self._redaction = redaction
        self._clock = clock
        self._egress = Egress.to(address.url, timeout_s)

    async def post(
        self,
        path: str,
        body: object,
        headers: Mapping[str, str] | None = None,
        *,
        bytes_max: int = ANSWER_MAX_BYTES,
    ) -> FetchedResponse:
        """Send a body once.  Raises `Unavailable` even if the outcome is unknown, because sending it again is safe."""
        url = f"{self.url}{path}"
        told = {"Content-Type": "application/json", "Accept-Encoding": "identity", **self._address.headers}
        try:
            return await self._egress.post(
                url, msgspec.json.encode(body), headers={**told, **(headers or {})}, bytes_max=bytes_max
            )
        except OutcomeUnknown as error:
            raise Unavailable(f"{url}: {error}") from error
        except Unavailable as error:
            raise Unavailable(f"{url}: {error}", error.retry_after_s) from error

    async def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        bytes_max: int = ANSWER_MAX_BYTES,
    ) -> FetchedResponse:
        """Send a request without a body.  Raises `Unavailable` and `Rejected`."""
        told = {**self._address.headers, **(headers or {})}
        try:
            return await self._egress.request(
                method, f"{self.url}{path}", headers=told, bytes_max=bytes_max, redirects_max=0
            )
        except Rejected as error:
            raise Rejected(f"{error}; set memory.url to its new address") from error

    def refuse(self, answer: FetchedResponse) -> None:
        """Raise `Unavailable` or `Rejected` for every response but success, with what to do."""
        if is_good(answer.status):
            return
        # Masked before it is cut, because half a secret would not be recognized.
        whole = self._redaction.text(answer.body.decode("utf-8", "replace"))
        told = f"{answer.url} answered {status(answer)}{said(replace(answer, body=whole.encode()))}"
        if may_pass(answer.status):
            raise Unavailable(told, retry_after_s(answer.headers, self._clock.now_ms()))
        if answer.status in _MOVED:
            raise Rejected(f"{told}; redirects are not followed, so put the address that it has now into memory.url")
        if answer.status in _KEY_WANTED:
            raise Rejected(f"{told}; put a key that it takes into memory.api_key or the variable of memory.api_key_env")
        raise Rejected(told)

    def understood(self, answer: FetchedResponse, shape: type[Shape], example: str) -> Shape:
        """Parse a successful response.  Raises `Unavailable` if it does not look like `example`."""
        self.refuse(answer)
        if (found := read(answer, shape)) is not None:
            return found
        if answer.cut:
            raise Unavailable(f"{answer.url} answered {status(answer)} and did not come to an end in time and size")
        raise Unavailable(f"{answer.url} answered {status(answer)} with something else than {example}")

    def masked(self, text: str, chars_max: int) -> str:
        """Return a server's text in one line, masked and cut."""
        return " ".join(self._redaction.text(text).split())[:chars_max]

    async def close(self) -> None:
        await self._egress.close()


def status(answer: FetchedResponse) -> str:
    return f"{answer.status} {answer.reason}".strip()


def read(answer: FetchedResponse, shape: type[Shape]) -> Shape | None:
    """Parse a response; None if it has another shape."""
    try:
        return msgspec.json.decode(answer.body, type=shape)
    except (msgspec.DecodeError, RecursionError):
        return None
