"""Edits of a configuration file: what was meant is changed, all else stays, and what cannot be changed so is refused."""

from __future__ import annotations

import copy
import re
import tomllib
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.config.edits import edited
from holdfast.errors import ConfigInvalid

# What a basic string must not hold as it is.
ESCAPES = str.maketrans({**{chr(code): f"\\u{code:04X}" for code in (*range(0x20), 0x7F)}, '"': '\\"', "\\": "\\\\"})
NAMES = st.sampled_from(["a", "b", "c-1", "a key", "ü.x", 'quo"ted', ""])
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=12)
SCALARS = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False), TEXT)
VALUES = st.one_of(SCALARS, st.lists(TEXT, max_size=3), st.dictionaries(NAMES, SCALARS, max_size=2))
TREES = st.recursive(
    st.dictionaries(NAMES, SCALARS, max_size=3),
    lambda inner: st.dictionaries(
        NAMES, st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.lists(inner, min_size=1, max_size=2), inner), max_size=3
    ),
    max_leaves=8,
)


def literal(value: Any) -> str:
    """Return a value as TOML, on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value.translate(ESCAPES)}"'
        case dict():
            pairs = ", ".join(f"{plain_key(key)} = {literal(each)}" for key, each in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
        case list():
            return f"[{', '.join(map(literal, value))}]"
        case _:
            return repr(value)


def plain_key(name: str) -> str:
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else literal(name)


class Writer:
    """Writes a tree down in one of all the ways in which TOML can say it."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self.comments: list[str] = []

    def document(self, tree: dict[str, Any]) -> str:
        text = "".join(f"{line}\n" for line in self.table(tree, ()))
        text = text if self.choose(True, False) else text.removesuffix("\n")
        return text.replace("\n", "\r\n") if self.choose(False, False, True) and '"""' not in text else text

    def choose(self, *ways: Any) -> Any:
        return self._draw(st.sampled_from(ways))

    def table(self, tree: dict[str, Any], path: tuple[str, ...]) -> list[str]:
        """Keys first, because whatever stands behind a header belongs to it."""
        keys: list[str] = []
        headers: list[str] = []
        for key, value in tree.items():
            if (
                isinstance(value, dict)
                and (way := self.choose("header", "header", "inline", "dotted")) != "inline"
                and value
            ):
                if way == "header":
                    inside = self.table(value, (*path, key))
                    # A table needs no header of its own where all of it stands behind others.
                    if not inside[0].lstrip().startswith("[") or self.choose(True, False):
                        headers += [f"{self.indent()}[{self.key((*path, key))}]{self.remark()}"]
                    headers += inside
                else:
                    keys += [f"{self.key((key, inner))} = {literal(each)}{self.remark()}" for inner, each in value.items()]
            elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
                for each in value:
                    headers += [f"[[{self.key((*path, key))}]]", *self.table(each, (*path, key))]
            else:
                keys += [f"{self.indent()}{self.key((key,))} = {self.value(value)}{self.remark()}"]
            (headers or keys).extend([self.remark().strip()] if self.choose(False, True) else [])
        return keys + headers

    def key(self, path: tuple[str, ...]) -> str:
        return self.choose(".", " . ").join(
            self.choose(plain_key(name), literal(name), f"'{name}'") if "'" not in name else plain_key(name) for name in path
        )

    def value(self, value: Any) -> str:
        if isinstance(value, list) and self.choose(True, False):
            return "[\n  " + ",\n  ".join(map(literal, value)) + "\n]" if value else "[ ]"
        if isinstance(value, str) and self.choose(False, True):
            return f'"""\n{literal(value)[1:-1]}\\\n  """'
        return literal(value)

    def indent(self) -> str:
        return self.choose("", "", "  ")

    def remark(self) -> str:
        if not self.choose(False, True):
            return ""
        self.comments.append(f'# said {len(self.comments)} = "#"')
        return f"  {self.comments[-1]}"


@st.composite
def documents(draw: Any) -> tuple[str, list[str]]:
    writer = Writer(draw)
    tree = draw(TREES)
    text = writer.document(tree)
    assert tomllib.loads(text) == tree
    return text, writer.comments


def put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any] | None:
    """The plain way to do the same to what was read."""
    here = result = copy.deepcopy(tree)
    for key in path[:-1]:
        if value is None and not isinstance(here.get(key), dict):
            return result
        here = here.setdefault(key, {})
        if not isinstance(here, dict):
            return None
    if value is None:
        here.pop(path[-1], None)
    else:
        here[path[-1]] = value
    return result


