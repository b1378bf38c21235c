"""Upkeep: what an operator does about a gateway while it runs."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.desk.doctor import SharedReports
from holdfast.desk.settings import Settings
from holdfast.desk.setup import Setup


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """Whoever looks after the gateway itself."""

    doctor: SharedReports
    settings: Settings
    setup: Setup
