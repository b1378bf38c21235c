"""Memory of other distributions: a real one on the path remembers, and one that cannot is refused with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.agent import plugins
from holdfast.config import MemoryConfig
from holdfast.core.redaction import Redaction
from holdfast.errors import ConfigInvalid
from holdfast.memory.bindings import MemoryBindings
from holdfast.memory.opening import open_bindings
from tests.distributions import installer
from tests.engine.world import ManualClock
from tests.memory.test_http import SAID, SEGMENT, SESSION
from tests.memory.test_opening import Own

SOUND = """
from holdfast.memory.provider import Provider

class Elephant(Provider):
    def __init__(self, config):
        super().__init__(f"elephant:{config.url}" if config.url else "elephant")
        self.kept = {}

    async def commit(self, session, segment, messages):
        self.kept.setdefault(segment.id, [each.text for each in messages])
        return f"{len(self.kept)} kept"

def nothing(config):
    return None

def misnamed(config):
    made = Elephant(config)
    made.owner = "mouse"
    return made

def nearly(config):
    made = Elephant(config)
    made.owner = "elephants:1"
    return made

def told(config):
    made = Elephant(config)
    made.owner = "elephant:" + config.api_key
    return made

def undecided(config):
    made = Elephant(config)
    made.mirrors = "perhaps"
    return made

class Blocking(Elephant):
    def recall(self, session, query, limit):
        return ()

def broken(config):
    raise RuntimeError("no luck")

def bye(config):
    raise SystemExit(3)

def refusing(config):
    from holdfast.errors import Unavailable
    raise Unavailable("the herd is away")

not_callable = 5
"""
KEY = "sk-memory-0123456789"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put a distribution with entry points on the path."""
    put = installer(tmp_path, monkeypatch)
    return lambda name, entry_points, code=SOUND: put(name, f"[holdfast.memory]\n{entry_points}\n", code)


def opened(provider: str, url: str = "") -> MemoryBindings:
    return open_bindings(
        MemoryConfig(provider=provider, url=url, api_key=KEY),
        builtin=Own,
        plugins=plugins.load(),
        redaction=Redaction([KEY]),
        clock=ManualClock(),
        environment={},
    )


async def test_a_plugin_remembers_what_it_is_given(install) -> None:
    install("zoo", "elephant = zoo:Elephant")
    found = opened("elephant", "http://127.0.0.1:9300")
    assert found.current
    assert found.current.owner == "elephant:http://127.0.0.1:9300"
    assert await found.current.commit(SESSION, SEGMENT, SAID) == "1 kept"
    assert await found.current.commit(SESSION, SEGMENT, SAID) == "1 kept"
    assert await found.current.recall(SESSION, "sail", 5) == ()
    assert await found.current.check() == "nothing to check"
    await found.close()


async def test_what_is_owed_to_a_plugin_is_its_own_for_as_long_as_it_is_installed(install) -> None:
    """M3: it is opened again when it is not the chosen one any more, and parked when it is gone."""
    install("zoo", "elephant = zoo:Elephant")
    found = opened("builtin")
    earlier = found.of("elephant:http://127.0.0.1:9300")
    assert earlier
    assert earlier.owner == "elephant:http://127.0.0.1:9300"
    assert found.of("mouse:http://127.0.0.1:9300") is None
    await found.close()


@pytest.mark.parametrize(
    ("code", "thing", "words"),
    [
        (SOUND, "nothing", "None is no memory provider: its owner is no str"),
        (SOUND, "misnamed", "its owner is 'mouse', which must be 'elephant', or that and an address behind a colon"),
        (SOUND, "nearly", "its owner is 'elephants:1', which must be 'elephant'"),
        (SOUND, "told", "its owner contains a secret"),
        (SOUND, "undecided", "its mirrors is no bool"),
        (SOUND, "Blocking", "its recall is no async method"),
        (SOUND, "broken", "RuntimeError: no luck"),
        (SOUND, "bye", "SystemExit: 3"),
        (SOUND, "refusing", "the plugin elephant does not work: the herd is away"),
        (SOUND, "not_callable", "The plugin elephant of zoo 1.2 (zoo:not_callable) is left out: it is no callable but int"),
        (SOUND, "missing", "AttributeError"),
        ("this is no Python", "Elephant", "SyntaxError"),
        ("import nowhere", "Elephant", "No module named 'nowhere'"),
    ],
)
def test_a_chosen_plugin_that_does_not_work_is_refused_with_its_reason(install, code: str, thing: str, words: str) -> None:
    """A gateway that remembers nothing must not look like one that does."""
    install("zoo", f"elephant = zoo:{thing}", code)
    with pytest.raises(ConfigInvalid) as refused:
        opened("elephant")
    assert str(refused.value).startswith("memory.provider: ")
    assert words in str(refused.value)
    assert KEY not in str(refused.value)


def test_a_plugin_that_nobody_chose_keeps_nobody_from_starting(install, caplog: pytest.LogCaptureFixture) -> None:
    install("zoo", "elephant = zoo:not_callable\nmouse = zoo:Elephant\nBad Name = zoo:Elephant")
    found = plugins.load()
    assert list(found.memories) == ["mouse"]
    assert len(found.problems) == 2
    assert all(problem in caplog.text for problem in found.problems)
    assert opened("builtin").current is not None


def test_a_name_that_two_plugins_use_is_given_to_neither(install) -> None:
    """Which of two was meant nobody knows, and memory given to the wrong one is not undone."""
    install("zoo", "elephant = zoo:Elephant")
    install("park", "elephant = park:Elephant")
    assert not plugins.load().memories
    with pytest.raises(ConfigInvalid, match=r"elephant is offered by park 1\.2 and zoo 1\.2; the plugins' are left out"):
        opened("elephant")


@pytest.mark.parametrize("name", ["builtin", "http", "openviking", "none"])
def test_a_name_of_holdfast_is_not_given_to_a_plugin(install, name: str) -> None:
    install("zoo", f"{name} = zoo:Elephant")
    found = plugins.load()
    assert not found.memories
    assert found.problems == (
        f"The memory provider {name} is offered by Holdfast itself and zoo 1.2; the plugins' are left out",
    )
