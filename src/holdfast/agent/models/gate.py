"""The gate of a provider: while its models fail, one request at a time goes through."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from holdfast.clock import Clock
from holdfast.core.outages import PAUSE_MAX_MS, Circuit
from holdfast.errors import ModelUnavailable


class Gates:
    """The gates of this process.  Models with the same provider share one, in whichever chain they are."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._gates: dict[Hashable, Gate] = {}

    def of(self, provider: Hashable) -> Gate:
        """Return the gate of what shares an outage: an address with an account."""
        if provider not in self._gates:
            self._gates[provider] = Gate(self._clock)
        return self._gates[provider]


class Gate:
    """The circuit of one provider, and the requests that wait for it to change."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._circuit = Circuit()
        self._changed = asyncio.Event()
        self._failures: dict[str, ModelUnavailable] = {}
        # The last failure of any model here; a different one means that something was found out.
        self.last: ModelUnavailable | None = None

    def may_ask(self, model: str) -> bool:
        return self._circuit.may_ask(model, self._clock.monotonic_ms())

    def left_s(self, model: str) -> float:
        """Return for how long no request is sent to a model."""
        return max(self._circuit.open_until(model) - self._clock.monotonic_ms(), 0) / 1000

    def ask(self, model: str) -> Asking:
        """Record that a request is sent."""
        is_probe = self._circuit.doubts(model)
        self._circuit = self._circuit.asked(model)
        return Asking(self, model, is_probe=is_probe)

    def failure(self, model: str) -> ModelUnavailable:
        """Return why a model is not asked now, and for how long its provider is left alone."""
        error = self._failures.get(model) or self.last or ModelUnavailable(f"{model}: cannot answer now")
        return ModelUnavailable(str(error), max(error.retry_after_s or 0, self.left_s(model)) or None)

    async def changed(self, model: str) -> None:
        """Return when something was found out, or when a model may be asked again."""
        left_s = self.left_s(model)
        waits = [self._changed.wait(), *([self._clock.sleep_ms(left_s * 1000)] if left_s else [])]
        tasks = [asyncio.ensure_future(each) for each in waits]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def answered(self, model: str) -> None:
        """Record that a model is there.  Only `Asking` calls this and what follows."""
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


class Asking:
    """One request that went through a gate.  Where it is the one that finds out, its end lets the next one through."""

    def __init__(self, gate: Gate, model: str, *, is_probe: bool) -> None:
        self._gate = gate
        self._model = model
        self._is_probe = is_probe

    def answered(self) -> None:
        self._gate.answered(self._model)
        self._is_over()

    def failed(self, error: ModelUnavailable, pause_s: float) -> None:
        self._gate.failed(self._model, error, pause_s)
        self._is_over()

    def close(self) -> None:
        """Let the next request find out, if this one was called off before it did."""
        if self._is_probe:
            self._is_over()

    def _is_over(self) -> None:
        if self._is_probe:
            self._is_probe = False
            self._gate.leave()
        self._gate.wake()
