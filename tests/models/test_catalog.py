"""How a configured name becomes a model."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast.agent.models.catalog import open_model
from holdfast.agent.models.circuit_breaker import CircuitBreakers
from holdfast.agent.models.facts import KNOWN, UNKNOWN, known
from holdfast.agent.models.port import Done, Model
from holdfast.agent.models.providers import PROVIDERS
from holdfast.clock import SystemClock
from holdfast.config import ModelConfig
from holdfast.errors import ConfigInvalid
from tests.models.scenes import KEY, configured, heard, scene, text_of


def opened(environment: dict[str, str] | None = None, **settings: object) -> Model:
    return open_model(ModelConfig(**settings), {}, environment or {})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_provider_is_known_by_name(name: str) -> None:
    """With its key in the environment nothing else is needed, but for the address of one that could be anywhere."""
    provider = PROVIDERS[name]
    environment = {provider.key_env: KEY} if provider.key_env else {}
    address = {} if provider.base_url else {"base_url": "http://127.0.0.1:9/v1"}
    assert opened(environment, name=f"{name}:some-model", **address).name == f"{name}:some-model"
    assert provider.label
    assert provider.example
    assert bool(provider.key_hint) == bool(provider.key_env)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"name": "opnai:gpt-5"}, ["model.name", "did you mean openai?", "deepseek, gemini"]),
        ({"name": "acme:gpt-5"}, ["unknown provider 'acme'", "[providers.acme]"]),
        ({"name": "gpt-5"}, ["model.name", "openai:gpt-5"]),
        ({"name": ""}, ["model.name"]),
        ({"name": "compatible:a"}, ["model.base_url", "http://"]),
        ({"name": "openai:gpt-5"}, ["OPENAI_API_KEY", "model.api_key"]),
        ({"name": "openai:gpt-5", "api_key_env": "MY_KEY"}, ["model.api_key_env", "MY_KEY"]),
        ({"name": "ollama:a", "fallback": ("anthropic:b",)}, ["ANTHROPIC_API_KEY", "providers.anthropic.api_key"]),
        ({"name": "ollama:a", "fallback": ("nobody:b",)}, ["model.fallback"]),
        ({"name": "ollama:a", "base_url": "localhost:11434"}, ["model.base_url", "http://"]),
        ({"name": "ollama:a", "base_url": "http://[::1"}, ["model.base_url"]),
        ({"name": "ollama:a", "base_url": "file:///etc/passwd"}, ["model.base_url"]),
        ({"name": "local:/nowhere/model.gguf"}, ["model.name", "local"]),
        ({"name": "pydantic:nobody:model"}, ["model.name", "nobody"]),
    ],
)
def test_what_cannot_be_opened_says_what_to_change(settings: dict[str, object], words: list[str]) -> None:
    """Exit 78 with the setting, what is allowed, and the nearest match."""
    with pytest.raises(ConfigInvalid) as raised:
        opened(**settings)
    for word in words:
        assert word in str(raised.value)


async def test_what_the_configuration_says_wins() -> None:
    """Its address, its key and its prices, for a provider that has others."""
    async with scene("say hello; usage 1000 100 0") as here:
        model = opened(
            {"OPENAI_API_KEY": "another key"},
            name="openai:gpt-5",
            base_url=here.server.url + "/",
            api_key=KEY,
            context_tokens=5000,
            output_tokens_max=77,
            input_price=3,
            output_price=7,
        )
        assert (model.facts.context_tokens, model.facts.output_tokens_max) == (5000, 77)
        *_, done = await heard(model, "hi")
        await model.close()
        (seen,) = here.server.requests
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert (seen.body["model"], seen.body["max_tokens"]) == ("gpt-5", 77)
    assert isinstance(done, Done)
    assert done.usage.cost_micros == 1000 * 3 + 100 * 7


async def test_another_server_in_the_place_of_a_vendor_needs_no_key() -> None:
    """A base_url of one's own, without any key."""
    async with scene() as here:
        model = opened(name="openai:anything", base_url=here.server.url)
        assert text_of(await heard(model, "nonce 3")) == "nonce 3"
        await model.close()
        assert "authorization" not in here.server.requests[0].headers


