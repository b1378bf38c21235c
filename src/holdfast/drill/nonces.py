"""The questions and answers of a drill: each question has a nonce, and its answer is six words that contain the nonce."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NONCE = re.compile(r"\bn\d+x\d+\b")


def nonces_in(text: str) -> Sequence[str]:
    """Return the nonces of a message, or of several that were joined."""
    return _NONCE.findall(text)


def words_for(nonce: str) -> Sequence[str]:
    """Return the words that answer a nonce."""
    return [f"{nonce}-{number} " for number in range(6)]
