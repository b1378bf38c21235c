"""A draft: findings of one part after the other become one set of changes."""

from __future__ import annotations

from holdfast.core.facts import Memory, MemoryChanges, MemoryKind
from holdfast.ids import MemoryId, SegmentId, TurnId
from holdfast.memory.builtin.draft import Draft
from holdfast.memory.builtin.findings import FactFinding, Findings

TURN, SEGMENT = TurnId("trn_1"), SegmentId("seg_1")
TEA = Memory(id=MemoryId("mem_t"), owner="local", text="Likes tea", created_at=1, updated_at=1)
ROME = Memory(id=MemoryId("mem_r"), owner="local", text="Lives in Rome", created_at=1, updated_at=1)
WHO = Memory(id=MemoryId("mem_p"), owner="local", text="A pilot.", created_at=1, updated_at=1, kind=MemoryKind.PROFILE)


def new(text: str, id_: str | None = None) -> FactFinding:
    return FactFinding(turn_id=TURN, text=text, id=MemoryId(id_) if id_ else None)


def drafted(*parts: Findings, before: tuple[Memory, ...] = (TEA, ROME, WHO)) -> MemoryChanges:
    draft = Draft("local", SEGMENT, before)
    for number, part in enumerate(parts, 5):
        draft.take(part, number)
    return draft.changes()


def found(*findings: FactFinding, profile: str | None = None) -> Findings:
    return Findings(found=findings, profile=profile)


def test_nothing_found_is_nothing_to_change() -> None:
    assert drafted(Findings(), Findings(profile="Somebody else.")) == MemoryChanges(added=[], replaced=[], removed=[])


def test_what_was_found_says_where_it_came_from() -> None:
    changes = drafted(found(new("Has a cat"), new("Lives in Turin", "mem_r"), new("", "mem_t"), profile="A sailor."))
    (cat,) = changes.added
    assert (cat.text, cat.turn_id, cat.segment_id, cat.kind, cat.created_at) == (
        "Has a cat",
        TURN,
        SEGMENT,
        MemoryKind.FACT,
        5,
    )
    assert [
        (each.id, each.text, each.kind, each.turn_id, each.segment_id, each.updated_at) for each in changes.replaced
    ] == [
        ("mem_r", "Lives in Turin", MemoryKind.FACT, TURN, SEGMENT, 5),
        ("mem_p", "A sailor.", MemoryKind.PROFILE, TURN, SEGMENT, 5),
    ]
    assert changes.removed == ["mem_t"]


def test_a_fact_of_one_part_is_known_in_the_next_and_can_be_changed_there() -> None:
    draft = Draft("local", SEGMENT, [TEA])
    draft.take(found(new("Has a cat"), new("Has a car")), 5)
    (cat, car) = [each for each, text in draft.known.facts.items() if text in ("Has a cat", "Has a car")]
    assert list(draft.known.facts.values()) == ["Has a cat", "Has a car", "Likes tea"], "what was found last comes first"
    draft.take(found(new("Has two cats", cat), new("", car)), 6)
    changes = draft.changes()
    assert [(each.id, each.text) for each in changes.added] == [(cat, "Has two cats")]
    assert (changes.replaced, changes.removed) == ([], [])


def test_nothing_is_said_twice() -> None:
    changes = drafted(found(new("Has a cat"), new("has a CAT.")), found(new("Has a cat")))
    assert [each.text for each in changes.added] == ["Has a cat"]
    changes = drafted(found(new("Likes TEA!")))
    assert [each.text for each in changes.added] == ["Likes TEA!"], "the store says what was known already"
    assert drafted(found(new("Likes tea", "mem_r"))).removed == ["mem_r"], "it would say what another says"
    assert drafted(found(new("Likes tea", "mem_t"))) == MemoryChanges(added=[], replaced=[], removed=[])


def test_what_is_not_known_is_left_alone() -> None:
    assert drafted(found(new("Has a cat", "mem_x"), new("", "mem_x"))) == MemoryChanges(added=[], replaced=[], removed=[])


def test_the_first_profile_is_added_and_a_later_one_takes_its_place() -> None:
    changes = drafted(found(new("Flies"), profile="A pilot."), found(new("Sails"), profile="A sailor."), before=())
    assert [(each.kind, each.text) for each in changes.added] == [
        (MemoryKind.FACT, "Flies"),
        (MemoryKind.PROFILE, "A sailor."),
        (MemoryKind.FACT, "Sails"),
    ]
