"""The services: what a gateway can be asked, by noun.  Callers do not know whether it is this process or another one."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, get_type_hints

from holdfast.operations.approvals import Approvals
from holdfast.operations.caller import Caller
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.gateway import Gateway
from holdfast.operations.jobs import Jobs
from holdfast.operations.keys import Keys
from holdfast.operations.logins import Logins
from holdfast.operations.memories import Memories
from holdfast.operations.messages import Messages
from holdfast.operations.processes import Processes
from holdfast.operations.sessions import Sessions
from holdfast.operations.turns import Turns
from holdfast.operations.uploads import UploadedFiles
from holdfast.operations.webhooks import Webhooks

if TYPE_CHECKING:
    # A command does not import what only a gateway that serves needs.
    from holdfast.operations.upkeep import Upkeep


class Services(Protocol):
    """Every service.  Routes, the OpenAPI document and the client are derived from this list."""

    @property
    def gateway(self) -> Gateway: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def turns(self) -> Turns: ...
    @property
    def approvals(self) -> Approvals: ...
    @property
    def processes(self) -> Processes: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def webhooks(self) -> Webhooks: ...
    @property
    def memories(self) -> Memories: ...
    @property
    def logins(self) -> Logins: ...


class Host(Services, Protocol):
    """The services of a gateway, with those that only its own web server asks."""

    @property
    def messages(self) -> Messages: ...
    @property
    def uploads(self) -> UploadedFiles: ...
    @property
    def upkeep(self) -> Upkeep: ...

    def of(self, caller: Caller) -> Host:
        """Return the same services for another caller."""
        ...


@functools.cache
def nouns() -> Mapping[str, type]:
    """Return the class of every service by its noun."""
    listed = {noun: each for noun, each in vars(Services).items() if isinstance(each, property)}
    return MappingProxyType({noun: get_type_hints(each.fget)["return"] for noun, each in listed.items()})
