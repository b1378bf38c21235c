"""The words of an answer as the page showed them at every moment."""

from __future__ import annotations

from typing import Any

import httpx2
from playwright.async_api import Page

from tests.blackbox.gateway import PATIENCE_S, until

# Reports the visible answers on every change of the document.
_WATCH = """
(() => {
  let told = null;
  const look = () => {
    const said = [...document.querySelectorAll("[data-role=assistant]")].map((each) => each.textContent).join(" ");
    const words = said.split(/\\s+/).filter(Boolean).join(" ");
    if (words === told) return;
    told = words;
    window.tellWords(words, performance.timeOrigin);
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true, characterData: true });
})();
"""


class Reader:
    """A reader.  Each document has its own list of moments, by its start time."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.documents: dict[float, list[str]] = {}

    @property
    def now(self) -> str:
        return self.documents[max(self.documents)][-1] if self.documents else ""

    async def begin(self) -> None:
        await self.page.expose_function("tellWords", self._tell)
        await self.page.add_init_script(_WATCH)
        await self.page.evaluate(_WATCH)

    async def has_read(self, word: str, patience_s: float = PATIENCE_S) -> None:
        await until(lambda: word in self.now.split(), f"{word} is on the page", patience_s)

    def check(self, answer: str) -> None:
        """Compare every moment with the whole answer: it shows a prefix, which never gets shorter."""
        whole = " ".join(answer.split())
        assert self.now == whole
        for moments in self.documents.values():
            for before, after in zip(["", *moments], moments, strict=False):
                assert whole.startswith(after), f"never said: {after}"
                assert len(after) >= len(before), f"{before!r} became {after!r}"

    def _tell(self, words: str, began: float) -> None:
        self.documents.setdefault(began, []).append(words)


async def transcript(web: httpx2.AsyncClient) -> list[dict[str, Any]]:
    """Return the transcript of the gateway's only session."""
    (session,) = (await web.get("/api/sessions")).json()["items"]
    return (await web.get(f"/api/sessions/{session['id']}/messages")).json()["items"]


async def answers(web: httpx2.AsyncClient) -> str:
    """Return all answers of the only session."""
    return " ".join(item["text"] for item in await transcript(web) if item["role"] == "assistant")


async def messages(web: httpx2.AsyncClient) -> list[str]:
    """Return all messages of the only session."""
    return [item["text"] for item in await transcript(web) if item["role"] == "user"]
