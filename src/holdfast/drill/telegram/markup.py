"""Telegram's HTML as the Bot API server reads it: the same tags and errors, and lengths in UTF-16 units.

The rules are those of `parse_html` in TDLib, which the Bot API server is built on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

TYPES = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "tg-emoji": "custom_emoji",
    "a": "text_link",
    "pre": "pre",
    "code": "code",
    "blockquote": "blockquote",
}
ENTITIES_MAX = 100
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_REFERENCE = re.compile(r"&(?:#x([0-9a-fA-F]{1,6})|#([0-9]{1,7})|([a-zA-Z]+));?")
_SPACE = " \t\r\n\0\v"


class Unreadable(Exception):
    """The text of a 400, without its prefix."""


@dataclass
class _Open:
    tag: str
    argument: str
    begin: int
    begin_chars: int


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.text = ""
        self.entities: list[dict[str, Any]] = []
        self.open: list[_Open] = []

    def fail(self, said: str, at: int) -> Unreadable:
        return Unreadable(f"{said} at byte offset {len(self.source[:at].encode())}")

    def char(self) -> str:
        return self.source[self.at] if self.at < len(self.source) else "\0"

    def read(self) -> None:
        while self.at < len(self.source):
            char = self.source[self.at]
            if char == "&" and (found := _decode(self.source, self.at)):
                said, self.at = found
                self.text += said
            elif char == "<":
                self.tag()
            else:
                self.text += char
                self.at += 1
        if self.open:
            raise Unreadable(f'Can\'t find end tag corresponding to start tag "{self.open[-1].tag}"')

    def name(self) -> str:
        begin = self.at
        while self.char() not in _SPACE + ">":
            self.at += 1
        return self.source[begin : self.at].lower()

    def spaces(self) -> None:
        while self.at < len(self.source) and self.char() in _SPACE:
            self.at += 1

    def tag(self) -> None:
        begin = self.at
        self.at += 1
        if self.char() == "/":
            self.at += 1
            self.end(begin)
            return
        tag = self.name()
        if self.at >= len(self.source):
            raise self.fail("Unclosed start tag", begin)
        if tag not in TYPES:
            raise self.fail(f'Unsupported start tag "{tag}"', begin)
        argument = ""
        while self.char() != ">":
            self.spaces()
            if self.char() == ">":
                break
            argument = self.attribute(tag, begin) or argument
        self.at += 1
        if tag == "span" and argument != "spoiler":
            raise self.fail('Tag "span" must have class "tg-spoiler"', begin)
        self.open.append(_Open(tag, argument, units(self.text), len(self.text)))

    def attribute(self, tag: str, begin: int) -> str:
        start = self.at
        while self.char() not in _SPACE + "=>":
            self.at += 1
        name = self.source[start : self.at]
        if not name:
            raise self.fail(f'Empty attribute name in the tag "{tag}"', begin)
        self.spaces()
        if self.char() != "=":
            if tag == "blockquote" and name == "expandable":
                return "expandable"
            raise self.fail(f'Expected equal sign in declaration of an attribute of the tag "{tag}"', begin)
        self.at += 1
        self.spaces()
        if self.at >= len(self.source):
            raise self.fail(f'Unclosed start tag "{tag}"', begin)
        value = self.value()
        if self.at >= len(self.source):
            raise self.fail("Unclosed start tag", begin)
        match tag, name:
            case ("a", "href") | ("tg-emoji", "emoji-id"):
                return value
            case ("code", "class") if value.startswith("language-"):
                return value.removeprefix("language-")
            case ("span", "class") if value.startswith("tg-"):
                return value.removeprefix("tg-")
            case _:
                return ""

    def value(self) -> str:
        if self.char() not in "'\"":
            start = self.at
            while self.char().isalnum() or self.char() in ".-":
                self.at += 1
            if self.char() not in _SPACE + ">":
                raise self.fail("Unexpected end of name token", start)
            return self.source[start : self.at].lower()
        quote, value = self.char(), ""
        self.at += 1
        while self.at < len(self.source) and self.char() != quote:
            if self.char() == "&" and (found := _decode(self.source, self.at)):
                said, self.at = found
                value += said
            else:
                value += self.char()
                self.at += 1
        self.at += self.at < len(self.source)
        return value

    def end(self, begin: int) -> None:
        if not self.open:
            raise self.fail("Unexpected end tag", begin)
        tag = self.name()
        self.spaces()
        if self.char() != ">":
            raise self.fail("Unclosed end tag", begin)
        self.at += 1
        started = self.open.pop()
        if tag and tag != started.tag:
            raise Unreadable(
                f"Unmatched end tag at byte offset {len(self.source[:begin].encode())}, "
                f'expected "</{started.tag}>", found "</{tag}>"'
            )
        length = units(self.text) - started.begin
        if length:
            self.add(started, length)

    def add(self, started: _Open, length: int) -> None:
        entity: dict[str, Any] = {"type": TYPES[started.tag], "offset": started.begin, "length": length}
        if started.tag == "a":
            url = started.argument or self.text[started.begin_chars :]
            if not _opens(url):
                return
            entity["url"] = url
        elif started.tag in ("pre", "code"):
            same = self.entities[-1] if self.entities else {}
            if {same.get("type"), entity["type"]} == {"pre", "code"} and (same["offset"], same["length"]) == (
                entity["offset"],
                length,
            ):
                same["type"] = "pre"
                language = started.argument or same.pop("_language", "")
                if language:
                    same["language"] = language
                return
            entity["_language"] = started.argument
        elif started.tag == "blockquote" and started.argument:
            entity["type"] = "expandable_blockquote"
        self.entities.append(entity)


def read_html(source: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the text of HTML and its entities.  Raises `Unreadable` with what Telegram says."""
    reader = _Reader(source)
    reader.read()
    for each in reader.entities:
        each.pop("_language", None)
    return trimmed(reader.text, reader.entities)


