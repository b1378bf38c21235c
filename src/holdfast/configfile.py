"""Builds a frozen tree of dataclasses from a TOML file and the environment; errors name the file and line."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import time
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from holdfast.errors import ConfigInvalid

# Larger than any useful setting, and small enough to be multiplied safely.
NUMBER_MAX = 1_000_000_000
Where = tuple[str, ...]
Table = dict[str, object]
# What a field is declared with that takes every key of its table that no other field has.  Each is a table of its own, with
# the settings of a kind, which is its setting `kind` or else its name.
BY_KIND: Mapping[str, bool] = MappingProxyType({"by_kind": True})


def _none(_kind: str) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """The settings of each kind of table, as dataclasses.  They may come from other packages.

    `find` returns None for an unknown kind.  For one whose package has a fault it returns `unusable`, which has the settings
    of all kinds: the others in such a table are left out, because they cannot be checked.
    """

    find: Callable[[str], type[Any] | None] = _none
    names: Callable[[], Sequence[str]] = tuple[str, ...]
    unusable: type[Any] | None = None


NO_KINDS = Kinds()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSource:
    """Where a configuration came from: a file, and the environment variables that override parts of it, by path.

    `file` is None for a text that is not saved yet.
    """

    file: Path | None
    text: str = ""
    variables: Mapping[Where, str] = dataclasses.field(default_factory=dict[Where, str])
    kinds: Kinds = NO_KINDS

    def error(self, path: Where, problem: str) -> ConfigInvalid:
        """Return an error that names the variable, or the file and line, of a setting."""
        # A missing key has no place of its own, and a variable may have created its table.
        parents = (path[:depth] for depth in range(len(path), 0, -1))
        variable = next((self.variables[each] for each in parents if each in self.variables), None)
        written = f"{self.file}:{line_of(self.text, path)}: " if self.file else ""
        where = f"environment: {variable}: " if variable else written
        return ConfigInvalid(f"{where}{'.'.join(path)}: {problem}")

    def placed(self, error: ConfigInvalid) -> ConfigInvalid:
        """Return an error that begins with a setting with the place of that setting; unchanged if it has no place."""
        setting, _, problem = str(error).partition(": ")
        known = [*self.variables, *(path for path, _ in _places(self.text))]
        return next((self.error(path, problem) for path in known if ".".join(path) == setting), error)


def read(file: Path, *, required: bool) -> tuple[str, Table]:
    """Return the text and the tree of a file; both empty if it is missing and not required."""
    text = text_of(file, required=required)
    return text, parsed(text, file)


def parsed(text: str, file: Path | None = None) -> Table:
    """Return the tree of a document.  Raises `ConfigInvalid`, which names the file and line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = match[1] if (match := re.search(r"line (\d+)", str(error))) else "1"
        raise ConfigInvalid(f"{file}:{line}: {error}" if file else str(error)) from error


def text_of(file: Path, *, required: bool) -> str:
    """Return the text of a file; empty if it is missing and not required.  Raises `ConfigInvalid`."""
    try:
        content = file.read_bytes()
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not required:
            return ""
        raise ConfigInvalid(f"{file}: {error.strerror}") from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigInvalid(f"{file}:{line}: is not UTF-8") from error


def override(
    kind: type[Any], tree: Table, environment: Mapping[str, str], prefix: str, kinds: Kinds = NO_KINDS
) -> Mapping[Where, str]:
    """Override a tree with the variables named PREFIX_SECTION__KEY; return the variable of each changed path."""
    decided: dict[Where, str] = {}
    for name, value in environment.items():
        words = name.removeprefix(prefix).split("__")
        if name.startswith(prefix) and len(words) > 1:
            path, hint = _named(kind, tree, words, kinds)
            decided |= dict.fromkeys(_put(tree, path, _literal(value, hint)), name)
    return decided


