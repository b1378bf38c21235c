"""A chain of models: asked again, then the next, and never behind words that were shown."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from dataclasses import replace

import pytest

from holdfast.agent.models.circuit_breaker import CircuitBreaker, CircuitBreakers
from holdfast.agent.models.port import Done, Event, Model, TextDelta
from holdfast.agent.models.providers import Account
from holdfast.agent.models.resilient import PAUSE_S, WAIT_MAX_S, Resilient
from holdfast.clock import SystemClock
from holdfast.errors import ContextTooLong, ModelRejected, ModelUnavailable, ModelUnusable
from tests.models.scenes import KEY, Scene, configured, heard, request, scene, text_of


class Waits:
    """A clock on which waiting passes at once, and is remembered."""

    def __init__(self) -> None:
        self.waited_ms: list[float] = []
        self._now = 0

    def now_ms(self) -> int:
        return 0

    def monotonic_ms(self) -> int:
        return self._now

    async def sleep_ms(self, duration_ms: float) -> None:
        self.waited_ms.append(duration_ms)
        self._now += math.ceil(duration_ms)


def chain(here: Scene, clock: Waits, *names: str, retries: int = 3) -> Model:
    breaker = CircuitBreaker(clock)
    return Resilient([(here.model("openai", name=name), breaker) for name in names], retries, clock)


async def test_what_passes_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    """Two failures and an answer: the person sees only the answer, the log says why it took longer."""
    clock = Waits()
    with caplog.at_level(logging.WARNING):
        async with scene("first 2 status 503; say here I am") as here:
            assert text_of(await heard(chain(here, clock, "m"), "hi")) == "here I am"
            assert len(here.server.requests) == 3
    first, second = clock.waited_ms
    assert PAUSE_S * 500 <= first <= PAUSE_S * 1000 <= second <= PAUSE_S * 2000
    assert "503" in caplog.text
    assert "1 of 3" in caplog.text
    assert KEY not in caplog.text


async def test_the_wait_that_a_server_asks_for_is_kept_exactly() -> None:
    """429 retry_after: exactly that wait."""
    clock = Waits()
    async with scene("first 1 status 429 retry-after 7; say done") as here:
        assert text_of(await heard(chain(here, clock, "m"), "hi")) == "done"
    assert clock.waited_ms == [7000]


async def test_a_server_that_wants_too_long_is_not_waited_for() -> None:
    """The next model is asked at once."""
    clock = Waits()
    async with scene(f"first 1 status 429 retry-after {WAIT_MAX_S + 1:.0f}; say done") as here:
        events = await heard(chain(here, clock, "first", "second"), "hi")
        assert [seen.body["model"] for seen in here.server.requests] == ["first", "second"]
    assert clock.waited_ms == []
    assert isinstance(events[-1], Done)
    assert events[-1].usage.model == "openai:second"


async def test_retries_are_bounded_and_the_last_failure_is_told() -> None:
    """Nothing hangs: each model is asked so often, and then the turn is told why."""
    clock = Waits()
    async with scene("status 503") as here:
        with pytest.raises(ModelUnavailable, match="openai:second"):
            await heard(chain(here, clock, "first", "second", retries=2), "hi")
        assert [seen.body["model"] for seen in here.server.requests] == ["first"] * 3 + ["second"] * 3


@pytest.mark.parametrize("status", [401, 403, 404, 402])
async def test_a_model_that_cannot_be_used_gives_way_at_once(status: int) -> None:
    """A wrong key is not tried again, and does not keep the fallback from answering."""
    clock = Waits()
    async with scene(f"first 1 status {status}; say done") as here:
        assert text_of(await heard(chain(here, clock, "first", "second"), "hi")) == "done"
        assert len(here.server.requests) == 2
    assert clock.waited_ms == []


async def test_a_wrong_key_without_a_fallback_is_told() -> None:
    """The person reads which setting to change."""
    async with scene("status 401") as here:
        with pytest.raises(ModelUnusable, match=r"check model\.api_key"):
            await heard(chain(here, Waits(), "m"), "hi")


@pytest.mark.parametrize(("script", "kind"), [("status 400", ModelRejected), ("status 413", ContextTooLong)])
async def test_a_request_that_is_refused_is_sent_to_nobody_else(script: str, kind: type[Exception]) -> None:
    """What is wrong with the request is wrong everywhere, and a long one is the loop's to shorten."""
    async with scene(script) as here:
        with pytest.raises(kind):
            await heard(chain(here, Waits(), "first", "second"), "hi")
        assert len(here.server.requests) == 1


