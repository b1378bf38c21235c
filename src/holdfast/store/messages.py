"""What turns were asked: the words and pictures of their messages, inside a transaction."""

from __future__ import annotations

import base64
from typing import cast

import msgspec

from holdfast.core.events import MessageJoined, TurnAccepted, TurnRevised
from holdfast.core.intake import Image
from holdfast.errors import NotFound
from holdfast.ids import TurnId
from holdfast.store import rows
from holdfast.store.database import Run, Transaction

_ASKED = """
    SELECT kind, data FROM entries
     WHERE turn_id = :id AND kind IN ('turn.accepted', 'turn.revised', 'message.joined') ORDER BY seq
"""
# With those of the messages that joined it, in the order in which they came.
_IMAGES = """
    SELECT i.media_type, i.data FROM images i JOIN turns t ON t.id = i.turn_id
     WHERE i.turn_id = :id
        OR i.turn_id IN (SELECT e.data ->> 'turn_id' FROM entries e WHERE e.turn_id = :id AND e.kind = 'message.joined')
     ORDER BY t.ordinal, i.number
"""
_IMAGE = "SELECT media_type, data FROM images WHERE turn_id = :id AND number = :number"


def text(turn_id: TurnId) -> Transaction[str]:
    """Read what a turn was asked: its message, and those that joined it."""
    message, *joined = (yield from _asked(turn_id)) or [TurnAccepted(text="")]
    return "\n\n".join([message.text, *(each.text for each in joined)])


def accepted(turn_id: TurnId) -> Transaction[TurnAccepted]:
    """Read what the entry of a turn's acceptance says, as it was revised."""
    found = yield from _asked(turn_id)
    return cast("TurnAccepted", found[0]) if found else TurnAccepted(text="")


def _asked(turn_id: TurnId) -> Transaction[list[TurnAccepted | MessageJoined]]:
    """Return the message of a turn as it was revised, and those that joined it."""
    found: list[TurnAccepted | MessageJoined] = []
    for kind, data in (yield Run(_ASKED, {"id": turn_id})):
        event = rows.event(kind, data)
        if isinstance(event, TurnRevised) and found:
            found[0] = msgspec.structs.replace(found[0], text=event.text)
        elif isinstance(event, TurnAccepted | MessageJoined):
            found.append(event)
    return found


def images(turn_id: TurnId) -> Transaction[list[Image]]:
    """Read the pictures of a turn, and of the messages that joined it."""
    found = yield Run(_IMAGES, {"id": turn_id})
    return [Image(media_type=media_type, data=base64.b64decode(data)) for media_type, data in found]


def image(turn_id: TurnId, place: int) -> Transaction[Image]:
    """Read one of the pictures of a turn, counted from 0.  Raises `NotFound`."""
    found = yield Run(_IMAGE, {"id": turn_id, "number": place + 1})
    if not found:
        raise NotFound(f"turn {turn_id} has no image {place}")
    media_type, data = found[0]
    return Image(media_type=media_type, data=base64.b64decode(data))
