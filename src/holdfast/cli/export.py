"""A conversation as Markdown, for people to keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.cli.cards import main_argument
from holdfast.cli.frame import date_and_time
from holdfast.core import notes
from holdfast.core.transcript import COMPACTED, Item, Role
from holdfast.desk.views import Transcript


def markdown(transcript: Transcript) -> str:
    """Return a whole conversation as Markdown."""
    session = transcript.session
    head = [
        f"# {session.title or session.key}",
        "",
        f"Session `{session.id}`, begun {date_and_time(session.created_at)}.",
        "",
    ]
    return "\n".join([*head, *_body(transcript.items)]).rstrip() + "\n"


def _body(items: Sequence[Item]) -> Iterator[str]:
    for item in items:
        match item.role:
            case Role.USER:
                yield from (f"## {date_and_time(item.at)}", "", *_quoted(item.text), "")
            case Role.TOOL:
                about = f" {main_argument(item.args)}".rstrip()
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
