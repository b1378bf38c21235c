"""A chain of models: what may pass is tried again, then the next one is asked."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from holdfast.agent.models.port import Event, Facts, Model, Request
from holdfast.clock import Clock
from holdfast.errors import ModelUnavailable, ModelUnusable

log = logging.getLogger(__name__)

# A server that wants to be left alone for longer is not waited for.
WAIT_MAX_S = 60.0
# The first pause, doubled each time up to the longest.
PAUSE_S = 0.5
PAUSE_MAX_S = 20.0


class Resilient:
    """Answers as its first model does; where that cannot, as the next.

    Only a step of which nothing has been shown is repeated: afterwards a failure is the caller's, who knows what was shown.
    A request that is refused for what it says is not sent to another model.
    """

    def __init__(self, models: Sequence[Model], retries: int, clock: Clock) -> None:
        self._models = models
        self._retries = retries
        self._clock = clock

    @property
    def name(self) -> str:
        return self._models[0].name

    @property
    def facts(self) -> Facts:
        return self._models[0].facts

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        for model in self._models[:-1]:
            try:
                async with aclosing(self._persistent(model, request)) as events:
                    async for event in events:
                        yield event
            except _Given as given:
                log.warning("%s; asking the next model", given.error)
            else:
                return
        async with aclosing(self._persistent(self._models[-1], request)) as events:
            try:
                async for event in events:
                    yield event
            except _Given as given:
                raise given.error from given.error.__cause__

    async def close(self) -> None:
        for model in self._models:
            await model.close()

    async def _persistent(self, model: Model, request: Request) -> AsyncGenerator[Event]:
        """Yield what one model says, asked again within bounds.  Raises `_Given` when it is given up unheard."""
        attempt = 0
        while True:
            heard = False
            try:
                async with aclosing(model.stream(request)) as events:
                    async for event in events:
                        heard = True
                        yield event
            except ModelUnusable as error:
                if heard:
                    raise
                raise _Given(error) from error
            except ModelUnavailable as error:
                if heard:
                    raise
                wait_s = self._wait_s(error, attempt)
                if attempt >= self._retries or wait_s > WAIT_MAX_S:
                    raise _Given(error) from error
                log.warning("%s; asking again in %.1f s (%d of %d)", error, wait_s, attempt + 1, self._retries)
            else:
                return
            await self._clock.sleep_ms(wait_s * 1000)
            attempt += 1

    def _wait_s(self, error: ModelUnavailable, attempt: int) -> float:
        if error.retry_after_s is not None:
            return error.retry_after_s
        pause = min(PAUSE_S * 2**attempt, PAUSE_MAX_S)
        # Those who failed together should not come back together.
        return pause * random.uniform(0.5, 1)  # noqa: S311 - No secret depends on it.


class _Given(Exception):
    """A model was given up before it said anything."""

    def __init__(self, error: ModelUnavailable | ModelUnusable) -> None:
        super().__init__(str(error))
        self.error = error