def _named(kind: object, tree: object, words: Sequence[str], kinds: Kinds) -> tuple[Where, object]:
    """Return the path that the words of a variable name, and the type of that setting; None if there is none."""
    path: list[str] = []
    for word in words:
        known: Sequence[str] = list(cast("Table", tree)) if isinstance(tree, dict) else ()
        # Names of the operator may have capitals.  Keys of a table of texts, such as `env`, keep theirs.
        fresh = word if get_args(kind)[1:] == (str,) else word.lower()
        key = next((each for each in known if each.lower() == word.lower()), fresh)
        path.append(key)
        tree = cast("Table", tree).get(key) if isinstance(tree, dict) else None
        kind = kinds.find(_kind_of(key, tree)) if _is_by_kind(kind, key) else _below(kind, key)
    return tuple(path), kind


def _below(kind: object, key: str) -> object:
    if dataclasses.is_dataclass(kind):
        return get_type_hints(cast("type[Any]", kind)).get(key)
    return get_args(kind)[1] if isinstance(origin := get_origin(kind), type) and issubclass(origin, Mapping) else None


def by_kind(kind: object) -> str | None:
    """Return the field of a dataclass that takes the tables that it has by kind."""
    if not dataclasses.is_dataclass(kind):
        return None
    return next((each.name for each in dataclasses.fields(kind) if each.metadata == BY_KIND), None)


def _is_by_kind(kind: object, key: str) -> bool:
    field = by_kind(kind)
    return field is not None and (key == field or _below(kind, key) is None)


def _kind_of(name: str, tree: object) -> str:
    kind = cast("Table", tree).get("kind") if isinstance(tree, dict) else None
    return kind if isinstance(kind, str) and kind else name


def _put(tree: Table, path: Where, value: object) -> Iterator[Where]:
    """Set one value and create the tables that lead to it; yield each path that is new or changed."""
    for depth, key in enumerate(path[:-1], 1):
        if key not in tree:
            yield path[:depth]
        below = tree.setdefault(key, {})
        if not isinstance(below, dict):
            # `build` refuses a value where a table belongs.
            return
        tree = cast("Table", below)
    tree[path[-1]] = value
    yield path


def _literal(value: str, kind: object) -> object:
    """Return the value of a variable.  Text needs no quotes there, even if it looks like a number."""
    try:
        said = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value
    return value if (kind is str or get_origin(kind) is Literal) and not isinstance(said, str) else said


def build(kind: type[Any], tree: object, source: ConfigSource, path: Where = (), root: type[Any] | None = None) -> Any:
    """Return a dataclass filled from a tree.  Raises `ConfigInvalid` for an unknown key or a wrong type."""
    # `Any` because the caller chooses the dataclass.
    if not isinstance(tree, dict):
        raise source.error(path, "must be a table")
    hints, field = get_type_hints(kind), by_kind(kind)
    values: dict[str, object] = {}
    named: dict[str, object] = {}
    for key, value in cast("Table", tree).items():
        here = (*path, key)
        if _is_by_kind(kind, key):
            named[key] = _of_kind(value, source, here, [each for each in hints if each != field])
        elif key not in hints:
            raise source.error(here, f"unknown key; {_advice(key, hints, root or kind)}")
        else:
            values[key] = _check(hints[key], value, source, here, root or kind)
    return kind(**values, **({field: named} if field and named else {}))


def _of_kind(tree: object, source: ConfigSource, path: Where, beside: Sequence[str]) -> object:
    """Return the settings of a table whose kind says which there are; `beside` are the keys that are no such table."""
    kind = _kind_of(path[-1], tree)
    says_kind = kind != path[-1]
    at = (*path, "kind") if says_kind else path
    settings = source.kinds.find(kind)
    if settings is None:
        known = [*source.kinds.names(), *(() if says_kind else beside)]
        near = difflib.get_close_matches(kind, known, n=1)
        advice = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        if says_kind:
            raise source.error(at, f"unknown kind {kind!r}; {advice}")
        named = "; a table with another name needs a kind" if isinstance(tree, dict) and not near else ""
        raise source.error(at, f"unknown key; {advice}{named}")
    if settings is source.kinds.unusable and isinstance(tree, dict):
        tree = {key: value for key, value in cast("Table", tree).items() if key in get_type_hints(settings)}
    return build(settings, tree, source, path)


