"""The `memory` tool: short facts about the person that outlive a conversation."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from holdfast.agent.tools.port import CallContext, StructTool
from holdfast.clock import Clock
from holdfast.core.effects import Effect
from holdfast.core.facts import FACT_MAX_CHARS, Memory, MemoryKind, objection
from holdfast.core.keys import LOCAL
from holdfast.core.legible import legible, one_line
from holdfast.core.recall import bounded
from holdfast.core.redaction import Redaction
from holdfast.core.segments import BUILTIN, failure
from holdfast.errors import Rejected
from holdfast.foreign_call import foreign_call
from holdfast.ids import MemoryId
from holdfast.ports import MemoryProvider
from holdfast.store.memories import MemoryStore

LISTED_MAX = 200
FOUND_MAX = 20
# A search may take longer than the automatic recall before a reply.
RECALL_MAX_S = 5.0
_ID_CHARS = 26


class MemoryArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    action: Annotated[Literal["add", "replace", "remove", "search", "list"], msgspec.Meta(description="What to do.")]
    text: Annotated[
        str,
        msgspec.Meta(
            description="The fact to add or to put in place of another, or the words to search for.",
            max_length=FACT_MAX_CHARS,
        ),
    ] = ""
    id: Annotated[str, msgspec.Meta(description="Which memory to replace or remove.", max_length=64)] = ""


def memory_tool(
    memories: MemoryStore, redaction: Redaction, clock: Clock, provider: MemoryProvider | None = None
) -> StructTool[MemoryArgs]:
    """Return the tool for the caller's memories.  A search also asks the provider."""
    shelf = _Shelf(memories, redaction, clock, provider if provider and provider.owner != BUILTIN else None)
    return StructTool(
        name="memory",
        description=(
            "Remember lasting facts about the person, such as preferences, one short fact each; change, remove, search and "
            "list them. Never store passwords or keys."
        ),
        args=MemoryArgs,
        effect=Effect.KEYED,
        action=shelf.run,
        reads_private=lambda args: args.action in ("search", "list"),
    )


class _Shelf:
    """The memories of the caller."""

    def __init__(self, memories: MemoryStore, redaction: Redaction, clock: Clock, provider: MemoryProvider | None) -> None:
        self._memories = memories
        self._redaction = redaction
        self._clock = clock
        self._provider = provider

    async def run(self, args: MemoryArgs, context: CallContext) -> str:
        owner = context.session.owner
        match args.action:
            case "add":
                return await self._add(self._fact(args), context)
            case "replace":
                after = await self._memories.replace(owner, _id(args), self._fact(args), self._clock.now_ms())
                await _show(after, context)
                return f"Replaced: {_shown(after)}"
            case "remove":
                removed = await self._memories.remove(owner, _id(args))
                return f"Removed {args.id}." if removed else f"There is no memory {args.id}; nothing was changed."
            case "search":
                return await self._search(args.text.strip(), context)
            case "list":
                return _listed(await self._memories.recent(owner, LISTED_MAX), LISTED_MAX)

    async def _add(self, fact: str, context: CallContext) -> str:
        now = self._clock.now_ms()
        memory = Memory(
            id=_memory_id(context.key),
            owner=context.session.owner,
            text=fact,
            created_at=now,
            updated_at=now,
            turn_id=context.turn.id,
        )
        kept = await self._memories.add(memory)
        if kept.id == memory.id:
            await _show(kept, context)
        return f"Remembered: {_shown(kept)}" if kept.id == memory.id else f"Known already: {_shown(kept)}"

    async def _search(self, text: str, context: CallContext) -> str:
        if not text:
            raise Rejected("say in text what to search for")
        kept = self._memories.search(context.session.owner, text, FOUND_MAX)
        if self._provider is None:
            return _listed(await kept, FOUND_MAX)
        # Concurrently, because the provider may be slow.
        found, recalled = await asyncio.gather(kept, self._recalled(self._provider, text, context))
        return "\n".join((_listed(found, FOUND_MAX), "", recalled))

    async def _recalled(self, provider: MemoryProvider, text: str, context: CallContext) -> str:
        # The provider's address is left out: it may be confidential.
        name = provider.owner.partition(":")[0]
        try:
            call = provider.recall(context.session, text, FOUND_MAX)
            found = bounded(await foreign_call(call, RECALL_MAX_S, f"search of {name}"), FOUND_MAX)
        except Exception as error:  # The edge to a provider: the stored memories are returned anyway.
            return f"{name} could not be asked ({self._why(error, context)}); there may be more."
        lines = [f"- {self._redaction.text(each.text)}" for each in found]
        return "\n".join((f"{name} recalls:", *lines)) if lines else f"{name} recalls nothing."

    def _why(self, error: Exception, context: CallContext) -> str:
        if isinstance(error, TimeoutError):
            return "no answer in time"
        if context.session.owner != LOCAL:
            # The error may name machines that only the operator may know.
            return "it does not answer as it should"
        return failure(error, self._redaction)

    def _fact(self, args: MemoryArgs) -> str:
        fact = legible(self._redaction.text(args.text))
        if not fact:
            raise Rejected("say in text what to remember")
        if reason := objection(fact):
            raise Rejected(reason)
        return fact


def _id(args: MemoryArgs) -> MemoryId:
    if not args.id:
        raise Rejected("say with id which memory; list them to see their ids")
    return MemoryId(args.id)


def _memory_id(key: str) -> MemoryId:
    """Return the id of a call's memory, which is the same when the call is repeated."""
    return MemoryId(f"mem_{hashlib.sha256(key.encode()).hexdigest()[:_ID_CHARS]}")


async def _show(memory: Memory, context: CallContext) -> None:
    """Tell the person what the agent has remembered about them, before another turn reads it."""
    await context.note(f"Remembered: {one_line(memory.text)} (`holdfast memory forget {memory.id}` takes it back.)")


def _shown(memory: Memory) -> str:
    return f"{memory.id}{' (profile)' * (memory.kind is MemoryKind.PROFILE)}: {one_line(memory.text)}"


def _listed(memories: Sequence[Memory], limit: int) -> str:
    more = ["[There may be more; search for it.]"] if len(memories) >= limit else []
    return "\n".join([*map(_shown, memories), *more]) or "Nothing is remembered about that."
