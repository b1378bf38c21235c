"""What is remembered as a document: what a person reads, and what their edits ask for."""

from __future__ import annotations

import time
from itertools import count

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.document import ITEMS_MAX, LINES_MAX, as_markdown, changes
from holdfast.core.facts import Memory, MemoryChanges, MemoryKind, folded
from holdfast.errors import Rejected
from holdfast.ids import MemoryId

NOW = 1_700_000_000_000
SHOWN = """# Memory

<!-- Change, add or delete lines. The comment behind a line says which memory it is: keep the two together. -->

## Profile

A gardener in Turin. <!-- mem_p -->

## Facts

- Likes tea <!-- mem_1 -->
- Has two cats <!-- mem_2 -->
- Works at night <!-- mem_3 -->
"""


def memory(number: int | str, text: str, kind: MemoryKind = MemoryKind.FACT) -> Memory:
    return Memory(id=MemoryId(f"mem_{number}"), owner="local", text=text, created_at=1, updated_at=2, kind=kind)


KNOWN = [
    memory(1, "Likes tea"),
    memory("p", "A gardener in Turin.", MemoryKind.PROFILE),
    memory(2, "Has two cats"),
    memory(3, "Works at night"),
]


def edit(base: str, edited: str) -> MemoryChanges:
    numbers = count(1)
    return changes(base, edited, owner="local", now_ms=NOW, new_id=lambda: MemoryId(f"mem_new{next(numbers)}"))


def asked(edited: str, base: str = SHOWN) -> dict[str, object]:
    """Return what an edit asks for, so that it reads well."""
    found = edit(base, edited)
    wanted = {
        "added": [each.text for each in found.added],
        "replaced": {each.id: each.text for each in found.replaced},
        "removed": list(found.removed),
    }
    return {name: what for name, what in wanted.items() if what}


def test_what_is_remembered_reads_as_a_profile_and_facts() -> None:
    assert as_markdown(KNOWN) == SHOWN


def test_where_nothing_is_remembered_there_are_headings_to_write_below() -> None:
    empty = as_markdown([])
    assert empty.endswith("## Profile\n\n## Facts\n")
    written = empty.replace("## Profile\n", "## Profile\nA pilot.\n") + "- Flies on Mondays\n"
    found = edit(empty, written)
    assert [(each.kind, each.text) for each in found.added] == [
        (MemoryKind.PROFILE, "A pilot."),
        (MemoryKind.FACT, "Flies on Mondays"),
    ]


def test_what_a_person_writes_is_theirs_and_came_from_no_turn() -> None:
    found = edit(SHOWN, SHOWN.replace("two cats", "three cats") + "- Plays chess\n")
    at_hand = {"owner": "local", "created_at": NOW, "updated_at": NOW}
    assert found == MemoryChanges(
        added=[Memory(id=MemoryId("mem_new1"), text="Plays chess", **at_hand)],
        replaced=[Memory(id=MemoryId("mem_2"), text="Has three cats", **at_hand)],
        removed=[],
    )


