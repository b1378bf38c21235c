"""A gateway that has been in use, with an example of everything that the page can show."""

from __future__ import annotations

import httpx2

from tests.blackbox.gateway import Gateway, until
from tests.page.model import call

MARKDOWN = """# A heading

A paragraph with **weight**, *stress*, `code`, ~~regret~~ and [a link](https://manual.example/).

> Somebody said so.

1. one
2. two
   - [x] done
   - [ ] not done

| Figure | Value |
|---|---:|
| first | 1 |

```python
def answer() -> int:
    return 42  # as everybody knows
```

![a picture](https://pictures.example/a.png)
"""
SAID = {
    "words": MARKDOWN,
    "tools": "script: think I should look; "
    + call("terminal", command="ls -la")
    + " | "
    + call("write_file", path="plan.md", content="# Plan")
    + " | "
    + call("edit_file", path="plan.md", old="# Plan", new="# The plan")
    + " | "
    + call("no_such_tool", word="a")
    + " | say That was all.",
    "background": "script: " + call("terminal", command="sleep 100", background=True) + " | say It runs.",
    "failed": "script: says 400 there is no such model",
    "approval": "script: " + call("terminal", command="rm -rf build") + " | say Gone.",
    "question": "script: " + call("ask_user", question="Which harbour?", choices=["Genoa", "Trieste"]) + " | result",
}
SETTLED = ("completed", "failed", "waiting")


def operator(gateway: Gateway) -> httpx2.AsyncClient:
    """Return a client on the gateway's socket, which may do everything."""
    socket = httpx2.AsyncHTTPTransport(uds=str(gateway.home / "gateway.sock"), verify=False)
    return httpx2.AsyncClient(transport=socket, base_url="http://localhost", timeout=30)


async def furnish(gateway: Gateway) -> dict[str, str]:
    """Fill a gateway that has a scripted model with examples.  Returns the sessions by their content."""
    async with operator(gateway) as web:
        sessions = {name: await _say(web, text) for name, text in SAID.items()}
        await allow(web, "sleep 100")
        await _post(web, "/api/jobs", {"name": "news", "schedule": "0 7 * * *", "prompt": "What is new?", "deliver": "log"})
        await _post(web, "/api/webhooks", {"name": "alerts", "prompt": "Alert: {message}"})
        await _post(web, "/api/memory", {"text": "The harbour is Genoa."})
        await _post(web, "/api/keys", {"name": "laptop"})
        return sessions


async def _say(web: httpx2.AsyncClient, text: str) -> str:
    session = await _post(web, "/api/sessions", {})
    turn = (await _post(web, f"/api/sessions/{session['id']}/messages", {"text": text}))["turn_id"]
    await until(lambda: _is_settled(web, turn), f"settled: {text}")
    return session["id"]


async def allow(web: httpx2.AsyncClient, command: str) -> None:
    """Consent to a command, which has no sandbox here."""
    listed = (await web.get("/api/approvals")).json()["items"]
    (asked,) = [each for each in listed if each["detail"].get("command") == command]
    turn = asked["turn_id"]
    await _post(web, f"/api/turns/{turn}/answer", {"text": "once", "question_id": asked["question_id"]})
    await until(lambda: _is_settled(web, turn), f"settled: {command}")


async def _is_settled(web: httpx2.AsyncClient, turn: str) -> bool:
    return (await web.get(f"/api/turns/{turn}")).json()["state"] in SETTLED


async def _post(web: httpx2.AsyncClient, path: str, body: object) -> dict[str, str]:
    answer = await web.post(path, json=body)
    assert answer.status_code < 300, f"{path}: {answer.text}"
    return answer.json()
