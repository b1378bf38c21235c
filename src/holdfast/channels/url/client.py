"""Posts signed JSON to a web address, after Standard Webhooks, and reads the receipt."""

from __future__ import annotations

from holdfast.channels.status import is_good, may_pass, said
from holdfast.channels.webhook.signatures import Scheme, sign
from holdfast.clock import Clock
from holdfast.egress import Egress, FetchedResponse, retry_after_s
from holdfast.errors import Rejected, Unavailable

ANSWER_MAX_BYTES = 4_096
RECEIPT_ID_MAX_CHARS = 100
_MOVED = range(300, 400)
_GONE = 410


class UrlClient:
    """Posts to web addresses.  `key` is the id of a post: a receiver drops a second post with the same one."""

    def __init__(self, egress: Egress, secret: str, clock: Clock) -> None:
        self._egress = egress
        self._secret = secret
        self._clock = clock

    def check(self, address: str) -> None:
        """Refuse an address that must not be reached.  Raises `Rejected`."""
        self._egress.check(address)

    async def post(self, address: str, body: bytes, key: str) -> str:
        """Return the receipt.  Raises `Unavailable` or `Rejected` if the receiver did not take it."""
        now_ms = self._clock.now_ms()
        signed = sign(Scheme.STANDARD, body, self._secret, now_ms, key)
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", **signed}
        answer = await self._egress.post(address, body, headers=headers, bytes_max=ANSWER_MAX_BYTES)
        return _receipt(answer, now_ms)


def _receipt(answer: FetchedResponse, now_ms: int) -> str:
    # Errors name only the host, because the rest of the address may be a secret.
    host, told = answer.host, f"{answer.status} {answer.reason}".strip()
    if is_good(answer.status):
        return " ".join(filter(None, (str(answer.status), _request_id(answer))))
    if may_pass(answer.status):
        raise Unavailable(f"{host} cannot take it now: {told}{said(answer)}", retry_after_s(answer.headers, now_ms))
    if answer.status in _MOVED:
        raise Rejected(f"{host} has moved: {told}; redirects are not followed, so use the new address")
    if answer.status == _GONE:
        raise Rejected(f"{host} does not take it any more: {told}; send somewhere else")
    raise Rejected(f"{host} refuses it: {told}{said(answer)}")


def _request_id(answer: FetchedResponse) -> str:
    return answer.headers.get("x-request-id", "").strip()[:RECEIPT_ID_MAX_CHARS]
