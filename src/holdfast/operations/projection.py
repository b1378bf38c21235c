"""Makes one dataclass of another: the fields with the same names are copied, the others are given."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

K = TypeVar("K")


def project(kind: type[K], record: object, **given: object) -> K:
    """Return a `kind` with the fields of a record that it has too, and with those that are given."""
    copied = {name: getattr(record, name) for name in _shared(kind, type(record)) if name not in given}
    return kind(**copied, **given)


@functools.cache
def _shared(kind: type[Any], record: type[Any]) -> Sequence[str]:
    known = {each.name for each in fields(record)}
    return [each.name for each in fields(kind) if each.name in known]
