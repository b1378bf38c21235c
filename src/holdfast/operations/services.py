"""The services: what a gateway can be asked, by noun.  Callers do not know whether it is this process or another one."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, get_type_hints

from holdfast.operations.approvals import Approvals
from holdfast.operations.channels import Channels
from holdfast.operations.chat_requests import ChatRequests
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.gateway import Gateway
from holdfast.operations.jobs import Jobs
from holdfast.operations.keys import Keys
from holdfast.operations.logins import Logins
from holdfast.operations.memories import Memories
from holdfast.operations.messages import Messages
from holdfast.operations.people import Pairings, People
from holdfast.operations.processes import Processes
from holdfast.operations.sessions import Sessions
from holdfast.operations.turns import Turns
from holdfast.operations.uploads import UploadedFiles
from holdfast.operations.webhooks import Webhooks

if TYPE_CHECKING:
    # A command does not import what only a gateway that serves needs.
    from holdfast.operations.upkeep import Upkeep


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Every service, for one caller.  Routes, the OpenAPI document and the client are derived from this list."""

    gateway: Gateway
    sessions: Sessions
    turns: Turns
    approvals: Approvals
    processes: Processes
    jobs: Jobs
    deliveries: Deliveries
    keys: Keys
    webhooks: Webhooks
    channels: Channels
    people: People
    pairings: Pairings
    memories: Memories
    logins: Logins


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerServices(Services):
    """The services for one caller, with those that only the gateway's own web server uses."""

    messages: Messages
    uploads: UploadedFiles
    chat_requests: ChatRequests
    upkeep: Upkeep


@functools.cache
def nouns() -> Mapping[str, type]:
    """Return the class of every service by its noun."""
    return MappingProxyType(get_type_hints(Services))
