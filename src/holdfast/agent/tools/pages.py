"""Web pages as text: title, headings, paragraphs, lists and links, without what only a browser needs."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urljoin

import msgspec

from holdfast.offload.function import offloadable

_SKIPPED = frozenset({"script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "select", "datalist"})
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "dd", "details", "div", "dl", "dt", "fieldset", "figcaption", "figure"}
    | {"footer", "form", "header", "hr", "main", "nav", "ol", "p", "section", "summary", "table", "tr", "ul", "br"}
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_MAIN = frozenset({"main", "article"})
# What stands inside the main part counts as the page once it is more than a stray line.
MAIN_MIN_CHARS = 200
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([a-zA-Z0-9_.:-]{1,40})", re.IGNORECASE)
_SNIFFED_BYTES = 2_048
_BLANKS = re.compile(r"[^\S\n]+")
# Stands for a blank of a text that is set as it was written, until all others have been tidied.
_KEPT_BLANK = "\ue000"
_GAPS = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a person would read."""

    title: str
    text: str


class Download(msgspec.Struct, kw_only=True):
    """A body from the web, as it was sent; `chars_max` is how much of its text is wanted."""

    body: bytes
    charset: str | None
    url: str
    is_html: bool
    chars_max: int


class Text(msgspec.Struct, kw_only=True):
    """The beginning of a text, and how many characters all of it has."""

    beginning: str
    chars: int


@offloadable
def read_download(download: Download) -> Text:
    """Return what a page or a text file says.  A page, or its charset, may be made to be slow to read."""
    text = decoded(download.body, download.charset)
    if download.is_html:
        page = read_page(text, download.url)
        text = f"Title: {page.title}\n\n{page.text}" if page.title else page.text
    return Text(beginning=text[: download.chars_max], chars=len(text))


def read_page(html: str, url: str) -> Page:
    """Return a page as text, with its links made whole by the URL that it came from."""
    reader = _Reader(url)
    reader.feed(html)
    reader.close()
    main, whole = _tidy("".join(reader.main)), _tidy("".join(reader.whole))
    return Page(title=_tidy("".join(reader.title)), text=main if len(main) >= MAIN_MIN_CHARS else whole)


def decoded(body: bytes, charset: str | None) -> str:
    """Return a body as text, by the charset it was sent with, the one it names itself, or UTF-8."""
    named = charset
    if named is None and (match := _CHARSET.search(body[:_SNIFFED_BYTES])):
        named = match[1].decode("ascii")
    try:
        codec = codecs.lookup(named or "utf-8")
    except LookupError:
        codec = codecs.lookup("utf-8")
    # Codecs that are no character sets, such as zlib, must not be had by their name.
    name = codec.name if getattr(codec, "_is_text_encoding", True) else "utf-8"
    try:
        return body.decode(name, "replace")
    except (UnicodeError, ValueError):
        return body.decode("utf-8", "replace")


def _tidy(text: str) -> str:
    lines = (_BLANKS.sub(" ", line).strip() for line in text.split("\n"))
    return _GAPS.sub("\n\n", "\n".join(lines)).strip().replace(_KEPT_BLANK, " ")


@dataclass(slots=True)
class _Link:
    href: str
    began: int


@dataclass(slots=True)
class _Depths:
    """How deep the reader is inside elements that matter."""

    skipped: int = 0
    main: int = 0
    pre: int = 0
    title: int = 0


class _Reader(HTMLParser):
    """Follows the elements of a page and keeps the text between them."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.main: list[str] = []
        self.whole: list[str] = []
        self._url = url
        self._in = _Depths()
        self._link: _Link | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED:
            self._in.skipped += 1
        elif tag == "base":
            self._url = urljoin(self._url, dict(attrs).get("href") or "")
        elif tag == "title":
            # Pictures inside a page have titles too.
            self._in.title += not self.title
        elif tag in _MAIN:
            self._in.main += 1
        self._open(tag, dict(attrs))

    def _open(self, tag: str, attributes: dict[str, str | None]) -> None:
        if tag in _HEADINGS:
            self._put(f"\n\n{'#' * _HEADINGS[tag]} ")
        elif tag == "li":
            self._put("\n- ")
        elif tag == "pre":
            self._in.pre += 1
            self._put("\n\n")
        elif tag in ("td", "th"):
            self._put(" | ")
        elif tag == "img" and (shown := attributes.get("alt")):
            self._put(f"[image: {shown}]")
        elif tag == "a":
            self._end_link()
            if href := attributes.get("href"):
                self._link = _Link(href, len(self.whole))
        elif tag in _BLOCKS:
            self._put("\n" if tag in ("br", "tr", "dd", "dt") else "\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SKIPPED:
            self._in.skipped = max(self._in.skipped - 1, 0)
        elif tag == "title":
            self._in.title = 0
        elif tag == "a":
            self._end_link()
        elif tag == "pre":
            self._in.pre = max(self._in.pre - 1, 0)
        if tag in _HEADINGS or tag in _BLOCKS or tag == "pre":
            self._put("\n\n")
        if tag in _MAIN:
            self._in.main = max(self._in.main - 1, 0)

    def handle_data(self, data: str) -> None:
        if self._in.title and not self._in.skipped:
            self.title.append(data)
        else:
            self._put(data.replace(" ", _KEPT_BLANK) if self._in.pre else data.replace("\n", " "))

    def close(self) -> None:
        super().close()
        self._end_link()

    def _end_link(self) -> None:
        link, self._link = self._link, None
        if link is None or not "".join(self.whole[link.began :]).strip():
            return
        try:
            target = urljoin(self._url, link.href)
        except ValueError:
            return
        if target.startswith(("http://", "https://", "mailto:")) and not link.href.startswith("#"):
            self._put(f" ({target})")

    def _put(self, text: str) -> None:
        if self._in.skipped:
            return
        self.whole.append(text)
        if self._in.main:
            self.main.append(text)
