"""A response and the events of its stream, as a fold of the turn's journal.

An event has the same number at every reading, so a stream goes on behind any of them, on another connection and after a
restart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import msgspec

from holdfast.channels.openai.models import OWN
from holdfast.channels.openai.responses import ENDPOINT, Fields, response_id
from holdfast.core.events import (
    ApprovalAsked,
    Data,
    Reasoning,
    Text,
    TurnAccepted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnInterrupted,
    TurnStarted,
)
from holdfast.core.intake import Speaker
from holdfast.core.journal import Entry
from holdfast.core.progress import Progress
from holdfast.core.turns import FINAL, SETTLED, TurnState
from holdfast.core.usage import Usage

# Of a response of which every event was read, and nothing more is to be shown.
ALL = 2**62
_STATUSES: Mapping[TurnState, str] = {
    TurnState.QUEUED: "in_progress",
    TurnState.RUNNING: "in_progress",
    TurnState.WAITING: "in_progress",
    TurnState.COMPLETED: "completed",
    TurnState.FAILED: "failed",
    TurnState.CANCELLED: "cancelled",
    TurnState.INTERRUPTED: "incomplete",
}
# The official API has no event of its own for a response that was cancelled; its status says what it is.
_LAST_EVENT: Mapping[TurnState, str] = {
    TurnState.COMPLETED: "response.completed",
    TurnState.FAILED: "response.failed",
    TurnState.CANCELLED: "response.incomplete",
    TurnState.INTERRUPTED: "response.incomplete",
}
# What a response that was cut off shows more of.
_MOVING = (TurnInterrupted, Text, Reasoning)
_encode = msgspec.json.Encoder().encode


class Events:
    """One response, and the events of its stream behind the one with the number `after`."""

    def __init__(self, after: int = -1) -> None:
        self.progress = Progress()
        # The last event of a response that was cut off and might still go on: it is sent only if it does not.
        self.cut = b""
        self._after = after
        self._number = 0
        self._accepted: Entry | None = None
        self._kept: Data = {}
        self._started = self._ended = False
        self._items: list[_Item] = []
        self._open: _Item | None = None

    def take(self, entry: Entry) -> bytes:
        """Go on by one entry; returns the events that it makes."""
        if self._ended:
            # Entries of a lost attempt may follow the cancellation of its turn.  Clients do not read past the last event.
            return b""
        events = self._took(entry, self.progress.take(entry))
        self._ended = self.progress.state in FINAL
        if self.progress.state is TurnState.INTERRUPTED and isinstance(entry.event, _MOVING):
            # Words of a lost attempt may be found only afterwards, and this stays the last event.
            self.cut = self._whole(_LAST_EVENT[TurnState.INTERRUPTED])
        return events

    def _took(self, entry: Entry, said: str) -> bytes:
        match entry.event:
            case TurnAccepted(request=request):
                return self._accept(entry, request or {})
            case TurnStarted() if not self._started:
                self._started = True
                return self._whole("response.in_progress")
            case Text() if said:
                return self._speak("message", said)
            case Reasoning(text=text):
                return self._speak("reasoning", text)
            case TurnCompleted() | TurnFailed() | TurnCancelled():
                return self._close() + self._whole(_LAST_EVENT[self.progress.state])
            case _:
                return b""

    @property
    def is_response(self) -> bool:
        """Whether the turn was asked for as a response that is kept."""
        return self._kept.get("endpoint") == ENDPOINT and self._kept.get("store") is not False

    @property
    def is_background(self) -> bool:
        return bool(self._kept.get("background"))

    def response(self) -> Fields:
        """Return the response as far as it has come."""
        progress, kept = self.progress, self._kept
        accepted = self._accepted
        state = progress.state
        settled = state in SETTLED
        used = progress.usage
        found: Fields = {
            "id": response_id(accepted.turn_id) if accepted else "",
            "object": "response",
            "created_at": accepted.at // 1000 if accepted else 0,
            "status": "queued" if self.is_background and not self._started and not settled else _STATUSES[state],
            "background": self.is_background,
            "completed_at": (progress.settled_at or 0) // 1000 if state is TurnState.COMPLETED else None,
            "error": {"code": "server_error", "message": progress.error} if state is TurnState.FAILED else None,
            "incomplete_details": {"reason": "interrupted"} if state is TurnState.INTERRUPTED else None,
            "instructions": kept.get("instructions"),
            "max_output_tokens": None,
            "metadata": kept.get("metadata") or {},
            "model": kept.get("model", OWN),
            "output": [item.shown() for item in self._items],
            "parallel_tool_calls": True,
            "previous_response_id": kept.get("previous_response_id"),
            "reasoning": {"effort": None, "summary": None},
            "store": kept.get("store") is not False,
            "temperature": None,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "truncation": "disabled",
            "usage": _usage(used) if settled else None,
            "user": None,
        }
        if progress.question is not None:
            found["question"] = question(progress.question)
        return found

    def broken(self) -> bytes:
        """Return the event that says that a stream ended before its response did; it has the number of the last one."""
        message = "the stream ended before the response did; read it with GET /v1/responses/{id}, behind this event"
        number = max(self._number - 1, 0)
        return _sse({"type": "error", "code": "cut_off", "message": message, "param": None, "sequence_number": number})

    def _accept(self, entry: Entry, request: Data) -> bytes:
        self._accepted, self._kept = entry, request
        created = self._whole("response.created")
        return created + self._whole("response.queued") if self.is_background else created

    def _speak(self, kind: str, text: str) -> bytes:
        opened = b""
        if self._open is None or self._open.kind != kind:
            opened = self._close() + self._begin(kind)
        item = cast("_Item", self._open)
        item.pieces.append(text)
        if kind == "message":
            more: Fields = {"content_index": 0, "delta": text, "logprobs": []}
            return opened + self._event("response.output_text.delta", item, more)
        return opened + self._event("response.reasoning_summary_text.delta", item, {"summary_index": 0, "delta": text})

    def _begin(self, kind: str) -> bytes:
        owner = self._accepted.turn_id if self._accepted else ""
        index = len(self._items)
        self._open = item = _Item(id=f"{_ITEM_PREFIXES[kind]}_{owner}_{index}", kind=kind, index=index, pieces=[])
        self._items.append(item)
        added = self._event("response.output_item.added", item, {"item": item.shown()}, named=False)
        if kind == "message":
            return added + self._event("response.content_part.added", item, {"content_index": 0, "part": _output_text("")})
        part: Fields = {"summary_index": 0, "part": _summary_text("")}
        return added + self._event("response.reasoning_summary_part.added", item, part)

    def _close(self) -> bytes:
        if (item := self._open) is None:
            return b""
        self._open = None
        # What is cut off at its end was never finished.
        item.status = "completed" if self.progress.state in (TurnState.RUNNING, TurnState.COMPLETED) else "incomplete"
        text = item.text
        if item.kind == "message":
            done = self._event("response.output_text.done", item, {"content_index": 0, "text": text, "logprobs": []})
            done += self._event("response.content_part.done", item, {"content_index": 0, "part": _output_text(text)})
        else:
            part: Fields = {"summary_index": 0, "part": _summary_text(text)}
            done = self._event("response.reasoning_summary_text.done", item, {"summary_index": 0, "text": text})
            done += self._event("response.reasoning_summary_part.done", item, part)
        return done + self._event("response.output_item.done", item, {"item": item.shown()}, named=False)

    def _event(self, kind: str, item: _Item, more: Fields, *, named: bool = True) -> bytes:
        number = self._next()
        if number <= self._after:
            return b""
        place: Fields = {"item_id": item.id} if named else {}
        return _sse({"type": kind, "sequence_number": number, **place, "output_index": item.index, **more})

    def _whole(self, kind: str) -> bytes:
        number = self._next()
        return b"" if number <= self._after else _sse({"type": kind, "sequence_number": number, "response": self.response()})

    def _next(self) -> int:
        number, self._number = self._number, self._number + 1
        return number


_ITEM_PREFIXES = {"message": "msg", "reasoning": "rs"}


@dataclass(slots=True, kw_only=True)
class _Item:
    """One thing in the output."""

    id: str
    kind: str
    index: int
    pieces: list[str]
    status: str = "in_progress"

    @property
    def text(self) -> str:
        # A long answer arrives in very many pieces, and is asked for several times at its end.
        self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    def shown(self) -> Fields:
        text = self.text
        if self.kind == "message":
            content = [_output_text(text)] if text else []
            return {"id": self.id, "type": "message", "status": self.status, "role": "assistant", "content": content}
        summary = [_summary_text(text)] if text else []
        return {"id": self.id, "type": "reasoning", "summary": summary, "status": self.status}


def _sse(event: Fields) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), _encode(event))


def _output_text(text: str) -> Fields:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _summary_text(text: str) -> Fields:
    return {"type": "summary_text", "text": text}


def _usage(used: Usage) -> Fields:
    return {
        "input_tokens": used.input_tokens,
        "input_tokens_details": {"cached_tokens": used.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": used.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.tokens,
    }


def question(asked: ApprovalAsked) -> Fields:
    """Return what a turn waits for, as a client reads it."""
    return {name: getattr(asked, name) for name in ("question_id", "text", "about", "choices", "detail", "expires_at")}


def input_items(accepted: TurnAccepted) -> list[Fields]:
    """Return what a response was asked with, in the order in which it was said; what it was told beside is no part of it."""
    guided = (accepted.request or {}).get("guided")
    said = [(each.speaker, each.text, 0) for each in accepted.prior[1 if guided else 0 :]]
    said.append((Speaker.USER, accepted.text, len(accepted.images)))
    return [_input_item(number, *each) for number, each in enumerate(said)]


def _input_item(number: int, role: str, text: str, pictures: int) -> Fields:
    if role == Speaker.ASSISTANT:
        content: list[Fields] = [_output_text(text)]
    else:
        content = [{"type": "input_text", "text": text}]
    picture: Fields = {"type": "input_image", "detail": "auto", "file_id": None, "image_url": None}
    content += [picture] * pictures
    return {"id": f"msg_in_{number}", "type": "message", "role": role, "status": "completed", "content": content}
