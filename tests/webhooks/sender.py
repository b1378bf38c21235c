"""Somebody who sends webhooks: signs them, and tells what was answered."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2

from holdfast.channels.webhook.signatures import Scheme, sign
from holdfast.config import ChannelsConfig, RouteConfig, UrlConfig, WebhookConfig
from tests.web.house import House, open_house

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def channels(routes: dict[str, RouteConfig], **url: Any) -> ChannelsConfig:
    return ChannelsConfig(webhook=WebhookConfig(routes=routes), url=UrlConfig(**url))


@contextlib.asynccontextmanager
async def open_routes(home: Path, *, house: dict[str, Any] | None = None, **routes: RouteConfig) -> AsyncIterator[House]:
    """Run a gateway with routes."""
    async with open_house(home, channels=channels(routes), **(house or {})) as found:
        yield found


def route(**changes: Any) -> RouteConfig:
    return RouteConfig(**{"secret": SECRET, "prompt": "Alert: {message}", **changes})


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def post(house: House, name: str, body: bytes, headers: dict[str, str] | None = None) -> httpx2.Response:
    """Send bytes as they are."""
    # Nobody who sends webhooks has a key.
    shown = {"content-type": "application/json", **(headers or {})}
    async with httpx2.AsyncClient(base_url=house.url, verify=False, timeout=20) as client:
        return await client.post(f"/webhooks/{name}", content=body, headers=shown)


async def send(
    house: House,
    name: str,
    payload: object,
    delivery: str = "d1",
    *,
    scheme: Scheme = Scheme.STANDARD,
    secret: str = SECRET,
    at_ms: int | None = None,
    **headers: str,
) -> httpx2.Response:
    """Send a delivery, signed."""
    body = json.dumps(payload).encode()
    signed = sign(scheme, body, secret, now_ms() if at_ms is None else at_ms, delivery)
    return await post(house, name, body, {**signed, **{title.replace("_", "-"): value for title, value in headers.items()}})


def told(response: httpx2.Response) -> tuple[int, str]:
    """Return the status, and what it was called."""
    said = response.json()
    return response.status_code, said["error"]["code"] if "error" in said else said["status"]
