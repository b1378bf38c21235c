"""Makes untrusted schemas acceptable to every model: objects of bounded size, without references."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

SCHEMA_MAX_CHARS = 16_000
NODES_MAX = 2_000
DEPTH_MAX = 24
# Keywords that some vendors refuse at the top of a schema, and keywords that only a validator needs.
_NOT_AT_TOP = frozenset({"anyOf", "oneOf", "allOf", "not", "enum"})
_NOWHERE = frozenset({"$schema", "$id", "$comment", "$anchor", "$defs", "definitions", "title"})
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
ANYTHING: Mapping[str, object] = {"type": "object", "properties": {}}


def sanitised(schema: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return an acceptable schema; None if it is too large or malformed."""
    try:
        whole = _Expansion(schema).of(schema, 0)
    except (_TooLarge, RecursionError):
        return None
    if not isinstance(whole, dict):
        return None
    top = {key: value for key, value in cast("dict[str, object]", whole).items() if key not in _NOT_AT_TOP}
    if not isinstance(top.get("properties", {}), dict) or top.get("type", "object") != "object":
        return None
    found = {**ANYTHING, **top}
    try:
        return found if len(json.dumps(found, allow_nan=False)) <= SCHEMA_MAX_CHARS else None
    except ValueError:
        return None


class _TooLarge(Exception):
    """The schema exceeds the limits."""


class _Expansion:
    """Expands a schema: replaces each reference by its target, up to a number of nodes."""

    def __init__(self, root: Mapping[str, object]) -> None:
        self._root = root
        self._nodes = 0

    def of(self, node: object, depth: int) -> object:
        self._nodes += 1
        if self._nodes > NODES_MAX or depth > DEPTH_MAX:
            raise _TooLarge
        if isinstance(node, list):
            return [self.of(each, depth + 1) for each in cast("list[object]", node)]
        if not isinstance(node, dict):
            return node
        table = cast("dict[str, object]", node)
        if isinstance(reference := table.get("$ref"), str):
            return self.of(self._target(reference), depth + 1)
        # The names of arguments are not keywords.
        return {
            key: self._by_name(value, depth + 1) if key in _NAMED else self.of(value, depth + 1)
            for key, value in table.items()
            if key not in _NOWHERE
        }

    def _by_name(self, value: object, depth: int) -> object:
        if not isinstance(value, dict):
            return self.of(value, depth)
        return {name: self.of(each, depth + 1) for name, each in cast("dict[str, object]", value).items()}

    def _target(self, reference: str) -> object:
        """Return the target of a reference inside the schema; an external reference allows anything."""
        if not reference.startswith("#"):
            return {}
        node: object = cast("object", self._root)
        for part in reference.removeprefix("#").split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            node = cast("Mapping[str, object]", node).get(key) if isinstance(node, Mapping) else None
        return {} if node is None else node
