"""Splits a stream of bytes into the data of server-sent events."""

from __future__ import annotations

from collections.abc import Sequence

_MARK = b"\xef\xbb\xbf"


class Splitter:
    """Splits one stream.  Only `data` is kept, because both wire formats repeat the event type in it."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._data: list[bytes] = []
        self._begun = False
        self.held_bytes = 0

    def feed(self, chunk: bytes) -> Sequence[bytes]:
        """Return the data of the events that this chunk completes.  `held_bytes` counts the incomplete rest."""
        if b"\n" not in chunk and b"\r" not in chunk:
            # Joined later: joining at each chunk would copy a long line again and again.
            self._pieces.append(chunk)
            self.held_bytes += len(chunk)
            return ()
        if self._pieces:
            chunk = b"".join([*self._pieces, chunk])
        if not self._begun:
            self._begun = True
            chunk = chunk.removeprefix(_MARK)
        if b"\r" in chunk:
            # The other half of a line end may be in the next chunk.
            half = b"\r" if chunk.endswith(b"\r") else b""
            chunk = chunk[: len(chunk) - len(half)].replace(b"\r\n", b"\n").replace(b"\r", b"\n") + half
        lines = chunk.split(b"\n")
        rest = lines.pop()
        self._pieces = [rest] if rest else []
        events = self._events(lines)
        self.held_bytes = len(rest) + sum(map(len, self._data))
        return events

    def flush(self) -> Sequence[bytes]:
        """Return the last event if the server did not end it with an empty line."""
        rest = b"".join(self._pieces).rstrip(b"\r")
        self._pieces, self.held_bytes = [], 0
        return self._events([rest.removeprefix(_MARK) if not self._begun else rest, b""])

    def _events(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        events: list[bytes] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line and data:
                events.append(data[0] if len(data) == 1 else b"\n".join(data))
                data.clear()
        return events
