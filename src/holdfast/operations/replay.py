"""Replay: what was paid once is given to one more provider.  It changes no debt."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.clock import Clock
from holdfast.core.redaction import Redaction
from holdfast.core.segments import NOTHING_SAID, Segment, failure, messages, receipt
from holdfast.errors import Rejected
from holdfast.foreign_call import foreign_call
from holdfast.ids import SegmentId, SessionId
from holdfast.memory.address import owner_of

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.ports import Bindings, MemoryProvider
    from holdfast.store.store import Store

# Providers that are identified by their address.
_ELSEWHERE = frozenset({"http", "openviking"})
# Longer than any provider should need for one segment.
SEGMENT_MAX_S = 600
# After this time no other segment is begun, so that the caller sees progress.
CALL_MAX_MS = 1_000
# After so many failures in a row, the next one would fail as well.
FAILED_IN_A_ROW_MAX = 5
# Segments that one call replays, and those that it leaves out.
REPLAYED_MAX = 100
SKIPPED_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaying:
    """Segments that were paid once, to be given to one more provider, `limit` at a time; with 0 they are only counted.

    Those to `skip` have failed before.  `person` is their owner; without it, it is the caller.
    """

    provider: str
    url: str = ""
    limit: int = 20
    skip: tuple[SegmentId, ...] = ()
    person: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.limit <= REPLAYED_MAX:
            raise Rejected(f"limit must be between 0 and {REPLAYED_MAX}")
        if len(self.skip) > SKIPPED_MAX:
            raise Rejected(f"{SKIPPED_MAX} segments can be skipped at most; find out first why they fail")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A segment that could not be replayed, and why."""

    segment_id: SegmentId
    session_id: SessionId
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """How far a replay has come: what this call did, and what is left."""

    provider: str
    replayed: int
    failed: int
    left: int
    failures: Sequence[Failure] = ()


def chosen(bindings: Bindings | None, name: str, url: str = "") -> MemoryProvider:
    """Return the provider of a name and, where it has one, an address.  Raises `Rejected` for an unknown one."""
    current = bindings.current if bindings else None
    if current is not None and not url and current.owner.partition(":")[0] == name:
        return current
    if name in _ELSEWHERE and not url:
        raise Rejected(
            f"{name} needs its url, like --url http://127.0.0.1:9300; memory.url is that of another provider, or not set"
        )
    try:
        found = bindings.of(owner_of(name, url)) if bindings and name else None
    except ValueError as error:
        raise Rejected("a url begins with http:// or https://, and names a host") from error
    if found is None:
        hint = "name builtin, http or openviking with its url, or a plugin that is installed and set as memory.provider"
        raise Rejected(f"there is no memory provider {name!r} here that could be given anything; {hint}")
    return found


@dataclass(frozen=True, slots=True)
class Replay:
    """Gives one provider everything that a person's conversations have paid before."""

    store: Store
    person: str
    provider: MemoryProvider
    clock: Clock
    redaction: Redaction

    async def go_on(self, limit: int, skip: Collection[SegmentId] = ()) -> Replayed:
        """Replay some of what is left, the oldest first."""
        replayed, failures, in_a_row = 0, list[Failure](), 0
        began_ms = self.clock.monotonic_ms()
        for segment in await self._next(limit, skip):
            if in_a_row == FAILED_IN_A_ROW_MAX or self.clock.monotonic_ms() - began_ms > CALL_MAX_MS:
                break
            failure = await self._replay(segment)
            if failure is None:
                replayed, in_a_row = replayed + 1, 0
            else:
                failures.append(failure)
                in_a_row += 1
        left = await self.store.segments.left_to_replay(self.person, self.provider.owner)
        return Replayed(provider=self.provider.owner, replayed=replayed, failed=len(failures), left=left, failures=failures)

    async def _next(self, limit: int, skip: Collection[SegmentId]) -> list[Segment]:
        if not limit:
            return []
        found = await self.store.segments.to_replay(self.person, self.provider.owner, limit + len(skip))
        return [each for each in found if each.id not in skip][:limit]

    async def _replay(self, segment: Segment) -> Failure | None:
        try:
            said = await foreign_call(self._given(segment), SEGMENT_MAX_S, f"replay {segment.id}")
        except TimeoutError:
            return self._failed(segment, f"the provider did not answer within {SEGMENT_MAX_S} seconds")
        except Exception as error:  # The edge to a provider: the others may still be taken.
            return self._failed(segment, failure(error, self.redaction))
        taken = receipt(said, self.redaction)
        await self.store.segments.replayed(segment.id, self.provider.owner, taken, self.clock.now_ms())
        return None

    async def _given(self, segment: Segment) -> str:
        said = messages(await self.store.journal.read_segment(segment))
        if not said:
            return NOTHING_SAID
        return await self.provider.commit(await self.store.sessions.get(segment.session_id), segment, said)

    def _failed(self, segment: Segment, error: str) -> Failure:
        return Failure(segment_id=segment.id, session_id=segment.session_id, error=error)
