"""A gateway whose model follows a script, and a browser at it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from tests.models.servers import ModelServer
from tests.page.browser import Visit, at_home


def call(name: str, **args: object) -> str:
    """Return the step of a script in which the model uses a tool."""
    return f"call {name} {json.dumps(args)}"


@contextlib.asynccontextmanager
async def a_model(script: str = "echo", **options: Any) -> AsyncIterator[Visit]:
    """Open a browser at a gateway whose model follows a script."""
    async with ModelServer(script).running() as server:
        model = {"model__name": "openai:scripted", "model__base_url": server.url, "model__api_key": "a-key-for-nobody"}
        async with at_home(model, **options) as (visit, _):
            yield visit
