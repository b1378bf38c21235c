"""Filters: which deliveries of a route start a turn.

    { field = "action", equals = "opened" }        one condition; see OPERATORS
    [ …, … ]  or  { all = [ … ] }                  all of them
    { any = [ … ] }                                one of them
    { not = … }                                    not that one

A wrong filter is refused when it is parsed.  A filter with a regular expression runs in a child process, because a pattern
may take for ever on hostile text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeGuard, cast

import msgspec

from holdfast.channels.webhook import fields
from holdfast.channels.webhook.payload import Payload
from holdfast.errors import Rejected
from holdfast.offload.function import offloadable
from holdfast.offload.pool import Pool

DEPTH_MAX = 8
CONDITIONS_MAX = 100
PATTERN_MAX = 500
SEARCHED_MAX = 10_000
# A sound pattern needs far less.
SEARCH_MAX_S = 1.0

Wanted = Callable[[Payload], bool]
_Test = Callable[[object], bool]


def everything(_payload: Payload) -> bool:
    """Accept every delivery."""
    return True


class TooSlow(Rejected):
    """A regular expression took too long."""


class FilterInput(msgspec.Struct, kw_only=True):
    """What the child process gets: a filter as JSON, and the payload."""

    filters: bytes
    data: dict[str, object]
    event_type: str | None


async def takes(said: object, payload: Payload, pool: Pool, user: str) -> bool:
    """Return whether a valid filter accepts a delivery.  Raises `TooSlow`."""
    if not _searches(said):
        return parse(said)(payload)
    delivery = FilterInput(filters=msgspec.json.encode(said), data=dict(payload.data), event_type=payload.event_type)
    try:
        return await pool.run(apply, delivery, SEARCH_MAX_S, user=user)
    except TimeoutError:
        raise TooSlow(f"a pattern of the route's filters took longer than {SEARCH_MAX_S:g} s") from None


@offloadable
def apply(delivery: FilterInput) -> bool:
    """Return whether a filter accepts a delivery."""
    return _wanted(delivery.filters)(Payload(data=delivery.data, raw="", event_type=delivery.event_type))


@lru_cache
def _wanted(filters: bytes) -> Wanted:
    return parse(msgspec.json.decode(filters))


def _searches(said: object) -> bool:
    """Return whether a filter has a regular expression."""
    if _is_table(said):
        return ("field" in said and "regex" in said) or any(map(_searches, said.values()))
    return _is_list(said) and any(map(_searches, said))


def parse(said: object) -> Wanted:
    """Parse a filter; None accepts every delivery.  Raises `Rejected`."""
    if said is None:
        return everything
    _count(said, DEPTH_MAX)
    return _parse(said)


def _count(said: object, depth: int) -> int:
    """Refuse a filter that is too deep or too large, before it is parsed."""
    if depth == 0:
        raise Rejected(f"is nested deeper than {DEPTH_MAX} levels")
    inner: Sequence[object] = ()
    if _is_table(said):
        inner = tuple(said.values())
    elif _is_list(said):
        inner = said
    total = len(inner) + sum(_count(each, depth - 1) for each in inner if _is_table(each) or _is_list(each))
    if total > CONDITIONS_MAX:
        raise Rejected(f"has more than {CONDITIONS_MAX} parts")
    return total


def _parse(said: object) -> Wanted:
    if _is_list(said):
        return _all(said)
    if not _is_table(said) or not said:
        raise Rejected('must be a condition, like { field = "action", equals = "opened" }, or a list of them')
    if "field" in said:
        return _condition(said)
    if len(said) != 1:
        raise Rejected(f"has {_listed(said)} side by side; write one of field, all, any and not in each table")
    ((word, below),) = said.items()
    match word:
        case "all":
            return _all(below)
        case "any":
            return _any(below)
        case "not":
            inner = _parse(below)
            return lambda payload: not inner(payload)
        case _:
            raise Rejected(f"has {word!r}, which is none of field, all, any and not")


def _all(said: object) -> Wanted:
    parts = _parts(said, "all")
    return lambda payload: all(part(payload) for part in parts)


def _any(said: object) -> Wanted:
    parts = _parts(said, "any")
    return lambda payload: any(part(payload) for part in parts)


def _parts(said: object, word: str) -> list[Wanted]:
    if not _is_list(said) or not said:
        raise Rejected(f"needs a list of conditions in {word}, with one at least")
    return [_parse(each) for each in said]


def _condition(said: Mapping[str, object]) -> Wanted:
    name = said["field"]
    if not isinstance(name, str):
        raise Rejected('must name its field as text, like field = "a.b"')
    given = [key for key in said if key != "field"]
    if len(given) != 1 or given[0] not in OPERATORS:
        what = f"not {_listed(given)}" if given else "and has none"
        raise Rejected(f"needs exactly one of {', '.join(OPERATORS)} for the field {name!r}, {what}")
    path = fields.parse(name)
    try:
        test = OPERATORS[given[0]](said[given[0]])
    except Rejected as error:
        raise Rejected(f"has a wrong {given[0]} for the field {name!r}: {error}") from None
    if path == (fields.EVENT_TYPE,):
        return lambda payload: test(_type(payload))
    return lambda payload: test(fields.find(payload.data, path))


def _type(payload: Payload) -> object:
    if payload.event_type is not None:
        return payload.event_type
    return payload.data.get(fields.EVENT_TYPE, fields.MISSING)


def _equals(wanted: object) -> _Test:
    _refuse_odd(wanted)
    return lambda found: _same(found, wanted)


def _not_equals(wanted: object) -> _Test:
    _refuse_odd(wanted)
    return lambda found: not _same(found, wanted)


def _contains(wanted: object) -> _Test:
    _refuse_odd(wanted)

    def test(found: object) -> bool:
        if isinstance(found, str):
            return isinstance(wanted, str) and wanted in found
        if _is_list(found):
            return any(_same(each, wanted) for each in found)
        return _is_table(found) and isinstance(wanted, str) and wanted in found

    return test


def _exists(wanted: object) -> _Test:
    if not isinstance(wanted, bool):
        raise Rejected("it must be true or false")
    return lambda found: (found is not fields.MISSING) == wanted


def _missing(wanted: object) -> _Test:
    if not isinstance(wanted, bool):
        raise Rejected("it must be true or false")
    return lambda found: (found is fields.MISSING) == wanted


def _in(wanted: object) -> _Test:
    if not _is_list(wanted) or not wanted:
        raise Rejected("it must be a list, with one thing in it at least")
    _refuse_odd(wanted)
    return lambda found: any(_same(found, each) for each in wanted)


def _regex(wanted: object) -> _Test:
    if not isinstance(wanted, str) or len(wanted) > PATTERN_MAX:
        raise Rejected(f"it must be a pattern, {PATTERN_MAX} characters at most")
    try:
        pattern = re.compile(wanted)
    except (re.error, OverflowError, RecursionError) as error:
        raise Rejected(f"it is not a valid pattern: {error}") from None

    def test(found: object) -> bool:
        # Other values are searched as JSON.
        text = found if isinstance(found, str) else "" if found is fields.MISSING else msgspec.json.encode(found).decode()
        return found is not fields.MISSING and pattern.search(text[:SEARCHED_MAX]) is not None

    return test


OPERATORS: Mapping[str, Callable[[object], _Test]] = {
    "equals": _equals,
    "not_equals": _not_equals,
    "contains": _contains,
    "exists": _exists,
    "missing": _missing,
    "in": _in,
    "regex": _regex,
}


def _same(found: object, wanted: object) -> bool:
    """Compare as JSON does: true is not 1, as it is in Python."""
    if _is_list(found) and _is_list(wanted):
        return len(found) == len(wanted) and all(map(_same, found, wanted))
    if _is_table(found) and _is_table(wanted):
        return found.keys() == wanted.keys() and all(_same(found[key], wanted[key]) for key in found)
    return isinstance(found, bool) == isinstance(wanted, bool) and found == wanted


def _refuse_odd(wanted: object) -> None:
    """Refuse a value that JSON does not have, such as a date of TOML: no field could ever equal it."""
    for each in wanted if _is_list(wanted) else wanted.values() if _is_table(wanted) else ():
        _refuse_odd(each)
    if not isinstance(wanted, str | int | float | bool | list | dict | None):
        raise Rejected(f"{wanted} is not text, a number, true or false; write it in quotes")


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def _is_table(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict) and all(isinstance(key, str) for key in cast("dict[object, object]", value))


def _listed(words: Sequence[str] | Mapping[str, object]) -> str:
    return " and ".join(repr(word) for word in words)
