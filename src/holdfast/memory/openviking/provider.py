"""Memory in OpenViking: conversations are mirrored there turn by turn, and it extracts memories when they are over.

Each segment is a session there, named after the session and the segment here, so its exact contents are known.  A commit
reads the session back, adds messages that a lost note left out, and starts over if a note arrived twice or late, or if
a turn was undone.  A session is committed once, unless the extraction failed, so an earlier commit with an unknown end is
found.

A commit there only starts an extraction.  It counts as a success when the extraction has ended, because OpenViking does not
retry a failed one.  If the extraction takes longer than the timeout, the next attempt finds it and waits for its end.

The operator is the user `default` of the account `default`, which is also OpenViking's default and the owner of the key.
Every other person has an account of their own, because in its mode `dev` users of one account see each other's memories.  A
server that only looks at the key would mix all persons up, so the words of other persons are never sent there.
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
from holdfast.memory.openviking.client import BATCH_MAX, Held, Identity, Place, Task, Viking, VikingMessage
from holdfast.memory.provider import Provider

NAME = "openviking"
OPERATOR = Identity(account_id="default", user_id="default")
# The limit of one request; a single message may be longer.
BATCH_MAX_CHARS = 500_000
QUERY_MAX_CHARS = 4_000
RECOLLECTION_MAX_CHARS = 4_000
ERROR_MAX_CHARS = 300
NAMED_MAX = 10
# How often a commit tries to fill a session while notes are still arriving.
FILLS_MAX = 3
# The share of a commit's timeout to wait for the extraction, so that the error can say what it waited for.
WAIT_SHARE = 0.9
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
        self._wait_max_ms = timeout_s * 1_000 * WAIT_SHARE
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
        # A commit has begun, which adds the missing messages itself.
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
        """Forget a memory, or a session with its messages.  Raises `Rejected`, naming memories that it has changed."""
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

    async def _commit(self, place: Place, wanted: Sequence[VikingMessage]) -> str:
        until_ms = self._clock.monotonic_ms() + self._wait_max_ms
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
        """Return the receipt of an earlier commit of a session; None if there was none or it failed."""
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

    async def _fill(self, place: Place, wanted: Sequence[VikingMessage]) -> None:
        """Make a session hold these messages, each once and in order."""
        for _ in range(FILLS_MAX):
            if await self._filled(place, wanted):
                return
        raise Unavailable(f"{self._exchange.url} holds something else in {place.name} each time that it is looked at")

    async def _filled(self, place: Place, wanted: Sequence[VikingMessage]) -> bool:
        """Add missing messages, or start over.  Return False if a note arrived in between."""
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
        """Return a task once it has ended.  Raises `Unavailable` if that takes too long."""
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
        # Last, because the sessions say what to forget.
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
        """Raise `Rejected` if the server assigns the session to another user."""
        if held is not None and place.who != OPERATOR and held.user != place.who:
            raise self._mistaken()

    def _mistaken(self) -> Rejected:
        return Rejected(
            f"{self._exchange.url} goes by its key alone and takes everybody for one person, so only the operator is "
            'remembered there; set server.auth_mode = "trusted" in its ov.conf, and memory.api_key to its root_api_key'
        )


def identity(person: str) -> Identity:
    """Return the user of a person in OpenViking, which is different for every person."""
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
    """Return whether a memory belongs to a user; for the operator, only the server knows."""
    return who == OPERATOR or uri.startswith(f"viking://user/{who.user_id}/")


def _is_memory(who: Identity, uri: str) -> bool:
    """Return whether a URI names a memory of this user, and not a document or a conversation."""
    found = _MEMORY.fullmatch(uri)
    return found is not None and ".." not in uri.split("/") and _is_of(who, uri)


def _spoken(message: SpokenMessage) -> VikingMessage:
    at = datetime.fromtimestamp(message.at / 1_000, UTC).isoformat(timespec="milliseconds")
    return VikingMessage(role=message.role, content=message.text, turn_id=message.turn_id, created_at=at)


def _batches(messages: Sequence[VikingMessage]) -> Iterator[Sequence[VikingMessage]]:
    batch: list[VikingMessage] = []
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
