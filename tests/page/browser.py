"""A real browser, and a person in front of it."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from playwright.async_api import BrowserContext, ConsoleMessage, Page, Request, async_playwright

from tests.blackbox.gateway import Gateway

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_MS = 15_000
WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
# It asks nobody outside by itself, and a sandbox needs a user of its own.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# What a browser says by itself when the gateway is away, as it is on purpose.
AWAY = ("net::ERR_", "Failed to load resource", "Failed to fetch", "NetworkError")


def found() -> str | None:
    """Return the browser of this machine."""
    asked = os.environ.get("HOLDFAST_BROWSER")
    return asked or next((path for name in NAMES if (path := shutil.which(name))), None)


needs_browser = pytest.mark.skipif(
    found() is None and not os.environ.get("HOLDFAST_BROWSER_REQUIRED"),
    reason="there is no Chromium on this machine; install one, or name it in HOLDFAST_BROWSER",
)


class Visit:
    """One browser profile at one gateway, with everything that went wrong in it."""

    def __init__(self, context: BrowserContext, gateway: Gateway, url: str) -> None:
        self.context = context
        self.gateway = gateway
        self.url = url
        self.complaints: list[str] = []

    async def tab(self, address: str = "") -> Page:
        """Open one more tab of the same browser."""
        page = await self.context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        self._watch(page)
        await page.goto(f"{self.url}/{address}")
        return page

    async def sign_in(self) -> Page:
        """Open the page as the operator does: by a link that is good once."""
        link = (await self.gateway.run("link")).split()[0]
        return await self.tab(f"#{link.partition('#')[2]}")

    def _watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", self._hear)
        page.on("request", self._see)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(each in message.text for each in AWAY):
            self.complaints.append(f"console: {message.text}")

    def _see(self, request: Request) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.complaints.append(f"asked a third party: {request.url}")


@contextlib.asynccontextmanager
async def visiting(gateway: Gateway, url: str = "", **options: Any) -> AsyncIterator[Visit]:
    """Open a browser; whatever it complains about at the end fails the test.  `url` is where it finds the gateway."""
    options = {"viewport": WIDE, **options}
    path = found()
    assert path, "there is no Chromium on this machine; install one, or name it in HOLDFAST_BROWSER"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            visit = Visit(await browser.new_context(**options), gateway, url or gateway.url)
            yield visit
        finally:
            await browser.close()
    assert not visit.complaints, visit.complaints


async def sees(page: Page, what: str, check: Callable[[str], object]) -> str:
    """Return the text of the main part of the page as soon as it passes a check."""
    handle = page.get_by_role("main")
    deadline = PATIENCE_MS / 50
    for _ in range(int(deadline)):
        text = await handle.inner_text()
        if check(text):
            return text
        await page.wait_for_timeout(50)
    raise AssertionError(f"never saw {what}:\n{await handle.inner_text()}")