def _advice(key: str, known: Mapping[str, object], root: type[Any]) -> str:
    if near := difflib.get_close_matches(key, known, n=1):
        return f"did you mean {near[0]}?"
    elsewhere = [".".join(path) for path in _paths(root) if path[-1] == key]
    return f"did you mean {' or '.join(elsewhere)}?" if elsewhere else f"known are {', '.join(known)}"


def _paths(kind: object, path: Where = ()) -> Iterator[Where]:
    """Yield the path of every setting; NAME stands for a name that the operator chooses."""
    if dataclasses.is_dataclass(kind):
        field = by_kind(kind)
        for key, hint in get_type_hints(cast("type[Any]", kind)).items():
            if key == field:
                yield from _paths(hint, path)
            else:
                yield (*path, key)
                yield from _paths(hint, (*path, key))
    elif (below := _below(kind, "")) is not None:
        yield from _paths(below, (*path, "NAME"))


def _check(kind: Any, value: object, source: ConfigSource, path: Where, root: type[Any]) -> object:
    if dataclasses.is_dataclass(kind):
        return build(cast("type[Any]", kind), value, source, path, root)
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise source.error(path, f"must be one of {', '.join(map(repr, get_args(kind)))}")
    elif kind is bool:
        if not isinstance(value, bool):
            raise source.error(path, "must be true or false")
    elif kind is object:
        # The component that uses it checks it.
        return value
    elif kind in (int, float):
        return _number(kind, value, source, path)
    elif kind is str:
        if not isinstance(value, str):
            raise source.error(path, "must be text in quotes")
    elif kind is time:
        return _time_of_day(value, source, path)
    elif get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise source.error(path, 'must be a list, like ["…"]')
        return tuple(_check(get_args(kind)[0], each, source, path, root) for each in cast("list[object]", value))
    else:
        if not isinstance(value, dict):
            raise source.error(path, "must be a table, like { webhook = … }")
        below = get_args(kind)[1]
        return {name: _check(below, each, source, (*path, name), root) for name, each in cast("Table", value).items()}
    return value


def _number(kind: type[int] | type[float], value: object, source: ConfigSource, path: Where) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= NUMBER_MAX:
        raise source.error(path, f"must be a number, not negative and {NUMBER_MAX} at most")
    if kind is int and value != int(value):
        raise source.error(path, "must be a whole number")
    return kind(value)


def _time_of_day(value: object, source: ConfigSource, path: Where) -> time:
    if isinstance(value, time):
        return value
    try:
        return time.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise source.error(path, 'must be a time of day, like "04:00"') from None


def line_of(text: str, path: Where) -> int:
    """Return the line of a key, or of the table that it belongs in."""
    found = dict(reversed(list(_places(text))))
    return next((found[path[:depth]] for depth in range(len(path), 0, -1) if path[:depth] in found), 1)


def _places(text: str) -> Iterator[tuple[Where, int]]:
    """Yield the path and first line of every table and key, by parsing the smallest pieces that are valid TOML alone."""
    table: Where = ()
    piece, begin = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        piece, begin = f"{piece}{line}\n", begin or number
        with contextlib.suppress(tomllib.TOMLDecodeError):
            paths = list(_keys(tomllib.loads(piece)))
            if piece.lstrip().startswith("["):
                table = paths[-1]
                yield from ((each, begin) for each in paths)
            else:
                yield from (((*table, *each), begin) for each in paths)
            piece, begin = "", 0


def _keys(tree: object) -> Iterator[Where]:
    """Yield every path of a tree, parents first."""
    for each in cast("list[object]", tree)[-1:] if isinstance(tree, list) else (tree,):
        for key, value in cast("Table", each).items() if isinstance(each, dict) else ():
            yield (key,)
            yield from ((key, *path) for path in _keys(value))
