"""The official client against a whole gateway, with the demonstration agent or with a scripted model behind it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from holdfast.config import ModelConfig
from holdfast.daemon.handover import Handover
from openai import AsyncOpenAI
from tests.models.servers import ModelServer
from tests.web.house import PATIENCE_S, House, open_house

MODEL = "holdfast"
KEY = "a-key-of-the-operator"


def client_of(house: House, api_key: str = KEY, retries: int = 0) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{house.url}/v1", api_key=api_key, max_retries=retries, timeout=PATIENCE_S)


@contextlib.asynccontextmanager
async def demonstrated(home: Path, **wishes: Any) -> AsyncIterator[tuple[House, AsyncOpenAI]]:
    """A gateway that answers with the demonstration agent, and the operator's client of it."""
    async with open_house(home, api_key=KEY, **wishes) as house, client_of(house) as client:
        yield house, client


@contextlib.asynccontextmanager
async def modelled(
    home: Path, script: str = "echo", server: ModelServer | None = None, inherited: Handover | None = None
) -> AsyncIterator[tuple[House, AsyncOpenAI, ModelServer]]:
    """A gateway with a scripted model server behind it."""
    async with contextlib.AsyncExitStack() as stack:
        server = server or await stack.enter_async_context(ModelServer(script=script).running())
        model = ModelConfig(name="openai:scripted", base_url=server.url, api_key="sk-of-the-model", retries=0)
        house = await stack.enter_async_context(open_house(home, api_key=KEY, model=model, inherited=inherited))
        yield house, await stack.enter_async_context(client_of(house)), server


def told(server: ModelServer) -> list[tuple[str, Any]]:
    """Return what the model read last, without the system prompt."""
    return [(each["role"], each["content"]) for each in server.requests[-1].body["messages"] if each["role"] != "system"]


def system(server: ModelServer) -> str:
    """Return the system prompt that the model read last."""
    return "".join(each["content"] for each in server.requests[-1].body["messages"] if each["role"] == "system")
