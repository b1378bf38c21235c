"""The line that a file gets for one delivery."""

from __future__ import annotations

import msgspec

from holdfast.core.delivery import Delivery


def line(sent: Delivery) -> bytes:
    """Return one delivery as a line of JSON."""
    fields = {
        "id": sent.id,
        "at": sent.created_at,
        "session_id": sent.session_id,
        "turn_id": sent.turn_id,
        "text": sent.outgoing,
    }
    return msgspec.json.encode(fields) + b"\n"


def is_line_of(written: bytes, sent: Delivery) -> bool:
    """Return whether a line of the file is that of a delivery.  It may be any text, or half a line."""
    if sent.id.encode() not in written:
        return False
    try:
        return msgspec.json.decode(written, type=dict[str, object]).get("id") == sent.id
    except msgspec.DecodeError:
        return False
