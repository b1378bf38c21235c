"""Pictures of messages, shown again: byte for byte, and as nothing else than a picture."""

from __future__ import annotations

import base64
from pathlib import Path

from holdfast.core.intake import Busy, Image
from holdfast.ids import SessionId
from holdfast.operations.sessions import Message
from tests.web.house import open_house

PNG = b"\x89PNG\r\n\x1a\n<script>alert(1)</script>"
GIF = b"GIF89a" + bytes(range(256))


async def test_a_picture_is_shown_as_it_came_and_as_nothing_else(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        images = [
            {"media_type": kind, "data": base64.b64encode(data).decode()}
            for kind, data in (("image/png", PNG), ("image/gif", GIF))
        ]
        path = f"/api/sessions/{session_id}/messages"
        turn_id = (await house.post(path, {"text": "count to 1", "images": images}, 202))["turn_id"]
        for number, (kind, data) in enumerate((("image/png", PNG), ("image/gif", GIF))):
            shown = await house.web.get(f"/api/turns/{turn_id}/images/{number}")
            assert (shown.status_code, shown.headers["content-type"], shown.content) == (200, kind, data)
            assert shown.headers["x-content-type-options"] == "nosniff"
            assert shown.headers["content-security-policy"] == "default-src 'none'; sandbox"
            assert shown.headers["cache-control"] == "private, max-age=31536000, immutable"
            # After a sign-out the browser asks again.
            assert shown.headers["vary"] == "Authorization, X-Holdfast-Proof"
        for number in ("2", "4", "-1", "00", "one", "%30x", "9" * 30):
            refused = await house.web.get(f"/api/turns/{turn_id}/images/{number}")
            assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found"), number
        assert (await house.web.get("/api/turns/trn_nobody/images/0")).status_code == 404


async def test_the_picture_of_a_message_that_joined_another_turn_stays_its_own(home: Path) -> None:
    async with open_house(home) as house:
        session_id = SessionId(await house.session())
        first = await house.services.sessions.send(session_id, Message(text="count to 200"))
        await house.in_state(first.turn_id, "running")
        picture = Image(media_type="image/gif", data=GIF)
        second = await house.services.sessions.send(session_id, Message(text="and this", busy=Busy.STEER, images=(picture,)))
        shown = await house.web.get(f"/api/turns/{second.turn_id}/images/0")
        assert shown.content == GIF
        assert (await house.web.get(f"/api/turns/{first.turn_id}/images/0")).status_code == 404
