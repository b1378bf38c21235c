"""Opening memory: what is configured, what was configured before, and a key that only its own server sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast.agent.plugins import Plugins
from holdfast.config import MemoryConfig
from holdfast.core.redaction import Redaction
from holdfast.core.segments import Segment, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.errors import ConfigInvalid
from holdfast.memory.address import owner_of
from holdfast.memory.bindings import MemoryBindings
from holdfast.memory.opening import open_bindings
from holdfast.memory.provider import Provider
from tests.channels.receiver import Receiver, Reply, receiving
from tests.engine.world import ManualClock
from tests.memory.test_http import SAID, SEGMENT, SESSION

KEY = "sk-memory-0123456789"


class Own(Provider):
    """Stands for the builtin, and for what plugins make."""

    def __init__(self, owner: str = "builtin", config: MemoryConfig | None = None) -> None:
        super().__init__(owner)
        self.config = config

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        return "kept"


def elephant(config: MemoryConfig) -> Own:
    return Own(f"elephant:{config.url}" if config.url else "elephant", config)


@asynccontextmanager
async def memory(
    provider: str,
    url: str = "",
    api_key: str = "",
    plugins: Plugins | None = None,
    environment: Mapping[str, str] | None = None,
):
    found = open_bindings(
        MemoryConfig(provider=provider, url=url, api_key=api_key),
        builtin=Own,
        plugins=plugins or Plugins(),
        redaction=Redaction(),
        clock=ManualClock(),
        environment={},
    )
    try:
        yield found
    finally:
        await found.close()


async def pay(found: MemoryBindings, owner: str) -> None:
    provider = found.of(owner)
    assert provider, f"nobody here is {owner}"
    assert provider.owner == owner
    await provider.commit(SESSION, SEGMENT, SAID)


def keys_seen(there: Receiver) -> list[str | None]:
    return [post.headers.get("authorization") for post in there.posts]


async def test_each_provider_is_opened_by_its_name() -> None:
    async with memory("builtin") as found:
        assert isinstance(found.current, Own)
    async with memory("none") as found:
        assert found.current is None
    for name in ("http", "openviking"):
        async with memory(name, "http://127.0.0.1:9300/m/") as found:
            assert found.current
            assert found.current.owner == f"{name}:http://127.0.0.1:9300/m" == owner_of(name, "http://127.0.0.1:9300/m/")
            assert found.of(owner_of(name, "http://127.0.0.1:9301"))
            assert found.of(owner_of(name, "http://127.0.0.1:9301")) is not found.current
    async with memory("elephant", plugins=Plugins(memories={"elephant": elephant})) as found:
        assert found.current
        assert found.current.owner == "elephant"


@pytest.mark.parametrize("now", ["builtin", "none", "http"])
async def test_a_debt_is_paid_to_its_earlier_address_after_the_operator_chose_another(now: str) -> None:
    """M3: the owner in the ledger is enough to find the provider again, whichever is chosen by now."""
    async with receiving() as before, receiving() as after, memory(now, after.url("/new"), KEY) as found:
        await pay(found, f"http:{before.url('/old')}")
        assert isinstance(found.of("builtin"), Own)
        assert (found.of("builtin") is found.current) == (now == "builtin")
    assert [post.path for post in before.posts] == ["/old/commit"]
    assert after.posts == []
    assert before.posts[0].json["owner"] == f"http:{before.url('/old')}"


async def test_a_key_is_seen_only_by_the_server_that_it_is_for() -> None:
    """K1: another port, another host or another scheme is another server."""
    async with receiving() as ours, receiving() as other, memory("http", ours.url("/new"), KEY) as found:
        await pay(found, f"http:{ours.url('/new')}")
        await pay(found, f"http:{ours.url('/old')}")
        await pay(found, f"http:{other.url('/new')}")
        await pay(found, f"http:{ours.url('/new', host='localhost')}")
    assert keys_seen(ours) == [f"Bearer {KEY}", f"Bearer {KEY}", None]
    assert keys_seen(other) == [None]


async def test_a_user_of_the_address_is_known_only_to_its_own_server_too() -> None:
    """K1"""
    async with receiving() as ours, receiving() as other:
        url = ours.url("/m").replace("//", "//me:password-1@")
        async with memory("http", url) as found:
            assert found.current
            assert "me" not in found.current.owner
            await pay(found, f"http:{ours.url('/m')}")
            await pay(found, f"http:{other.url('/m')}")
    assert [bool(key) for key in (*keys_seen(ours), *keys_seen(other))] == [True, False]


async def test_a_key_left_behind_still_goes_to_its_address() -> None:
    """M3: whoever chooses the builtin and leaves the address where it was has its debts paid with the key."""
    async with receiving(Reply()) as ours, memory("builtin", ours.url(""), KEY) as found:
        await pay(found, f"http:{ours.url('')}")
    assert keys_seen(ours) == [f"Bearer {KEY}"]


@pytest.mark.parametrize(
    "owner",
    [
        "",
        "gone",
        "gone:http://127.0.0.1:1",
        "http",
        "http:",
        "http:ftp://x",
        "http:http://x:port",
        "none",
        "builtin:x",
        "http://x",
    ],
)
async def test_whom_nobody_here_is_cannot_be_opened(owner: str) -> None:
    """M3: such a debt is parked, and never given to another."""
    async with memory("builtin") as found:
        assert found.of(owner) is None


async def test_an_earlier_plugin_is_opened_for_its_own_address_without_the_key_of_another() -> None:
    """M3, K1"""
    plugins = Plugins(memories={"elephant": elephant})
    async with memory("http", "http://127.0.0.1:9300", KEY, plugins) as found:
        for owner, url, key in (
            ("elephant:http://127.0.0.1:9300/e", "http://127.0.0.1:9300/e", KEY),
            ("elephant:http://127.0.0.1:9301", "http://127.0.0.1:9301", ""),
            ("elephant", "", ""),
            ("elephant:herd-7", "herd-7", ""),
        ):
            earlier: Any = found.of(owner)
            assert (earlier.config.provider, earlier.config.url, earlier.config.api_key) == ("elephant", url, key)


async def test_an_earlier_plugin_that_calls_itself_something_else_by_now_gets_nothing() -> None:
    """M3"""
    plugins = Plugins(memories={"elephant": lambda config: Own("elephant:v2", config)})
    async with memory("builtin", plugins=plugins) as found:
        assert found.of("elephant:v1") is None
        assert found.of("elephant:v2")


async def test_an_earlier_plugin_that_fails_leaves_its_debt_alone(caplog: pytest.LogCaptureFixture) -> None:
    """M6: its debt stays, and everything else works."""

    def broken(config: MemoryConfig) -> Own:
        raise SystemExit("no luck")

    async with memory("builtin", plugins=Plugins(memories={"elephant": broken})) as found:
        assert found.of("elephant") is None
    assert "memory is owed to elephant, which cannot be opened: SystemExit: no luck" in caplog.text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "bultin",
            "there is no 'bultin' that could remember; did you mean builtin? There are builtin, elephant, http, none",
        ),
        ("elefant", "did you mean elephant?"),
        ("sqlite-vec", "there is no 'sqlite-vec' that could remember; there are builtin, elephant, http, none, openviking"),
        ("lame", "The plugin lame of lame 1.2 is left out: it is no callable"),
    ],
)
async def test_a_name_that_nobody_has_is_refused_with_those_there_are(name: str, words: str) -> None:
    plugins = Plugins(
        memories={"elephant": elephant},
        memory_problems={"lame": "The plugin lame of lame 1.2 is left out: it is no callable"},
    )
    with pytest.raises(ConfigInvalid) as refused:
        async with memory(name, plugins=plugins):
            pass
    assert str(refused.value).startswith("memory.provider: ")
    assert words in str(refused.value)


async def test_an_address_and_a_key_that_are_missing_are_refused_at_the_start() -> None:
    with pytest.raises(ConfigInvalid, match=r"^memory\.provider: needs memory\.url"):
        async with memory("http"):
            pass
    for name in ("http", "elephant"):
        with pytest.raises(ConfigInvalid, match=r"^memory\.api_key_env: the variable MEMORY_KEY is not set"):
            named(name, {})


def named(provider: str, environment: Mapping[str, str]) -> MemoryBindings:
    """Open memory whose key is in a variable."""
    return open_bindings(
        MemoryConfig(provider=provider, url="http://127.0.0.1:1", api_key_env="MEMORY_KEY"),
        builtin=Own,
        plugins=Plugins(memories={"elephant": elephant}),
        redaction=Redaction(),
        clock=ManualClock(),
        environment=environment,
    )


def test_a_plugin_finds_its_key_in_one_place() -> None:
    made: Any = named("elephant", {"MEMORY_KEY": KEY}).current
    assert made.config.api_key == KEY


@pytest.mark.parametrize("provider", ["builtin", "none"])
def test_a_key_that_nobody_needs_any_more_keeps_nobody_from_starting(provider: str) -> None:
    assert named(provider, {}).of("http:http://127.0.0.1:1")


async def test_what_lets_us_in_is_masked_from_the_start() -> None:
    """K1"""
    mask = Redaction()
    found = open_bindings(
        MemoryConfig(provider="http", url="http://127.0.0.1:1", api_key=KEY),
        builtin=Own,
        plugins=Plugins(),
        redaction=mask,
        clock=ManualClock(),
        environment={},
    )
    assert KEY not in mask.text(f"it said {KEY}")
    await found.close()
