"""Where a call may send to: the conversation it is made from, and with a person's word anywhere else."""

from __future__ import annotations

from holdfast.agent.tools.port import Site
from holdfast.core.questions import APPROVAL_CHOICES, About, Question, fingerprint
from holdfast.core.turns import Mode
from holdfast.errors import Rejected

APPROVAL_EXPIRES_MS = 24 * 3_600_000
_SHOWN_CHARS = 500


def own_target(site: Site) -> str | None:
    """Return where this conversation is, if something can be sent there."""
    return site.turn.reply_to


def ask_for(site: Site, tool: str, target: str, text: str, wish: str, now_ms: int) -> Question:
    """Return the question whether something may go to a target that is not the conversation's own.

    What is allowed for longer is allowed for that target; what is allowed once, for that text.
    """
    if site.turn.mode is Mode.SYNCHRONOUS:
        raise Rejected(f"{target} is not this conversation, and nobody can be asked whether it may be used")
    once = fingerprint(tool=tool, target=target, text=text)
    return Question(
        id=f"approve:{site.call_id}:{once[:16]}",
        text=f"{wish} {target}?\n\n{text[:_SHOWN_CHARS]}{'…' if len(text) > _SHOWN_CHARS else ''}",
        about=About.APPROVAL,
        choices=APPROVAL_CHOICES,
        fingerprint=fingerprint(tool=tool, target=target),
        expires_at=now_ms + APPROVAL_EXPIRES_MS,
        detail={"target": target, "text": text},
    )
