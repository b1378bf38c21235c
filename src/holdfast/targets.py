"""Targets: where answers and messages can go, as `channel:address`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from holdfast.errors import Rejected
from holdfast.ports import Carrier


class Targets:
    """The targets of this gateway: addresses on every channel that has a carrier."""

    def __init__(self, carriers: Mapping[str, Carrier]) -> None:
        self._carriers = carriers

    def find(self, target: str) -> Carrier:
        """Return the carrier of a target.  Raises `Rejected`, naming the possible targets, if there is none."""
        channel, divider, address = target.partition(":")
        if not divider or not address or channel not in self._carriers:
            raise Rejected(f"nothing can be sent to {target!r}; {self._nearest(channel)}{self.named()}")
        self._carriers[channel].check(target)
        return self._carriers[channel]

    def has(self, target: str) -> bool:
        """Return whether the channel of a target has a carrier.  The address is not checked."""
        return target.partition(":")[0] in self._carriers

    def _nearest(self, channel: str) -> str:
        near = () if channel in self._carriers else difflib.get_close_matches(channel, self._carriers, n=1)
        return f"did you mean {near[0]}:? " if near else ""

    def named(self) -> str:
        """Describe the possible targets, for a model."""
        if not self._carriers:
            return "this gateway has no channel that carries messages; give the text as your answer instead"
        return f"targets are {', '.join(f'{channel}:<address>' for channel in sorted(self._carriers))}"