@pytest.mark.parametrize(
    ("edited", "wanted"),
    [
        pytest.param(SHOWN, {}, id="nothing changed"),
        pytest.param(SHOWN.replace("\n", "\r\n"), {}, id="CRLF"),
        pytest.param("\ufeff" + SHOWN, {}, id="a byte order mark"),
        pytest.param(SHOWN.replace("\n- ", "\n*\t"), {}, id="other bullets, with tabs"),
        pytest.param(SHOWN.replace("- Has", "2) Has"), {}, id="a number for a bullet"),
        pytest.param(SHOWN.replace("- Has", "  - Has").replace("- Works", "\t- Works"), {}, id="nested lists"),
        pytest.param(SHOWN.replace("## Facts", "### What else ##\n\n---\n"), {}, id="an odd heading and a rule"),
        pytest.param(SHOWN.replace("## Profile", "# PROFILE:"), {}, id="the profile's heading in other letters"),
        pytest.param(SHOWN.replace("# Memory\n", ""), {}, id="no title"),
        pytest.param(SHOWN.replace("Change, add", "Change,\nadd"), {}, id="the advice wrapped"),
        pytest.param(SHOWN.replace("two cats", "two\n  cats"), {}, id="a fact over two lines"),
        pytest.param(SHOWN.replace("two cats", "two\ncats"), {}, id="a fact over two lines, not indented"),
        pytest.param(SHOWN.replace("two cats", "two\n\n  cats"), {}, id="a fact with a blank line in it"),
        pytest.param(SHOWN.replace("gardener in", "gardener\nin"), {}, id="a profile over two lines"),
        pytest.param(SHOWN.replace("<!-- mem_1 -->", "<!--mem_1-->  "), {}, id="the comment spaced otherwise"),
        pytest.param(SHOWN.replace("Likes tea <!-- mem_1 -->", "<!-- mem_1 --> Likes tea"), {}, id="the comment first"),
        pytest.param(SHOWN.replace(" <!-- mem_1 -->", ""), {}, id="an id lost, its words kept"),
        pytest.param(SHOWN.replace("<!-- mem_p -->", ""), {}, id="the id of the profile lost"),
        pytest.param(SHOWN + "- Likes tea.\n- Likes tea <!-- mem_1 -->\n- likes  TEA\n", {}, id="said twice"),
        pytest.param(SHOWN + "-\n- \n", {}, id="empty bullets"),
        pytest.param(SHOWN.replace("mem_1", "mem_x").replace("mem_2", "mem_1").replace("mem_x", "mem_2"), {}, id="swapped"),
        pytest.param(SHOWN + "- Plays chess\n", {"added": ["Plays chess"]}, id="added"),
        pytest.param(SHOWN + "- Plays chess\n- plays chess!\n", {"added": ["Plays chess"]}, id="added twice"),
        pytest.param("- Plays chess\n\n" + SHOWN, {"added": ["Plays chess"]}, id="added above all headings"),
        pytest.param(SHOWN + "- Plays chess <!-- mem_9 -->\n", {"added": ["Plays chess"]}, id="an unknown id"),
        pytest.param(SHOWN + "- Cats <!-- with names --> Pip\n", {"added": ["Cats Pip"]}, id="a comment of one's own"),
        pytest.param(SHOWN.replace("two cats", "three cats"), {"replaced": {"mem_2": "Has three cats"}}, id="changed"),
        pytest.param(SHOWN.replace("Likes tea", "Likes TEA"), {"replaced": {"mem_1": "Likes TEA"}}, id="in other letters"),
        pytest.param(SHOWN.replace("in Turin", "in Rome"), {"replaced": {"mem_p": "A gardener in Rome."}}, id="profile"),
        pytest.param(
            SHOWN + "## Profile\n- With a dog.\n",
            {"replaced": {"mem_p": "A gardener in Turin. With a dog."}},
            id="a second profile",
        ),
        pytest.param(SHOWN.replace("- Has two cats <!-- mem_2 -->\n", ""), {"removed": ["mem_2"]}, id="a line deleted"),
        pytest.param(SHOWN.replace("Has two cats", ""), {"removed": ["mem_2"]}, id="its words deleted, its id left"),
        pytest.param(SHOWN.replace("A gardener in Turin. <!-- mem_p -->", ""), {"removed": ["mem_p"]}, id="no profile"),
        pytest.param("## Facts\n", {"removed": ["mem_p", "mem_1", "mem_2", "mem_3"]}, id="everything deleted"),
        pytest.param(
            SHOWN + "- Has three cats <!-- mem_2 -->\n", {"added": ["Has three cats"]}, id="a line copied and changed"
        ),
        pytest.param(
            SHOWN.replace("two cats", "no cats") + "- Has a dog <!-- mem_2 -->\n",
            {"added": ["Has a dog"], "replaced": {"mem_2": "Has no cats"}},
            id="an id twice, on other words both times",
        ),
        pytest.param(
            SHOWN.replace("Likes tea", "Has two cats").replace("Has two cats <!-- mem_2", "Has a dog <!-- mem_2"),
            {"added": ["Has a dog"], "removed": ["mem_1"]},
            id="words moved to the line of others",
        ),
        pytest.param(
            SHOWN.replace("- Works at night <!-- mem_3 -->\n", "").replace("Turin.", "Turin. Works at night <!-- mem_3 -->"),
            {"replaced": {"mem_p": "A gardener in Turin. Works at night"}, "removed": ["mem_3"]},
            id="a fact moved into the profile",
        ),
    ],
)
def test_an_edit_asks_for_what_a_person_would_mean_by_it(edited: str, wanted: dict[str, object]) -> None:
    assert asked(edited) == wanted