async def test_a_fallback_of_the_same_provider_uses_its_address_and_key() -> None:
    """What is said of the model holds for its provider; what it costs, only for itself."""
    async with scene("first 1 status 500; usage 1000 0 0; echo") as here:
        model = opened(
            name="openai:a", base_url=here.server.url, api_key=KEY, fallback=("openai:b",), retries=0, input_price=3
        )
        *_, done = await heard(model, "hi")
        await model.close()
        assert [seen.headers["authorization"] for seen in here.server.requests] == [f"Bearer {KEY}"] * 2
    assert isinstance(done, Done)
    assert done.usage.cost_micros == 0


async def test_a_provider_of_ones_own_can_speak_either_format() -> None:
    """From [providers.…], with the key in the header that its format wants."""
    async with scene() as here:
        for name in ("here:m", "there:m"):
            model = configured(here.server, name=name)
            assert text_of(await heard(model, "nonce 4")) == "nonce 4"
            await model.close()
        first, second = here.server.requests
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert second.headers["x-api-key"] == KEY
    assert second.headers["anthropic-version"]


@pytest.mark.parametrize(
    ("base", "path"), [("", "/v1/messages"), ("/v1", "/v1/messages"), ("/anthropic", "/anthropic/v1/messages")]
)
async def test_the_version_in_an_anthropic_address_may_be_left_out(base: str, path: str) -> None:
    """Half of those who copy the format leave it out."""
    async with scene() as here:
        model = opened(name="anthropic:claude", base_url=f"http://127.0.0.1:{here.server.port}{base}", api_key=KEY)
        await heard(model, "hi")
        await model.close()
        assert here.server.requests[0].path == path


async def test_a_model_of_a_plugin_is_made_by_it() -> None:
    """Plugins come first, with what stands behind the colon."""
    asked: list[str] = []

    async with scene() as here:

        def make(name: str, config: ModelConfig) -> Model:
            asked.append(name)
            return here.model("openai", name=config.name)

        model = open_model(ModelConfig(name="acme:large"), {}, {}, makers={"acme": make})
        assert text_of(await heard(model, "nonce 5")) == "nonce 5"
    assert asked == ["large"]


def test_known_models_are_found_by_the_longest_beginning() -> None:
    """A dated name is the model it is a version of; a broker's name is as large, at a price that is not known."""
    assert known("openai", "gpt-4o-mini-2024-07-18") is KNOWN["openai"]["gpt-4o-mini"]
    assert known("openai", "gpt-4o-2024-08-06") is KNOWN["openai"]["gpt-4o"]
    broker = known("openrouter", "anthropic/claude-opus-4.7")
    assert (broker.context_tokens, broker.input_price) == (1_000_000, 0)
    assert known("vllm", "nobody/knows-this") is UNKNOWN
    assert known("ollama", "gpt-oss:20b").context_tokens < UNKNOWN.context_tokens


def test_every_price_is_plausible() -> None:
    """What was read from the cache never costs more, and what is written never less."""
    for table in KNOWN.values():
        for facts in table.values():
            assert facts.cached_price <= facts.input_price <= facts.output_price
            assert facts.output_tokens_max <= facts.context_tokens


def test_no_key_is_shown_when_a_model_is_printed() -> None:
    """K1: a traceback prints what it finds."""
    breakers = CircuitBreakers(SystemClock())
    model = open_model(ModelConfig(name="openai:a", api_key=KEY), {}, {}, breakers=breakers)
    assert KEY not in repr(model)
    assert KEY not in repr(vars(vars(model)["_chain"][0][0]))
    assert KEY not in repr(vars(breakers))


def test_naming_models_imports_no_http_client() -> None:
    """A gateway without a model starts without its cost; with a plain address there is no TLS context either."""
    code = "import sys, holdfast.agent.models.catalog; print('httpx2' in sys.modules, 'pydantic_ai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False False\n"
