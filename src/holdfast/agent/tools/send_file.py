"""The `send_file` tool: sends a file of the workspace through the outbox, as it is at the time of the call."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated

import msgspec

from holdfast.agent.tools.files import content_of
from holdfast.agent.tools.port import CallContext, StructTool
from holdfast.agent.tools.targets import FindSession, aside, ask_for, check_owner, own_target, target_of
from holdfast.agent.tools.workspace import Workspace, in_thread
from holdfast.clock import Clock
from holdfast.core import images
from holdfast.core.delivery import Extra, KeptFile, delivery_id
from holdfast.core.effects import Effect
from holdfast.core.questions import Question
from holdfast.core.redaction import Redaction
from holdfast.errors import NotFound, Rejected
from holdfast.ports import Carrier
from holdfast.store.deliveries import DeliveryStore
from holdfast.store.showing import KeptFileStore, kept_id
from holdfast.targets import Targets

NAME = "send_file"
# It is kept in the store until it has arrived.
FILE_MAX_BYTES = 20 * 1024 * 1024
TEXT_MAX_CHARS = 1_000
# Every platform takes so much with a file, in its own unit, and with the label of a repeat before it.
CAPTION_MAX_CHARS = 500
SEND_LESS = "send a part of it, or compress it"
ANY_TYPE = "application/octet-stream"


class SendFileArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: Annotated[str, msgspec.Meta(description="The file, relative to the workspace.", min_length=1)]
    text: Annotated[str, msgspec.Meta(description="What to say with it.", max_length=TEXT_MAX_CHARS)] = ""
    target: Annotated[
        str,
        msgspec.Meta(description="Where to, as channel:address. Without it, to this conversation.", max_length=500),
    ] = ""


def send_file_tool(
    workspace: Workspace,
    deliveries: DeliveryStore,
    files: KeptFileStore,
    find: FindSession,
    carriers: Mapping[str, Carrier],
    redaction: Redaction,
    clock: Clock,
    bytes_max: int = FILE_MAX_BYTES,
) -> StructTool[SendFileArgs]:
    """Return the tool that sends files."""
    takes_files = {name: carrier for name, carrier in carriers.items() if carrier.takes_files}
    targets = Targets(carriers)

    def carrier_of(target: str, context: CallContext) -> Carrier:
        if not context.delivers_later:
            raise Rejected("nothing but the answer reaches the person of this turn; say in it where the file is")
        carrier = targets.find(target)
        if not carrier.takes_files:
            raise Rejected(f"{target} takes no files; {Targets(takes_files).named()}")
        return carrier

    async def ask(args: SendFileArgs, context: CallContext) -> Question | None:
        target = target_of(args.target, context, targets)
        await check_owner(context, target, carrier_of(target, context), find)
        if target == own_target(context):
            return None
        # What is approved is this content: if it changes before it is sent, the person is asked again.
        file = _described(args.path, await read(args.path))
        shown = f"{args.path} ({file.bytes} bytes, SHA-256 {file.id})\n\n{args.text}".strip()
        return ask_for(context, NAME, target, shown, "May I send this file to", clock.now_ms())

    async def send(args: SendFileArgs, context: CallContext) -> str:
        target, number = target_of(args.target, context, targets), delivery_id(context.key, 1)
        carrier = carrier_of(target, context)
        try:
            # The file may have changed since a call that was cut off.
            sent = await deliveries.get(number)
        except NotFound:
            now = clock.now_ms()
            extra = Extra(file=await keep(args.path, now))
            text = redaction.text(args.text)
            before = () if len(text) <= CAPTION_MAX_CHARS else carrier.split(text)
            for place, part in enumerate(before, 2):
                await deliveries.enqueue(aside(context, place, target, part, now))
            sent = await deliveries.enqueue(aside(context, 1, target, "" if before else text, now, extra))
        size = sent.extra.file.bytes if sent.extra.file else 0
        return f"In the outbox for {target}: {args.path}, {size} bytes ({sent.id}); it leaves as soon as it can."

    async def keep(named: str, now_ms: int) -> KeptFile:
        """Keep the file as it is now, so that a later change does not change what is sent."""
        content = await read(named)
        await files.keep(content, now_ms)
        return _described(named, content)

    async def read(named: str) -> bytes:
        def content() -> bytes:
            return content_of(workspace, workspace.resolve(named), named, bytes_max, SEND_LESS)

        if found := await in_thread(content):
            return found
        raise Rejected(f"{named!r} is empty, and such a file cannot be sent")

    return StructTool(
        name=NAME,
        description=(
            "Send a file of the workspace, as it is now: to this conversation, or to another target, for which the person "
            f"is asked first. Of targets: {Targets(takes_files).named()}."
        ),
        args=SendFileArgs,
        effect=Effect.KEYED,
        action=send,
        asks=ask,
        reads_private=False,
    )


def _described(path: str, content: bytes) -> KeptFile:
    name = PurePosixPath(path).name
    kind = images.media_type(content) or mimetypes.guess_type(name)[0] or ANY_TYPE
    return KeptFile(id=kept_id(content), name=name, media_type=kind, bytes=len(content))
