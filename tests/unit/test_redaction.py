"""Secrets are masked wherever they stand and however they are cut into pieces."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.redaction import LENGTH_MIN, MASK, RedactedStream, Redaction

# Two letters make secrets that contain, overlap and repeat each other all the time.
secret = st.one_of(
    st.text("ab", min_size=LENGTH_MIN, max_size=12),
    st.text("abcxyz0189-_=+/", min_size=LENGTH_MIN, max_size=24),
    st.text(min_size=LENGTH_MIN, max_size=12),
)
secrets = st.lists(secret, min_size=1, max_size=4)
# A secret in the mask's own letters could be spelt by a mask and its neighbours, although nothing of it was let through.
plain_secrets = secrets.filter(lambda each: not any(set(one) & set("[]") or one in MASK for one in each))


@st.composite
def planted(draw: st.DrawFn, secrets: st.SearchStrategy[list[str]]) -> tuple[list[str], list[str]]:
    """Secrets, and a text cut into pieces that is full of them: whole, in part, and one in another."""
    known = draw(secrets)
    part = st.sampled_from(known).flatmap(
        lambda one: st.tuples(st.integers(0, len(one)), st.integers(0, len(one))).map(
            lambda ends: one[min(ends) : max(ends)]
        )
    )
    fragment = st.one_of(st.sampled_from(known), part, st.text("ab x", max_size=4), st.text(max_size=3))
    text = "".join(draw(st.lists(fragment, max_size=8)))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return known, [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def masked(secrets: list[str], text: str) -> str:
    """Mask by the definition: find every occurrence, join those that overlap until none do, and cover each."""
    found = {(i, i + len(one)) for one in secrets for i in range(len(text)) if text.startswith(one, i)}
    while overlap := next(((a, b) for a in found for b in found if a != b and a[0] <= b[0] < a[1]), None):
        found = found - set(overlap) | {(overlap[0][0], max(overlap[0][1], overlap[1][1]))}
    for start, end in sorted(found, reverse=True):
        text = text[:start] + MASK + text[end:]
    return text


def streamed(redaction: Redaction, pieces: list[str]) -> list[str]:
    stream = RedactedStream(redaction)
    return [*(stream.feed(piece) for piece in pieces), stream.flush()]


@given(planted(secrets))
@example((["abcdefgh", "abcdefghij"], ["abcdefgh", "ij"]))
@example((["abcdefghij", "ghijklmnop"], ["abcdefghijklmnop"]))
@example((["abababab"], ["ababababab"]))
@example((["xxabcdefghyy", "abcdefgh"], ["xxabcdefghyy"]))
def test_every_secret_is_masked_with_all_that_overlaps_it(case: tuple[list[str], list[str]]) -> None:
    """K1: not even the rest of a secret that another one runs into is left standing."""
    secrets, pieces = case
    text = "".join(pieces)
    assert Redaction(secrets).text(text) == masked(secrets, text)


@given(planted(secrets))
@example((["abcdefgh", "abcdefghij"], ["abcdefgh", "ij"]))
@example((["abcdefgh", "abcdefghij"], ["abcdefgh", "i", "x"]))
@example((["abcdefghij", "ghijklmnop"], ["abcdefghij", "klmnop"]))
@example((["]abcdefgh", "01234567"], ["01234567", "abcdefgh"]))
def test_a_text_cut_anywhere_is_masked_like_the_whole(case: tuple[list[str], list[str]]) -> None:
    """K1, J3: live and replayed text are the same, wherever the model cut its tokens."""
    secrets, pieces = case
    redaction = Redaction(secrets)
    assert "".join(streamed(redaction, pieces)) == redaction.text("".join(pieces))


@given(planted(plain_secrets))
def test_no_secret_is_ever_shown(case: tuple[list[str], list[str]]) -> None:
    """K1."""
    secrets, pieces = case
    redaction = Redaction(secrets)
    shown = "".join(streamed(redaction, pieces))
    assert [one for one in secrets if one in shown or one in redaction.text("".join(pieces))] == []


@given(planted(plain_secrets))
def test_masking_what_is_masked_changes_nothing(case: tuple[list[str], list[str]]) -> None:
    secrets, pieces = case
    redaction = Redaction(secrets)
    once = redaction.text("".join(pieces))
    assert redaction.text(once) == once


@given(planted(secrets))
@example((["a1234567", "ba345678"], ["xa"]))
@example((["abababab"], ["ababababa"]))
@example((["\x1f0000000"], ["\\"]))
def test_nothing_is_held_back_that_cannot_become_a_secret(case: tuple[list[str], list[str]]) -> None:
    """J1: an answer flows; what waits begins like a secret, or overlaps one that does."""
    secrets, pieces = case
    text = "".join(pieces)
    held = Redaction(secrets).held_back(text)
    waiting = text[len(text) - held :]
    # Inside JSON a secret may be spelt differently, and that spelling is masked as well.
    spelt = {*secrets, *(json.dumps(one)[1:-1] for one in secrets)}
    begins = {one[:length] for one in spelt for length in range(1, len(one))}
    if not any(one in waiting for one in spelt):
        assert held == 0 or waiting in begins
    assert not any(text.endswith(begin) for begin in begins if len(begin) > held)


@given(st.lists(st.text(), max_size=5))
def test_without_secrets_every_piece_is_shown_at_once(pieces: list[str]) -> None:
    assert streamed(Redaction(), pieces) == [*pieces, ""]


@pytest.mark.parametrize("short", ["", "a", "1234567"])
def test_a_value_too_short_to_be_a_secret_masks_nothing(short: str) -> None:
    assert Redaction([short]).text("a 1234567 b") == "a 1234567 b"


def test_a_value_of_the_least_length_is_masked() -> None:
    assert LENGTH_MIN == 8
    assert Redaction(["12345678"]).text("a 12345678 b") == f"a {MASK} b"


def test_two_secrets_side_by_side_are_two_masks() -> None:
    assert Redaction(["12345678", "abcdefgh"]).text("12345678abcdefgh") == MASK * 2


words = st.one_of(st.sampled_from(["tokenAAAA", "xx-tokenAAAA-yy", "tokenBBBBtokenAAAA"]), st.text("tokenAB", max_size=12))
trees = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=12,
)


@given(trees)
def test_json_is_masked_to_its_last_leaf_and_key(tree: object) -> None:
    """K1: arguments and results of tools are trees."""
    safe = json.dumps(Redaction(["tokenAAAA", "tokenBBBB"]).value(tree))
    assert "tokenAAAA" not in safe
    assert "tokenBBBB" not in safe


@given(trees)
def test_json_without_secrets_stays_as_it_is(tree: object) -> None:
    assert Redaction(["another-token"]).value(tree) == tree
    assert Redaction().value(tree) is tree


def test_a_secret_is_masked_in_the_spelling_of_json_too() -> None:
    """K1: a tool that returns JSON spells a line break or a quote in its own way."""
    secret = 'line one\nline "two"'
    shown = Redaction([secret]).text(f"plain {secret}, encoded {json.dumps({'key': secret})}")
    assert "line" not in shown
    assert shown.count(MASK) == 2
