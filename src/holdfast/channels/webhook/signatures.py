"""Signatures over the raw bytes of a delivery.  Comparisons take the same time for right and wrong signatures.

A secret that begins with `whsec_` is base64 for Standard Webhooks, as their specification says.  For every other scheme a
secret is used as text, including `whsec_`, because those senders do the same.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from holdfast.channels.webhook.head import BadHeader, Head
from holdfast.config import SIGNING_PREFIX
from holdfast.errors import Rejected

if TYPE_CHECKING:
    # A command that asks a running gateway does not import it.
    from holdfast.store.access import SecretStore

# The store keeps the secret of answers to `url:` targets under this name.
ANSWERS = "url"

TOLERANCE_S = 300
SECRET_BYTES = 24
ANY = "any"
# Until the year 33658.
_TIMESTAMP_DIGITS = 12
# How the signed text of other schemes begins: a time, with a version or an id before it.  No JSON and no form does.
_TIMED = re.compile(rb"(v0:)?[0-9]{1,12}[.:]|[^\s={}\[\]\"]{1,200}\.[0-9]{1,12}\.")
# So many hexadecimal digits of a signature identify a delivery.
_MARK_CHARS = 32


class Scheme(StrEnum):
    STANDARD = "standard"
    GITHUB = "github"
    GITLAB = "gitlab"
    SLACK = "slack"
    STRIPE = "stripe"
    HMAC = "hmac"


# In order of preference: schemes that sign the time come first, because the others cannot recognise a replay.
SHOWN_BY: Mapping[Scheme, str] = MappingProxyType(
    {
        Scheme.STANDARD: "webhook-signature",
        Scheme.SLACK: "x-slack-signature",
        Scheme.STRIPE: "stripe-signature",
        Scheme.HMAC: "x-signature-256",
        Scheme.GITHUB: "x-hub-signature-256",
        Scheme.GITLAB: "x-gitlab-token",
    }
)


class Unverified(Rejected):
    """The sender of a delivery is not proved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A delivery whose sender knows the secret.  `mark` is a part of the signature, and identifies what was signed."""

    scheme: Scheme
    signed_at: int | None = None
    mark: str = ""


def verify(head: Head, body: bytes, secret: str, now_ms: int, scheme: str = ANY) -> Verified:
    """Return how a delivery is signed, by one scheme or by any.  Raises `Unverified`."""
    try:
        verified = _JUDGES[_shown(head, scheme)](head, body, secret)
    except BadHeader as error:
        raise Unverified(str(error)) from error
    if verified.signed_at is not None and abs(verified.signed_at * 1000 - now_ms) > TOLERANCE_S * 1000:
        raise Unverified(f"the timestamp is more than {TOLERANCE_S} seconds away from now; check the sender's clock")
    return verified


def sign(scheme: Scheme, body: bytes, secret: str, now_ms: int, delivery_id: str) -> Mapping[str, str]:
    """Return the headers that a sender signs a delivery with."""
    return _SIGNERS[scheme](body, secret, str(now_ms // 1000), delivery_id)


def new_secret() -> str:
    """Return a new random secret."""
    return SIGNING_PREFIX + base64.b64encode(os.urandom(SECRET_BYTES)).decode()


def standard_key(secret: str) -> bytes:
    """Return the bytes that Standard Webhooks sign with.  Raises `Unverified` if the secret is not base64."""
    if not secret.startswith(SIGNING_PREFIX):
        return _letters(secret)
    given = secret.removeprefix(SIGNING_PREFIX)
    try:
        return base64.b64decode(given + "=" * (-len(given) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise Unverified(
            f"the secret begins with {SIGNING_PREFIX} but is not base64, which Standard Webhooks need"
        ) from None


def _shown(head: Head, scheme: str) -> Scheme:
    for each, name in SHOWN_BY.items():
        if head.has(name) and scheme in (ANY, each):
            return each
    if head.has("x-hub-signature") and scheme in (ANY, Scheme.GITHUB):
        raise Unverified("SHA-1 signatures are not accepted; send X-Hub-Signature-256")
    raise Unverified(
        "the delivery is not signed"
        if scheme == ANY
        else f"the delivery has no {SHOWN_BY[Scheme(scheme)]}, which this route needs"
    )


def _standard(head: Head, body: bytes, secret: str) -> Verified:
    message_id, timestamp = head.one("webhook-id"), head.one("webhook-timestamp")
    if not message_id:
        raise Unverified("webhook-id is missing")
    signed_at = _seconds(timestamp, "webhook-timestamp")
    mac = _mac(standard_key(secret), f"{message_id}.{timestamp}.", body)
    shown = head.one("webhook-signature").split()
    _demand(base64.b64encode(mac).decode(), [each[3:] for each in shown if each.startswith("v1,")])
    return Verified(scheme=Scheme.STANDARD, signed_at=signed_at, mark=mac.hex()[:_MARK_CHARS])


def _github(head: Head, body: bytes, secret: str) -> Verified:
    mac = _mac(_letters(secret), "", body).hex()
    _demand(f"sha256={mac}", [head.one("x-hub-signature-256")])
    if _TIMED.match(body):
        # An attacker could send an overheard delivery of another scheme, with its time as a part of the body.
        raise Unverified("the body begins with a time, as another scheme signs it; send it as that scheme does")
    return Verified(scheme=Scheme.GITHUB, mark=mac[:_MARK_CHARS])


def _gitlab(head: Head, _body: bytes, secret: str) -> Verified:
    _demand(secret, [head.one("x-gitlab-token")])
    return Verified(scheme=Scheme.GITLAB)


def _slack(head: Head, body: bytes, secret: str) -> Verified:
    timestamp = head.one("x-slack-request-timestamp")
    signed_at = _seconds(timestamp, "X-Slack-Request-Timestamp")
    mac = _mac(_letters(secret), f"v0:{timestamp}:", body).hex()
    _demand(f"v0={mac}", [head.one("x-slack-signature")])
    return Verified(scheme=Scheme.SLACK, signed_at=signed_at, mark=mac[:_MARK_CHARS])


def _stripe(head: Head, body: bytes, secret: str) -> Verified:
    pairs = [each.strip().partition("=") for each in head.one("stripe-signature").split(",")]
    times = [value for name, _, value in pairs if name == "t"]
    if len(times) != 1:
        raise Unverified("Stripe-Signature must have one t=")
    signed_at = _seconds(times[0], "t= of Stripe-Signature")
    mac = _mac(_letters(secret), f"{times[0]}.", body).hex()
    _demand(mac, [value for name, _, value in pairs if name == "v1"])
    return Verified(scheme=Scheme.STRIPE, signed_at=signed_at, mark=mac[:_MARK_CHARS])


def _hmac(head: Head, body: bytes, secret: str) -> Verified:
    timestamp = head.one("x-timestamp")
    signed_at = _seconds(timestamp, "X-Timestamp")
    mac = _mac(_letters(secret), f"{timestamp}.", body).hex()
    _demand(mac, [head.one("x-signature-256").removeprefix("sha256=")])
    return Verified(scheme=Scheme.HMAC, signed_at=signed_at, mark=mac[:_MARK_CHARS])


_JUDGES: Mapping[Scheme, Callable[[Head, bytes, str], Verified]] = MappingProxyType(
    {
        Scheme.STANDARD: _standard,
        Scheme.GITHUB: _github,
        Scheme.GITLAB: _gitlab,
        Scheme.SLACK: _slack,
        Scheme.STRIPE: _stripe,
        Scheme.HMAC: _hmac,
    }
)


def _letters(secret: str) -> bytes:
    # An environment variable need not be UTF-8.
    return secret.encode("utf-8", "surrogateescape")


def _mac(key: bytes, before: str, body: bytes) -> bytes:
    # Unlike hmac.digest, this keeps the interpreter lock for a short body, which is faster than releasing it.
    return hmac.new(key, before.encode() + body, "sha256").digest()


def _seconds(timestamp: str, name: str) -> int:
    if not timestamp.isdigit() or len(timestamp) > _TIMESTAMP_DIGITS:
        raise Unverified(f"{name} must be a number of seconds since 1970")
    return int(timestamp)


def _demand(expected: str, shown: list[str]) -> None:
    """Require that one of several signatures is right.  All are compared, so that the time tells nothing."""
    right = False
    for each in shown:
        # `compare_digest` raises an error for text that is not ASCII.
        right |= hmac.compare_digest(each.encode(), _letters(expected))
    if not right:
        raise Unverified("the signature does not match this body and this route's secret")


def _sign_standard(body: bytes, secret: str, timestamp: str, delivery_id: str) -> Mapping[str, str]:
    mac = _mac(standard_key(secret), f"{delivery_id}.{timestamp}.", body)
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(mac).decode()}",
    }


def _sign_github(body: bytes, secret: str, _timestamp: str, delivery_id: str) -> Mapping[str, str]:
    return {
        "X-GitHub-Delivery": delivery_id,
        "X-Hub-Signature-256": f"sha256={_mac(_letters(secret), '', body).hex()}",
    }


def _sign_gitlab(_body: bytes, secret: str, _timestamp: str, delivery_id: str) -> Mapping[str, str]:
    return {"X-Gitlab-Event-UUID": delivery_id, "X-Gitlab-Token": secret}


def _sign_slack(body: bytes, secret: str, timestamp: str, _delivery_id: str) -> Mapping[str, str]:
    mac = _mac(_letters(secret), f"v0:{timestamp}:", body).hex()
    return {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": f"v0={mac}"}


def _sign_stripe(body: bytes, secret: str, timestamp: str, _delivery_id: str) -> Mapping[str, str]:
    mac = _mac(_letters(secret), f"{timestamp}.", body).hex()
    return {"Stripe-Signature": f"t={timestamp},v1={mac}"}


def _sign_hmac(body: bytes, secret: str, timestamp: str, delivery_id: str) -> Mapping[str, str]:
    mac = _mac(_letters(secret), f"{timestamp}.", body).hex()
    return {"X-Delivery-Id": delivery_id, "X-Timestamp": timestamp, "X-Signature-256": f"sha256={mac}"}


_SIGNERS: Mapping[Scheme, Callable[[bytes, str, str, str], Mapping[str, str]]] = MappingProxyType(
    {
        Scheme.STANDARD: _sign_standard,
        Scheme.GITHUB: _sign_github,
        Scheme.GITLAB: _sign_gitlab,
        Scheme.SLACK: _sign_slack,
        Scheme.STRIPE: _sign_stripe,
        Scheme.HMAC: _sign_hmac,
    }
)


def spellings(secret: str) -> tuple[str, ...]:
    """Return how a signing secret may be written: as it is, and without its prefix."""
    return secret, secret.removeprefix(SIGNING_PREFIX)


async def answers_secret(secrets: SecretStore) -> str:
    """Return what answers to `url:` targets are signed with where the operator chose nothing: random, and kept."""
    return await secrets.get_or_add(ANSWERS, new_secret())
