"""What the HTTP status of an answer means for a delivery, for every server alike."""

from __future__ import annotations

from holdfast.egress import FetchedResponse

SAID_MAX_CHARS = 200
_GOOD = range(200, 300)
_BROKEN = range(500, 600)
_LATER = frozenset({408, 425, 429})


def is_good(status: int) -> bool:
    """Return whether the server took the request."""
    return status in _GOOD


def may_pass(status: int) -> bool:
    """Return whether the server may take the same request later."""
    return status in _LATER or status in _BROKEN


def said(answer: FetchedResponse) -> str:
    """Return the reason that a server gives, for the end of a sentence: one short line, or nothing for an HTML page."""
    text = "" if answer.headers.get("content-encoding") else answer.body.decode("utf-8", "replace")
    text = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    if not text or text.startswith("<"):
        return ""
    return f": {text[:SAID_MAX_CHARS]}{'…' if len(text) > SAID_MAX_CHARS else ''}"
