"""The models that clients may ask for: the gateway by its own name, and by that of the model behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast.channels.openai.content import Unfit

OWN = "holdfast"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """One model in the list that clients read.  `created` is always 0."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = OWN


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelList:
    """The list of models."""

    data: Sequence[ModelEntry]
    object: Literal["list"] = "list"


def offered(configured: str) -> tuple[str, ...]:
    """Return the names under which the configured model answers, which is `provider:model`, or nothing for none."""
    return tuple(dict.fromkeys(name for name in (OWN, configured, configured.partition(":")[2]) if name))


def listed(names: Sequence[str]) -> ModelList:
    return ModelList(data=[ModelEntry(id=name) for name in names])


def check(wanted: str, names: Sequence[str]) -> None:
    """Raise `Unfit` for a model that is not offered."""
    if wanted not in names:
        hint = f"use one of: {', '.join(names)}"
        raise Unfit(f"there is no model {wanted[:80]!r} here", hint, 404, "model_not_found")
