"""Upkeep: what an operator does about a gateway while it runs."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.desk.doctor import Consultations
from holdfast.desk.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """Whoever looks after the gateway itself."""

    doctor: Consultations
    settings: Settings
