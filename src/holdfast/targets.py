"""Targets: where answers and messages can go, as `channel:address`."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import Rejected
from holdfast.ports import Carrier


class Targets:
    """The targets that there are: addresses of every channel with a carrier."""

    def __init__(self, carriers: Mapping[str, Carrier]) -> None:
        self._carriers = carriers

    def find(self, target: str) -> Carrier:
        """Return who carries to a target.  Raises `Rejected` with what is wrong with it, or with what there is."""
        channel, divider, address = target.partition(":")
        if not divider or not address or channel not in self._carriers:
            raise Rejected(f"nothing can be sent to {target!r}; {self.named()}")
        self._carriers[channel].check(target)
        return self._carriers[channel]

    def has(self, target: str) -> bool:
        """Return whether there is a channel for a target, whatever its address will be."""
        return target.partition(":")[0] in self._carriers

    def named(self) -> str:
        """Return what there is, as a model reads it."""
        if not self._carriers:
            return "this gateway has no channel that carries messages; give the text as your answer instead"
        return f"targets are {', '.join(f'{channel}:<address>' for channel in sorted(self._carriers))}"
