"""What the components of a node share."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.clock import Clock
from holdfast.core.redaction import Redaction
from holdfast.core.turns import Policy
from holdfast.engine.tuning import Tuning
from holdfast.ids import NodeId
from holdfast.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    """One process on one store."""

    id: NodeId
    store: Store
    clock: Clock
    tuning: Tuning = field(default_factory=Tuning)
    # What becomes of a turn that is cut off.
    policy: Policy = field(default_factory=Policy)
    redaction: Redaction = field(default_factory=Redaction)
    # Names the folder of its spool; empty without one.
    home: str = ""