@pytest.mark.parametrize(
    ("added", "complaint"),
    [
        ("- " + "x" * 1_001, "line 14: a fact has at most 1,000 characters, and this has 1,001"),
        ("- My password is hunter22", "line 14: that looks like a password or a key"),
        ("- Rings \x07 bells", "line 14: it holds a control character"),
        ("\nOnce upon a time", 'line 15: a fact begins with "- "'),
        ("- Sails <!-- mem_8 --> - Rows <!-- mem_9 -->", "line 14: two memories stand in one line"),
        ("## Profile\n" + "x" * 4_001, "line 7: the profile has at most 4,000 characters, and this has 4,022"),
    ],
)
def test_a_line_that_cannot_be_remembered_is_named(added: str, complaint: str) -> None:
    with pytest.raises(Rejected) as refused:
        edit(SHOWN, f"{SHOWN}{added}\n")
    assert str(refused.value).startswith(complaint)


def test_what_stood_there_before_may_stay_whatever_it_is() -> None:
    """Only changes are judged, else one old line would stand in the way of every edit."""
    base = as_markdown([memory(1, "password: swordfish\x07" + "x" * 2_000), memory(2, "Likes tea")])
    assert asked(base.replace("tea", "coffee"), base) == {"replaced": {"mem_2": "Likes coffee"}}


@pytest.mark.parametrize("edited", ["", " \n\r\n", "\ufeff\n"])
def test_an_empty_document_is_a_mishap_not_a_wish(edited: str) -> None:
    with pytest.raises(Rejected, match="leave the headings"):
        edit(SHOWN, edited)
    with pytest.raises(Rejected, match="leave the headings"):
        edit(as_markdown([]), edited)


def test_two_thousand_facts_are_compared_in_a_moment() -> None:
    base = as_markdown([memory(number, f"Fact {number}") for number in range(2_000)])
    found = edit(base, base.replace("Fact", "Thing"))
    assert (len(found.added), len(found.replaced), len(found.removed)) == (0, 2_000, 0)


# Letters that mean something here come up often.
words = st.text(st.one_of(st.sampled_from(list("ab#-*<>!\\ .1_\n\r\t\u2028")), st.characters()), max_size=40)
said = words.filter(lambda text: bool(text.split()))
remembered = st.lists(said, max_size=6, unique_by=folded).map(
    lambda texts: [memory(number, text) for number, text in enumerate(texts)]
)
profiled = st.tuples(remembered, st.none() | said).map(
    lambda both: both[0] + ([memory("p", both[1], MemoryKind.PROFILE)] if both[1] else [])
)


@given(profiled)
@example([memory("p", "# Profile", MemoryKind.PROFILE)])
@example([memory("p", "\\## x <!-- mem_1 -->", MemoryKind.PROFILE), memory(1, "<!-- mem_p --> - <!-- mem_1 -->")])
def test_a_document_that_nobody_edited_asks_for_nothing(memories: list[Memory]) -> None:
    document = as_markdown(memories)
    assert edit(document, document) == MemoryChanges(added=[], replaced=[], removed=[])
    assert edit(document, document.replace("\n", "\r\n")) == MemoryChanges(added=[], replaced=[], removed=[])


