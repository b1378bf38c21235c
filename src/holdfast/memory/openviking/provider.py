"""Memory in OpenViking: conversations are mirrored there turn by turn, and it extracts from them when they are over.

Each segment is a session there, named after both of ours.  So what should be in it is known to the last message: a commit
reads it back, adds what a lost note left out, and begins anew where a note came twice or late, or a turn was undone.  It
also tells an earlier commit that nobody heard the end of: a session is committed once, unless the extraction failed.

A commit there only begins an extraction.  It has succeeded for us when that has ended, because one that fails is tried
again by nobody but us.  If it takes longer than we wait, the next attempt finds it and only looks how it ended.

The operator is the user `default` of the account `default`, as for everybody who tells OpenViking nothing else, or whose
the key is.  Everybody else has an account of their own: in its mode `dev`, it would show them what other users of their
account have in memory.  A server that goes by the key alone would take all for one: their words never go there.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from holdfast.clock import Clock
from holdfast.core.facts import Recollection
from holdfast.core.keys import LOCAL
from holdfast.core.redaction import Redaction
from holdfast.core.segments import Segment, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.errors import Rejected, Unavailable
from holdfast.ids import SessionId
from holdfast.memory.address import Address
from holdfast.memory.exchange import Exchange
from holdfast.memory.openviking.client import BATCH_MAX, Held, Identity, Place, Spoken, Task, Viking
from holdfast.memory.provider import Provider

NAME = "openviking"
OPERATOR = Identity(account_id="default", user_id="default")
# In one request; a single message may be longer.
BATCH_MAX_CHARS = 500_000
QUERY_MAX_CHARS = 4_000
RECOLLECTION_MAX_CHARS = 4_000
ERROR_MAX_CHARS = 300
NAMED_MAX = 10
# How often a commit tries to have it right; notes on their way are few.
FILLS_MAX = 3
# Of the time that a commit may take, so that it can still be said what it waited for.
PATIENCE = 0.9
POLL_MIN_MS = 200
POLL_MAX_MS = 5_000
CHECK_QUERY = "Is anybody there?"
_SLUG_MAX_CHARS = 40
_BELIEVE_HEADERS = frozenset({"dev", "trusted"})
_COMPLETED = "completed"
_ENDED = frozenset({_COMPLETED, "failed", "cancelled"})
_MEMORY = re.compile(r"viking://user/(?P<user>[^/?#]+)/(?:[^/?#]+/)*memories/(?P<file>[^?#]*[^/?#])")


class OpenVikingProvider(Provider):
    """Remembers in an OpenViking server."""

    mirrors = True

    def __init__(self, address: Address, *, timeout_s: float, redaction: Redaction, clock: Clock) -> None:
        super().__init__(f"{NAME}:{address.url}")
        self._exchange = Exchange(address, timeout_s=timeout_s, redaction=redaction, clock=clock)
        self._viking = Viking(self._exchange)
        self._clock = clock
        self._patience_ms = timeout_s * 1_000 * PATIENCE
        self._closing = set[str]()

    async def note(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> None:
        place = _place(session, segment)
        context = await self._viking.context(place)
        if context is None:
            await self._begin(place)
        elif context.stats.total_archives:
            return
        there = Counter(each.mark for each in context.messages) if context else Counter[object]()
        missing = [each for each in map(_spoken, messages) if not there[each.mark]]
        # From now on, only the commit knows what is missing.
        if place.name in self._closing:
            return
        for batch in _batches(missing):
            await self._viking.add(place, batch)

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        if not messages:
            return "nothing was said"
        place = _place(session, segment)
        self._closing.add(place.name)
        try:
            return await self._commit(place, [_spoken(each) for each in messages])
        finally:
            self._closing.discard(place.name)

    async def recall(self, session: Session, query: str, limit: int) -> Sequence[Recollection]:
        if not (asked := query.strip()[:QUERY_MAX_CHARS]):
            return ()
        who = identity(session.owner)
        hits = await self._viking.find(who, asked, limit)
        if not all(_is_of(who, hit.uri) for hit in hits):
            raise self._mistaken()
        told = [(hit.uri, (hit.content or hit.abstract).strip()) for hit in hits[:limit]]
        return [Recollection(text=text[:RECOLLECTION_MAX_CHARS], id=uri) for uri, text in told if text]

    async def forget(self, person: str, *, memory_id: str | None = None, session_id: SessionId | None = None) -> int:
        """Forget; of a session, also its words.  Raises `Rejected` with what else holds something of it."""
        who = identity(person)
        if memory_id is not None:
            if not _is_memory(who, memory_id):
                raise Rejected(f"{memory_id!r} is no memory of theirs: give an id as a search for memories shows it")
            return await self._viking.remove(who, memory_id)
        return await self._forget_session(who, session_id) if session_id else 0

    async def check(self) -> str:
        health = await self._viking.health()
        began_ms = self._clock.monotonic_ms()
        await self._viking.find(OPERATOR, CHECK_QUERY, 1)
        took = f"OpenViking {health.version} at {self._exchange.url} recalls in {self._clock.monotonic_ms() - began_ms} ms"
        if health.auth_mode in _BELIEVE_HEADERS:
            return took
        return f"{took}; it goes by its key alone, so only what the operator says is remembered"

    async def close(self) -> None:
        await self._viking.close()

    async def _commit(self, place: Place, wanted: Sequence[Spoken]) -> str:
        until_ms = self._clock.monotonic_ms() + self._patience_ms
        if (receipt := await self._earlier(place, until_ms)) is not None:
            return receipt
        await self._fill(place, wanted)
        if (task_id := await self._viking.commit(place)) is None:
            raise Unavailable(f"{self._exchange.url} found nothing in {place.name}, to which everything had been added")
        task = await self._ended(place, await self._viking.task(place.who, task_id), until_ms)
        if task.status != _COMPLETED:
            told = self._exchange.masked(task.error or "it does not say why", ERROR_MAX_CHARS)
            raise Unavailable(f"{self._exchange.url} did not extract from {place.name}: {task.status}: {told}")
        return _receipt(task)

    async def _earlier(self, place: Place, until_ms: float) -> str | None:
        """Return what came of an earlier commit of a session; None where none was, or nothing came of it."""
        held = await self._viking.held(place)
        self._recognise(place, held)
        if held is None or not held.commit_count:
            return None
        task = await self._viking.latest(place)
        if task is not None:
            task = await self._ended(place, task, until_ms)
            if task.status == _COMPLETED:
                return _receipt(task)
        elif await self._viking.is_archived(place):
            return "extracted before"
        await self._viking.drop(place)
        return None

    async def _fill(self, place: Place, wanted: Sequence[Spoken]) -> None:
        """Make a session hold these messages, each once and in order."""
        for _ in range(FILLS_MAX):
            if await self._filled(place, wanted):
                return
        raise Unavailable(f"{self._exchange.url} holds something else in {place.name} each time that it is looked at")

    async def _filled(self, place: Place, wanted: Sequence[Spoken]) -> bool:
        """Add what is missing, or begin anew; returns False where a note that was on its way came in between."""
        context = await self._viking.context(place)
        there = [each.mark for each in context.messages] if context else []
        if context is None or there != [each.mark for each in wanted[: len(there)]]:
            if context is not None:
                await self._viking.drop(place)
            await self._begin(place)
            there = []
        held = len(there)
        for batch in _batches(wanted[held:]):
            held += len(batch)
            if await self._viking.add(place, batch) != held:
                return False
        return True

    async def _begin(self, place: Place) -> None:
        held = await self._viking.create(place)
        try:
            self._recognise(place, held)
        except Rejected:
            await self._viking.drop(place)
            raise

    async def _ended(self, place: Place, task: Task, until_ms: float) -> Task:
        """Return a task once it has ended.  Raises `Unavailable` where that takes too long."""
        nap_ms = POLL_MIN_MS
        while task.status not in _ENDED:
            if self._clock.monotonic_ms() + nap_ms > until_ms:
                raise Unavailable(f"{self._exchange.url} is still extracting from {place.name}; it is asked again later")
            await self._clock.sleep_ms(nap_ms)
            nap_ms = min(2 * nap_ms, POLL_MAX_MS)
            task = await self._viking.task(place.who, task.task_id)
        return task

    async def _forget_session(self, who: Identity, session_id: SessionId) -> int:
        begun = _name(session_id, "")
        places = [Place(who=who, name=name) for name in await self._viking.names(who) if name.startswith(begun)]
        changes = [(await self._viking.changes(place)).operations for place in places]
        added = {each.uri for change in changes for each in change.adds if _is_memory(who, each.uri)}
        forgotten = sum([await self._viking.remove(who, uri) for uri in sorted(added)])
        # Last, because they say what there is to forget.
        for place in places:
            await self._viking.drop(place)
        changed = sorted({each.uri for change in changes for each in change.updates} - added)
        if changed := [uri for uri in changed if await self._viking.exists(who, uri)]:
            raise Rejected(
                f"{forgotten} memories of that conversation are forgotten, and its words; {len(changed)} from before were "
                f"changed by it: {', '.join(changed[:NAMED_MAX])}; look at these, and forget them by their ids"
            )
        return forgotten

    def _recognise(self, place: Place, held: Held | None) -> None:
        """Raise `Rejected` where the server takes somebody for somebody else."""
        if held is not None and place.who != OPERATOR and held.user != place.who:
            raise self._mistaken()

    def _mistaken(self) -> Rejected:
        return Rejected(
            f"{self._exchange.url} goes by its key alone and takes everybody for one person, so only the operator is "
            'remembered there; set server.auth_mode = "trusted" in its ov.conf, and memory.api_key to its root_api_key'
        )


def identity(person: str) -> Identity:
    """Return who somebody is in OpenViking: two persons are never the same, however they are spelt."""
    if person == LOCAL:
        return OPERATOR
    slug = re.sub(r"[^a-z0-9]+", "-", person.lower())[:_SLUG_MAX_CHARS].strip("-")
    name = f"holdfast-{slug}-{hashlib.sha256(person.encode()).hexdigest()[:32]}"
    return Identity(account_id=name, user_id=name)


def _place(session: Session, segment: Segment) -> Place:
    return Place(who=identity(session.owner), name=_name(segment.session_id, segment.id))


def _name(session_id: str, segment_id: str) -> str:
    return f"holdfast-{session_id}-{segment_id}"


def _is_of(who: Identity, uri: str) -> bool:
    """Return whether a memory is somebody's; whose the operator's are, only the server knows that has the key."""
    return who == OPERATOR or uri.startswith(f"viking://user/{who.user_id}/")


def _is_memory(who: Identity, uri: str) -> bool:
    """Return whether a URI names a memory of somebody, and not a document, a conversation, or another's."""
    found = _MEMORY.fullmatch(uri)
    return found is not None and ".." not in uri.split("/") and _is_of(who, uri)


def _spoken(message: SpokenMessage) -> Spoken:
    at = datetime.fromtimestamp(message.at / 1_000, UTC).isoformat(timespec="milliseconds")
    return Spoken(role=message.role, content=message.text, turn_id=message.turn_id, created_at=at)


def _batches(messages: Sequence[Spoken]) -> Iterator[Sequence[Spoken]]:
    batch: list[Spoken] = []
    for message in messages:
        if len(batch) == BATCH_MAX or (batch and sum(len(each.content) for each in [*batch, message]) > BATCH_MAX_CHARS):
            yield batch
            batch = []
        batch.append(message)
    if batch:
        yield batch


def _receipt(task: Task) -> str:
    counts = task.result.memories_extracted.values() if task.result else ()
    count = sum(each for each in counts if isinstance(each, int))
    return f"{count} {'memory' if count == 1 else 'memories'} extracted"
