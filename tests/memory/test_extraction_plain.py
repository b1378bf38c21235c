"""Plain rules: what is understood without a model."""

from __future__ import annotations

import time

import pytest

from holdfast.agent.tools.port import for_nothing
from holdfast.ids import MemoryId
from holdfast.memory.builtin.findings import Findings, Known
from holdfast.memory.builtin.plain import FOUND_MAX, PlainExtractor
from tests.memory.talks import talk

KNOWN = Known(facts={MemoryId("mem_n"): "Name: Ada", MemoryId("mem_t"): "Likes tea", MemoryId("mem_r"): "Lives in Rome"})


async def heard(*texts: str, known: Known | None = None) -> list[tuple[str, str | None]]:
    extractor = PlainExtractor()
    (part,) = extractor.parts(talk(*texts))
    findings = await extractor.extract(part, known or Known(), for_nothing)
    return [(each.text, each.id) for each in findings.found]


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("My name is Ada.", "Name: Ada"),
        ("hello, my name is Ada Lovelace-King!", "Name: Ada Lovelace-King"),
        ("Call me Ishmael", "Name: Ishmael"),
        ("I live in Turin", "Lives in Turin"),
        ("I work at the harbour, with my brother.", "Works at the harbour, with their brother"),
        ("I prefer short answers.", "Prefers short answers"),
        ("I really like tea", "Likes tea"),
        ("I'm allergic to nuts", "Is allergic to nuts"),
        ("I am a gardener", "Is a gardener"),
        ("I have two cats", "Has two cats"),
        ("I’ve got a boat", "Has a boat"),
        ("My favourite colour is blue.", "Their favourite colour is blue"),
        ("Please always answer in French", "Wants: always answer in french"),
        ("Remember that the spare key is under the mat", "The spare key is under the mat"),
        ("please remember: I live in Turin.", "Lives in Turin"),
        ("Remember that my sister visits me on Friday", "Their sister visits them on Friday"),
    ],
)
async def test_a_plain_sentence_is_understood(said: str, fact: str) -> None:
    assert await heard(said) == [(fact, None)]


@pytest.mark.parametrize(
    "said",
    [
        "What is my name?",
        "Do you remember that I live in Turin?",
        "I am tired",
        "Call me later",
        "My name is not important",
        "I need help with this",
        "I want to know what time it is",
        "I have a question",
        "My code is broken",
        "My question is simple",
        "count to 20, slowly",
        "Remember",
        "Remember that my password is hunter22",
        "Remember that " + "x" * 1_001,
        "They said: I live in Turin",
        "",
    ],
)
async def test_small_talk_questions_and_secrets_are_not(said: str) -> None:
    assert await heard(said) == []


async def test_a_sentence_that_says_several_things_is_several_facts() -> None:
    assert await heard("My name is Ada, I live in Turin and I like tea, but my sister is vegan.") == [
        ("Name: Ada", None),
        ("Lives in Turin", None),
        ("Likes tea", None),
        ("Their sister is vegan", None),
    ]
    # What begins otherwise may be anybody's words.
    assert await heard("She said that it rains and I live in Turin") == []
    assert await heard("Remember that Ada sails and I row") == [("Ada sails and they row", None)]


async def test_only_the_person_is_listened_to() -> None:
    found = await PlainExtractor().extract(talk(("Hello", "I live in Turin. My name is Holdfast.")), Known(), for_nothing)
    assert found == Findings()


async def test_each_sentence_is_heard_with_its_turn() -> None:
    said = talk("Hi! I live in Turin. I have two cats; I like tea\nMy name is Ada", "I like milk")
    found = await PlainExtractor().extract(said, Known(), for_nothing)
    assert [(each.text, each.turn_id) for each in found.found] == [
        ("Lives in Turin", "trn_1"),
        ("Has two cats", "trn_1"),
        ("Likes tea", "trn_1"),
        ("Name: Ada", "trn_1"),
        ("Likes milk", "trn_2"),
    ]


async def test_what_there_can_be_only_one_of_is_replaced_and_what_is_to_be_forgotten_is_ended() -> None:
    assert await heard("My name is Grace", "I live in Turin", known=KNOWN) == [
        ("Name: Grace", "mem_n"),
        ("Lives in Turin", "mem_r"),
    ]
    assert await heard("Please forget that I like TEA!", known=KNOWN) == [("", "mem_t")]
    assert await heard("Forget that I like milk", known=KNOWN) == []


async def test_a_flood_is_heard_only_so_far() -> None:
    assert len(await heard("\n".join(f"I like tea number {number}" for number in range(1_000)))) == FOUND_MAX


@pytest.mark.parametrize(
    "hostile",
    [
        "my" + " " * 5_000 + "x",
        "my " + "a " * 5_000,
        "i" + " " * 10_000 + "really",
        "a.\n" * 300_000,
        "my name is " + "a" * 900_000,
    ],
)
async def test_a_message_that_was_made_to_be_slow_is_not(hostile: str) -> None:
    began = time.process_time()
    assert await heard(hostile, "I like tea") == [("Likes tea", None)]
    assert time.process_time() - began < 1
