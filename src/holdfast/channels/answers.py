"""What the answer of a server that was sent something means, whichever server it is."""

from __future__ import annotations

from holdfast.egress import FetchedResponse

SAID_MAX_CHARS = 200
_GOOD = range(200, 300)
_BROKEN = range(500, 600)
_LATER = frozenset({408, 425, 429})


def is_good(status: int) -> bool:
    """Return whether it was taken."""
    return status in _GOOD


def may_pass(status: int) -> bool:
    """Return whether the same request may be taken later."""
    return status in _LATER or status in _BROKEN


def said(answer: FetchedResponse) -> str:
    """Return what a server says about its refusal, for the end of a sentence: a short piece in one line, no page."""
    text = "" if answer.headers.get("content-encoding") else answer.body.decode("utf-8", "replace")
    text = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    if not text or text.startswith("<"):
        return ""
    return f": {text[:SAID_MAX_CHARS]}{'…' if len(text) > SAID_MAX_CHARS else ''}"
