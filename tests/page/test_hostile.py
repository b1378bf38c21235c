"""Texts of models, tools and titles may come from an attacker, and never act in the browser."""

from __future__ import annotations

import pytest
from playwright.async_api import Dialog, Page, expect

from tests.page.browser import Visit, needs_browser, say
from tests.page.model import a_model, call
from tests.page.scene import operator
from tests.page.test_access import control_pages

pytestmark = needs_browser
ELSEWHERE = "https://elsewhere.example"
TITLE = "<img src=x onerror=top.done=1><script>top.done=1</script>"
MARKDOWN = f"""{TITLE}

<svg onload=top.done=1><script href="data:text/javascript,top.done=1" /></svg>
<iframe srcdoc="<script>top.done=1</script>"></iframe> <a href="javascript:top.done=1">html link</a>
<style>body {{ display: none }}</style> <form action="{ELSEWHERE}"><button>go</button></form> <base href="{ELSEWHERE}/">
<meta http-equiv="refresh" content="0;url={ELSEWHERE}"> <link rel="stylesheet" href="{ELSEWHERE}/a.css">

[script](javascript:top.done=1) [split](<java\nscript:top.done=1>) [cased](JaVaScRiPt:top.done=1) <javascript:top.done=1>
[entity](javascript&#58;top.done=1) [data](data:text/html,<script>top.done=1</script>) [file](file:///etc/passwd) [named][r]
[honest]({ELSEWHERE}/page) ![tracking]({ELSEWHERE}/pixel.png) ![quoted](x" onerror="top.done=1)
![schemeless](//elsewhere.example/pixel.png) ![own](/api/sign-out)
![svg](data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'%20onload='top.done=1'/%3E)

[r]: javascript:top.done=1 "<script>top.done=1</script>"

```html"><script>top.done=1</script>
<script>top.done=1</script>
```

| <script>top.done=1</script> | [cell](vbscript:top.done=1) |
|---|---|
| `<img src=x onerror=top.done=1>` | ![cell]({ELSEWHERE}/cell.png) |

The end.
"""
PRINTED = (
    r"\033]8;;javascript:top.done=1\033\\linked\033]8;;\033\\ <script>top.done=1</script> \033]0;<script>\007 "
    f"<img src={ELSEWHERE}/printed.png onerror=top.done=1> printed-all"
)
FURNITURE = {
    "/api/memory": {"text": TITLE},
    "/api/jobs": {"name": "news", "schedule": "0 7 * * *", "prompt": TITLE, "deliver": "log"},
    "/api/webhooks": {"name": "alerts", "prompt": TITLE},
}
SHOWN = ("status", "approvals", "jobs", "memory")
# What no text may become: an active element, an event attribute, or a foreign address.
_ACTING = r"""
() => {
  const said = [...document.querySelectorAll("main, aside")].flatMap((part) => [...part.querySelectorAll("*")]);
  const acts = (each) =>
    ["SCRIPT", "IFRAME", "OBJECT", "EMBED", "STYLE", "BASE", "META", "LINK", "FOREIGNOBJECT"].includes(
      each.tagName.toUpperCase(),
    ) ||
    [...each.attributes].some(({ name }) => /^on|^srcdoc$|^srcset$|^action$|^formaction$/i.test(name)) ||
    (each.hasAttribute("href") && !/^(https?:|mailto:|#|\/$)/i.test(each.getAttribute("href"))) ||
    (each.hasAttribute("src") && !/^(\/(?!\/)|data:image\/(png|jpeg|gif|webp)|blob:)/i.test(each.getAttribute("src")));
  return said.filter(acts).map((each) => each.outerHTML);
}
"""


async def _does_nothing(visit: Visit, page: Page) -> None:
    assert await page.evaluate("window.done") is None
    assert await page.evaluate(_ACTING) == []
    assert not visit.complaints, visit.complaints


def _refuse(dialog: Dialog) -> None:
    raise AssertionError(f"a dialog opened: {dialog.message}")


async def test_hostile_markdown_is_text_and_asks_nobody() -> None:
    """While it streams, once it is complete, after a reload, as a title, and in search results."""
    async with a_model() as visit:
        page = await visit.tab()
        page.on("dialog", _refuse)
        await say(page, MARKDOWN)
        answer = page.locator("[data-role=assistant]")
        await expect(answer).to_contain_text("The end.")
        await expect(answer).to_contain_text("<script>top.done=1</script>")
        await expect(answer.get_by_role("link", name="honest")).to_have_attribute("rel", "noopener noreferrer")
        await expect(page.get_by_role("heading", level=1)).to_contain_text("<img src=x")
        await _does_nothing(visit, page)
        await page.reload()
        await expect(answer).to_contain_text("The end.")
        await page.get_by_role("searchbox").fill("elsewhere")
        await expect(page.get_by_role("navigation", name="Search results").get_by_role("link").first).to_be_visible()
        await _does_nothing(visit, page)


async def test_hostile_tools_are_text_and_ask_nobody() -> None:
    """The arguments and results of tools, a question, and a tool without a renderer."""
    steps = (
        call("terminal", command=f"printf '{PRINTED}'"),
        call("write_file", path="a<script>.html", content=TITLE),
        call("delegate_task", goal=f"script: say {TITLE}"),
        call("no_such_tool", a=TITLE),
        call("ask_user", question=TITLE, choices=[TITLE, "javascript:top.done=1"]),
        "result",
    )
    async with a_model(" | ".join(steps)) as visit:
        page = await visit.sign_in()
        page.on("dialog", _refuse)
        await say(page, "go on")
        # The command has no sandbox, so it needs consent first, and is shown literally.
        await page.get_by_role("button", name="Allow once").click()
        asked = page.get_by_role("region", name="Question")
        await expect(asked).to_contain_text("<script>top.done=1</script>")
        for card in ("Terminal", "Wrote"):
            await page.get_by_role("button", name=card).click()
        await expect(page.get_by_text("printed-all").last).to_be_visible()
        await _does_nothing(visit, page)
        await asked.get_by_role("button").first.click()
        await expect(page.locator("[data-role=assistant]").last).to_contain_text("<img src=x")
        await _does_nothing(visit, page)


@pytest.mark.long
async def test_hostile_things_are_text_on_the_control_pages_as_well() -> None:
    """Memories, jobs, questions, and the prompt of a webhook."""
    async with a_model(f"{call('ask_user', question=TITLE)} | result") as visit:
        page = await visit.sign_in()
        page.on("dialog", _refuse)
        await say(page, TITLE)
        await expect(page.get_by_role("region", name="Question")).to_be_visible()
        async with operator(visit.gateway) as web:
            for path, body in FURNITURE.items():
                (await web.post(path, json=body)).raise_for_status()
        for name in await control_pages(page):
            await page.goto(f"{visit.url}/#/control/{name}")
            await expect(page.get_by_role("main").get_by_role("heading", level=1)).to_be_visible()
            await expect(page.get_by_role("status", name="Loading")).to_have_count(0)
            if name in SHOWN:
                await expect(page.get_by_role("main")).to_contain_text("<script>top.done=1</script>")
            await _does_nothing(visit, page)
