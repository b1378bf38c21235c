"""The services for a caller, over an engine that runs in this process, or over the store of a gateway that does not run."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.channels.webhook.routes import Routes
from holdfast.clock import Clock, SystemClock
from holdfast.config import ChannelsConfig, ServerConfig
from holdfast.core.redaction import Redaction
from holdfast.engine.engine import Engine
from holdfast.home_files import OPENING
from holdfast.operations.approvals import Approvals
from holdfast.operations.caller import OPERATOR, Caller
from holdfast.operations.channels import Channels
from holdfast.operations.chat_requests import ChatRequests
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.gateway import AgentView, Gateway
from holdfast.operations.jobs import Jobs
from holdfast.operations.keys import Keys
from holdfast.operations.lifecycle import Lifecycle
from holdfast.operations.logins import Logins
from holdfast.operations.memories import Commits, Memories
from holdfast.operations.messages import Messages
from holdfast.operations.offline import absent, offline
from holdfast.operations.people import Pairings, People
from holdfast.operations.processes import Processes
from holdfast.operations.projection import project
from holdfast.operations.services import ServerServices, Services, nouns
from holdfast.operations.sessions import Sessions, unrepaired
from holdfast.operations.turns import Turns
from holdfast.operations.uploads import UploadedFiles
from holdfast.operations.webhooks import Webhooks
from holdfast.ports import ProcessControl, Uploads
from holdfast.store.store import Store
from holdfast.targets import Targets

if TYPE_CHECKING:
    # A command that is a gateway for a moment needs none of it.
    from holdfast.channels.chat.account import ChatAccount
    from holdfast.operations.upkeep import Upkeep


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceParts:
    """What services are made of.  Using a part that is None raises `NotRunning`."""

    store: Store
    lifecycle: Lifecycle
    clock: Clock
    engine: Engine | None = None
    control: ProcessControl | None = None
    targets: Targets | None = None
    routes: Routes | None = None
    # Asked each time, because servers of tools come and go.
    describe: Callable[[], AgentView] = AgentView
    server: ServerConfig = field(default_factory=ServerConfig)
    channels: ChannelsConfig = field(default_factory=ChannelsConfig)
    redaction: Redaction = field(default_factory=Redaction)
    commits: Commits = field(default_factory=Commits)
    workspace: Uploads | None = None
    trusted_owners: Container[str] = ()
    accounts: Mapping[str, ChatAccount] = field(default_factory=dict[str, "ChatAccount"])

    def services(self, caller: Caller = OPERATOR) -> Services:
        """Return the services for a caller."""
        store, clock, life, server = self.store, self.clock, self.lifecycle, self.server
        missing = absent(Path(life.home))
        engine = self.engine or missing
        return Services(
            gateway=Gateway(store=store, caller=caller, clock=clock, engine=engine, lifecycle=life, describe=self.describe),
            sessions=Sessions(
                store=store,
                caller=caller,
                clock=clock,
                engine=engine,
                repair=self.engine.repair.retry if self.engine else unrepaired,
            ),
            turns=Turns(store=store, caller=caller, clock=clock, engine=engine),
            approvals=Approvals(store=store, caller=caller),
            processes=Processes(store=store, caller=caller, control=self.control or missing),
            jobs=Jobs(store=store, caller=caller, clock=clock, targets=self.targets or missing),
            deliveries=Deliveries(store=store, caller=caller, clock=clock),
            keys=Keys(store=store, clock=clock, closed=bool(server.api_key or server.password)),
            webhooks=Webhooks(
                store=store,
                configured=self.channels.webhook.routes,
                routes=self.routes or missing,
                clock=clock,
                url=life.url,
                signing_secret=self.channels.url.secret,
            ),
            channels=Channels(
                store=store, accounts=self.channels.accounts, clock=clock, home=Path(life.home), redaction=self.redaction
            ),
            people=People(store=store, accounts=self.channels.accounts),
            pairings=Pairings(store=store, caller=caller, clock=clock),
            memories=Memories(
                store=store,
                caller=caller,
                clock=clock,
                engine=engine,
                bindings=self.engine.memory if self.engine else None,
                commits=self.commits,
                redaction=self.redaction,
                running=self.engine is not None,
            ),
            logins=Logins(
                store=store,
                caller=caller,
                clock=clock,
                password=server.password,
                url=life.url,
                process=life.process,
                opening=Path(life.home) / OPENING,
            ),
        )

    def server_services(self, upkeep: Upkeep, caller: Caller = OPERATOR) -> ServerServices:
        """Return the services for a caller of the gateway's own web server."""
        services = self.services(caller)
        return project(
            ServerServices,
            services,
            messages=Messages(store=self.store, caller=caller, clock=self.clock, engine=services.gateway.engine),
            uploads=UploadedFiles(caller=caller, workspace=self.workspace, trusted_owners=self.trusted_owners),
            chat_requests=ChatRequests(store=self.store, clock=self.clock, accounts=self.accounts),
            upkeep=upkeep,
        )


def offline_services(
    store: Store, home: Path = Path(), channels: ChannelsConfig | None = None, caller: Caller = OPERATOR
) -> Services:
    """Return the services over the store of a gateway that does not run: they only read."""
    clock = SystemClock()
    life = Lifecycle(clock, home=str(home), store="")
    parts = ServiceParts(store=store, lifecycle=life, clock=clock, channels=channels or ChannelsConfig())
    services = parts.services(caller)
    return Services(**{noun: offline(getattr(services, noun), home) for noun in nouns()})
