"""The id of a delivery, under which it counts once, and the message that it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from holdfast.channels.webhook.head import BadHeader, Head
from holdfast.channels.webhook.payload import Payload
from holdfast.channels.webhook.signatures import Scheme, Verified
from holdfast.core.intake import Inbound
from holdfast.core.sessions import Source
from holdfast.core.turns import Mode
from holdfast.ids import new_id

CHANNEL = "webhook"
ID_MAX = 200
# The headers that may hold the sender's id, in order.  A proxy gives each retry another X-Request-Id, so that is last.
_ID_HEADERS = (
    "webhook-id",
    "x-github-delivery",
    "x-gitlab-event-uuid",
    "x-delivery-id",
    "idempotency-key",
    "x-request-id",
)
# GitLab gives related events the same UUID, and every delivery its own key.
_OWN_HEADERS: Mapping[Scheme, str] = MappingProxyType({Scheme.GITLAB: "idempotency-key"})
# Senders that put the id into the signed body.
_SIGNED_IDS: Mapping[Scheme, str] = MappingProxyType({Scheme.SLACK: "event_id", Scheme.STRIPE: "id"})


def delivery_id(head: Head, verified: Verified | None, payload: Payload, now_ms: int) -> str:
    """Return the id of a delivery: that of the sender, else its signature, else a new one.  Raises `BadHeader`."""
    if verified and verified.scheme in _SIGNED_IDS:
        # These senders put no id into headers.  An id there is from a proxy, or from an attacker who sends it again.
        return _signed_id(verified, payload) or _marked(verified)
    if verified and verified.scheme is Scheme.GITHUB:
        # The signature covers the body alone: with another id in its header an overheard delivery would be a new one.
        return _marked(verified)
    return _header_id(head, verified) or _marked(verified) or new_id("whd", now_ms)


def dedupe_key(route: str, delivery: str) -> str:
    """Return the key under which a delivery is one turn, however often it is sent."""
    return f"{CHANNEL}:{route}:{delivery}"


def inbound(route: str, delivery: str, text: str, target: str | None, *, verbatim: bool = False) -> Inbound:
    """Return a delivery as a message with a session of its own.  No client waits for its answer."""
    chat = dedupe_key(route, delivery)
    return Inbound(
        conversation=chat,
        text=text,
        channel=CHANNEL,
        source=Source(chat_id=chat, chat_name=f"{CHANNEL}/{route}", chat_type=CHANNEL, user=f"{CHANNEL}:{route}"),
        dedupe_key=chat,
        mode=Mode.DETACHED,
        delivers_later=True,
        reply_to=target,
        one_shot=True,
        remembers=False,
        verbatim=verbatim,
    )


def _signed_id(verified: Verified, payload: Payload) -> str:
    field = _SIGNED_IDS[verified.scheme]
    found = payload.data.get(field)
    return checked_id(found, f"{field} of the body") if isinstance(found, str) else ""


def _header_id(head: Head, verified: Verified | None) -> str:
    own = _OWN_HEADERS.get(verified.scheme) if verified else None
    for name in (own, *_ID_HEADERS) if own else _ID_HEADERS:
        if found := head.one(name):
            return checked_id(found, name)
    return ""


def _marked(verified: Verified | None) -> str:
    # A request with the same signature, which covers the time, is the same delivery.
    return f"sig_{verified.mark}" if verified and verified.mark else ""


def checked_id(found: str, where: str) -> str:
    """Check the id of a delivery.  Raises `BadHeader`."""
    if len(found) > ID_MAX or not found.isprintable() or not found.isascii():
        raise BadHeader(f"{where} is not a valid id: use printable ASCII characters only, {ID_MAX} at most")
    return found
