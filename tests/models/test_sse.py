"""Server-sent events, as tolerant as their standard."""

from __future__ import annotations

import pytest

from holdfast.agent.models.sse import Splitter


@pytest.mark.parametrize(
    ("sent", "events"),
    [
        (b"data: a\n\n", [b"a"]),
        (b"data:a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b": a comment\n\nevent: x\nid: 1\ndata: a\nretry: 5\n\n", [b"a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data: a\ndata:\ndata: b\n\n", [b"a\n\nb"]),
        (b"data: a\r\ndata: b\r\n\r\n", [b"a\nb"]),
        (b"\n\n\ndata: a\n\n\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data: a\n\ndata: [DONE]", [b"a", b"[DONE]"]),
        (b"data: a\n\ndata: b\n", [b"a", b"b"]),
        (b"data:  two spaces \n\n", [b" two spaces "]),
        (b"database: no\ndata: a\n\n", [b"a"]),
        (b"", []),
    ],
)
def test_events_are_told_apart_wherever_they_are_cut(sent: bytes, events: list[bytes]) -> None:
    """Line ends of every kind, comments, several lines of data, a mark of the encoding, no last line."""
    for size in (1, 2, 3, len(sent) or 1):
        splitter = Splitter()
        found = [event for at in range(0, len(sent), size) for event in splitter.feed(sent[at : at + size])]
        assert [*found, *splitter.flush()] == events, size


def test_a_line_without_end_is_counted_but_not_copied() -> None:
    """What waits for more is known, so that it can be bounded."""
    splitter = Splitter()
    splitter.feed(b"data: ")
    for _ in range(1000):
        assert splitter.feed(b"x" * 1000) == ()
    assert splitter.held_bytes == 1_000_006
    assert splitter.feed(b"\n\n") == [b"x" * 1_000_000]
    assert splitter.held_bytes == 0


def test_lines_of_data_without_end_are_counted_too() -> None:
    """An event can be endless without one long line."""
    splitter = Splitter()
    for _ in range(100):
        splitter.feed(b"data: 1234567890\n")
    assert splitter.held_bytes == 1000
