"""A delivery as a comment on GitHub.

A comment ends in a mark that readers do not see, so that a comment that was cut off can be found.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.channels.port import MessageSize
from holdfast.core.delivery import Delivery

COMMENT_MAX_CHARS = 65_536
# Room for the label of a repeat and for the mark.
MARGIN_CHARS = 136
SIZE = MessageSize(most=COMMENT_MAX_CHARS - MARGIN_CHARS)


def parts(text: str) -> Sequence[str]:
    """Split a text into parts that a comment can hold."""
    found: list[str] = []
    while not SIZE.fits(text):
        # Split behind a line, unless that would leave a small part.
        end = text.rfind("\n", SIZE.most // 2, SIZE.most) + 1 or SIZE.most
        found.append(text[:end])
        text = text[end:]
    return [*found, text]


def comment(sent: Delivery) -> str:
    """Return the text of the comment."""
    return f"{sent.outgoing}\n\n{_mark(sent)}"


def is_comment_of(text: str, sent: Delivery) -> bool:
    """Return whether a comment is that of a delivery."""
    return text.rstrip().endswith(_mark(sent))


def _mark(sent: Delivery) -> str:
    return f"<!-- holdfast delivery {sent.id} -->"
