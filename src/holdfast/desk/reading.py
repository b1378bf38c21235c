"""What can be read of a store, also while no gateway runs, as one owner."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from holdfast.channels.webhook.routes import Routes
from holdfast.clock import SystemClock
from holdfast.config import ChannelsConfig
from holdfast.engine.engine import Engine
from holdfast.operations.approvals import Approvals
from holdfast.operations.caller import OPERATOR, Caller
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.gateway import Gateway
from holdfast.operations.jobs import Jobs
from holdfast.operations.keys import Keys
from holdfast.operations.logins import Logins
from holdfast.operations.memories import Memories
from holdfast.operations.offline import absent, offline
from holdfast.operations.processes import Processes
from holdfast.operations.sessions import Sessions
from holdfast.operations.turns import Turns
from holdfast.operations.webhooks import Webhooks
from holdfast.ports import ProcessControl
from holdfast.store.store import Store
from holdfast.targets import Targets


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReading:
    """What one owner may read of a store.  What belongs to another is not there."""

    store: Store
    caller: Caller = OPERATOR
    channels: ChannelsConfig = field(default_factory=ChannelsConfig)
    home: Path = Path()

    @property
    def owner(self) -> str:
        return self.caller.owner

    @property
    def gateway(self) -> Gateway:
        nothing = absent(self.home)
        gateway = Gateway(
            store=self.store, caller=self.caller, clock=nothing, engine=nothing, lifecycle=nothing, describe=nothing
        )
        return offline(gateway, self.home)

    @property
    def sessions(self) -> Sessions:
        clock, engine = SystemClock(), absent(self.home)
        return offline(Sessions(store=self.store, caller=self.caller, clock=clock, engine=engine), self.home)

    @property
    def turns(self) -> Turns:
        clock, engine = SystemClock(), absent(self.home)
        return offline(Turns(store=self.store, caller=self.caller, clock=clock, engine=engine), self.home)

    @property
    def approvals(self) -> Approvals:
        return offline(Approvals(store=self.store, caller=self.caller), self.home)

    @property
    def processes(self) -> Processes:
        control: ProcessControl = absent(self.home)
        return offline(Processes(store=self.store, caller=self.caller, control=control), self.home)

    @property
    def jobs(self) -> Jobs:
        targets: Targets = absent(self.home)
        clock = SystemClock()
        return offline(Jobs(store=self.store, caller=self.caller, clock=clock, targets=targets), self.home)

    @property
    def deliveries(self) -> Deliveries:
        return offline(Deliveries(store=self.store, caller=self.caller, clock=SystemClock()), self.home)

    @property
    def memories(self) -> Memories:
        engine: Engine = absent(self.home)
        memories = Memories(
            store=self.store, caller=self.caller, clock=SystemClock(), engine=engine, bindings=None, running=False
        )
        return offline(memories, self.home)

    @property
    def keys(self) -> Keys:
        return offline(Keys(store=self.store, clock=SystemClock()), self.home)

    @property
    def webhooks(self) -> Webhooks:
        routes: Routes = absent(self.home)
        webhooks = Webhooks(
            store=self.store,
            configured=self.channels.webhook.routes,
            routes=routes,
            clock=SystemClock(),
            url="",
            signing_secret="",
        )
        return offline(webhooks, self.home)

    @property
    def logins(self) -> Logins:
        logins: Logins = absent(self.home)
        return logins
