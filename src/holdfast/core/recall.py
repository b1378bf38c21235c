"""Recall: who is reminded of anything, and how much of what a provider says of it is taken."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from holdfast.core import commands
from holdfast.core.facts import Recollection, folded
from holdfast.core.legible import one_line
from holdfast.core.notes import is_note
from holdfast.core.sessions import Session
from holdfast.core.trust import Trust, trust_in
from holdfast.core.turns import Turn

# What is looked for: the beginning of a very long message says what it is about.
QUERY_MAX_CHARS = 2_000
# Limits on what a provider sends: how many recollections, how long each one is, and how long all of them are.
RECALLED_MAX = 50
RECALLED_EACH_MAX_CHARS = 1_000
RECALLED_MAX_CHARS = 6_000
ID_MAX_CHARS = 200


def reminds(session: Session, turn: Turn) -> bool:
    """Return whether memory has anything to say to a turn: not to strangers, and not where nothing is thought about.

    A session of one turn is work that was given with everything it needs.
    """
    return not session.one_shot and not turn.verbatim and trust_in(session) is not Trust.STRANGER


def query(text: str) -> str:
    """Return what to look for; nothing for a message that says nothing, or that no person wrote."""
    return "" if commands.is_compress(text) or is_note(text) else one_line(text[:QUERY_MAX_CHARS])


def bounded(found: Iterable[Recollection], limit: int) -> list[Recollection]:
    """Return as much of what was found as is taken: each once, on one line, the best first.

    Raises `TypeError` for what is no recollection.
    """
    kept: dict[str, Recollection] = {}
    room = RECALLED_MAX_CHARS
    for each in islice(found, min(limit, RECALLED_MAX)):
        text = _text(each)
        if len(text) > room:
            break
        if text and (same := folded(text)) not in kept:
            kept[same] = Recollection(text=text, id=_id(each.id), turn_id=each.turn_id)
            room -= len(text)
    return list(kept.values())


def _id(found: object) -> str | None:
    """Return the id by which a recollection can be forgotten; None for an id that cannot be typed."""
    return found if isinstance(found, str) and found.isprintable() and len(found) <= ID_MAX_CHARS else None


def _text(found: object) -> str:
    # A plugin may return something else than its signature says.
    if not isinstance(found, Recollection) or not isinstance(found.text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - See above.
        raise TypeError(f"it recalled a {type(found).__name__}, which is no recollection")
    if len(found.text) <= RECALLED_EACH_MAX_CHARS:
        return one_line(found.text)
    return one_line(found.text[: RECALLED_EACH_MAX_CHARS - 1]) + "…"
