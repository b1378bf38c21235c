"""The port: what may be asked of a gateway.  Whoever asks does not know whether it is this process or another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.operations.caller import Caller
from holdfast.operations.messages import Messages
from holdfast.operations.services import Services
from holdfast.operations.uploads import UploadedFiles

if TYPE_CHECKING:
    # Whoever only asks does not pay for importing all that a doctor looks at.
    from holdfast.operations.upkeep import Upkeep


class Reading(Services, Protocol):
    """What can be read, also while no gateway runs.  A cursor that nobody gave out is refused with `Rejected`."""


class Desk(Reading, Protocol):
    """What a working gateway can do besides."""


class Host(Desk, Protocol):
    """The desk of the gateway itself, for whatever comes in from outside."""

    @property
    def messages(self) -> Messages: ...
    @property
    def uploads(self) -> UploadedFiles: ...
    @property
    def upkeep(self) -> Upkeep: ...

    def of(self, caller: Caller) -> Host:
        """Return the same desk for another caller."""
        ...