def trimmed(text: str, entities: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """Remove space at both ends, as Telegram does, and move the entities along."""
    lead = units(text) - units(text.lstrip())
    text = text.strip()
    size = units(text)
    kept: list[dict[str, Any]] = []
    for each in sorted(entities, key=lambda entity: (entity["offset"], -entity["length"])):
        begin = max(0, each["offset"] - lead)
        end = min(size, each["offset"] + each["length"] - lead)
        if end > begin:
            kept.append({**each, "offset": begin, "length": end - begin})
    return text, kept[:ENTITIES_MAX]


def dropped(entities: list[dict[str, Any]]) -> list[str]:
    """Return which entities Telegram would leave out without an error: it nests neither quotes nor anything in code."""
    found: list[str] = []
    for number, inner in enumerate(entities):
        for other, outer in enumerate(entities):
            if number == other or not _is_within(inner, outer):
                continue
            if outer["type"] in ("pre", "code"):
                found.append(f"{inner['type']} in {outer['type']}")
            if "blockquote" in inner["type"] and "blockquote" in outer["type"]:
                found.append("a quote in a quote")
            if inner["type"] == outer["type"] == "text_link" or (inner["type"] == "code" and outer["type"] == "text_link"):
                found.append(f"{inner['type']} in a link")
    return found


def _is_within(inner: dict[str, Any], outer: dict[str, Any]) -> bool:
    same = (inner["offset"], inner["length"]) == (outer["offset"], outer["length"])
    if same and inner["type"] not in ("pre", "code") and outer["type"] in ("pre", "code"):
        # Bold around code of the same length is kept as one of the two.
        return False
    begin, end = outer["offset"], outer["offset"] + outer["length"]
    return begin <= inner["offset"] and inner["offset"] + inner["length"] <= end


def _decode(source: str, at: int) -> tuple[str, int] | None:
    if not (found := _REFERENCE.match(source, at)):
        return None
    hexadecimal, decimal, name = found.groups()
    if name:
        return (_NAMED[name], found.end()) if name in _NAMED else None
    code = int(hexadecimal, 16) if hexadecimal else int(decimal)
    return (chr(code), found.end()) if 0 < code < 0x10FFFF and not 0xD800 <= code <= 0xDFFF else None


def _opens(url: str) -> bool:
    try:
        place = urlsplit(url if "://" in url or url.startswith("tg:") else f"http://{url}")
    except ValueError:
        return False
    return place.scheme == "tg" or (place.scheme in ("http", "https") and "." in (place.hostname or ""))
