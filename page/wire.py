"""Writes src/wire.ts: the types of requests, answers and entries as TypeScript, from the gateway's own definitions.

python page/wire.py            write it
python page/wire.py --check    exit 1 when it is not what the definitions say
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core import delivery, effects, processes, questions, segments, sessions, transcript, turns
from holdfast.core.commands import COMMANDS
from holdfast.core.events import EVENTS, EntryKind
from holdfast.core.intake import Busy
from holdfast.web.application import endpoints
from holdfast.web.events import Streams
from holdfast.web.metrics import Meter
from holdfast.web.openapi import document

TARGET = Path(__file__).parent / "src" / "wire.ts"
HEAD = "// Written by page/wire.py from the gateway's own definitions; `make check` compares.\n"
WIDTH = 120
_REFERENCE = "#/components/schemas/"

# JSON schemas have no closer type.
Schema = dict[str, Any]
# Enumerations that the page compares with; all other types come from the schemas.
WORDS = {
    "EntryKind": EntryKind,
    "Role": transcript.Role,
    "TurnState": turns.TurnState,
    "TurnCause": turns.Cause,
    "SessionState": sessions.SessionState,
    "CallState": effects.CallState,
    "DeliveryState": delivery.DeliveryState,
    "SegmentState": segments.SegmentState,
    "ProcessState": processes.ProcessState,
    "About": questions.About,
    "Decision": questions.Decision,
    "Busy": Busy,
}
ENTRY = """
/** One durable entry of a session's journal. */
export type Entry = { [K in EntryKind]: EntryOf<K> }[EntryKind];

export interface EntryOf<K extends EntryKind> {
  session_id: string;
  seq: number;
  turn_id: string;
  attempt: number;
  nth: number | null;
  kind: K;
  at: number;
  data: Payloads[K];
}

/** One entry, or a run of words that stands for several: those from `since` to `seq`. */
export interface Stretch {
  session_id: string;
  seq: number;
  turn_id: string;
  attempt: number;
  nth: number | null;
  kind: EntryKind;
  at: number;
  data: Record<string, unknown>;
  since: number;
}
"""


def written() -> str:
    """Return the whole file."""
    parts = [HEAD, *_words(), _commands(), *_shapes(), *_payloads(), ENTRY]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _words() -> Iterator[str]:
    for name, kind in WORDS.items():
        yield _aliased(name, " | ".join(f'"{each.value}"' for each in kind))


def _commands() -> str:
    lines = [f'  {each.name}: {{ argument: "{each.argument}", help: "{each.text}" }},' for each in COMMANDS]
    return "\n".join(
        [
            "/** What can be asked of the gateway itself, with a slash before it. */",
            "export const COMMANDS = {",
            *lines,
            "} as const;",
        ]
    )


def _aliased(name: str, type_: str) -> str:
    line = f"export type {name} = {type_};"
    if len(line) <= WIDTH or " | " not in type_:
        return line
    return f"export type {name} =\n" + "\n".join(f"  | {each}" for each in type_.split(" | ")) + ";"


def _shapes() -> Iterator[str]:
    # The page does not use the OpenAI API.
    own = [each for each in endpoints(Streams(asyncio.Event()), Meter()) if not each.path.startswith("/v1/")]
    taken = {*WORDS, "Entry", "Stretch"}
    for name, schema in sorted(document(own)["components"]["schemas"].items()):
        if name not in taken:
            yield _shape(name, schema)


def _payloads() -> Iterator[str]:
    kinds = list(dict.fromkeys(EVENTS.values()))
    _, found = msgspec.json.schema_components(
        kinds, schema_hook=lambda _: {"description": ""}, ref_template=_REFERENCE + "Entry{name}"
    )
    for name, schema in sorted(found.items()):
        yield _shape(f"Entry{name}", schema)
    lines = [f'  "{kind.value}": Entry{payload.__name__};' for kind, payload in EVENTS.items()]
    yield "\n".join(["/** What an entry says, by its kind. */", "export interface Payloads {", *map(_plain, lines), "}"])


def _plain(line: str) -> str:
    """Return a property without unnecessary quotes."""
    return re.sub(r'^  "(\w+)":', r"  \1:", line)


def _shape(name: str, schema: Schema) -> str:
    doc = _doc(schema)
    if not schema.get("properties"):
        if schema.get("type") == "object" and "additionalProperties" not in schema:
            return f"{doc}export type {name} = Record<string, never>;"
        return f"{doc}{_aliased(name, _type(schema))}"
    required = set(schema.get("required", ()))
    lines = [
        f"  {_key(each)}{'' if each in required else '?'}: {_type(kind)};" for each, kind in schema["properties"].items()
    ]
    return doc + "\n".join([f"export interface {name} {{", *lines, "}"])


def _key(name: str) -> str:
    return name if name.isidentifier() else f'"{name}"'


def _doc(schema: Schema) -> str:
    text = " ".join(str(schema.get("description", "")).split())
    return f"/** {text} */\n" if text else ""


def _type(schema: Schema) -> str:
    match schema:
        case {"$ref": str(reference)}:
            return reference.rpartition("/")[2]
        case {"anyOf": list(kinds)}:
            return " | ".join(dict.fromkeys(_type(each) for each in kinds))
        case {"enum": list(values)}:
            return " | ".join(msgspec.json.encode(each).decode() for each in values)
        case {"type": "array", "prefixItems": list(kinds)}:
            return f"[{', '.join(_type(each) for each in kinds)}]"
        case {"type": "array", "items": dict(items)}:
            inner = _type(items)
            return f"({inner})[]" if " | " in inner else f"{inner}[]"
        case {"type": "array"}:
            return "unknown[]"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"Record<string, {_type(values)}>"
        case {"type": "object"}:
            return "Record<string, unknown>"
        case {"type": "string"}:
            return "string"
        case {"type": "integer" | "number"}:
            return "number"
        case {"type": "boolean"}:
            return "boolean"
        case {"type": "null"}:
            return "null"
        case _:
            return "unknown"


def main(arguments: Sequence[str], path: Path = TARGET) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    made = written()
    if not arguments:
        path.write_text(made)
    elif not path.exists() or path.read_text() != made:
        print("page/src/wire.ts is not what the definitions say: run python page/wire.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
