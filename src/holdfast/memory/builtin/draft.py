"""A draft of changes to the memories of a person, made while a conversation is read part by part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from holdfast.core.facts import Memory, MemoryChanges, MemoryKind, folded
from holdfast.ids import MemoryId, SegmentId, TurnId, new_memory_id
from holdfast.memory.builtin.findings import FactFinding, Findings, Known


class Draft:
    """Collects changes.  Facts found in one part are known in the next, and can be changed there."""

    def __init__(self, owner: str, segment_id: SegmentId, remembered: Iterable[Memory]) -> None:
        self._owner = owner
        self._segment_id = segment_id
        self._before = {each.id: each for each in remembered}
        self._after = dict(self._before)
        self._known_already: list[Memory] = []

    @property
    def known(self) -> Known:
        """What is known by now, the latest findings first."""
        new = [each for memory_id, each in self._after.items() if memory_id not in self._before]
        facts = [each for each in (*new, *self._after.values()) if each.kind is MemoryKind.FACT]
        profile = next((each.text for each in self._after.values() if each.kind is MemoryKind.PROFILE), "")
        return Known(profile=profile, facts={each.id: each.text for each in facts})

    def take(self, findings: Findings, now_ms: int) -> None:
        """Add the findings of a part."""
        for each in findings.found:
            self._take(each, now_ms)
        if findings.profile and findings.found:
            self._describe(findings.profile, findings.found[-1].turn_id, now_ms)

    def changes(self, *remarks: str) -> MemoryChanges:
        """Return the changes; the store finds out which facts were known already."""
        added = [each for memory_id, each in self._after.items() if memory_id not in self._before]
        replaced = [each for memory_id, each in self._after.items() if self._before.get(memory_id, each) != each]
        removed = [memory_id for memory_id in self._before if memory_id not in self._after]
        if any(each.kind is MemoryKind.PROFILE for each in (*added, *replaced)):
            remarks = ("the profile is one of them", *remarks)
        remark = "; ".join(remarks)
        return MemoryChanges(added=[*added, *self._known_already], replaced=replaced, removed=removed, remark=remark)

    def _take(self, finding: FactFinding, now_ms: int) -> None:
        before = self._after.get(finding.id) if finding.id else None
        if finding.id and before is None:
            return
        same = self._saying(finding.text)
        if before is None:
            memory = self._memory(finding.text, finding.turn_id, now_ms)
            if same is None:
                self._after[memory.id] = memory
            elif same.id in self._before:
                self._known_already.append(memory)
        elif not finding.text or (same and same.id != before.id):
            del self._after[before.id]
        elif before.text != finding.text:
            self._after[before.id] = self._rewritten(before, finding.text, finding.turn_id, now_ms)

    def _describe(self, profile: str, turn_id: TurnId, now_ms: int) -> None:
        before = next((each for each in self._after.values() if each.kind is MemoryKind.PROFILE), None)
        if before is None:
            memory = replace(self._memory(profile, turn_id, now_ms), kind=MemoryKind.PROFILE)
        else:
            memory = self._rewritten(before, profile, turn_id, now_ms)
        self._after[memory.id] = memory

    def _saying(self, text: str) -> Memory | None:
        facts = (each for each in self._after.values() if each.kind is MemoryKind.FACT)
        return next((each for each in facts if text and folded(each.text) == folded(text)), None)

    def _memory(self, text: str, turn_id: TurnId, now_ms: int) -> Memory:
        return Memory(
            id=new_memory_id(now_ms),
            owner=self._owner,
            text=text,
            created_at=now_ms,
            updated_at=now_ms,
            turn_id=turn_id,
            segment_id=self._segment_id,
        )

    def _rewritten(self, memory: Memory, text: str, turn_id: TurnId, now_ms: int) -> Memory:
        return replace(memory, text=text, updated_at=now_ms, turn_id=turn_id, segment_id=self._segment_id)


def remembered(profile_and_recent: Sequence[Memory], recalled: Sequence[Memory]) -> dict[MemoryId, Memory]:
    """Return each memory once: the profile, those recalled for the conversation, and recent ones."""
    profile = [each for each in profile_and_recent if each.kind is MemoryKind.PROFILE]
    return {each.id: each for each in (*profile, *recalled, *profile_and_recent)}
