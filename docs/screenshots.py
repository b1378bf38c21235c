"""Takes the pictures of the page for the README and the guide: a real gateway, a real browser, and a model with a script.

python -m docs.screenshots
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import Page, expect
from tests.blackbox.gateway import Gateway, gateways, until
from tests.models.servers import ModelServer
from tests.page.browser import PHONE, Visit, close, visiting
from tests.page.model import call
from tests.page.scene import SETTLED, allow, operator

HERE = Path(__file__).parent
WIDE = {"width": 1280, "height": 900}
# It is in the pictures, so that it has a name of its own.
WORKSPACE = Path(tempfile.gettempdir()) / "harbour"
BYTES_MAX = 200_000
BEFORE = """import shlex


def words(line: str) -> list[str]:
    return shlex.split(line)
"""
TESTS = """import unittest

from words import words


class Words(unittest.TestCase):
    def test_a_comment_is_no_word(self) -> None:
        self.assertEqual(words("host harbour # north"), ["host", "harbour"])

    def test_a_quoted_sign_is_no_comment(self) -> None:
        self.assertEqual(words('name "pier #4"'), ["name", "pier #4"])
"""
# A step of a script ends with a semicolon and a space, so that no sentence may hold one.
DONE = """Comments are skipped now, and a `#` within quotes stays what it is. Both tests pass.

```python
def words(line: str) -> list[str]:
    return shlex.split(line, comments=True)  # everything behind a # is for people
```

|Line|Words|
|---|---|
|`host harbour # north`|`host` `harbour`|
|`name "pier #4"`|`name` `pier #4`|
"""
OLDER = {
    "Why is the nightly job slow?": "It waits for the backup. I moved it to four in the morning.",
    "Notes for the release": "Here is a draft in three parts.",
    "Plan the move to Genoa": "The ferry leaves at nine.",
}


class Studio:
    """A gateway, and the model that it asks."""

    def __init__(self, gateway: Gateway, model: ModelServer) -> None:
        self.gateway = gateway
        self.model = model

    async def talk(self, text: str, script: str, states: tuple[str, ...] = SETTLED) -> str:
        """Say something that is answered by a script.  Returns the session once its turn is in one of these states."""
        self.model.script = script
        async with operator(self.gateway) as web:
            session: dict[str, Any] = (await web.post("/api/sessions", json={})).json()
            sent = await web.post(f"/api/sessions/{session['id']}/messages", json={"text": text})
            turn: str = sent.json()["turn_id"]

            async def is_there() -> bool:
                return (await web.get(f"/api/turns/{turn}")).json()["state"] in states

            await until(is_there, f"{text} is {states}")
        return session["id"]


async def furnish(studio: Studio) -> dict[str, str]:
    """Have the conversations that are in the pictures.  Returns their sessions."""
    for text, answer in reversed(OLDER.items()):
        await studio.talk(text, f"say {answer}")
    (WORKSPACE / "build").mkdir(parents=True)
    for name, size in (("app.bin", 48_000), ("app.map", 210_000), ("cache.bin", 990_000)):
        (WORKSPACE / "build" / name).write_bytes(b"0" * size)
    (WORKSPACE / "words.py").write_text(BEFORE)
    (WORKSPACE / "test_words.py").write_text(TESTS)
    await studio.talk("How many lighthouses are there on the way?", "stream 3000 at 4", ("running",))
    code = await studio.talk("Let the parser accept comments, and test it.", _coding())
    async with operator(studio.gateway) as web:
        await allow(web, "python3 -m unittest")
    approval = await studio.talk("What in the build folder can go? Clean it up.", _cleaning())
    return {"code": code, "approval": approval}


def _coding() -> str:
    steps = (
        "think The parser uses shlex, which knows comments already.; "
        + call("edit_file", path="words.py", old="split(line)", new="split(line, comments=True)"),
        call("terminal", command="python3 -m unittest"),
        f"usage 18432 921 12000; say {DONE}",
    )
    return " | ".join(steps)


def _cleaning() -> str:
    look = "think First I look at what is there.; say I will look first.; " + call("terminal", command="ls -l build")
    found = "usage 9120 388 4096; say `app.bin` is the program, and stays. The other two are made anew by every build:\n\n"
    found += "- `cache.bin`, 990 kB\n- `app.map`, 210 kB\n\nDeleting them frees **1.2 MB**.; "
    return f"{look} | {found}{call('terminal', command='rm -rf build/cache.bin build/app.map')} | say They are gone."


async def take(page: Page, name: str) -> None:
    """Save what is seen, once nothing moves any more."""
    path = HERE / name
    await page.screenshot(path=path, animations="disabled", caret="hide")
    size = path.stat().st_size
    print(f"{name}: {size // 1000} kB")
    assert size < BYTES_MAX, f"{name} is too large for a page that many open"


async def conversation(visit: Visit, page: Page, session: str) -> None:
    """Go to a conversation, with nothing under the pointer."""
    await page.goto(f"{visit.url}/#/s/{session}")
    await expect(page.get_by_role("article").first).to_be_visible()
    await page.mouse.move(0, 0)


async def photograph(gateway: Gateway, sessions: dict[str, str]) -> None:
    """Take all pictures, each as somebody would see it who has just come."""
    async with visiting(gateway, viewport=WIDE, locale="en-GB") as visit:
        page = await visit.sign_in()
        await conversation(visit, page, sessions["approval"])
        await take(page, "page.png")
        await page.goto(f"{visit.url}/#/control/status")
        await expect(page.get_by_role("heading", name="Status", level=1)).to_be_visible()
        await expect(page.get_by_role("status", name="Loading")).to_have_count(0)
        await take(page, "control.png")
        await page.emulate_media(color_scheme="dark")
        await conversation(visit, page, sessions["code"])
        await take(page, "page-dark.png")
    held = {"viewport": PHONE, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}
    async with visiting(gateway, locale="en-GB", **held) as visit:
        link = (await gateway.run("link")).split()[0]
        page = await visit.tab(f"#{link.partition('#')[2]}")
        await conversation(visit, page, sessions["approval"])
        await take(page, "page-phone.png")


async def main() -> None:
    async with ModelServer().running() as model:
        settings = {"model__name": "compatible:sonata-2", "model__base_url": model.url, "agent__workspace": str(WORKSPACE)}
        # The question about a command is in one of the pictures, and inside of a sandbox nobody is asked.
        with gateways(1, tools__terminal__sandbox="off", **settings) as (gateway,):
            try:
                await gateway.start()
                await photograph(gateway, await furnish(Studio(gateway, model)))
            finally:
                shutil.rmtree(WORKSPACE, ignore_errors=True)
    await close()


if __name__ == "__main__":
    asyncio.run(main())
