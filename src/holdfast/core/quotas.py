"""Quotas: how much of the store a tenant may use.  The operator has none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How much of a store one tenant may use.  0 is any number."""

    # Turns that wait to be run.
    queued: int = 0
    sessions: int = 0
    # What was sent in messages, with their pictures.
    bytes: int = 0
    jobs: int = 0
