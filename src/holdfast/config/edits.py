"""Edits: one setting of a TOML document changed, and every other line of it left as it is.

What comes out is read again and compared with what was meant, so that an edit is right or refused.
"""

from __future__ import annotations

import copy
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import cast

from holdfast.configfile import Table, Where, line_of
from holdfast.errors import ConfigInvalid

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_NAME = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY = re.compile(rf"[ \t]*{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*[ \t]*=[ \t]*")
_HEADER = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_NAME}(?:[ \t]*\.[ \t]*{_NAME})*)[ \t]*\]")
# What a basic string must not hold as it is.
_CONTROLS = {code: f"\\u{code:04X}" for code in (*range(0x20), 0x7F)}
_ESCAPES = str.maketrans({**{chr(code): text for code, text in _CONTROLS.items()}, '"': '\\"', "\\": "\\\\"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """Lines that can be read alone: a header, or a key with its value.  `path` is where it stands in the document."""

    first: int
    last: int
    path: Where
    table: Where
    text: str
    header: str = ""
    # Inside an array of tables a path alone does not say which of them is meant.
    listed: bool = False


def edited(text: str, path: Where, value: object) -> str:
    """Return a document, which can be read, with another value of one setting, or with none.

    Raises `ConfigInvalid` where only a person can do that.
    """
    tree = tomllib.loads(text)
    if value is None and not _holds(tree, path):
        return text
    meant = _set(tree, path, value)
    found = _Document(text).edited(path, value)
    try:
        if meant is not None and _same(tomllib.loads(found), meant, path):
            return found
    except tomllib.TOMLDecodeError:
        pass
    line = line_of(text, path)
    raise ConfigInvalid(f"{'.'.join(path)}: cannot be changed from here as it stands; edit line {line} of the file by hand")


def literal(value: object) -> str:
    """Return a value as TOML, on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value.translate(_ESCAPES)}"'
        case float() if not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        case int() | float():
            return repr(value)
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            pairs = cast("Mapping[str, object]", value).items()
            return f"{{ {', '.join(f'{_key((key,))} = {literal(each)}' for key, each in pairs)} }}" if pairs else "{}"
        case list() | tuple():
            return f"[{', '.join(literal(each) for each in cast('Sequence[object]', value))}]"
        case _:
            raise TypeError(f"{type(value).__name__} is nothing that TOML has")


class _Document:
    """A document by its lines."""

    def __init__(self, text: str) -> None:
        self._end = "\r\n" if "\r\n" in text else "\n"
        self._lines = _lines(text)
        self._pieces = list(_pieces(self._lines))

    def edited(self, path: Where, value: object) -> str:
        for piece in self._pieces:
            if not piece.header and not piece.listed and piece.path == path[: len(piece.path)]:
                return self._replaced(piece, path[len(piece.path) :], value)
        # A table that has a header of its own is more than one key.
        return "".join(self._lines) if value is None else self._added(path, value)

    def _replaced(self, piece: _Piece, rest: Where, value: object) -> str:
        """Return the document with the value of a key changed, or a part of what stands inside it."""
        key, old, comment = _parts(piece)
        if _is_commented(old):
            # What is said inside of it would be lost.
            return "".join(self._lines)
        if rest:
            whole = _set(_read(piece), (*piece.path[len(piece.table) :], *rest), value)
            value = _at(whole, piece.path[len(piece.table) :])
        if value is None:
            return self._with(piece, [f"{comment.lstrip()}{self._end}"] if comment else [])
        return self._with(piece, [f"{key}{literal(value)}{comment}{self._end}"])

    def _with(self, piece: _Piece, lines: Sequence[str]) -> str:
        return "".join([*self._lines[: piece.first], *lines, *self._lines[piece.last + 1 :]])

    def _added(self, path: Where, value: object) -> str:
        """Return the document with one more key, beside those of its table."""
        table = path[:-1]
        own = [each for each in self._pieces if not each.listed and (each.path if each.header else each.table) == table]
        own = [each for each in own if each.header != "[["]
        dotted = [
            each
            for each in self._pieces
            if not each.header and not each.listed and len(each.table) < len(table) and each.path[: len(table)] == table
        ]
        beside = own or dotted
        if beside:
            last = beside[-1]
            within = last.path if last.header else last.table
            return self._inserted(last.last + 1, [f"{_key(path[len(within) :])} = {literal(value)}"])
        if not table:
            return self._inserted(0, [f"{_key(path)} = {literal(value)}"])
        gap = [""] if self._lines and self._lines[-1].strip() else []
        return self._inserted(len(self._lines), [*gap, f"[{_key(table)}]", f"{_key(path[-1:])} = {literal(value)}"])

    def _inserted(self, place: int, lines: Sequence[str]) -> str:
        before = list(self._lines[:place])
        if before and not before[-1].endswith("\n"):
            before[-1] += self._end
        return "".join([*before, *(f"{line}{self._end}" for line in lines), *self._lines[place:]])


def _lines(text: str) -> list[str]:
    """Return lines with their ends.  Only a line feed ends one: whatever else looks like an end may stand in a string."""
    pieces = text.split("\n")
    return [f"{each}\n" for each in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def _pieces(lines: Sequence[str]) -> Iterator[_Piece]:
    """Yield headers and keys in their order; each piece that can be read alone is read alone."""
    table: Where = ()
    lists: set[Where] = set()
    text, first = "", 0
    for number, line in enumerate(lines):
        text, first = (text + line, first) if text else (line, number)
        try:
            tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        if header := _HEADER.match(text):
            table = _path(header[2])
            if header[1] == "[[":
                lists.add(table)
        listed = any(table[:depth] in lists for depth in range(1, len(table) + 1))
        if header:
            yield _Piece(first=first, last=number, path=table, table=table, text=text, header=header[1], listed=listed)
        elif key := _KEY.match(text):
            path = (*table, *_path(key[0].rstrip().removesuffix("=")))
            yield _Piece(first=first, last=number, path=path, table=table, text=text, listed=listed)
        text = ""


def _path(key: str) -> Where:
    """Return what a key names."""
    tree: object = tomllib.loads(f"{key} = 0")
    path: list[str] = []
    while isinstance(tree, dict):
        ((name, tree),) = cast("Table", tree).items()
        path.append(name)
    return tuple(path)


def _key(path: Where) -> str:
    return ".".join(each if _BARE.fullmatch(each) else literal(each) for each in path)


def _parts(piece: _Piece) -> tuple[str, str, str]:
    """Return a key with what stands up to its value, the value, and what is said behind it."""
    found = _KEY.match(piece.text)
    key = found[0] if found else ""
    body = piece.text.rstrip("\r\n")
    start = body.rfind("\n") + 1
    while (mark := body.find("#", max(start, len(key)))) >= 0:
        try:
            tomllib.loads(body[:mark])
        except tomllib.TOMLDecodeError:
            start = mark + 1
            continue
        value = body[:mark].rstrip()
        return key, value[len(key) :], body[len(value) :]
    return key, body[len(key) :], ""


def _is_commented(value: str) -> bool:
    """Return whether something may be said between the lines of a list."""
    return value.startswith("[") and "\n" in value and "#" in value


def _read(piece: _Piece) -> Table:
    return tomllib.loads(piece.text)


def _set(tree: Table, path: Where, value: object) -> Table | None:
    """Return a tree in which one value is another, or gone; None where something else stands on the way to it."""
    changed = copy.deepcopy(tree)
    here = changed
    for key in path[:-1]:
        below = here.setdefault(key, {})
        if not isinstance(below, dict):
            return None
        here = cast("Table", below)
    if value is None:
        here.pop(path[-1], None)
    else:
        here[path[-1]] = value
    return changed


def _holds(tree: object, path: Where) -> bool:
    for key in path:
        if not isinstance(tree, dict) or key not in tree:
            return False
        tree = cast("Table", tree)[key]
    return True


def _at(tree: object, path: Where) -> object:
    for key in path:
        tree = cast("Table", tree)[key] if isinstance(tree, dict) else None
    return tree


def _same(tree: object, meant: object, path: Where) -> bool:
    """Return whether two trees say the same; a table on the way to a setting may be missing where it is empty."""
    return _without_empty(tree, path[:-1]) == _without_empty(meant, path[:-1])


def _without_empty(tree: object, path: Where) -> object:
    if not path or not isinstance(tree, dict):
        return tree
    here = cast("Table", tree)
    if path[0] not in here:
        return here
    below = _without_empty(here[path[0]], path[1:])
    rest = {key: each for key, each in here.items() if key != path[0]}
    return rest if below == {} else {**rest, path[0]: below}
