"""A conversation as a file, for people and programs to keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from textwrap import indent

import msgspec

from holdfast.core import filenames, notes
from holdfast.core.transcript import COMPACTED, Item, Role, main_argument
from holdfast.operations.conversation import SessionView, Transcript

# Of what a call was about; the rest is in the other form.
_ARGUMENT_MAX = 100
# Inside a text the quotes would stand behind backslashes.
_NO_ITEMS = '"items": []'
_SUFFIXES = {"markdown": "md", "json": "json"}


class ExportFormat(StrEnum):
    """How a conversation is written."""

    MARKDOWN = "markdown"
    JSON = "json"


def written(transcript: Transcript, form: ExportFormat) -> str:
    """Return a whole conversation as the text of a file."""
    if form is ExportFormat.MARKDOWN:
        return markdown(transcript)
    return "".join(_json(transcript))


def _json(transcript: Transcript) -> Iterator[str]:
    """Yield a conversation as JSON, item by item: all at once would hold the interpreter until it is written."""
    head, items, tail = _formatted(replace(transcript, items=())).partition(_NO_ITEMS)
    yield head + items[:-1]
    for nth, item in enumerate(transcript.items):
        yield ("," if nth else "") + "\n" + indent(_formatted(item), "    ")
    yield ("\n  ]" if transcript.items else "]") + tail + "\n"


def _formatted(part: object) -> str:
    return msgspec.json.format(msgspec.json.encode(part), indent=2).decode()


def file_name(session: SessionView, form: ExportFormat) -> str:
    """Return what the file of a conversation is called: as people know it."""
    return f"{filenames.safe(session.label, session.id)}.{_SUFFIXES[form]}"


def markdown(transcript: Transcript) -> str:
    """Return a whole conversation as Markdown."""
    session = transcript.session
    head = [
        f"# {session.label}",
        "",
        f"Session `{session.id}`, begun {_moment(session.created_at)}.",
        "",
    ]
    return "\n".join([*head, *_body(transcript.items)]).rstrip() + "\n"


def _body(items: Sequence[Item]) -> Iterator[str]:
    for item in items:
        match item.role:
            case Role.USER:
                yield from (f"## {_moment(item.at)}", "", _quoted(item.text), "")
            case Role.TOOL:
                about = f" {_one_line(main_argument(item.args))[:_ARGUMENT_MAX]}".rstrip()
                yield from (f"- `{item.name}`{about} ({item.outcome or 'running'}): {_one_line(item.result or '')}", "")
            case Role.NOTE if item.kind == COMPACTED:
                yield from (f"*{_one_line(notes.compacted(item.text))}*", "")
            case Role.PRIOR:
                yield from (f"*Said before, according to the client ({item.kind}): {_one_line(item.text)}*", "")
            case Role.REASONING | Role.NOTE | Role.MARKER:
                yield from (f"*{_one_line(item.text)}*", "")
            case Role.QUESTION:
                yield from (f"**{'Asked' if item.kind == 'asked' else 'Answered'}:** {_one_line(item.text)}", "")
            case Role.ASSISTANT:
                yield from (item.text, "")


def _quoted(text: str) -> str:
    # As one text for each message: all lines of all messages would be millions of texts.
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines() or [""])


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _moment(at_ms: int) -> str:
    """Return a time as it can still be read years from now, in the time zone of this machine."""
    return f"{datetime.fromtimestamp(at_ms / 1000).astimezone():%Y-%m-%d %H:%M:%S}"