def without_empty(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    kept = {key: without_empty(each) for key, each in tree.items()}
    return {key: each for key, each in kept.items() if each != {}}


def has_list_of_tables(tree: Any) -> bool:
    if isinstance(tree, list):
        return any(isinstance(each, dict) for each in tree)
    return isinstance(tree, dict) and any(has_list_of_tables(each) for each in tree.values())


@settings(max_examples=400, deadline=None)
@given(documents(), st.lists(NAMES, min_size=1, max_size=3).map(tuple), st.one_of(st.none(), VALUES))
@example(('a = false  # said 0 = "#"\n', ['# said 0 = "#"']), ("a",), {})
def test_what_is_read_afterwards_is_what_was_meant(
    written: tuple[str, list[str]], path: tuple[str, ...], value: Any
) -> None:
    text, comments = written
    before = tomllib.loads(text)
    meant = put(before, path, value)
    try:
        after = edited(text, path, value)
    except ConfigInvalid:
        # Only where something else stands on the way, or one of a list of tables may be meant.
        replaced = before
        for key in path:
            replaced = replaced.get(key) if isinstance(replaced, dict) else None
        assert meant is None or has_list_of_tables(before) or isinstance(replaced, dict), text
        return
    assert meant is not None
    assert without_empty(tomllib.loads(after)) == without_empty(meant)
    assert [each for each in comments if each not in after] == []


@settings(max_examples=200, deadline=None)
@given(documents(), st.lists(NAMES, min_size=2, max_size=2).map(tuple))
def test_what_was_set_and_is_taken_back_leaves_every_line_that_was_there(
    written: tuple[str, list[str]], path: tuple[str, ...]
) -> None:
    text, _ = written
    here: Any = tomllib.loads(text)
    for key in path[:-1]:
        here = here.get(key, {}) if isinstance(here, dict) else None
    if not isinstance(here, dict) or path[-1] in here:
        # Something was set there before, if only an empty table.
        return
    try:
        back = edited(edited(text, path, "for a moment"), path, None)
    except ConfigInvalid:
        return
    # tomlkit may change the spaces in the braces of an inline table, and the spelling of a header that stands there twice.
    kept = iter(back.replace(" ", "").splitlines())
    lines = [line for line in text.replace(" ", "").splitlines() if not line.startswith("[[")]
    assert all(line in kept for line in lines), (text, back)


FILE = """\
# Ours.
[server]
port = 9000           # beside the old one
allowed_hosts = [
  "agent.example",    # the proxy
]

[tools.terminal]
approval = "ask"

[model]
name = '''
openai:gpt-5'''  # for now

[channels.webhook.routes."my alerts"]
secret = "# not a comment"
"""


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        ("server.port", 9001, "port = 9000           # beside the old one", "port = 9001           # beside the old one"),
        ("server.port", None, "port = 9000           # beside the old one\n", "# beside the old one\n"),
        ("server.host", "::1", ']\n\n[tools', ']\nhost = "::1"\n\n[tools'),
        ("model.name", "a:b", "name = '''\nopenai:gpt-5'''  # for now", 'name = "a:b"  # for now'),
        ("tools.terminal.timeout", 5, 'approval = "ask"\n', 'approval = "ask"\ntimeout = 5\n'),
        ("tools.disabled", ["terminal"], "[tools.terminal]", '[tools]\ndisabled = ["terminal"]\n\n[tools.terminal]'),
        ("gateway.busy", "steer", "comment\"\n", 'comment"\n\n[gateway]\nbusy = "steer"\n'),
        ("gateway.busy", None, "", ""),
    ],
)  # fmt: skip
def test_only_the_line_in_question_changes(path: str, value: Any, old: str, new: str) -> None:
    assert edited(FILE, tuple(path.split(".")), value) == FILE.replace(old, new)


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        (FILE, "server.allowed_hosts", 4),
        ("[[mcp]]\nname = 1\n", "mcp.name", 2),
        ('a = 1\nmodel = "openai"\n', "model.name", 2),
        ("[sessions.retention_days]\nwebhook = 1\n", "sessions.retention_days", 1),
    ],
)
def test_what_cannot_be_changed_safely_is_refused_with_its_line(text: str, path: str, line: int) -> None:
    with pytest.raises(ConfigInvalid, match=f"edit line {line} of the file by hand"):
        edited(text, tuple(path.split(".")), {"webhook": 2})
