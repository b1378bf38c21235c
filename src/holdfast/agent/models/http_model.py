"""A model behind an HTTP server: the part that is the same in every wire format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Self

from holdfast.agent.models.client import ModelClient
from holdfast.agent.models.failures import ModelEndpoint
from holdfast.agent.models.port import Facts
from holdfast.agent.models.providers import ResolvedProvider
from holdfast.config import ModelConfig


class HttpModel(ABC):
    """One model.  A subclass per wire format builds requests and reads answers."""

    def __init__(
        self,
        *,
        client: ModelClient,
        endpoint: ModelEndpoint,
        model: str,
        facts: Facts,
        reasoning: str = "off",
        output_tokens_max: int = 0,
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._model = model
        self._facts = facts
        self._reasoning = reasoning
        self._output_tokens_max = output_tokens_max

    @classmethod
    def at(
        cls,
        resolved: ResolvedProvider,
        *,
        client: ModelClient,
        provider: str,
        model: str,
        facts: Facts,
        name_setting: str,
        config: ModelConfig,
    ) -> Self:
        """Return the model as it is configured."""
        path, headers = cls.path_and_headers(resolved)
        endpoint = ModelEndpoint.at(resolved, f"{provider}:{model}", path, headers, name_setting, config.stall_timeout)
        # The configured limit is about the first model of the chain.
        limit = config.output_tokens_max if name_setting == "model.name" else 0
        return cls(
            client=client, endpoint=endpoint, model=model, facts=facts, reasoning=config.reasoning, output_tokens_max=limit
        )

    @staticmethod
    @abstractmethod
    def path_and_headers(resolved: ResolvedProvider) -> tuple[str, Mapping[str, str]]:
        """Return the path below the base URL, and the headers for authentication."""

    @property
    def name(self) -> str:
        return self._endpoint.name

    @property
    def facts(self) -> Facts:
        return self._facts

    async def close(self) -> None:
        await self._client.close()
