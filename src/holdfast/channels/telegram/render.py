"""Markdown as Telegram shows it: the few HTML tags that it knows, and plain text where it takes none.

Telegram has no lists, headings or tables, so they become text that reads well on a narrow screen.  It counts the length of
a message in UTF-16 units, without the tags.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from holdfast.channels.port import MessageSize, Unit

SIZE = MessageSize(most=4_096, unit=Unit.UTF16)
CAPTION_SIZE = MessageSize(most=1_024, unit=Unit.UTF16)
# What fits beside the margins of a message on a phone, in the font of code.
TABLE_MAX_COLUMNS = 34

_MARKDOWN = MarkdownIt("js-default", {"maxNesting": 20})
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TASK = re.compile(r"\[([ xX])\]\s+")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,30}")
_BULLETS = ("• ", "◦ ", "▪ ")
_INDENT = "   "
_RULE = "———"
_STYLES = {"strong": "b", "em": "i", "s": "s"}


class _Tag(str):
    """A piece that is markup; any other piece is text."""

    __slots__ = ()


_Pieces = list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A message as it is sent.  `html` is None where it would be too long with its tables and lists drawn."""

    html: str | None
    plain: str


def shown(markdown: str, size: MessageSize = SIZE) -> Shown:
    """Return a message in HTML and in plain text.  The plain text is the Markdown itself if what it shows is longer."""
    source = markdown.encode("utf-8", "replace").decode()
    pieces = _blocks(SyntaxTreeNode(_MARKDOWN.parse(source)).children, _Around())
    plain = "".join(each for each in pieces if not isinstance(each, _Tag)).strip()
    if not plain or not size.fits(plain):
        return Shown(html=None, plain=source)
    return Shown(html="".join(map(_written, pieces)).strip(), plain=plain)


