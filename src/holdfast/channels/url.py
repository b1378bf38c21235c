"""Addresses on the web as a place to send to: `url:https://…` gets each part as JSON, signed after Standard Webhooks.

A part has the same id at each try, so that a receiver can drop what it has already.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.channels.answers import is_good, may_pass, said
from holdfast.channels.webhook.signatures import Scheme, Unverified, sign, standard_key
from holdfast.clock import Clock
from holdfast.config import SIGNING_PREFIX
from holdfast.core.delivery import Delivery
from holdfast.egress import Egress, FetchedResponse, retry_after_s
from holdfast.errors import ConfigInvalid, Rejected, Unavailable

CHANNEL = "url"
SECRET_MIN_BYTES = 24
ANSWER_MAX_BYTES = 4_096
RECEIPT_ID_MAX_CHARS = 100
_MOVED = range(300, 400)
_GONE = 410


class UrlCarrier:
    """Posts deliveries to addresses on the web.  Raises `ConfigInvalid` for a secret that would protect nobody."""

    # Standard Webhooks ask a receiver to drop an id that it has seen.
    dedupes = True

    def __init__(self, egress: Egress, secret: str, clock: Clock) -> None:
        self._egress = egress
        self._secret = _checked(secret)
        self._clock = clock

    def check(self, target: str) -> None:
        self._egress.check(_address(target))

    def split(self, text: str) -> Sequence[str]:
        return [text]

    async def send(self, sent: Delivery) -> str:
        self.check(sent.target)
        now_ms, body = self._clock.now_ms(), _body(sent)
        answer = await self._egress.post(
            _address(sent.target), body, headers=self._headers(sent, now_ms, body), bytes_max=ANSWER_MAX_BYTES
        )
        return _receipt(answer, now_ms)

    async def find(self, sent: Delivery) -> str | None:  # noqa: ARG002 - An address can be told, not asked.
        return None

    def _headers(self, sent: Delivery, now_ms: int, body: bytes) -> dict[str, str]:
        signed = sign(Scheme.STANDARD, body, self._secret, now_ms, sent.id)
        return {"Content-Type": "application/json", "Accept-Encoding": "identity", **signed}


def _address(target: str) -> str:
    return target.partition(":")[2]


def _checked(secret: str) -> str:
    try:
        key = standard_key(secret)
    except Unverified:
        raise ConfigInvalid(f"channels.url.secret: what follows {SIGNING_PREFIX} must be base64") from None
    if len(key) < SECRET_MIN_BYTES:
        raise ConfigInvalid(
            f"channels.url.secret: must hold {SECRET_MIN_BYTES} bytes or more; make one with `openssl rand -base64 32`, "
            f"and put {SIGNING_PREFIX} before it"
        )
    return secret


def _body(sent: Delivery) -> bytes:
    return msgspec.json.encode(
        {
            "id": sent.id,
            "created_at": sent.created_at,
            "session_id": sent.session_id,
            "turn_id": sent.turn_id,
            "part": sent.part,
            "text": sent.text,
            "possible_repeat": sent.repeats > 0,
        }
    )


def _receipt(answer: FetchedResponse, now_ms: int) -> str:
    """Return what the far side gave as its receipt.  Raises `Unavailable` or `Rejected` where it did not take it."""
    # The rest of the address may be a secret.
    host, told = answer.host, f"{answer.status} {answer.reason}".strip()
    if is_good(answer.status):
        return " ".join(filter(None, (str(answer.status), _request_id(answer))))
    if may_pass(answer.status):
        raise Unavailable(f"{host} cannot take it now: {told}{said(answer)}", retry_after_s(answer.headers, now_ms))
    if answer.status in _MOVED:
        raise Rejected(f"{host} wants it elsewhere: {told}; redirects are not followed, so use the address that it has now")
    if answer.status == _GONE:
        raise Rejected(f"{host} does not take it any more: {told}; send somewhere else")
    raise Rejected(f"{host} refuses it: {told}{said(answer)}")


def _request_id(answer: FetchedResponse) -> str:
    return answer.headers.get("x-request-id", "").strip()[:RECEIPT_ID_MAX_CHARS]
