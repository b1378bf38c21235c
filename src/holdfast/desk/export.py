"""A conversation as a file, for people and programs to keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from holdfast.core import filenames, notes
from holdfast.core.transcript import COMPACTED, Item, Role, main_argument
from holdfast.desk.views import SessionView, Transcript

# Of what a call was about; the rest is in the other form.
_ARGUMENT_MAX = 100
_SUFFIXES = {"markdown": "md", "json": "json"}


class Form(StrEnum):
    """How a conversation is written."""

    MARKDOWN = "markdown"
    JSON = "json"


def written(transcript: Transcript, form: Form) -> str:
    """Return a whole conversation as the text of a file."""
    if form is Form.MARKDOWN:
        return markdown(transcript)
    return msgspec.json.format(msgspec.json.encode(transcript), indent=2).decode() + "\n"


def file_name(session: SessionView, form: Form) -> str:
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
                yield from (f"## {_moment(item.at)}", "", *_quoted(item.text), "")
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


def _quoted(text: str) -> Iterator[str]:
    return (f"> {line}".rstrip() for line in text.splitlines() or [""])


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _moment(at_ms: int) -> str:
    """Return a time as it can still be read years from now, in the time zone of this machine."""
    return f"{datetime.fromtimestamp(at_ms / 1000).astimezone():%Y-%m-%d %H:%M:%S}"
