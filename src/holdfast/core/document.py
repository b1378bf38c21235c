"""What is remembered as a Markdown document that a person can edit, and what their edit asks for.

Every memory has its id in a comment at its end.  An edit comes with the document that it began with, so that what was
learned meanwhile is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from holdfast.core.facts import FACTS_MAX, Memory, MemoryChanges, MemoryKind, folded, objection
from holdfast.core.legible import legible
from holdfast.errors import Rejected
from holdfast.ids import MemoryId

TITLE = "# Memory"
ADVICE = "<!-- Change, add or delete lines. The comment behind a line says which memory it is: keep the two together. -->"
PROFILE = "Profile"
FACTS = "Facts"

# A sender may send any document.  These limits are above all that is ever remembered, even in very short lines.
LINES_MAX = 100_000
ITEMS_MAX = 2 * FACTS_MAX
# Every word of them is indexed, and an edit blocks all other writers while it runs.
CHANGED_MAX_CHARS = 300_000

_ID = re.compile(r"<!--\s*(mem_[0-9A-Za-z_-]+)\s*-->")
_COMMENT_BEGINS, _COMMENT_ENDS = "<!--", "-->"
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s+(.*))?")
_RULE = re.compile(r"\s*([-*_])(?:\s*\1){2,}\s*")
_BULLET = re.compile(r"\A\s*(?:[-*+•]|\d{1,4}[.)])(?:\s+|\Z)")


def as_markdown(memories: Sequence[Memory]) -> str:
    """Return everything that is remembered about a person, for them to read and to edit."""
    profile = [f"{_escaped(_shown(each.text))} <!-- {each.id} -->" for each in memories if each.kind is MemoryKind.PROFILE]
    facts = [f"- {_shown(each.text)} <!-- {each.id} -->" for each in memories if each.kind is MemoryKind.FACT]
    blocks = (TITLE, ADVICE, f"## {PROFILE}", "\n".join(profile), f"## {FACTS}", "\n".join(facts))
    return "\n\n".join(block for block in blocks if block) + "\n"


def changes(base: str, edited: str, *, owner: str, now_ms: int, new_id: Callable[[], MemoryId]) -> MemoryChanges:
    """Return what an edit asks for: `base` is what a person was shown, `edited` what they made of it.

    A line with an id that `base` does not have is new.  A line with the text of another stands for that one, even if
    its comment says otherwise, so that lines can be copied, swapped and moved.  Raises `Rejected`, with the line, where a
    change cannot be made.
    """
    if not edited.strip("\ufeff \t\r\n") and base.strip():
        raise Rejected("the document is empty; to forget everything leave the headings and delete what is below them")
    edit = _Edit(owner, now_ms, new_id)
    before, after = _items(base), _items(edited)
    edit.profile(before[MemoryKind.PROFILE], after[MemoryKind.PROFILE])
    edit.facts(before[MemoryKind.FACT], after[MemoryKind.FACT])
    if (chars := sum(len(each.text) for each in (*edit.added, *edit.replaced))) > CHANGED_MAX_CHARS:
        reason = f"{chars:,} characters are new, and {CHANGED_MAX_CHARS:,} can be at once"
        raise Rejected(f"{reason}; make the edit in several steps")
    return MemoryChanges(added=edit.added, replaced=edit.replaced, removed=edit.removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """What a document says in one place, from `line` on, about the memories that it names there."""

    kind: MemoryKind
    line: int
    text: str
    ids: Sequence[MemoryId]

    @property
    def id(self) -> MemoryId | None:
        return self.ids[0] if self.ids else None


class _Place:
    """An item that goes on over several lines."""

    def __init__(self, kind: MemoryKind, line: int, text: str) -> None:
        self.kind = kind
        self.line = line
        self.texts = [text]

    def item(self) -> _Item:
        whole = " ".join(self.texts)
        text = " ".join(_ID.sub(" ", whole).split())
        return _Item(kind=self.kind, line=self.line, text=text, ids=[MemoryId(each) for each in _ID.findall(whole)])


def _items(document: str) -> Mapping[MemoryKind, Sequence[_Item]]:
    places = list(islice(_read(document), ITEMS_MAX + 1))
    if len(places) > ITEMS_MAX:
        raise Rejected(f"line {places[-1].line}: a document holds at most {ITEMS_MAX:,} memories; make it shorter")
    found = [item for place in places if (item := place.item()).text]
    return {kind: [item for item in found if item.kind is kind] for kind in MemoryKind}


def _read(document: str) -> Iterator[_Place]:
    """Yield what a document says, in its order; only what stands under the heading of the profile is the profile."""
    kind, item, is_loose = MemoryKind.FACT, None, False
    for number, line in enumerate(_lines(document), 1):
        if heading := _HEADING.fullmatch(line):
            title = (heading[1] or "").strip(" \t#:").casefold()
            kind, item = MemoryKind.PROFILE if title == PROFILE.casefold() else MemoryKind.FACT, None
        elif not line.strip() or _RULE.fullmatch(line):
            is_loose = True
            continue
        elif kind is MemoryKind.PROFILE:
            text = _unescaped(_BULLET.sub("", line, count=1).strip())
            if item is None:
                yield (item := _Place(kind, number, text))
            else:
                item.texts.append(text)
        elif bullet := _BULLET.match(line):
            yield (item := _Place(kind, number, line[bullet.end() :]))
        elif item is not None and (not is_loose or line[0].isspace()):
            item.texts.append(line)
        else:
            raise Rejected(f'line {number}: a fact begins with "- "; put that before it, or move it under "## {PROFILE}"')
        is_loose = False


def _lines(document: str) -> list[str]:
    plain = document.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if plain.count("\n") > LINES_MAX:
        raise Rejected(f"line {LINES_MAX + 1}: a document has at most {LINES_MAX:,} lines; make it shorter")
    return "".join(_without_comments(plain)).split("\n")


def _without_comments(text: str) -> Iterator[str]:
    """Yield a text without its comments, but for those that name a memory; one that never ends is none.

    By hand, because a pattern would look for the end of each anew.
    """
    at = 0
    while (begins := text.find(_COMMENT_BEGINS, at)) >= 0:
        ends = text.find(_COMMENT_ENDS, begins + len(_COMMENT_BEGINS))
        if ends < 0:
            break
        yield text[at:begins]
        at = ends + len(_COMMENT_ENDS)
        # What is left out keeps its lines, so that a complaint names the right one.
        yield text[begins:at] if _ID.match(text, begins) else "\n" * text.count("\n", begins, at)
    yield text[at:]


class _Edit:
    """Changes in the making."""

    def __init__(self, owner: str, now_ms: int, new_id: Callable[[], MemoryId]) -> None:
        self.added: list[Memory] = []
        self.replaced: list[Memory] = []
        self.removed: list[MemoryId] = []
        self._owner = owner
        self._now_ms = now_ms
        self._new_id = new_id

    def profile(self, before: Sequence[_Item], after: Sequence[_Item]) -> None:
        """There is one profile, so the id in its comment does not matter."""
        old, new = _whole(before), _whole(after)
        if new is None:
            self.removed += [old.id] if old and old.id else []
        elif old is None or old.id is None:
            self.added.append(self._memory(new, self._new_id()))
        elif old.text != new.text:
            self.replaced.append(self._memory(new, old.id))

    def facts(self, before: Sequence[_Item], after: Sequence[_Item]) -> None:
        """Match unchanged items first, then those that are equal once folded; the rest are new."""
        old = {item.id: item.text for item in before if item.id}
        kept = {item.id for item in after if item.id and old.get(item.id) == item.text}
        known: dict[str, list[MemoryId]] = {}
        for memory_id, text in old.items():
            known.setdefault(folded(text), []).append(memory_id)
        new: dict[str, _Item] = {}
        for item in after:
            if item.id and old.get(item.id) == item.text:
                continue
            if same := known.get(folded(item.text)):
                self._respell(item, [each for each in same if each not in kept], old, kept)
            else:
                new.setdefault(folded(item.text), item)
        for item in new.values():
            self._change(item, old, kept)
        self.removed += [each for each in old if each not in kept]

    def _respell(self, item: _Item, free: Sequence[MemoryId], old: Mapping[MemoryId, str], kept: set[MemoryId]) -> None:
        """Let an item stand for a memory that says the same, its own if that does; where none is free it says it twice."""
        if not free:
            return
        chosen = item.id if item.id and item.id in free else free[0]
        kept.add(chosen)
        if item.text != old[chosen]:
            self.replaced.append(self._memory(item, chosen))

    def _change(self, item: _Item, old: Mapping[MemoryId, str], kept: set[MemoryId]) -> None:
        if item.id and item.id in old and item.id not in kept:
            kept.add(item.id)
            self.replaced.append(self._memory(item, item.id))
        else:
            self.added.append(self._memory(item, self._new_id()))

    def _memory(self, item: _Item, memory_id: MemoryId) -> Memory:
        """Return a memory without a source turn, because a person wrote it."""
        item = replace(item, text=legible(item.text))
        _check(item)
        return Memory(
            id=memory_id,
            owner=self._owner,
            text=item.text,
            created_at=self._now_ms,
            updated_at=self._now_ms,
            kind=item.kind,
        )


def _whole(items: Sequence[_Item]) -> _Item | None:
    """Return the profile, of which a person may have written parts in several places."""
    if not items:
        return None
    return replace(items[0], text=" ".join(item.text for item in items))


def _check(item: _Item) -> None:
    if item.kind is MemoryKind.FACT and len(item.ids) > 1:
        raise Rejected(f"line {item.line}: two memories stand in one line; give each a line of its own")
    reason = objection(item.text, item.kind) if item.text else "nothing in it can be seen; give it some text, or delete it"
    if reason:
        raise Rejected(f"line {item.line}: {reason}")


def _shown(text: str) -> str:
    # No text can begin a comment: it would be taken for an id, or hide what follows.
    return " ".join(text.split()).replace("<!--", "‹!--")


def _escaped(text: str) -> str:
    return f"\\{text}" if text.lstrip("\\").startswith("#") else text


def _unescaped(text: str) -> str:
    return text[1:] if text.startswith("\\") and text.lstrip("\\").startswith("#") else text
