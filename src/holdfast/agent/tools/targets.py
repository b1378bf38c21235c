"""The targets that a call may send to: its own conversation, and others with a person's approval."""

from __future__ import annotations

from holdfast.agent.tools.port import CallContext
from holdfast.core.questions import APPROVAL_CHOICES, About, Question, fingerprint
from holdfast.core.turns import Mode
from holdfast.errors import Rejected

APPROVAL_EXPIRES_MS = 24 * 3_600_000
_SHOWN_CHARS = 500


def own_target(context: CallContext) -> str | None:
    """Return the target of this conversation, if it has one."""
    return context.turn.reply_to


def ask_for(context: CallContext, tool: str, target: str, text: str, wish: str, now_ms: int) -> Question:
    """Return the question whether something may be sent to another target than the conversation's own.

    An approval for once is for this text; a longer one is for the target.
    """
    if context.turn.mode is Mode.SYNCHRONOUS:
        raise Rejected(f"{target} is not this conversation, and nobody can be asked whether it may be used")
    once = fingerprint(tool=tool, target=target, text=text)
    return Question(
        id=f"approve:{context.call_id}:{once[:16]}",
        text=f"{wish} {target}?\n\n{text[:_SHOWN_CHARS]}{'…' if len(text) > _SHOWN_CHARS else ''}",
        about=About.APPROVAL,
        choices=APPROVAL_CHOICES,
        fingerprint=fingerprint(tool=tool, target=target),
        expires_at=now_ms + APPROVAL_EXPIRES_MS,
        detail={"target": target, "text": text},
    )
