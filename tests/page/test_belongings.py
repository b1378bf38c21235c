"""Attachments and exports of a conversation."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from playwright.async_api import FilePayload, expect

from tests.page.browser import needs_browser
from tests.page.model import a_model

pytestmark = needs_browser
# One red point.
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)


async def test_pictures_and_files_go_along_and_a_conversation_can_be_taken_away() -> None:
    """The model sees a picture, and it survives a reload; a file is in the workspace; an export has the messages."""
    async with a_model() as visit:
        page = await visit.sign_in()
        await page.locator("input[type=file]").set_input_files(
            [
                FilePayload(name="point.png", mimeType="image/png", buffer=PICTURE),
                FilePayload(name="notes.txt", mimeType="text/plain", buffer=b"the tide is high"),
            ]
        )
        field = page.get_by_role("textbox", name="Message")
        await field.fill("what is this?")
        await expect(page.get_by_role("button", name="Send", exact=True)).to_be_enabled()
        await field.press("Enter")
        await expect(page.locator("[data-role=assistant]")).to_contain_text("what is this?")
        await page.reload()
        picture = page.get_by_role("img", name="Picture 1")
        await expect(picture).to_be_visible()
        assert await picture.evaluate("each => each.naturalWidth") == 1
        (kept,) = (visit.gateway.home / "workspace" / "uploads").iterdir()
        assert kept.read_text() == "the tide is high"
        await expect(page.locator("[data-role=user]")).to_contain_text(kept.name)
        await page.get_by_role("main").get_by_role("button", name="Actions for").click()
        async with page.expect_download() as downloading:
            await page.get_by_role("menuitem", name="Export as JSON").click()
        exported: dict[str, Any] = json.loads(Path(await (await downloading.value).path()).read_text())
        assert "what is this?" in json.dumps(exported)
