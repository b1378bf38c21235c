"""A real browser, driven like a person."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Playwright,
    Request,
    Response,
    async_playwright,
    expect,
)

from tests.blackbox.gateway import Gateway, gateways
from tests.machine import browser, no_browser

needs_browser = pytest.mark.browser
# Most things appear at once; on a busy machine they may take this long.
PATIENCE_MS = 30_000
WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
# The browser sends no requests of its own; Chromium's sandbox would need a separate user.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Browsers log every failed request, and some requests fail on purpose.
COMES_TO_NOTHING = ("net::ERR_", "Failed to load resource")
UNAVAILABLE = 503
# Screenshots of failed tests.
PICTURES = Path(tempfile.gettempdir()) / "holdfast-page"

_launched: dict[asyncio.AbstractEventLoop, tuple[Playwright, Browser]] = {}
_pictures = itertools.count(1)
expect.set_options(timeout=PATIENCE_MS)


async def launched() -> Browser:
    """Return the browser of this loop."""
    loop = asyncio.get_running_loop()
    if loop not in _launched:
        path = browser()
        assert path, no_browser()
        playwright = await async_playwright().start()
        _launched[loop] = playwright, await playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
    return _launched[loop][1]


async def close() -> None:
    """Close the browser of this loop, if there is one."""
    if kept := _launched.pop(asyncio.get_running_loop(), None):
        playwright, browser = kept
        await browser.close()
        await playwright.stop()


class Visit:
    """One browser profile at one gateway, with all errors it reported."""

    def __init__(self, context: BrowserContext, gateway: Gateway, url: str) -> None:
        self.context = context
        self.gateway = gateway
        self.url = url
        self.complaints: list[str] = []
        context.set_default_timeout(PATIENCE_MS)
        context.on("weberror", lambda each: self.complaints.append(f"error: {each.error}"))
        context.on("console", self._hear)
        context.on("request", self._see)
        context.on("response", self._judge)

    async def tab(self, address: str = "") -> Page:
        """Open one more tab of the same browser."""
        page = await self.context.new_page()
        await page.goto(f"{self.url}/{address}")
        return page

    async def sign_in(self) -> Page:
        """Open the page as the operator does: with the one-time link that the gateway printed at its start."""
        await self.gateway.says("#code=")
        return await self.tab(re.findall(r"#code=\S+", self.gateway.log.read_text())[-1])

    async def fail(self, error: BaseException) -> None:
        """Describe what the page showed when a test failed."""
        for page in self.context.pages:
            with contextlib.suppress(Error):
                PICTURES.mkdir(exist_ok=True)
                path = PICTURES / f"{os.getpid()}-{next(_pictures)}.png"
                await page.screenshot(path=path, timeout=5_000)
                error.add_note(f"{page.url} looked like {path}, and read:\n{await page.locator('body').inner_text()}")
        error.add_note(f"complaints: {set(self.complaints)}\nthe gateway said:\n{self.gateway.tail()}")

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(each in message.text for each in COMES_TO_NOTHING):
            self.complaints.append(f"console: {message.text}")

    def _see(self, request: Request) -> None:
        if not request.url.startswith((f"{self.url}/", "data:", "blob:")):
            self.complaints.append(f"asked a third party: {request.url}")

    def _judge(self, response: Response) -> None:
        if response.status >= 500 and response.status != UNAVAILABLE:
            self.complaints.append(f"{response.status} for {response.url}")


@contextlib.asynccontextmanager
async def visiting(gateway: Gateway, url: str = "", **options: Any) -> AsyncIterator[Visit]:
    """Open a browser; any error it reports fails the test at the end.  `url` is where it finds the gateway."""
    browser = await launched()
    context = await browser.new_context(**{"viewport": WIDE, **options})
    visit = Visit(context, gateway, url or gateway.url)
    try:
        yield visit
    except BaseException as error:
        await visit.fail(error)
        raise
    finally:
        await context.close()
    assert not visit.complaints, set(visit.complaints)


@contextlib.asynccontextmanager
async def at_home(settings: dict[str, str] | None = None, **options: Any) -> AsyncIterator[tuple[Visit, httpx2.AsyncClient]]:
    """A browser at its own gateway, and an HTTP client that sees the real state."""
    with gateways(1, **(settings or {})) as (gateway,):
        await gateway.start()
        async with (
            httpx2.AsyncClient(base_url=gateway.url, verify=False, trust_env=False, timeout=30) as web,
            visiting(gateway, **options) as visit,
        ):
            yield visit, web


async def say(page: Page, text: str) -> None:
    """Write a message and send it."""
    field = page.get_by_role("textbox", name="Message")
    await field.fill(text)
    await field.press("Enter")
