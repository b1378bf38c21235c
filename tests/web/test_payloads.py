"""What entries say has the shape that other languages are told: of every kind that a conversation can have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.core.events import EVENTS, EntryKind
from tests.web.house import House, open_house

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


async def test_every_entry_has_the_shape_of_its_kind(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        picture = {"media_type": "image/png", "data": PIXEL}
        await settled(house, session_id, "hello; note: kept", images=[picture])
        await settled(house, session_id, "fail")
        asking = await house.send(session_id, "ask me anything")
        await house.in_state(asking["turn_id"], "waiting")
        await house.post(f"/api/turns/{asking['turn_id']}/answer", {"text": "yes"})
        await house.settled(asking["turn_id"])
        slow = await house.send(session_id, "count to 200 slowly")
        await house.post(f"/api/sessions/{session_id}/messages", {"text": "and more", "busy": "steer"}, 202)
        async with house.events(session_id) as events:
            async for entry in events:
                if entry["kind"] == "message.joined":
                    break
        await house.post(f"/api/turns/{slow['turn_id']}/cancel")
        await house.settled(slow["turn_id"])
        await house.send(session_id, "/undo")
        entries = (await house.get(f"/api/sessions/{session_id}/journal"))["entries"]
    for entry in entries:
        check(entry)
    seen = {entry["kind"] for entry in entries}
    # The others need a gateway that dies, a search after it, a summary by a model, a model that is away, or a chat.
    rare = {
        EntryKind.TURN_INTERRUPTED,
        EntryKind.TURN_RECOVERED,
        EntryKind.CONTEXT_COMPACTED,
        EntryKind.TURN_DEFERRED,
        EntryKind.USAGE,
        EntryKind.NOTE,
        EntryKind.TURN_REVISED,
    }
    assert {*EntryKind} - seen <= rare


async def settled(house: House, session_id: str, text: str, **more: Any) -> None:
    sent = await house.post(f"/api/sessions/{session_id}/messages", {"text": text, **more}, 202)
    await house.settled(sent["turn_id"])


def check(entry: dict[str, Any]) -> None:
    shape = EVENTS[EntryKind(entry["kind"])]
    msgspec.convert(entry["data"], shape)
    assert set(entry["data"]) <= set(shape.__struct_fields__), entry


@pytest.mark.parametrize("kind", EntryKind)
def test_every_kind_has_a_shape(kind: EntryKind) -> None:
    assert kind in EVENTS
