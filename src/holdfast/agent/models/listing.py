"""The models that a provider has, as far as it tells."""

from __future__ import annotations

import msgspec

from holdfast.agent.models.anthropic import Anthropic
from holdfast.agent.models.exchange import Wire
from holdfast.agent.models.failures import Endpoint
from holdfast.agent.models.openai import OpenAI
from holdfast.agent.models.providers import Seat
from holdfast.errors import ModelUnavailable

LIST_MAX_BYTES = 4 << 20
MODELS_MAX = 1_000
NAME_MAX = 200


class _Item(msgspec.Struct):
    id: str


class _List(msgspec.Struct):
    data: list[_Item]


# Some leave the envelope out.
_lists = msgspec.json.Decoder(_List | list[_Item])


async def listed(provider: str, seat: Seat, wire: Wire, timeout_s: float) -> list[str]:
    """Return the names of the models that a server offers, sorted.  Raises as a model that is asked does."""
    path, headers = (Anthropic if seat.wire == "anthropic" else OpenAI).door(seat)
    version = "/v1" if path.startswith("/v1/") else ""
    headers = {**headers, "accept": "application/json"}
    endpoint = Endpoint.at(seat, provider, f"{version}/models", headers, "model.name", timeout_s)
    body = await wire.fetch(endpoint, LIST_MAX_BYTES)
    try:
        found = _lists.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelUnavailable(f"{provider}: {endpoint.place} does not tell which models it has") from error
    items = found.data if isinstance(found, _List) else found
    names = {each.id for each in items if each.id.isprintable() and 0 < len(each.id) <= NAME_MAX}
    return sorted(names)[:MODELS_MAX]
