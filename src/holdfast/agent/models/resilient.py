"""A chain of models: what may pass is tried again, then the next one is asked."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from holdfast.agent.models.gate import Gate
from holdfast.agent.models.port import Event, Facts, Model, Request
from holdfast.clock import Clock
from holdfast.errors import ModelRejected, ModelUnavailable, ModelUnusable

log = logging.getLogger(__name__)

# A server that wants to be left alone for longer is not waited for.
WAIT_MAX_S = 60.0
# The first pause, doubled each time up to the longest.
PAUSE_S = 0.5
PAUSE_MAX_S = 20.0


class Resilient:
    """Answers as its first model does; where that cannot, as the next.

    Only a step of which nothing has been shown is repeated: afterwards a failure is the caller's, who knows what was shown.
    A model whose answer broke off may go on once; at each further break the next one goes on instead.
    A request that is refused for what it says is not sent to another model.  While models of a
    provider fail, one request at a time is sent to them; the others ask the next model, or wait for its outcome.
    """

    def __init__(self, chain: Sequence[tuple[Model, Gate]], retries: int, clock: Clock) -> None:
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
        for model, gate in chain[:-1]:
            try:
                async with aclosing(self._persistent(model, gate, request, is_last=False)) as events:
                    async for event in events:
                        yield event
            except _Given as given:
                log.warning("%s; asking the next model", given.error)
            else:
                return
        model, gate = chain[-1]
        async with aclosing(self._persistent(model, gate, request, is_last=True)) as events:
            try:
                async for event in events:
                    yield event
            except _Given as given:
                raise given.error from given.error.__cause__

    async def close(self) -> None:
        for model, _ in self._chain:
            await model.close()

    async def _persistent(self, model: Model, gate: Gate, request: Request, *, is_last: bool) -> AsyncGenerator[Event]:
        """Yield what one model says, asked again within bounds.  Raises `_Given` when it is given up unheard."""
        attempt = 0
        while True:
            if not gate.may_ask(model.name):
                # This request has not failed itself, so another model is asked at once.
                if attempt >= self._retries or gate.left_s(model.name) > WAIT_MAX_S or not (is_last or attempt):
                    raise _Given(gate.failure(model.name))
                last = gate.last
                await gate.changed(model.name)
                attempt += gate.last is not last
                continue
            heard = False
            asking = gate.ask(model.name)
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
                raise _Given(error) from error
            except ModelUnavailable as error:
                if heard:
                    raise
                wait_s = self._wait_s(error, attempt)
                asking.failed(error, wait_s)
                if attempt >= self._retries or wait_s > WAIT_MAX_S:
                    raise _Given(gate.failure(model.name)) from error
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
        # Those who failed together should not come back together.
        return pause * random.uniform(0.5, 1)  # noqa: S311 - No secret depends on it.


class _Given(Exception):
    """A model was given up before it said anything."""

    def __init__(self, error: ModelUnavailable | ModelUnusable) -> None:
        super().__init__(str(error))
        self.error = error
