"""Providers: their addresses and keys."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from holdfast.config import ModelConfig, ProviderConfig
from holdfast.errors import ConfigInvalid


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProvider:
    """A built-in provider."""

    # The wire format.
    wire: Literal["openai", "anthropic"] = "openai"
    # Empty if the configuration must name the address.
    base_url: str = ""
    # The environment variable of the key; empty if no key is needed.
    key_env: str = ""
    # Its name for people.
    label: str = ""
    # An example of a model.
    example: str = ""
    # Where keys are created.
    key_hint: str = ""


PROVIDERS: Mapping[str, KnownProvider] = {
    "openai": KnownProvider(
        base_url="https://api.openai.com/v1",
        key_env="OPENAI_API_KEY",
        label="OpenAI",
        example="gpt-5",
        key_hint="platform.openai.com/api-keys",
    ),
    "anthropic": KnownProvider(
        wire="anthropic",
        base_url="https://api.anthropic.com/v1",
        key_env="ANTHROPIC_API_KEY",
        label="Anthropic",
        example="claude-sonnet-5",
        key_hint="console.anthropic.com/settings/keys",
    ),
    "openrouter": KnownProvider(
        base_url="https://openrouter.ai/api/v1",
        key_env="OPENROUTER_API_KEY",
        label="OpenRouter",
        example="openai/gpt-5",
        key_hint="openrouter.ai/keys",
    ),
    "deepseek": KnownProvider(
        base_url="https://api.deepseek.com/v1",
        key_env="DEEPSEEK_API_KEY",
        label="DeepSeek",
        example="deepseek-chat",
        key_hint="platform.deepseek.com/api_keys",
    ),
    "groq": KnownProvider(
        base_url="https://api.groq.com/openai/v1",
        key_env="GROQ_API_KEY",
        label="Groq",
        example="openai/gpt-oss-120b",
        key_hint="console.groq.com/keys",
    ),
    "mistral": KnownProvider(
        base_url="https://api.mistral.ai/v1",
        key_env="MISTRAL_API_KEY",
        label="Mistral",
        example="mistral-large-latest",
        key_hint="console.mistral.ai/api-keys",
    ),
    "together": KnownProvider(
        base_url="https://api.together.xyz/v1",
        key_env="TOGETHER_API_KEY",
        label="Together",
        example="openai/gpt-oss-120b",
        key_hint="api.together.ai/settings/api-keys",
    ),
    "xai": KnownProvider(
        base_url="https://api.x.ai/v1",
        key_env="XAI_API_KEY",
        label="xAI",
        example="grok-4",
        key_hint="console.x.ai",
    ),
    "gemini": KnownProvider(
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_env="GEMINI_API_KEY",
        label="Google Gemini",
        example="gemini-2.5-pro",
        key_hint="aistudio.google.com/apikey",
    ),
    "ollama": KnownProvider(base_url="http://127.0.0.1:11434/v1", label="Ollama", example="qwen3"),
    "lmstudio": KnownProvider(base_url="http://127.0.0.1:1234/v1", label="LM Studio", example="qwen3-8b"),
    "vllm": KnownProvider(base_url="http://127.0.0.1:8000/v1", label="vLLM", example="Qwen/Qwen3-8B"),
    "llamacpp": KnownProvider(base_url="http://127.0.0.1:8080/v1", label="llama.cpp", example="qwen3-8b"),
    "compatible": KnownProvider(label="Another OpenAI-compatible server", example="model-name"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An address and a key.  Models of one account share outages and rate limits."""

    base_url: str = field(repr=False)
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedProvider:
    """The address and the key of a provider, and the names of the settings that they come from."""

    wire: Literal["openai", "anthropic"]
    base_url: str = field(repr=False)
    key: str = field(repr=False)
    url_setting: str
    key_setting: str

    @property
    def account(self) -> Account:
        return Account(base_url=self.base_url, key=self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """Resolves providers from the configuration and the built-in ones.  The configuration wins."""

    config: ModelConfig
    providers: Mapping[str, ProviderConfig]
    environment: Mapping[str, str]

    def resolve(self, name: str, setting: str, others: Iterable[str] = ()) -> ResolvedProvider:
        """Return the address and the key of the provider that a setting names.  Raises `ConfigInvalid`."""
        own = self.providers.get(name)
        if own is None and name not in PROVIDERS:
            raise _unknown(name, setting, sorted({*PROVIDERS, *self.providers, *others}))
        usual = PROVIDERS.get(name, KnownProvider())
        base_url, url_setting = self._base_url(name, usual)
        key, key_setting = self._key(name, usual, moved=base_url != usual.base_url)
        # A key that was read from a file may end in a line break.
        key = key.strip()
        if not (key.isascii() and key.isprintable()):
            raise ConfigInvalid(f"{key_setting}: holds characters that are not allowed in a key")
        return ResolvedProvider(
            wire=own.wire if own is not None else usual.wire,
            base_url=base_url,
            key=key,
            url_setting=url_setting,
            key_setting=key_setting,
        )

    def address(self, name: str) -> str:
        """Return the address of a provider; its key is not checked.  Raises `ConfigInvalid`."""
        return self._base_url(name, PROVIDERS.get(name, KnownProvider()))[0]

    def _tables(self, name: str) -> list[tuple[str, ModelConfig | ProviderConfig]]:
        """Return the configuration tables about a provider, the strongest first.  `model` applies to its own provider."""
        tables: list[tuple[str, ModelConfig | ProviderConfig]] = []
        if self.config.name.partition(":")[0] == name:
            tables.append(("model", self.config))
        if name in self.providers:
            tables.append((f"providers.{name}", self.providers[name]))
        return tables

    def _table(self, name: str) -> str:
        return next((table for table, _ in self._tables(name)), f"providers.{name}")

    def _base_url(self, name: str, usual: KnownProvider) -> tuple[str, str]:
        said = next(((each.base_url, f"{table}.base_url") for table, each in self._tables(name) if each.base_url), None)
        base_url, setting = said or (usual.base_url, f"{self._table(name)}.base_url")
        try:
            parts = urlsplit(base_url)
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            raise ConfigInvalid(f"{setting}: must be the address of the provider, like http://127.0.0.1:8000/v1")
        return base_url.rstrip("/"), setting

    def _key(self, name: str, usual: KnownProvider, *, moved: bool) -> tuple[str, str]:
        for table, each in self._tables(name):
            if each.api_key:
                return each.api_key, f"{table}.api_key"
            if each.api_key_env:
                if not (key := self.environment.get(each.api_key_env, "")):
                    raise ConfigInvalid(f"{table}.api_key_env: the variable {each.api_key_env} is not set")
                return key, f"the variable {each.api_key_env}"
        setting = f"{self._table(name)}.api_key"
        if not usual.key_env:
            return "", setting
        if key := self.environment.get(usual.key_env, ""):
            return key, f"the variable {usual.key_env}"
        # A server at another address may need no key.
        if not moved:
            raise ConfigInvalid(f"{name} wants a key: set the variable {usual.key_env}, or {setting}")
        return "", f"{setting} or the variable {usual.key_env}"


def _unknown(name: str, setting: str, every: list[str]) -> ConfigInvalid:
    near = difflib.get_close_matches(name, every, n=1)
    hint = f", did you mean {near[0]}?" if near else ";"
    return ConfigInvalid(
        f"{setting}: unknown provider {name!r}{hint} known are {', '.join(every)}, "
        f"and any other that [providers.{name}] gives a base_url"
    )