@given(remembered, st.data())
def test_what_a_person_did_to_some_lines_is_done_and_to_no_others(memories: list[Memory], data: st.DataObject) -> None:
    fate = {each.id: data.draw(st.sampled_from(["keep", "drop", "change"])) for each in memories}
    document = as_markdown(memories)
    lines = [
        f"- Changed {each.id} <!-- {each.id} -->" if fate[each.id] == "change" else line
        for each, line in zip(memories, _bullets(document), strict=True)
        if fate[each.id] != "drop"
    ]
    found = edit(document, "\n".join(["## Facts", *data.draw(st.permutations(lines)), "- Brand new"]))
    assert [each.text for each in found.added] == ["Brand new"]
    assert {each.id for each in found.replaced} == {each for each, what in fate.items() if what == "change"}
    assert set(found.removed) == {each for each, what in fate.items() if what == "drop"}


def _bullets(document: str) -> list[str]:
    return [line for line in document.split("\n") if line.startswith("- ")]


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_is_read_or_refused(base: str, edited: str) -> None:
    try:
        found = edit(base, edited)
    except Rejected:
        return
    assert len({each.id for each in (*found.added, *found.replaced)} | set(found.removed)) == (
        len(found.added) + len(found.replaced) + len(found.removed)
    )


@pytest.mark.parametrize(
    "hostile",
    ["<!--" * 20_000, "<!-- mem_" * 20_000, ("<!--" + " " * 50) * 5_000, "<!-- mem_" + "-" * 100_000, "- " * 50_000 + "x"],
)
def test_a_document_that_was_made_to_be_slow_is_not(hostile: str) -> None:
    """A program may send any document, and the gateway has others to serve."""
    began = time.process_time()
    with pytest.raises(Rejected, match="characters"):
        edit(SHOWN, f"## Facts\n- a {hostile}")
    assert time.process_time() - began < 1


def test_what_nobody_sees_is_not_written_and_can_be_deleted() -> None:
    """What was written before may hold it."""
    old = as_markdown([memory(1, "Likes\u200b tea"), memory(2, "\U000e0020")])
    assert edit(old, old) == MemoryChanges(added=[], replaced=[], removed=[])
    assert edit(old, "- Likes\u200b tea <!-- mem_1 -->").removed == ["mem_2"]
    (added,) = edit(old, f"{old}- Has \u202ecats\n").added
    assert added.text == "Has cats"
    with pytest.raises(Rejected, match="nothing in it can be seen"):
        edit(old, f"{old}- \u200b\n")


def test_so_much_is_written_at_once_and_no_more() -> None:
    """Nobody else writes meanwhile."""
    lines = [f"- {number} {'x' * 990} <!-- mem_n{number} -->" for number in range(400)]
    whole = "\n".join(lines)
    with pytest.raises(Rejected, match="several steps"):
        edit(SHOWN, whole)
    assert not edit(whole, whole).added
    assert len(edit(whole, "\n".join([*lines[:399], "- new"])).removed) == 1
    assert len(edit(SHOWN, "\n".join(lines[:200])).added) == 200


@pytest.mark.parametrize(
    ("hostile", "reason"),
    [
        ("- a\n" * (ITEMS_MAX + 1), "4,000 memories"),
        ("\n" * (LINES_MAX + 1), "100,000 lines"),
        ("- a" + "\n" * 5_000_000, "lines"),
    ],
)
def test_a_document_of_more_than_anybody_remembers_is_refused(hostile: str, reason: str) -> None:
    for base, edited in ((SHOWN, hostile + "- b"), (hostile, SHOWN)):
        with pytest.raises(Rejected, match=reason):
            edit(base, edited)
