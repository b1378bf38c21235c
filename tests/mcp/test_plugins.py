"""Plugins are real distributions on the path: what is sound is loaded, and whatever is not is left out with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.agent import plugins
from holdfast.config import ModelConfig
from tests.distributions import installer
from tests.mcp.scenes import call_context

SOUND = """
import msgspec
from holdfast.agent.models.port import Facts
from holdfast.agent.tools.port import StructTool
from holdfast.core.effects import Effect

class Args(msgspec.Struct):
    city: str

async def look(args, call_context):
    return f"sunny in {args.city}"

def named(name):
    return StructTool(name=name, description="The weather.", args=Args, effect=Effect.PURE, action=look)

def one():
    return named("weather")

def two():
    return [named("rain"), named("snow")]

class Model:
    facts = Facts(context_tokens=1000)
    def __init__(self, name, config):
        self.name = f"acme:{name}"
        self.reasoning = config.reasoning

def nothing():
    return None

def misnamed():
    return named("no spaces")

def bye():
    raise SystemExit(3)

not_callable = 5
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put a distribution with entry points on the path."""
    put = installer(tmp_path, monkeypatch)
    return lambda name, entry_points, code=SOUND: put(name, entry_points, code)


async def test_tools_and_models_of_a_distribution_are_loaded(install) -> None:
    install(
        "sound-one",
        "[holdfast.tools]\na = sound_one:one\nb = sound_one:two\n[holdfast.models]\nacme = sound_one:Model\n",
    )
    found = plugins.load()
    assert found.problems == ()
    assert [each.name for each in found.tools] == ["rain", "snow", "weather"]
    assert await found.tools[2].run({"city": "Oslo"}, call_context()) == "sunny in Oslo"
    model = found.models["acme"]("large", ModelConfig(name="acme:large"))
    assert model.name == "acme:large"


@pytest.mark.parametrize(
    ("entry_points", "code", "word"),
    [
        ("[holdfast.tools]\na = broken:one", "raise RuntimeError('no luck')", "RuntimeError: no luck"),
        ("[holdfast.tools]\na = broken:one", "this is no Python", "SyntaxError"),
        ("[holdfast.tools]\na = broken:missing", SOUND, "AttributeError"),
        ("[holdfast.tools]\na = nowhere:one", SOUND, "No module named 'nowhere'"),
        ("[holdfast.tools]\na = broken:nothing", SOUND, "None is no tool: its name is no str"),
        ("[holdfast.tools]\na = broken:misnamed", SOUND, "cannot be the name of a tool"),
        ("[holdfast.tools]\na = broken:bye", SOUND, "SystemExit: 3"),
        ("[holdfast.tools]\na = broken:not_callable", SOUND, "no callable but int"),
        ("[holdfast.models]\na = broken:not_callable", SOUND, "no callable but int"),
        ("[holdfast.models]\nA:B = broken:Model", SOUND, "the name of a provider"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_left_out_with_its_reason(
    install, entry_points: str, code: str, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A plugin's bug never keeps the gateway from starting, nor another plugin from working."""
    install("broken", entry_points, code)
    install("sound-two", "[holdfast.tools]\na = sound_two:one\n")
    found = plugins.load()
    assert [each.name for each in found.tools] == ["weather"]
    assert not found.models
    (problem,) = found.problems
    assert "of broken 1.2" in problem
    assert word in problem
    assert problem in caplog.text


def test_a_name_that_two_plugins_use_is_refused_with_both(install) -> None:
    """Which of two was meant nobody knows, so that neither can take the place of the other."""
    install("sound-one", "[holdfast.tools]\na = sound_one:one\n[holdfast.models]\nacme = sound_one:Model\n")
    install("sound-two", "[holdfast.tools]\na = sound_two:one\n[holdfast.models]\nacme = sound_two:Model\n")
    found = plugins.load()
    assert not found.tools
    assert not found.models
    assert found.problems == (
        "The tool weather is offered by sound-one 1.2 and sound-two 1.2; the plugins' are left out",
        "The model provider acme is offered by sound-one 1.2 and sound-two 1.2; the plugins' are left out",
    )


def test_a_name_of_holdfast_is_not_given_to_a_plugin(install) -> None:
    install("sound-one", "[holdfast.tools]\na = sound_one:two\n[holdfast.models]\nopenai = sound_one:Model\n")
    found = plugins.load(tool_names={"rain"}, providers={"openai"})
    assert [each.name for each in found.tools] == ["snow"]
    assert not found.models
    assert "Holdfast itself and sound-one 1.2" in found.problems[0]
