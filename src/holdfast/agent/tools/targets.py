"""The targets that a call may send to: its own conversation, and others with a person's approval."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdfast.agent.tools.port import CallContext
from holdfast.core.delivery import ASIDE_FIRST, NO_EXTRA, Delivery, Extra, delivery_id
from holdfast.core.keys import LOCAL
from holdfast.core.questions import APPROVAL_CHOICES, About, Question, fingerprint
from holdfast.core.sessions import Session
from holdfast.core.turns import Mode
from holdfast.errors import Rejected
from holdfast.ports import Carrier
from holdfast.targets import Targets

APPROVAL_EXPIRES_MS = 24 * 3_600_000
_SHOWN_CHARS = 500


def target_of(named: str, context: CallContext, targets: Targets) -> str:
    """Return the target of a call: the one that it names, or its conversation.  Raises `Rejected` where there is none."""
    if target := named.strip() or own_target(context):
        return target
    raise Rejected(
        f"this conversation has no address to send to: say it in your answer, or name a target; {targets.named()}"
    )


def own_target(context: CallContext) -> str | None:
    """Return the target of this conversation, if it has one."""
    return context.turn.reply_to


def aside(context: CallContext, number: int, target: str, text: str, now_ms: int, extra: Extra = NO_EXTRA) -> Delivery:
    """Return the `number`-th message that a call sends.  A repeated call makes the same ones."""
    return Delivery(
        id=delivery_id(context.key, number),
        turn_id=context.turn.id,
        session_id=context.session.id,
        target=target,
        # The outbox numbers it behind what the turn has sent before.
        part=ASIDE_FIRST,
        text=text,
        created_at=now_ms,
        due_at=now_ms,
        extra=extra,
    )


# Finds the open session of an owner by its key.
FindSession = Callable[[str, str], Awaitable[Session | None]]


async def check_owner(context: CallContext, target: str, carrier: Carrier, find: FindSession) -> None:
    """Refuse a chat that is not the person's own.  Only turns of the operator send to the chats of others."""
    owner = context.session.owner
    if target == own_target(context) or owner == LOCAL or not carrier.in_line:
        return
    if await find(owner, target) is None:
        raise Rejected(f"{target} is not a chat of {owner}, and only the operator sends to the chats of others")


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
