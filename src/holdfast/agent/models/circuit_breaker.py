"""The circuit breaker of a provider: while its models fail, only one request at a time is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from holdfast.clock import Clock
from holdfast.core.outages import PAUSE_MAX_MS, Circuit
from holdfast.errors import ModelUnavailable


class CircuitBreakers:
    """The circuit breakers of this process.  Models of the same provider share one, across chains."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._breakers: dict[Hashable, CircuitBreaker] = {}

    def of(self, provider: Hashable) -> CircuitBreaker:
        """Return the breaker of a provider, which is an address with an account."""
        if provider not in self._breakers:
            self._breakers[provider] = CircuitBreaker(self._clock)
        return self._breakers[provider]


class CircuitBreaker:
    """The circuit of one provider, and the requests that wait for it to change."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._circuit = Circuit()
        self._changed = asyncio.Event()
        self._failures: dict[str, ModelUnavailable] = {}
        # The last failure of any model of this provider.
        self.last: ModelUnavailable | None = None

    def may_ask(self, model: str) -> bool:
        return self._circuit.may_ask(model, self._clock.monotonic_ms())

    def left_s(self, model: str) -> float:
        """Return for how long no request is sent to a model."""
        return max(self._circuit.open_until(model) - self._clock.monotonic_ms(), 0) / 1000

    def ask(self, model: str) -> RequestOutcome:
        """Record that a request is sent."""
        is_probe = self._circuit.doubts(model)
        self._circuit = self._circuit.asked(model)
        return RequestOutcome(self, model, is_probe=is_probe)

    def failure(self, model: str) -> ModelUnavailable:
        """Return the error of a model that must not be asked now, with the time until it may be."""
        error = self._failures.get(model) or self.last or ModelUnavailable(f"{model}: cannot answer now")
        return ModelUnavailable(str(error), max(error.retry_after_s or 0, self.left_s(model)) or None)

    async def changed(self, model: str) -> None:
        """Return when a request has ended, or when the model may be asked again."""
        left_s = self.left_s(model)
        waits = [self._changed.wait(), *([self._clock.sleep_ms(left_s * 1000)] if left_s else [])]
        tasks = [asyncio.ensure_future(each) for each in waits]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def answered(self, model: str) -> None:
        """Record that a model has answered.  Only `RequestOutcome` calls this and the methods below."""
        self._circuit = self._circuit.answered(model)
        self._failures.pop(model, None)

    def failed(self, model: str, error: ModelUnavailable, pause_s: float) -> None:
        pause_ms = min(int(pause_s * 1000), PAUSE_MAX_MS)
        circuit = self._circuit.failed(model, self._clock.monotonic_ms(), pause_ms)
        if circuit is not self._circuit:
            self._circuit = circuit
            self._failures[model] = self.last = error

    def leave(self) -> None:
        self._circuit = self._circuit.left()

    def wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class RequestOutcome:
    """Reports the outcome of one request to its circuit breaker.  The end of a probe lets the next request through."""

    def __init__(self, breaker: CircuitBreaker, model: str, *, is_probe: bool) -> None:
        self._breaker = breaker
        self._model = model
        self._is_probe = is_probe

    def answered(self) -> None:
        self._breaker.answered(self._model)
        self._is_over()

    def failed(self, error: ModelUnavailable, pause_s: float) -> None:
        self._breaker.failed(self._model, error, pause_s)
        self._is_over()

    def close(self) -> None:
        """Let the next request probe, if this one was a probe and was cancelled."""
        if self._is_probe:
            self._is_over()

    def _is_over(self) -> None:
        if self._is_probe:
            self._is_probe = False
            self._breaker.leave()
        self._breaker.wake()
