"""The form of an answer that a program is to read, put into words for the model: nothing here can force it."""

from __future__ import annotations

import json
from collections.abc import Mapping

_ALONE = "and nothing else: no words around it, no code fence"


def instruction(form: Mapping[str, object] | None) -> str:
    """Return what the model is told about the form that a client wants; nothing for plain text."""
    match form:
        case {"type": "json_object"}:
            return f"Answer with one JSON object {_ALONE}."
        case {"type": "json_schema"}:
            # Chat completions have it one level deeper.
            schema = form.get("schema") or form.get("json_schema")
            return f"Answer with JSON that is valid against this schema, {_ALONE}: {json.dumps(schema)}"
        case _:
            return ""
