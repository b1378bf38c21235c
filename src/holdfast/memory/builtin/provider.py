"""The builtin provider: what is worth remembering is extracted when a conversation is over, and kept in the store."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from holdfast.agent.budget import used_up
from holdfast.clock import Clock
from holdfast.core.facts import Memory, MemoryChanges, MemoryKind, Recollection
from holdfast.core.keys import LOCAL
from holdfast.core.redaction import Redaction
from holdfast.core.segments import BUILTIN, Segment, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.core.transcript import Role
from holdfast.core.trust import UNTRUSTED
from holdfast.core.usage import Limit, Scope, Usage, question_id
from holdfast.errors import ContextTooLong, Rejected, Unavailable
from holdfast.ids import MemoryId, SegmentId, SessionId, TurnId
from holdfast.memory.builtin.draft import Draft, remembered
from holdfast.memory.builtin.extraction import Extractor, TookTooLong, Unusable, halves, spoken
from holdfast.memory.provider import Provider
from holdfast.store.store import Store

# What is known about the person that a talk is looked through with.
RECENT_MAX = 40
RECALLED_MAX = 40
QUERY_MAX_CHARS = 8_000
# After so many commits that failed, what a model cannot make anything of is passed over, and the receipt says so.
ATTEMPTS_MAX = 3
# Talks that were looked through in part when a commit failed: the next one goes on where that stopped.
BEGUN_MAX = 100
# A model that hangs is no slow one: parts are halved only so often.
SLOWED_MAX = 3
_DAY_MS = 86_400_000
_CALLS_PER_MS = 1_000


class Builtin(Provider):
    """Remembers in the store itself.  `limits` are what may be spent on it before the operator has said to go on."""

    def __init__(
        self,
        store: Store,
        extractor: Extractor,
        *,
        limits: Sequence[Limit] = (),
        redaction: Redaction | None = None,
        clock: Clock,
    ) -> None:
        super().__init__(BUILTIN)
        self._store = store
        self._extractor = extractor
        self._day = [limit for limit in limits if limit.scope is Scope.DAY]
        self._redaction = redaction or Redaction()
        self._clock = clock
        self._begun: dict[SegmentId, _Reading] = {}
        # Every call counts, also those of a commit that is made again: so its number is one that no other has had.
        self._calls = count(clock.now_ms() * _CALLS_PER_MS)

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        memories = self._store.memories
        if (receipt := await memories.absorbed(segment.id)) is not None:
            return receipt
        talk = [self._masked(each) for each in spoken(messages)] if _is_talk(session) else []
        changes = await self._extracted(session, segment, talk) if talk else MemoryChanges()
        receipt = await memories.absorb(session.owner, segment.id, changes, self._clock.now_ms())
        self._begun.pop(segment.id, None)
        return receipt

    async def recall(self, session: Session, query: str, limit: int) -> Sequence[Recollection]:
        found = await self._store.memories.recall(session.owner, query, limit)
        return [Recollection(text=each.text, id=each.id, turn_id=each.turn_id) for each in found]

    async def forget(self, person: str, *, memory_id: str | None = None, session_id: SessionId | None = None) -> int:
        if memory_id is None and session_id is None:
            raise Rejected("say which memory to forget, or of which session")
        ids = [MemoryId(memory_id)] if memory_id is not None else []
        if session_id is not None:
            ids += [each.id for each in await self._store.memories.of_session(person, session_id)]
        changed = await self._store.memories.change(person, MemoryChanges(removed=ids), self._clock.now_ms())
        return changed.removed

    async def check(self) -> str:
        facts = (await self._store.memories.tally(LOCAL)).get(MemoryKind.FACT, 0)
        return f"{facts:,} {'fact is' if facts == 1 else 'facts are'} known about you; extracted by {self._extractor.name}"

    async def _extracted(self, session: Session, segment: Segment, talk: Sequence[SpokenMessage]) -> MemoryChanges:
        reading = await self._reading(session.owner, segment.id, talk)
        purse = _Purse(self._store, session, talk[-1].turn_id, self._day, self._calls, self._clock)
        while reading.parts:
            await purse.open()
            await self._read(reading, segment, purse)
        return reading.draft.changes(*reading.remarks)

    async def _reading(self, owner: str, segment_id: SegmentId, talk: Sequence[SpokenMessage]) -> _Reading:
        """Return how far a talk was looked through before, unless some of it was undone since."""
        reading = self._begun.get(segment_id)
        if reading is None or reading.talk != talk:
            draft = Draft(owner, segment_id, await self._known(owner, talk))
            reading = self._begun[segment_id] = _Reading(talk, draft, self._extractor.parts(talk))
            while len(self._begun) > BEGUN_MAX:
                del self._begun[next(iter(self._begun))]
        return reading

    async def _read(self, reading: _Reading, segment: Segment, purse: _Purse) -> None:
        """Look through the next part, or make smaller ones of it."""
        try:
            try:
                found = await self._extractor.extract(reading.parts[0], reading.draft.known, purse.spend)
            except ContextTooLong:
                reading.halve()
                return
        except Unusable:
            if segment.attempt < ATTEMPTS_MAX:
                raise
            reading.passed_over += 1
        except TookTooLong:
            reading.slow_down()
            raise
        else:
            reading.draft.take(found, self._clock.now_ms())
            reading.looked_through += 1
        reading.parts.popleft()

    def _masked(self, message: SpokenMessage) -> SpokenMessage:
        # What is a secret now may have been none when it was written.
        return replace(message, text=self._redaction.text(message.text))

    async def _known(self, owner: str, talk: Sequence[SpokenMessage]) -> list[Memory]:
        memories = self._store.memories
        said = " ".join(each.text for each in talk if each.role is Role.USER)[:QUERY_MAX_CHARS]
        recent = await memories.recent(owner, RECENT_MAX)
        recalled = await memories.recall(owner, said, RECALLED_MAX)
        return list(remembered(recent, recalled).values())


def _is_talk(session: Session) -> bool:
    """Return whether a session is a conversation with a person: neither a stranger's nor a one-shot session."""
    return session.channel not in UNTRUSTED and not session.one_shot


