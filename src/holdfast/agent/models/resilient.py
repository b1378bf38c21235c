"""A chain of models: a request that fails temporarily is retried, and then sent to the next model."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from holdfast.agent.models.circuit_breaker import CircuitBreaker
from holdfast.agent.models.port import Event, Facts, Model, Request
from holdfast.clock import Clock
from holdfast.errors import ModelRejected, ModelUnavailable, ModelUnusable

log = logging.getLogger(__name__)

# If a server asks for a longer wait, the next model is asked instead.
WAIT_MAX_S = 60.0
# The first pause, doubled each time up to the longest.
PAUSE_S = 0.5
PAUSE_MAX_S = 20.0


class Resilient:
    """Answers with its first model, or with the next ones if that fails.

    A request is repeated only if no event of its answer has been shown; otherwise the caller handles the failure.  A model
    whose answer broke off may continue it once; after each further break the next model continues.  A request that is
    refused for its content is not sent to another model.  While the models of a provider fail, its circuit breaker sends one
    request at a time; other requests go to the next model, or wait for the outcome.
    """

    def __init__(self, chain: Sequence[tuple[Model, CircuitBreaker]], retries: int, clock: Clock) -> None:
        self._chain = chain
        self._retries = retries
        self._clock = clock

    @property
    def name(self) -> str:
        return self._first.name

    @property
    def facts(self) -> Facts:
        return self._first.facts

    @property
    def _first(self) -> Model:
        return self._chain[0][0]

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        chain = self._chain[min(max(request.breaks - 1, 0), len(self._chain) - 1) :]
        for model, breaker in chain[:-1]:
            try:
                async with aclosing(self._persistent(model, breaker, request, is_last=False)) as events:
                    async for event in events:
                        yield event
            except _GivenUp as given:
                log.warning("%s; asking the next model", given.error)
            else:
                return
        model, breaker = chain[-1]
        async with aclosing(self._persistent(model, breaker, request, is_last=True)) as events:
            try:
                async for event in events:
                    yield event
            except _GivenUp as given:
                raise given.error from given.error.__cause__

    async def close(self) -> None:
        for model, _ in self._chain:
            await model.close()

    async def _persistent(
        self, model: Model, breaker: CircuitBreaker, request: Request, *, is_last: bool
    ) -> AsyncGenerator[Event]:
        """Yield the events of one model, with retries.  Raises `_GivenUp` if it fails before its first event."""
        attempt = 0
        while True:
            if not breaker.may_ask(model.name):
                # This request has not failed itself, so the next model is asked without a retry.
                if attempt >= self._retries or breaker.left_s(model.name) > WAIT_MAX_S or not (is_last or attempt):
                    raise _GivenUp(breaker.failure(model.name))
                last = breaker.last
                await breaker.changed(model.name)
                attempt += breaker.last is not last
                continue
            heard = False
            asking = breaker.ask(model.name)
            try:
                async with aclosing(model.stream(request)) as events:
                    async for event in events:
                        if not heard:
                            heard = True
                            asking.answered()
                        yield event
            except ModelRejected as error:
                asking.answered()
                if heard or not isinstance(error, ModelUnusable):
                    raise
                raise _GivenUp(error) from error
            except ModelUnavailable as error:
                if heard:
                    raise
                wait_s = self._wait_s(error, attempt)
                asking.failed(error, wait_s)
                if attempt >= self._retries or wait_s > WAIT_MAX_S:
                    raise _GivenUp(breaker.failure(model.name)) from error
                log.warning("%s; asking again in %.1f s (%d of %d)", error, wait_s, attempt + 1, self._retries)
            else:
                asking.answered()
                return
            finally:
                asking.close()
            await self._clock.sleep_ms(wait_s * 1000)
            attempt += 1

    def _wait_s(self, error: ModelUnavailable, attempt: int) -> float:
        if error.retry_after_s is not None:
            return error.retry_after_s
        pause = min(PAUSE_S * 2**attempt, PAUSE_MAX_S)
        # Jitter, so that requests that failed together do not retry together.
        return pause * random.uniform(0.5, 1)  # noqa: S311 - No secret depends on it.


class _GivenUp(Exception):
    """A model was given up before its first event."""

    def __init__(self, error: ModelUnavailable | ModelUnusable) -> None:
        super().__init__(str(error))
        self.error = error
