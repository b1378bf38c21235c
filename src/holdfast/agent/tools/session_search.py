"""The `session_search` tool: searches the person's other conversations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import msgspec

from holdfast.agent.tools.port import CallContext, StructTool
from holdfast.agent.tools.untrusted import fence
from holdfast.core.effects import Effect
from holdfast.core.events import EntryKind
from holdfast.core.sessions import TITLE, SearchHit
from holdfast.store.passages import PassageStore

LIMIT_DEFAULT = 10
LIMIT_MAX = 50
SNIPPET_CHARS = 300


class SessionSearchArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    query: Annotated[
        str, msgspec.Meta(description="Words that all stand in one message, answer or title.", min_length=1, max_length=400)
    ]
    limit: Annotated[int, msgspec.Meta(description="How many at most.", ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT


def session_search_tool(passages: PassageStore) -> StructTool[SessionSearchArgs]:
    """Return the tool that searches the caller's conversations."""

    async def search(args: SessionSearchArgs, context: CallContext) -> str:
        found = (await passages.find(context.session.owner, args.query, args.limit)).hits
        if not found:
            return f"No message and no answer has all of {args.query!r}; try fewer or other words."
        shown = "\n\n".join(_shown(hit, args.query, context) for hit in found)
        return f"{len(found)} found, the newest first:\n{fence(shown, 'earlier conversations')}"

    return StructTool(
        name="session_search",
        description="Search all earlier conversations with this person. Returns excerpts with session ids and dates.",
        args=SessionSearchArgs,
        effect=Effect.PURE,
        action=search,
    )


def _shown(hit: SearchHit, query: str, context: CallContext) -> str:
    who = {EntryKind.TURN_ACCEPTED: "person", TITLE: "title"}.get(hit.kind, "agent")
    here = " (this conversation)" if hit.session_id == context.session.id else ""
    when = datetime.fromtimestamp(hit.at / 1000, UTC).isoformat(timespec="minutes")
    return f"{when} {hit.session_id}{here}, {who}: {snippet(hit.text, query)}"


def snippet(text: str, query: str, chars_max: int = SNIPPET_CHARS) -> str:
    """Return the part of a text around the first match of a word."""
    line = " ".join(text.split())
    lowered = line.lower()
    first = min((at for word in query.lower().split() if (at := lowered.find(word)) >= 0), default=0)
    begin = max(0, min(first - chars_max // 4, len(line) - chars_max))
    piece = line[begin : begin + chars_max]
    return f"{'…' if begin else ''}{piece}{'…' if begin + chars_max < len(line) else ''}"
