"""A chain of models: asked again, then the next, and never behind words that were shown."""

from __future__ import annotations

import logging

import pytest

from holdfast.agent.models.port import Done, Model, Said
from holdfast.agent.models.resilient import PAUSE_S, WAIT_MAX_S, Resilient
from holdfast.errors import ContextTooLong, ModelRejected, ModelUnavailable, ModelUnusable
from tests.models.scenes import KEY, Scene, configured, heard, request, scene, text_of


class Waits:
    """A clock on which waiting takes no time, and is remembered."""

    def __init__(self) -> None:
        self.waited_ms: list[float] = []

    def now_ms(self) -> int:
        return 0

    def monotonic_ms(self) -> int:
        return 0

    async def sleep_ms(self, duration_ms: float) -> None:
        self.waited_ms.append(duration_ms)


def chain(here: Scene, clock: Waits, *names: str, retries: int = 3) -> Model:
    return Resilient([here.model("openai", name=name) for name in names], retries, clock)


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
        assert await anext(events) == Said("half")
        with pytest.raises(ModelUnavailable):
            await anext(events)
        assert len(here.server.requests) == 1


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
