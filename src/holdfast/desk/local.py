"""The desk of this process: straight to its own store and engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.channels.webhook.routes import Routes
from holdfast.clock import Clock
from holdfast.config import ServerConfig
from holdfast.core.redaction import Redaction
from holdfast.desk.address import OPENING
from holdfast.desk.reading import StoreReading
from holdfast.engine.engine import Engine
from holdfast.errors import Unavailable
from holdfast.operations.approvals import Approvals
from holdfast.operations.caller import Caller
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.gateway import AgentView, Gateway
from holdfast.operations.jobs import Jobs
from holdfast.operations.keys import Keys
from holdfast.operations.lifecycle import Lifecycle
from holdfast.operations.logins import Logins
from holdfast.operations.memories import Commits, Memories
from holdfast.operations.messages import Messages
from holdfast.operations.processes import NoProcesses, Processes
from holdfast.operations.sessions import Sessions
from holdfast.operations.turns import Turns
from holdfast.operations.uploads import UploadedFiles
from holdfast.operations.webhooks import Webhooks
from holdfast.ports import ProcessControl, Uploads
from holdfast.targets import Targets

if TYPE_CHECKING:
    # A command that is a gateway for a moment needs none of it.
    from holdfast.operations.upkeep import Upkeep


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDesk(StoreReading):
    """The whole desk, over an engine that runs in this process."""

    engine: Engine
    lifecycle: Lifecycle
    clock: Clock
    control: ProcessControl = field(default_factory=NoProcesses)
    # Asked each time, because servers of tools come and go.
    describe: Callable[[], AgentView] = AgentView
    server: ServerConfig = field(default_factory=ServerConfig)
    targets: Targets = field(default_factory=lambda: Targets({}))
    routes: Routes | None = None
    redaction: Redaction = field(default_factory=Redaction)
    commits: Commits = field(default_factory=Commits)
    workspace: Uploads | None = None
    trusted_owners: Sequence[str] = ()
    care: Upkeep | None = None

    @property
    def gateway(self) -> Gateway:
        return Gateway(
            store=self.store,
            caller=self.caller,
            clock=self.clock,
            engine=self.engine,
            lifecycle=self.lifecycle,
            describe=self.describe,
        )

    @property
    def sessions(self) -> Sessions:
        engine = self.engine
        return Sessions(store=self.store, caller=self.caller, clock=self.clock, engine=engine, repair=engine.repair.retry)

    @property
    def turns(self) -> Turns:
        return Turns(store=self.store, caller=self.caller, clock=self.clock, engine=self.engine)

    @property
    def messages(self) -> Messages:
        return Messages(store=self.store, caller=self.caller, clock=self.clock, engine=self.engine)

    @property
    def uploads(self) -> UploadedFiles:
        return UploadedFiles(caller=self.caller, workspace=self.workspace, trusted_owners=self.trusted_owners)

    @property
    def approvals(self) -> Approvals:
        return Approvals(store=self.store, caller=self.caller)

    @property
    def processes(self) -> Processes:
        return Processes(store=self.store, caller=self.caller, control=self.control)

    @property
    def jobs(self) -> Jobs:
        return Jobs(store=self.store, caller=self.caller, clock=self.clock, targets=self.targets)

    @property
    def deliveries(self) -> Deliveries:
        return Deliveries(store=self.store, caller=self.caller, clock=self.clock)

    @property
    def memories(self) -> Memories:
        return Memories(
            store=self.store,
            caller=self.caller,
            clock=self.clock,
            engine=self.engine,
            bindings=self.engine.memory,
            commits=self.commits,
            redaction=self.redaction,
        )

    @property
    def keys(self) -> Keys:
        closed = bool(self.server.api_key or self.server.password)
        return Keys(store=self.store, clock=self.clock, closed=closed)

    @property
    def logins(self) -> Logins:
        life = self.lifecycle
        return Logins(
            store=self.store,
            caller=self.caller,
            clock=self.clock,
            password=self.server.password,
            url=life.url,
            process=life.process,
            opening=Path(life.home) / OPENING,
        )

    @property
    def webhooks(self) -> Webhooks:
        if self.routes is None:
            raise Unavailable("this gateway takes no webhooks")
        return Webhooks(
            store=self.store,
            configured=self.channels.webhook.routes,
            routes=self.routes,
            clock=self.clock,
            url=self.lifecycle.url,
            signing_secret=self.channels.url.secret,
        )

    @property
    def upkeep(self) -> Upkeep:
        if self.care is None:
            raise Unavailable("only a gateway that serves looks after itself; start one with: holdfast serve")
        return self.care

    def of(self, caller: Caller) -> LocalDesk:
        return self if caller == self.caller else replace(self, caller=caller)
