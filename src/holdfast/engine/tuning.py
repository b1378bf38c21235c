"""Tuning: what operators do not choose about the engine, such as how often it looks and how much it does at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """One value for all components of a node; tests override it."""

    # Entries that follow the first are written together this often: people see no difference, the disk does.
    batch_ms: int = 50
    # While the store is away, a turn with this much on the disk of its node waits for it.
    spool_max_bytes: int = 8 * 1024 * 1024
    # How often each component looks by itself, in case a hint was lost.
    poll_ms: int = 1_000
    beat_ms: int = 1_000
    lease_ms: int = 5_000
    # A carrier gives up first, because it knows whether anything was sent.
    send_timeout_ms: int = 40_000
    sends_max: int = 32
    # In the background, for each provider binding, so that one that hangs does not delay the others.
    commits_max: int = 8
    # At shutdown, when nothing else is done any more.
    drain_commits_max: int = 64
    note_timeout_ms: int = 10_000
    # How often retention is enforced.
    retention_ms: int = 3_600_000
    # When the whole store is read for damage: after the start, each day, and how long at least between two times.
    inspection_first_ms: int = 5 * 60_000
    inspection_ms: int = 24 * 3_600_000
    inspection_pause_ms: int = 60_000
    expiry_ms: int = 5_000
