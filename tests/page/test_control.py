"""The control pages: they act on the gateway, and show its state."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.page.browser import at_home, needs_browser, say
from tests.page.scene import operator

pytestmark = needs_browser
# It waits for its gate, but not forever: a test that fails opens none.
SCRIPT = """echo first-line
left=600
until test -e gate || test $((left -= 1)) -lt 0
do sleep 0.1
done
echo last-line
"""


@pytest.mark.long
async def test_what_a_background_command_writes_is_seen_as_it_comes() -> None:
    """Output streams on after its gateway is killed, because the command survives."""
    # Without a sandbox, every command would need consent.
    async with at_home({"tools__terminal__sandbox": "off", "tools__terminal__approval": "allow"}) as (visit, _):
        workspace = visit.gateway.home / "workspace"
        workspace.mkdir(exist_ok=True)
        (workspace / "go.sh").write_text(SCRIPT)
        page = await visit.sign_in()
        await say(page, "background: sh go.sh")
        await expect(page.get_by_role("button", name="Copy the answer")).to_be_visible()
        await page.goto(f"{visit.url}/#/control/processes")
        await page.get_by_role("link", name="sh go.sh", exact=True).click()
        output = page.get_by_role("main")
        await expect(output).to_contain_text("first-line")
        await visit.gateway.kill()
        await visit.gateway.start()
        (workspace / "gate").touch()
        await expect(output).to_contain_text("last-line")
        await expect(output).to_contain_text("Done")


@pytest.mark.long
async def test_jobs_memories_and_keys_are_made_on_the_page() -> None:
    async with at_home() as (visit, _):
        page = await visit.sign_in()
        await page.goto(f"{visit.url}/#/control/jobs")
        await page.get_by_role("button", name="New job").click()
        await page.get_by_label("Name").fill("news")
        await page.get_by_label("When").fill("0 7 * * *")
        await page.get_by_label("Prompt").fill("count to 3")
        await page.get_by_role("button", name="Add job").click()
        await page.get_by_role("link", name="news").click()
        await page.get_by_role("button", name="Run now").click()
        await page.goto(f"{visit.url}/#/control/memory")
        await page.get_by_role("button", name="Add").click()
        await page.get_by_label("What to remember").fill("The harbour is Genoa.")
        await page.get_by_role("button", name="Remember").click()
        await expect(page.get_by_role("region", name="Memories")).to_contain_text("The harbour is Genoa.")
        await page.goto(f"{visit.url}/#/control/keys")
        await page.get_by_role("button", name="New key").click()
        await page.get_by_label("Name").fill("laptop")
        await page.get_by_role("button", name="Create key").click()
        await page.get_by_role("button", name="Done").click()
        await expect(page.get_by_role("table", name="Keys")).to_contain_text("laptop")
        async with operator(visit.gateway) as web:
            assert [each["name"] for each in (await web.get("/api/jobs")).json()["items"]] == ["news"]
            assert [each["name"] for each in (await web.get("/api/keys")).json()["items"]] == ["laptop"]
            facts = (await web.get("/api/memory")).json()["items"]
            assert [each["text"] for each in facts] == ["The harbour is Genoa."]
            sessions = (await web.get("/api/sessions")).json()["items"]
            assert [each["turns"] for each in sessions] == [1], "the job has run once"
