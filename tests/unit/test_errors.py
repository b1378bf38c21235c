"""The tree of errors is the one that its module draws."""

from __future__ import annotations

import inspect
import re
import textwrap

import pytest

from holdfast import errors
from holdfast.errors import HoldfastError, IllegalMove, KeyReused, Owned

FAMILIES = {"Rejected", "Stale", "Unavailable", "Fatal"}


def drawn() -> dict[str, str]:
    """Read the tree in the docstring: each name with the name it hangs from, in the order of the drawing."""
    tree: dict[str, str] = {}
    above: list[str] = []
    for line in inspect.getdoc(errors).splitlines():  # type: ignore[union-attr]
        if match := re.match(r"^ {4}((?:│   |    )*(?:├── |└── )?)(\w+)(?:\s{2,}\S.*)?$", line):
            depth = len(match[1]) // 4
            above[depth:] = [match[2]]
            tree[match[2]] = above[depth - 1] if depth else "Exception"
    return tree


def classes() -> dict[str, type[Exception]]:
    return {name: each for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)}


def test_the_drawn_tree_is_the_tree_of_classes() -> None:
    """Every error is drawn where it hangs, in the order in which it is written, and nothing else is drawn."""
    assert len(drawn()) > len(FAMILIES)
    assert list(drawn().items()) == [(name, each.__base__.__name__) for name, each in classes().items()]  # type: ignore[union-attr]


def test_every_error_belongs_to_one_family() -> None:
    """The family decides the answer, so an error outside of them or in two of them would have none."""
    families = [classes()[name] for name in FAMILIES]
    assert {each.__name__ for each in HoldfastError.__subclasses__()} == FAMILIES
    for name, each in classes().items():
        if each is not HoldfastError:
            assert sum(issubclass(each, family) for family in families) == 1, name


@pytest.mark.parametrize("error", classes().values())
def test_every_error_says_in_its_docstring_what_it_means(error: type[Exception]) -> None:
    assert textwrap.dedent(error.__doc__ or "").endswith(".")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (IllegalMove("trn_1", "completed", "cancel"), "trn_1 is completed: it cannot cancel"),
        (KeyReused("github:7", "trn_1"), "key 'github:7' was used before, with another body, for turn trn_1"),
        (Owned("/home", 42), "process 42 already owns /home; stop it first, or choose another --home"),
        (Owned("/home", None), "another process already owns /home; stop it first, or choose another --home"),
    ],
)
def test_a_message_says_what_happened_and_to_what(error: HoldfastError, message: str) -> None:
    assert str(error) == message


def test_an_error_carries_what_its_answer_needs() -> None:
    """A3: the caller of a reused key learns which turn has it; the loser of a lock learns who has that."""
    assert IllegalMove("trn_1", "completed", "cancel").state == "completed"
    assert KeyReused("k", "trn_1").turn_id == "trn_1"
    assert Owned("/home", 42).pid == 42
