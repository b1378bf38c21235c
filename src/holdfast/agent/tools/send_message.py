"""The `send_message` tool: sends through the outbox, so that a message arrives once, even if the gateway restarts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from holdfast.agent.tools.port import CallContext, StructTool
from holdfast.agent.tools.targets import FindSession, aside, ask_for, check_owner, own_target, target_of
from holdfast.clock import Clock
from holdfast.core.effects import Effect
from holdfast.core.questions import Question
from holdfast.core.redaction import Redaction
from holdfast.errors import Rejected
from holdfast.ports import Carrier
from holdfast.store.deliveries import DeliveryStore
from holdfast.targets import Targets

NAME = "send_message"
TEXT_MAX_CHARS = 20_000
PARTS_MAX = 20


class SendMessageArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, msgspec.Meta(description="What to send.", min_length=1, max_length=TEXT_MAX_CHARS)]
    target: Annotated[
        str,
        msgspec.Meta(description="Where to, as channel:address. Without it, to this conversation.", max_length=500),
    ] = ""


def send_message_tool(
    deliveries: DeliveryStore, find: FindSession, carriers: Mapping[str, Carrier], redaction: Redaction, clock: Clock
) -> StructTool[SendMessageArgs]:
    """Return the tool that sends through the outbox."""
    targets = Targets(carriers)

    async def ask(args: SendMessageArgs, context: CallContext) -> Question | None:
        target = target_of(args.target, context, targets)
        await check_owner(context, target, targets.find(target), find)
        if target == own_target(context):
            return None
        return ask_for(context, NAME, target, args.text, "May I send this to", clock.now_ms())

    async def send(args: SendMessageArgs, context: CallContext) -> str:
        target = target_of(args.target, context, targets)
        parts = _parts(targets.find(target), redaction.text(args.text))
        now = clock.now_ms()
        sent = [await deliveries.enqueue(aside(context, number, target, part, now)) for number, part in enumerate(parts, 1)]
        count = f" in {len(sent)} parts" if len(sent) > 1 else ""
        return f"In the outbox for {target}{count} ({', '.join(each.id for each in sent)}); it leaves as soon as it can."

    return StructTool(
        name=NAME,
        description=(
            "Send a message now, before your answer: to this conversation, or to another target, for which the person is "
            f"asked first. Your answer itself is sent anyway. Of targets: {targets.named()}."
        ),
        args=SendMessageArgs,
        effect=Effect.KEYED,
        action=send,
        asks=ask,
        reads_private=False,
    )


def _parts(carrier: Carrier, text: str) -> Sequence[str]:
    parts = carrier.split(text)
    if len(parts) > PARTS_MAX:
        raise Rejected(f"the text makes {len(parts)} messages there; {PARTS_MAX} are allowed, so shorten it")
    return parts
