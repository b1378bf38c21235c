"""Edits: one setting of a TOML document changed; comments, order and all other lines stay.

tomlkit does the editing.  Its result is parsed again and compared with what was meant, so an edit is right or it is refused.
"""

from __future__ import annotations

import copy
import tomllib
from typing import Any, cast

from holdfast.configfile import Table, Where, line_of
from holdfast.errors import ConfigInvalid


def edited(text: str, path: Where, value: object) -> str:
    """Return a valid document with another value of one setting, or without that setting if `value` is None.

    Raises `ConfigInvalid` if only a person can do that.
    """
    tree = tomllib.loads(text)
    if value is None and not _holds(tree, path):
        return text
    meant = _set(tree, path, value)
    # A table that is missing on the way gets a header.  Inside inline tables and dotted keys only an inline table can stand.
    for inline in (False, True) if meant is not None else ():
        found = _changed(text, path, value, inline=inline)
        if found is not None and _same(found, meant, path):
            return found
    line = line_of(text, path)
    raise ConfigInvalid(f"{'.'.join(path)}: cannot be changed from here as it stands; edit line {line} of the file by hand")


def _changed(text: str, path: Where, value: object, *, inline: bool) -> str | None:
    """Return the document as tomlkit changes it; None if a whole table or the comments inside a list would be lost."""
    # Importing it takes longer than most commands do, and only writing needs it.
    import tomlkit
    from tomlkit import items
    from tomlkit.container import OutOfOrderTableProxy
    from tomlkit.exceptions import TOMLKitError

    document = tomlkit.parse(text)
    # `Any` because tomlkit types what a key holds as all that TOML has.
    here: Any = document
    try:
        for key in path[:-1]:
            if key not in here:
                here[key] = tomlkit.inline_table() if inline else tomlkit.table()
            here = here[key]
        old = here.get(path[-1])
        if isinstance(old, items.Table | items.AoT | OutOfOrderTableProxy):
            return None
        if isinstance(old, items.Array) and "#" in old.as_string():
            return None
        if isinstance(value, dict) and old is not None:
            # A table with a header could not take over the comment behind the old value.
            here[path[-1]] = tomlkit.inline_table()
            here[path[-1]].update(value)
        elif value is not None:
            here[path[-1]] = value
        elif isinstance(here, OutOfOrderTableProxy):
            del here[path[-1]]
        else:
            _remove(here if here is document else here.value, path[-1])
        return tomlkit.dumps(document)
    except (TOMLKitError, ValueError):
        return None


def _remove(container: Any, name: str) -> None:
    """Remove one key.  The comment behind it stays, on a line of its own."""
    from tomlkit.items import Comment, Trivia

    for place, (key, item) in enumerate(container.body):
        if key is not None and key.key == name and item.trivia.comment:
            container.body[place] = (None, Comment(Trivia(comment=item.trivia.comment, trail=item.trivia.trail)))
            return
    container.remove(name)


def _set(tree: Table, path: Where, value: object) -> Table | None:
    """Return a tree in which one value is another, or gone; None if something that is no table stands on the way to it."""
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


def _same(text: str, meant: object, path: Where) -> bool:
    """Return whether a document says what was meant; a table on the way to the setting may be missing if it is empty."""
    try:
        return _without_empty(tomllib.loads(text), path[:-1]) == _without_empty(meant, path[:-1])
    except tomllib.TOMLDecodeError:
        return False


def _without_empty(tree: object, path: Where) -> object:
    if not path or not isinstance(tree, dict) or path[0] not in tree:
        return cast("object", tree)
    here = cast("Table", tree)
    below = _without_empty(here[path[0]], path[1:])
    rest = {key: each for key, each in here.items() if key != path[0]}
    return rest if below == {} else {**rest, path[0]: below}