def _written(piece: str) -> str:
    return str(piece) if isinstance(piece, _Tag) else escape(piece, quote=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """What a node is inside of, because Telegram nests neither quotes, nor code, nor a style in itself."""

    lists: int = 0
    quoted: bool = False
    linked: bool = False
    styles: frozenset[str] = frozenset()

    def inside(self, *, lists: int = 0, quoted: bool = False, linked: bool = False, style: str = "") -> _Around:
        return _Around(
            lists=self.lists + lists,
            quoted=self.quoted or quoted,
            linked=self.linked or linked,
            styles=self.styles | {style} if style else self.styles,
        )


def _blocks(nodes: Iterable[SyntaxTreeNode], around: _Around, between: str = "\n\n") -> _Pieces:
    found = [pieces for node in nodes if (pieces := _block(node, around))]
    return _joined(found, between)


def _joined(parts: Sequence[_Pieces], between: str) -> _Pieces:
    joined: _Pieces = []
    for number, part in enumerate(parts):
        joined += ([between] if number else []) + part
    return joined


def _block(node: SyntaxTreeNode, around: _Around) -> _Pieces:
    match node.type:
        case "heading":
            return _heading(node, around)
        case "fence" | "code_block":
            return _code(node.content, node.info)
        case "blockquote":
            return _quote(node, around)
        case "bullet_list" | "ordered_list":
            return _list(node, around)
        case "table":
            return _table(node, around)
        case "hr":
            return [_RULE]
        case _:
            return _inline(node.children, around)


def _heading(node: SyntaxTreeNode, around: _Around) -> _Pieces:
    pieces = _styled("b", node.children, around)
    return [_Tag("<u>"), *pieces, _Tag("</u>")] if node.tag == "h1" and pieces else pieces


def _styled(tag: str, nodes: Sequence[SyntaxTreeNode], around: _Around) -> _Pieces:
    inner = _inline(nodes, around.inside(style=tag))
    return inner if not inner or tag in around.styles else [_Tag(f"<{tag}>"), *inner, _Tag(f"</{tag}>")]


def _code(content: str, info: str = "") -> _Pieces:
    text = content.rstrip("\n")
    if not text.strip():
        return []
    if language := _LANGUAGE.match(info.strip()):
        return [_Tag(f'<pre><code class="language-{language[0]}">'), text, _Tag("</code></pre>")]
    return [_Tag("<pre>"), text, _Tag("</pre>")]


def _quote(node: SyntaxTreeNode, around: _Around) -> _Pieces:
    inner = _blocks(node.children, around.inside(quoted=True))
    if around.quoted:
        return list(_indented(inner, "❯ ", "❯ "))
    return [_Tag("<blockquote>"), *inner, _Tag("</blockquote>")] if inner else []


def _list(node: SyntaxTreeNode, around: _Around) -> _Pieces:
    bullet = _BULLETS[min(around.lists, len(_BULLETS) - 1)]
    first = int(node.attrs.get("start", 1))
    items: list[_Pieces] = []
    for number, item in enumerate(node.children, first):
        marker = f"{number}. " if node.type == "ordered_list" else bullet
        inner = _blocks(item.children, around.inside(lists=1), "\n")
        if node.type == "bullet_list" and inner and not isinstance(inner[0], _Tag) and (task := _TASK.match(inner[0])):
            marker = "☐ " if task[1] == " " else "☑ "
            inner = [inner[0][task.end() :], *inner[1:]]
        items.append(list(_indented(inner, marker, _INDENT)))
    return _joined(items, "\n")


def _indented(pieces: _Pieces, first: str, rest: str) -> Iterator[str]:
    """Put a margin before each line, but not inside code, which is copied."""
    margin, in_code = first, False
    for piece in pieces:
        if isinstance(piece, _Tag):
            if piece.startswith("<pre"):
                # The margin of a list item is its marker, which stays.
                yield from [margin.rstrip(), "\n"] if margin and margin != rest and margin.strip() else []
                in_code, margin = True, ""
            elif margin and not piece.startswith("</"):
                yield margin
                margin = ""
            in_code = in_code and not piece.endswith("</pre>")
            yield piece
            continue
        if in_code:
            yield piece
            continue
        for line in piece.splitlines(keepends=True):
            yield margin + line if margin and line.strip() else line
            margin = rest if line.endswith("\n") else ("" if line.strip() else margin)


def _inline(nodes: Iterable[SyntaxTreeNode], around: _Around) -> _Pieces:
    return [piece for node in nodes for piece in _span(node, around) if piece]


def _span(node: SyntaxTreeNode, around: _Around) -> _Pieces:
    match node.type:
        case "text" | "text_special":
            return [_BREAK.sub("\n", node.content)]
        case "softbreak" | "hardbreak":
            return ["\n"]
        case "code_inline":
            # Telegram drops a link that has code in it.
            return [node.content] if around.linked else [_Tag("<code>"), node.content, _Tag("</code>")]
        case "strong" | "em" | "s":
            return _styled(_STYLES[node.type], node.children, around)
        case "link":
            return _link(str(node.attrs.get("href", "")), _inline(node.children, around.inside(linked=True)), around)
        case "image":
            return _link(str(node.attrs.get("src", "")), [_alternative(node)], around)
        case _:
            return _inline(node.children, around)


def _alternative(image: SyntaxTreeNode) -> str:
    return "".join(each.content for each in image.walk() if each.type == "text") or image.content or "image"


def _link(address: str, label: _Pieces, around: _Around) -> _Pieces:
    """Return a link; an address that Telegram opens from no link is written behind its label."""
    if around.linked or not address:
        return label
    if _opens(address):
        return [_Tag(f'<a href="{escape(address)}">'), *(label or [address]), _Tag("</a>")]
    spelled = unquote(address.removeprefix("mailto:"))
    said = "".join(each for each in label if not isinstance(each, _Tag))
    return label if said in (spelled, address) else [*label, f" ({spelled})" if said else spelled]


def _opens(address: str) -> bool:
    """Return whether Telegram opens a link: it drops one to a host without a dot, and one that writes mail."""
    try:
        place = urlsplit(address)
        return place.scheme == "tg" or (place.scheme in ("http", "https") and "." in (place.hostname or "").strip("."))
    except ValueError:
        return False


def _table(node: SyntaxTreeNode, around: _Around) -> _Pieces:
    rows = [list(row.children) for part in node.children for row in part.children]
    if not rows:
        return []
    drawn = _grid(rows, around)
    return _code(drawn) if drawn else _records(rows, around)


def _grid(rows: Sequence[Sequence[SyntaxTreeNode]], around: _Around) -> str:
    """Return a table in columns; empty if it is wider than a phone."""
    texts = [[_plain(cell, around) for cell in row] for row in rows]
    widths = [max(_width(row[column]) for row in texts) for column in range(len(texts[0]))]
    multiline = any("\n" in cell for row in texts for cell in row)
    if multiline or sum(widths) + 3 * (len(widths) - 1) > TABLE_MAX_COLUMNS:
        return ""
    right = ["right" in str(cell.attrs.get("style", "")) for cell in rows[0]]
    lines = [" | ".join(map(_padded, row, widths, right)).rstrip() for row in texts]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(lines)


def _records(rows: Sequence[Sequence[SyntaxTreeNode]], around: _Around) -> _Pieces:
    """Return a table row by row: the first cell is a title, and each other one is below it with the name of its column."""
    names = [_plain(cell, around) for cell in rows[0]]
    if len(rows) == 1:
        return _joined([_styled("b", cell.children, around) for cell in rows[0]], " | ")
    return _joined([_record(names, row, around) for row in rows[1:]], "\n\n")


def _record(names: Sequence[str], row: Sequence[SyntaxTreeNode], around: _Around) -> _Pieces:
    lines = [_styled("b", row[0].children, around)] if row else []
    for name, cell in zip(names[1:], row[1:], strict=False):
        if value := _inline(cell.children, around):
            lines.append([f"{name}: " if name else "", *value])
    return _joined([line for line in lines if line], "\n")


def _plain(cell: SyntaxTreeNode, around: _Around) -> str:
    return "".join(each for each in _inline(cell.children, around) if not isinstance(each, _Tag)).strip()


def _padded(text: str, width: int, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space


def _width(text: str) -> int:
    """Return how many columns a text takes in the font of code."""
    return sum(0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF") for each in text)
