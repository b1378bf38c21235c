"""Filters: which deliveries count."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from holdfast.channels.webhook.filters import (
    CONDITIONS_MAX,
    DEPTH_MAX,
    PATTERN_MAX,
    SEARCHED_MAX,
    TooSlow,
    parse,
    takes,
)
from holdfast.channels.webhook.payload import Payload
from holdfast.errors import Rejected
from holdfast.offload.pool import Pool

DATA: dict[str, Any] = {
    "action": "opened",
    "n": 1,
    "ratio": 1.5,
    "on": True,
    "none": None,
    "text": "the disk is FULL",
    "labels": ["bug", {"name": "p1"}, 1],
    "pull": {"draft": False, "base": {"ref": "main"}},
    "list": [[1, 2], {"a": [True]}],
}


def counts(said: object, data: dict[str, Any] = DATA, event_type: str | None = "pull_request") -> bool:
    return parse(said)(Payload(data=data, raw="", event_type=event_type))


@pytest.mark.parametrize(
    ("said", "result"),
    [
        ({"field": "action", "equals": "opened"}, True),
        ({"field": "action", "equals": "closed"}, False),
        ({"field": "pull.base.ref", "equals": "main"}, True),
        ({"field": "labels.1.name", "equals": "p1"}, True),
        ({"field": "gone", "equals": "x"}, False),
        ({"field": "gone", "equals": None}, False),
        ({"field": "none", "equals": None}, True),
        ({"field": "n", "equals": 1}, True),
        ({"field": "n", "equals": 1.0}, True),
        ({"field": "n", "equals": True}, False),
        ({"field": "n", "equals": "1"}, False),
        ({"field": "on", "equals": 1}, False),
        ({"field": "on", "equals": True}, True),
        ({"field": "list", "equals": [[1, 2], {"a": [True]}]}, True),
        ({"field": "list", "equals": [[1, 2], {"a": [1]}]}, False),
        ({"field": "list.0", "equals": [1]}, False),
        ({"field": "action", "not_equals": "closed"}, True),
        ({"field": "action", "not_equals": "opened"}, False),
        ({"field": "gone", "not_equals": "opened"}, True),
        ({"field": "text", "contains": "FULL"}, True),
        ({"field": "text", "contains": "full"}, False),
        ({"field": "text", "contains": 1}, False),
        ({"field": "labels", "contains": "bug"}, True),
        ({"field": "labels", "contains": {"name": "p1"}}, True),
        ({"field": "labels", "contains": True}, False),
        ({"field": "labels", "contains": "p1"}, False),
        ({"field": "pull", "contains": "draft"}, True),
        ({"field": "n", "contains": 1}, False),
        ({"field": "gone", "contains": "x"}, False),
        ({"field": "none", "exists": True}, True),
        ({"field": "gone", "exists": True}, False),
        ({"field": "gone", "exists": False}, True),
        ({"field": "gone", "missing": True}, True),
        ({"field": "none", "missing": True}, False),
        ({"field": "none", "missing": False}, True),
        ({"field": "action", "in": ["closed", "opened"]}, True),
        ({"field": "action", "in": ["closed"]}, False),
        ({"field": "n", "in": [True]}, False),
        ({"field": "gone", "in": [None]}, False),
        ({"field": "text", "regex": r"disk .*full"}, False),
        ({"field": "text", "regex": r"(?i)disk .*full"}, True),
        ({"field": "text", "regex": r"^disk"}, False),
        ({"field": "n", "regex": r"^1$"}, True),
        ({"field": "on", "regex": r"^true$"}, True),
        ({"field": "gone", "regex": r".*"}, False),
        ({"field": "event_type", "equals": "pull_request"}, True),
        ([{"field": "action", "equals": "opened"}, {"field": "n", "equals": 1}], True),
        ([{"field": "action", "equals": "opened"}, {"field": "n", "equals": 2}], False),
        ({"all": [{"field": "action", "equals": "opened"}, {"field": "n", "equals": 2}]}, False),
        ({"any": [{"field": "action", "equals": "closed"}, {"field": "n", "equals": 1}]}, True),
        ({"any": [{"field": "action", "equals": "closed"}, {"field": "n", "equals": 2}]}, False),
        ({"not": {"field": "action", "equals": "closed"}}, True),
        ({"not": [{"field": "action", "equals": "opened"}]}, False),
        ({"not": {"any": [{"field": "n", "equals": 1}, {"all": [{"field": "on", "equals": True}]}]}}, False),
        (None, True),
    ],
)
def test_what_counts(said: object, result: bool) -> None:
    assert counts(said) is result


def test_an_event_type_may_stand_in_the_payload() -> None:
    said = {"field": "event_type", "equals": "pushed"}
    assert counts(said, {"event_type": "pushed"}, None)
    assert not counts(said, {}, None)
    assert counts({"field": "event_type", "missing": True}, {}, None)


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ({}, "must be a condition"),
        ([], "one at least"),
        ("action", "must be a condition"),
        (1, "must be a condition"),
        ([{}], "must be a condition"),
        ({"field": "a"}, "exactly one of equals, not_equals, contains, exists, missing, in, regex"),
        ({"field": "a", "equal": 1}, "not 'equal'"),
        ({"field": "a", "equals": 1, "exists": True}, "not 'equals' and 'exists'"),
        ({"field": 1, "equals": 1}, "as text"),
        ({"field": "__class__", "equals": 1}, "underscore"),
        ({"field": "a[0]", "equals": 1}, "a.b.0.c"),
        ({"field": "", "equals": 1}, "a.b.0.c"),
        ({"field": "a", "exists": "yes"}, "true or false"),
        ({"field": "a", "missing": 1}, "true or false"),
        ({"field": "a", "in": "abc"}, "a list"),
        ({"field": "a", "in": []}, "one thing"),
        ({"field": "a", "regex": "("}, "not a valid pattern"),
        ({"field": "a", "regex": 7}, "must be a pattern"),
        ({"field": "a", "regex": "x" * (PATTERN_MAX + 1)}, "must be a pattern"),
        ({"field": "a", "equals": datetime.date(2026, 1, 1)}, "in quotes"),
        ({"field": "a", "in": [datetime.time(4)]}, "in quotes"),
        ({"field": "a", "equals": {"b": [datetime.time(4)]}}, "in quotes"),
        ({"all": {"field": "a", "equals": 1}}, "a list of conditions in all"),
        ({"any": []}, "a list of conditions in any"),
        ({"not": []}, "one at least"),
        ({"none": [{"field": "a", "equals": 1}]}, "none of field, all, any and not"),
        ({"all": [], "any": []}, "side by side"),
        ({1: 2}, "must be a condition"),
        ([{"field": "a", "equals": 1}] * (CONDITIONS_MAX + 1), "more than"),
    ],
)
def test_what_is_no_filter_is_refused_when_it_is_read(said: object, hint: str) -> None:
    with pytest.raises(Rejected) as refused:
        parse(said)
    assert hint in str(refused.value)


def test_a_filter_has_a_bottom() -> None:
    deep: object = {"field": "action", "equals": "opened"}
    for _ in range(DEPTH_MAX - 1):
        deep = {"not": deep}
    assert counts(deep) is bool(DEPTH_MAX % 2)
    for _ in range(10_000):
        deep = {"not": deep}
    with pytest.raises(Rejected, match="deeper"):
        parse(deep)


def test_a_pattern_looks_at_so_much_and_no_more() -> None:
    said = {"field": "text", "regex": "needle"}
    assert counts(said, {"text": "x" * (SEARCHED_MAX - 6) + "needle"})
    assert not counts(said, {"text": "x" * (SEARCHED_MAX - 5) + "needle"})


@pytest.mark.parametrize(
    ("pattern", "text"),
    [(r"^(\w+\s?)+$", "a" * 60 + "!"), (r"foo.*bar.*baz.*end", "foobarbaz" * 1_000), (r"(a|a)*b", "a" * 60)],
)
async def test_a_pattern_that_a_stranger_can_keep_busy_is_given_up(pattern: str, text: str, pool: Pool) -> None:
    """The search would not end before whoever runs this has lost patience; `not` must not turn it into a yes."""
    hostile, ordinary = (Payload(data={"text": each}, raw="") for each in (text, "foobarbazend aab"))
    with pytest.raises(TooSlow, match="took longer than"):
        await takes({"not": {"field": "text", "regex": pattern}}, hostile, pool, "route")
    # Whatever comes next has its time again.
    assert await takes({"field": "text", "regex": pattern}, ordinary, pool, "route") in (True, False)


async def test_a_filter_that_searches_decides_the_same_in_a_child(pool: Pool) -> None:
    said = {"any": [{"field": "text", "regex": "^the disk"}, {"field": "event_type", "equals": "push"}]}
    assert await takes(said, Payload(data=DATA, raw=""), pool, "route")
    assert await takes(said, Payload(data={}, raw="", event_type="push"), pool, "route")
    assert not await takes(said, Payload(data={"text": "no"}, raw=""), pool, "route")
