"""Upkeep: the services with which an operator looks after a gateway that serves.

No command asks for them, so commands do not import them: to try a model out, they need all that an agent needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_type_hints

from holdfast.operations.doctor import Doctor
from holdfast.operations.settings import Settings
from holdfast.operations.setup import Setup


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """The services of a gateway that serves."""

    doctor: Doctor
    settings: Settings
    setup: Setup


def nouns() -> Mapping[str, type]:
    """Return the class of each of these services by where it is found."""
    return {f"upkeep.{noun}": service for noun, service in get_type_hints(Upkeep).items()}