class _Reading:
    """How far a talk has been looked through, and what was found."""

    def __init__(self, talk: Sequence[SpokenMessage], draft: Draft, parts: Sequence[Sequence[SpokenMessage]]) -> None:
        self.talk = talk
        self.draft = draft
        self.parts = deque(parts)
        self.looked_through = 0
        self.passed_over = 0
        self._slowed = 0

    def halve(self) -> None:
        """Make smaller parts of the next one.  Raises `Unusable` where it is as small as can be."""
        smaller = halves(self.parts[0])
        self.parts.popleft()
        self.parts.extendleft(reversed(smaller))

    def slow_down(self) -> None:
        """Look through less at a time: else what takes too long once would take too long for ever."""
        if self._slowed < SLOWED_MAX:
            self._slowed += 1
            self.parts = deque(smaller for part in self.parts for smaller in _smaller(part))

    @property
    def remarks(self) -> list[str]:
        if not self.passed_over:
            return []
        parts = f" for {self.passed_over} of {self.passed_over + self.looked_through} parts" if self.looked_through else ""
        return [f"the model gave nothing usable{parts}"]


def _smaller(part: Sequence[SpokenMessage]) -> Sequence[Sequence[SpokenMessage]]:
    try:
        return halves(part)
    except Unusable:
        return [part]


class _Purse:
    """What a commit may spend, and what it has spent."""

    def __init__(
        self, store: Store, session: Session, turn_id: TurnId, day: Sequence[Limit], calls: Iterator[int], clock: Clock
    ) -> None:
        self._store = store
        self._session = session
        self._turn_id = turn_id
        self._day = day
        self._clock = clock
        self._calls = calls

    async def open(self) -> None:
        """Raise `Unavailable` when the day's budget is used up, and the operator has not said to go on."""
        if not self._day:
            return
        now = self._clock.now_ms()
        turn = await self._store.turns.get(self._turn_id)
        spent = await self._store.spending.spent(turn, self._session.owner, now - now % _DAY_MS)
        for limit in self._day:
            times = limit.times_passed(spent)
            if times and question_id(limit.scope, times) not in spent.allowed:
                raise Unavailable(f"{used_up(limit, spent)}; what was said is kept, and looked through when there is more")

    async def spend(self, used: Usage) -> None:
        number, now = next(self._calls), self._clock.now_ms()
        await self._store.spending.extra(self._session, self._turn_id, number, used, now)  # noqa: S610 - No SQL of Django's.
