"""Providers: who can be asked, where they are, and with which key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from holdfast.config import ModelConfig, ProviderConfig
from holdfast.errors import ConfigInvalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Who answers under a name.  Without a `key_env` nobody asks for a key; without a `base_url` somebody must say where.

    People know it by its `label`; `example` is a model of its, and `key_hint` is where its keys are made.
    """

    wire: Literal["openai", "anthropic"] = "openai"
    base_url: str = ""
    key_env: str = ""
    label: str = ""
    example: str = ""
    key_hint: str = ""


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        base_url="https://api.openai.com/v1",
        key_env="OPENAI_API_KEY",
        label="OpenAI",
        example="gpt-5",
        key_hint="platform.openai.com/api-keys",
    ),
    "anthropic": Provider(
        wire="anthropic",
        base_url="https://api.anthropic.com/v1",
        key_env="ANTHROPIC_API_KEY",
        label="Anthropic",
        example="claude-sonnet-5",
        key_hint="console.anthropic.com/settings/keys",
    ),
    "openrouter": Provider(
        base_url="https://openrouter.ai/api/v1",
        key_env="OPENROUTER_API_KEY",
        label="OpenRouter",
        example="openai/gpt-5",
        key_hint="openrouter.ai/keys",
    ),
    "deepseek": Provider(
        base_url="https://api.deepseek.com/v1",
        key_env="DEEPSEEK_API_KEY",
        label="DeepSeek",
        example="deepseek-chat",
        key_hint="platform.deepseek.com/api_keys",
    ),
    "groq": Provider(
        base_url="https://api.groq.com/openai/v1",
        key_env="GROQ_API_KEY",
        label="Groq",
        example="openai/gpt-oss-120b",
        key_hint="console.groq.com/keys",
    ),
    "mistral": Provider(
        base_url="https://api.mistral.ai/v1",
        key_env="MISTRAL_API_KEY",
        label="Mistral",
        example="mistral-large-latest",
        key_hint="console.mistral.ai/api-keys",
    ),
    "together": Provider(
        base_url="https://api.together.xyz/v1",
        key_env="TOGETHER_API_KEY",
        label="Together",
        example="openai/gpt-oss-120b",
        key_hint="api.together.ai/settings/api-keys",
    ),
    "xai": Provider(
        base_url="https://api.x.ai/v1",
        key_env="XAI_API_KEY",
        label="xAI",
        example="grok-4",
        key_hint="console.x.ai",
    ),
    "gemini": Provider(
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_env="GEMINI_API_KEY",
        label="Google Gemini",
        example="gemini-2.5-pro",
        key_hint="aistudio.google.com/apikey",
    ),
    "ollama": Provider(base_url="http://127.0.0.1:11434/v1", label="Ollama", example="qwen3"),
    "lmstudio": Provider(base_url="http://127.0.0.1:1234/v1", label="LM Studio", example="qwen3-8b"),
    "vllm": Provider(base_url="http://127.0.0.1:8000/v1", label="vLLM", example="Qwen/Qwen3-8B"),
    "llamacpp": Provider(base_url="http://127.0.0.1:8080/v1", label="llama.cpp", example="qwen3-8b"),
    "compatible": Provider(label="Another OpenAI-compatible server", example="model-name"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An address and a key: what shares an outage or a limit."""

    base_url: str = field(repr=False)
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where a provider is asked and with which key, and the settings that say so."""

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
    """Finds providers by what is built in and what the configuration says; what it says wins."""

    config: ModelConfig
    providers: Mapping[str, ProviderConfig]
    environment: Mapping[str, str]

    def seat(self, name: str, setting: str, others: Iterable[str] = ()) -> Seat:
        """Return where to ask the provider that a setting names.  Raises `ConfigInvalid`."""
        own = self.providers.get(name)
        if own is None and name not in PROVIDERS:
            raise _unknown(name, setting, sorted({*PROVIDERS, *self.providers, *others}))
        usual = PROVIDERS.get(name, Provider())
        base_url, url_setting = self._base_url(name, usual)
        key, key_setting = self._key(name, usual, moved=base_url != usual.base_url)
        # A file that a key was read from ends in a line break.
        key = key.strip()
        if not (key.isascii() and key.isprintable()):
            raise ConfigInvalid(f"{key_setting}: holds characters that no key has")
        return Seat(
            wire=own.wire if own is not None else usual.wire,
            base_url=base_url,
            key=key,
            url_setting=url_setting,
            key_setting=key_setting,
        )

    def address(self, name: str) -> str:
        """Return where a provider is asked, whatever its key.  Raises `ConfigInvalid`."""
        return self._base_url(name, PROVIDERS.get(name, Provider()))[0]

    def _tables(self, name: str) -> list[tuple[str, ModelConfig | ProviderConfig]]:
        """Return what is said about a provider, the strongest first.  What is said of the model holds for its provider."""
        tables: list[tuple[str, ModelConfig | ProviderConfig]] = []
        if self.config.name.partition(":")[0] == name:
            tables.append(("model", self.config))
        if name in self.providers:
            tables.append((f"providers.{name}", self.providers[name]))
        return tables

    def _table(self, name: str) -> str:
        return next((table for table, _ in self._tables(name)), f"providers.{name}")

    def _base_url(self, name: str, usual: Provider) -> tuple[str, str]:
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

    def _key(self, name: str, usual: Provider, *, moved: bool) -> tuple[str, str]:
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
        # Another server in the place of a vendor may not ask for one.
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
