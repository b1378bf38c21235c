"""The JSON that a web address gets for one delivery."""

from __future__ import annotations

import msgspec

from holdfast.core.delivery import Delivery


def body(sent: Delivery) -> bytes:
    """Return one part as JSON."""
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
