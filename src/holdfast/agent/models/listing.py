"""Lists the models that a provider offers."""

from __future__ import annotations

import msgspec

from holdfast.agent.models.anthropic import Anthropic
from holdfast.agent.models.client import ModelClient
from holdfast.agent.models.failures import ModelEndpoint
from holdfast.agent.models.openai import OpenAI
from holdfast.agent.models.providers import ResolvedProvider
from holdfast.errors import ModelUnavailable

LIST_MAX_BYTES = 4 << 20
MODELS_MAX = 1_000
NAME_MAX = 200


class _Item(msgspec.Struct):
    id: str


class _List(msgspec.Struct):
    data: list[_Item]


# Some servers send the bare list.
_lists = msgspec.json.Decoder(_List | list[_Item])


async def listed(provider: str, resolved: ResolvedProvider, client: ModelClient, timeout_s: float) -> list[str]:
    """Return the sorted names of the models that a server offers.  Raises the same errors as a model request."""
    path, headers = (Anthropic if resolved.wire == "anthropic" else OpenAI).path_and_headers(resolved)
    version = "/v1" if path.startswith("/v1/") else ""
    headers = {**headers, "accept": "application/json"}
    endpoint = ModelEndpoint.at(resolved, provider, f"{version}/models", headers, "model.name", timeout_s)
    body = await client.fetch(endpoint, LIST_MAX_BYTES)
    try:
        found = _lists.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelUnavailable(f"{provider}: {endpoint.place} does not tell which models it has") from error
    items = found.data if isinstance(found, _List) else found
    names = {each.id for each in items if each.id.isprintable() and 0 < len(each.id) <= NAME_MAX}
    return sorted(names)[:MODELS_MAX]
