"""Deliveries: which one it is, so that it counts once, and the turn that it becomes."""

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
# In which order a sender's own id is looked for.  A proxy gives every try another X-Request-Id, so that comes last.
_ID_HEADERS = (
    "webhook-id",
    "x-github-delivery",
    "x-gitlab-event-uuid",
    "x-delivery-id",
    "idempotency-key",
    "x-request-id",
)
# GitLab gives events that lead to each other the same UUID, and every delivery its own key.
_OWN_HEADERS: Mapping[Scheme, str] = MappingProxyType({Scheme.GITLAB: "idempotency-key"})
# Where senders put the id into what they sign.
_SIGNED_IDS: Mapping[Scheme, str] = MappingProxyType({Scheme.SLACK: "event_id", Scheme.STRIPE: "id"})


def delivery_id(head: Head, verified: Verified | None, payload: Payload, now_ms: int) -> str:
    """Return what tells a delivery from every other: the sender's id for it, else its signature, else a new one.

    Raises `BadHeader` for an id that cannot be one.
    """
    if verified and verified.scheme in _SIGNED_IDS:
        # They send no other ids, so one in a header is somebody else's: a proxy's, or that of whoever sends it again.
        return _signed_id(verified, payload) or _marked(verified)
    if verified and verified.scheme is Scheme.GITHUB:
        # The signature covers the body alone: with another id in its header an overheard delivery would be a new one.
        return _marked(verified)
    return _header_id(head, verified) or _marked(verified) or new_id("whd", now_ms)


def dedupe_key(route: str, delivery: str) -> str:
    """Return the key under which a delivery is one turn, however often it is sent."""
    return f"{CHANNEL}:{route}:{delivery}"


def inbound(route: str, delivery: str, text: str, target: str | None, *, verbatim: bool = False) -> Inbound:
    """Return a delivery as a message: a turn of its own, in a session of its own, which nobody waits for."""
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
    # Whoever sends the same again, time and all, sends the same delivery.
    return f"sig_{verified.mark}" if verified and verified.mark else ""


def checked_id(found: str, where: str) -> str:
    """Return the id of a delivery.  Raises `BadHeader` for what cannot be one."""
    if len(found) > ID_MAX or not found.isprintable() or not found.isascii():
        raise BadHeader(f"{where} names no delivery: it has printable ASCII characters only, {ID_MAX} at most")
    return found
