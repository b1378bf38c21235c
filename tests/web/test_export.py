"""A conversation as a file: over HTTP what the command line writes, under a name that is one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec

from holdfast.ids import SessionId
from holdfast.operations.export import ExportFormat, written
from tests.web.house import open_house


async def test_a_conversation_is_taken_along_in_either_form(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session(title='Größe: "A/B"; ../x')
        await house.settled((await house.send(session_id, "heliotrope, count to 1"))["turn_id"])
        transcript = await house.services.sessions.transcript(SessionId(session_id))
        for form, media, suffix in (
            (ExportFormat.MARKDOWN, "text/markdown; charset=utf-8", "md"),
            (ExportFormat.JSON, "application/json", "json"),
        ):
            answer = await house.web.get(f"/api/sessions/{session_id}/export", params={"format": form.value})
            assert (answer.status_code, answer.headers["content-type"]) == (200, media)
            assert answer.text == written(transcript, form)
            assert "heliotrope" in answer.text
            assert (
                answer.headers["content-disposition"] == f"attachment; filename=\"x.{suffix}\"; filename*=UTF-8''x.{suffix}"
            )
        await house.web.patch(f"/api/sessions/{session_id}", json={"title": "Größe"})
        plain = await house.web.get(f"/api/sessions/{session_id}/export")
        assert (
            plain.headers["content-disposition"] == "attachment; filename=\"Gr__e.md\"; filename*=UTF-8''Gr%C3%B6%C3%9Fe.md"
        )
        refused = await house.web.get(f"/api/sessions/{session_id}/export", params={"format": "pdf"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_parameter")


async def test_json_is_written_item_by_item_as_it_would_be_at_once(home: Path) -> None:
    """A conversation of 200 MB held the interpreter for most of a second."""
    async with open_house(home) as house:
        session_id = await house.session(title='"items": []')
        await house.settled((await house.send(session_id, 'count to 1\n"items": []'))["turn_id"])
        transcript = await house.services.sessions.transcript(SessionId(session_id))
        assert len(transcript.items) > 1
        for some in (transcript, replace(transcript, items=transcript.items[:1]), replace(transcript, items=[])):
            at_once = msgspec.json.format(msgspec.json.encode(some), indent=2).decode()
            assert written(some, ExportFormat.JSON) == f"{at_once}\n"
