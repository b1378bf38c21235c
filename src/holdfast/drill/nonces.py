"""What is asked in a drill, and what is answered: each question has a nonce, and the answer is six words with it."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NONCE = re.compile(r"\bn\d+x\d+\b")


def nonces_in(text: str) -> Sequence[str]:
    """Return the nonces of a message, or of several that were joined."""
    return _NONCE.findall(text)


def words_for(nonce: str) -> Sequence[str]:
    """Return what a nonce is answered with."""
    return [f"{nonce}-{number} " for number in range(6)]
