"""What the operator may choose about the engine, with its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import time

from holdfast.config import ONE_SHOT_DAYS
from holdfast.core.intake import Busy
from holdfast.core.resets import When
from holdfast.core.turns import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Durations are milliseconds unless the name says otherwise."""

    max_running: int = 256
    # How many turns of one tenant run at once; 0 is any number.
    tenant_running: int = 32
    policy: Policy = field(default_factory=Policy)
    busy: Busy = Busy.QUEUE
    reset: When = When.NONE
    reset_by_channel: Mapping[str, When] = field(default_factory=dict[str, When])
    idle_ms: int = 24 * 3_600_000
    daily_at: time = time(4)
    # Entries that follow the first are written together this often: people see no difference, the disk does.
    batch_ms: int = 50
    # While the store is away, a turn that has so much on our own disk waits for it.
    spool_max_bytes: int = 8 * 1024 * 1024
    # How long a turn waits for a model that cannot answer.
    model_wait_ms: int = 86_400_000
    # How often each component looks by itself, in case a hint was lost.
    poll_ms: int = 1_000
    beat_ms: int = 1_000
    lease_ms: int = 5_000
    send_timeout_ms: int = 30_000
    sends_max: int = 32
    commit_timeout_ms: int = 60_000
    # In the background, and for each provider binding, so that one that hangs keeps nobody else from being paid.
    commits_max: int = 8
    # At shutdown, when nothing else is done any more.
    drain_commits_max: int = 64
    # A conversation that was left so long ago is over as far as memory is concerned.
    memory_idle_ms: int = 30 * 60_000
    # Conversations that are at hand between their turns.
    live_max: int = 1_000
    # No reply waits longer for what memory has to say to a message, of which it takes so much.
    recall_timeout_ms: int = 2_000
    recall_limit: int = 8
    note_timeout_ms: int = 10_000
    retention_ms: int = 3_600_000
    # When the whole store is read for damage: after the start, each day, and how long at least between two times.
    inspection_first_ms: int = 5 * 60_000
    inspection_ms: int = 24 * 3_600_000
    inspection_pause_ms: int = 60_000
    expiry_ms: int = 5_000
    one_shot_days: Mapping[str, int] = field(default_factory=lambda: dict(ONE_SHOT_DAYS))