async def test_nothing_is_repeated_behind_words_that_were_shown() -> None:
    """J1: after the first piece a failure is the loop's, which knows what was shown."""
    async with scene("say half; cut") as here:
        events = chain(here, Waits(), "first", "second").stream(request("hi"))
        assert await anext(events) == TextDelta("half")
        with pytest.raises(ModelUnavailable):
            await anext(events)
        assert len(here.server.requests) == 1


async def test_a_model_that_breaks_off_may_go_on_once_and_then_the_next_one_does() -> None:
    """A1: a model that begins and never comes to an end does not keep the fallback from answering."""
    async with scene("say half; cut") as here:
        model = chain(here, Waits(), "first", "second", "third")
        for breaks in range(5):
            with pytest.raises(ModelUnavailable):
                _ = [event async for event in model.stream(replace(request("hi"), breaks=breaks))]
        assert [seen.body["model"] for seen in here.server.requests] == ["first", "first", "second", "third", "third"]


async def test_a_fallback_can_speak_the_other_format() -> None:
    """From a configuration: the first provider fails, the second answers, and its usage names it."""
    async with scene("first 1 status 500; echo") as here:
        model = configured(here.server, fallback=("there:other",), retries=0)
        *events, done = await heard(model, "nonce 17")
        assert [seen.path for seen in here.server.requests] == ["/v1/chat/completions", "/v1/messages"]
        await model.close()
    assert text_of(events) == "nonce 17"
    assert isinstance(done, Done)
    assert done.usage.model == "there:other"


# A server that asks for so long a pause is not waited for, so nothing in these tests waits.
STORM = f"status 429 retry-after {WAIT_MAX_S + 1:.0f}"
CROWD = 20


def models_asked(here: Scene) -> Counter[str]:
    return Counter(str(seen.body["model"]) for seen in here.server.requests)


async def answers(model: Model) -> list[list[Event] | BaseException]:
    """Return what becomes of many requests at once."""
    return await asyncio.gather(*(heard(model, "hi") for _ in range(CROWD)), return_exceptions=True)


async def test_a_storm_is_not_multiplied_by_the_models_of_one_provider() -> None:
    """W4: one request finds out for all whether the second model answers where the first does not."""
    async with scene(STORM) as here:
        model = configured(here.server, fallback=("here:second",))
        assert {type(each) for each in await answers(model)} == {ModelUnavailable}
        assert models_asked(here)["second"] == 1
        await model.close()


async def test_a_fallback_at_another_provider_is_asked_at_once() -> None:
    """W4: all requests go there, and none waits for the first provider."""
    async with scene(STORM) as here, scene("say done") as there:
        breakers = CircuitBreakers(SystemClock())
        members = [(here.model("openai", name="first"), breakers.of("here")), (there.model("openai"), breakers.of("there"))]
        assert [text_of(each) for each in await answers(Resilient(members, 3, SystemClock()))] == ["done"] * CROWD  # type: ignore[arg-type]
        assert len(there.server.requests) == CROWD


async def test_a_model_that_answers_is_not_held_back_by_another_of_its_provider() -> None:
    """W4: limits of one model are common.  The other answers everyone, and the limited one is left alone meanwhile."""
    async with scene(STORM) as here:
        model = configured(here.server, fallback=("here:echo",))
        for _ in range(2):
            assert [text_of(each) for each in await answers(model)] == ["hi"] * CROWD  # type: ignore[arg-type]
        asked = models_asked(here)
        assert asked["echo"] == 2 * CROWD
        assert asked["m"] <= CROWD, "a model that asked for a pause was asked again"
        await model.close()


async def test_chains_share_the_gate_of_their_provider() -> None:
    """W4: the model of memory does not ask anew what the model of conversations has found out."""
    async with scene(STORM) as here:
        breakers = CircuitBreakers(SystemClock())
        first, second = (configured(here.server, breakers, name=f"here:{name}") for name in ("first", "second"))
        with pytest.raises(ModelUnavailable):
            await heard(first, "hi")
        assert {type(each) for each in await answers(second)} == {ModelUnavailable}
        assert models_asked(here) == {"first": 1, "second": 1}
        await first.close()
        await second.close()


def test_another_account_has_a_gate_of_its_own() -> None:
    """W4: a limit belongs to an account."""
    breakers = CircuitBreakers(SystemClock())
    mine, same, other = (Account(base_url="http://a", key=key) for key in ("one", "one", "two"))
    assert breakers.of(mine) is breakers.of(same)
    assert breakers.of(mine) is not breakers.of(other)


async def test_a_request_that_is_called_off_lets_the_next_one_find_out() -> None:
    """W4: a cancelled turn does not keep its provider closed."""
    breaker = CircuitBreaker(SystemClock())
    breaker.ask("m").failed(ModelUnavailable("away"), 0)
    probe = breaker.ask("m")
    assert not breaker.may_ask("m")
    probe.close()
    assert breaker.may_ask("m")
