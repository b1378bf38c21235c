"""A model behind a server: what is the same in every wire format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Self

from holdfast.agent.models.exchange import Wire
from holdfast.agent.models.failures import Endpoint
from holdfast.agent.models.port import Facts
from holdfast.agent.models.providers import Seat
from holdfast.config import ModelConfig


class Served(ABC):
    """One model.  A format adds what it sends, and how it reads the answer."""

    def __init__(
        self,
        *,
        wire: Wire,
        endpoint: Endpoint,
        model: str,
        facts: Facts,
        reasoning: str = "off",
        output_tokens_max: int = 0,
    ) -> None:
        self._wire = wire
        self._endpoint = endpoint
        self._model = model
        self._facts = facts
        self._reasoning = reasoning
        self._output_tokens_max = output_tokens_max

    @classmethod
    def at(
        cls, seat: Seat, *, wire: Wire, provider: str, model: str, facts: Facts, name_setting: str, config: ModelConfig
    ) -> Self:
        """Return the model as it is configured."""
        path, headers = cls.door(seat)
        endpoint = Endpoint.at(seat, f"{provider}:{model}", path, headers, name_setting, config.stall_timeout)
        # What the configuration says about a model is about its first.
        limit = config.output_tokens_max if name_setting == "model.name" else 0
        return cls(
            wire=wire, endpoint=endpoint, model=model, facts=facts, reasoning=config.reasoning, output_tokens_max=limit
        )

    @staticmethod
    @abstractmethod
    def door(seat: Seat) -> tuple[str, Mapping[str, str]]:
        """Return the path below the address of a server, and the headers that let us in."""

    @property
    def name(self) -> str:
        return self._endpoint.name

    @property
    def facts(self) -> Facts:
        return self._facts

    async def close(self) -> None:
        await self._wire.close()
