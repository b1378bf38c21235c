"""Converts web pages to text: title, headings, paragraphs, lists and links."""

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
# If the main element has at least this much text, only its text is used.
MAIN_MIN_CHARS = 200
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([a-zA-Z0-9_.:-]{1,40})", re.IGNORECASE)
_SNIFFED_BYTES = 2_048
_BLANKS = re.compile(r"[^\S\n]+")
# Stands for a blank of preformatted text while the other blanks are collapsed.
_KEPT_BLANK = "\ue000"
_GAPS = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageText:
    """The readable content of a page."""

    title: str
    text: str


class Download(msgspec.Struct, kw_only=True):
    """A downloaded body; `chars_max` is how much of its text is returned."""

    body: bytes
    charset: str | None
    url: str
    is_html: bool
    chars_max: int


class DownloadText(msgspec.Struct, kw_only=True):
    """The beginning of a text, and the number of characters of the whole."""

    beginning: str
    chars: int


@offloadable
def read_download(download: Download) -> DownloadText:
    """Return the text of a page or a text file.  A malicious page or charset may be slow to read."""
    text = decoded(download.body, download.charset)
    if download.is_html:
        page = read_page(text, download.url)
        text = f"Title: {page.title}\n\n{page.text}" if page.title else page.text
    return DownloadText(beginning=text[: download.chars_max], chars=len(text))


def read_page(html: str, url: str) -> PageText:
    """Return a page as text, with links resolved against its URL."""
    reader = _Reader(url)
    reader.feed(html)
    reader.close()
    main, whole = _tidy("".join(reader.main)), _tidy("".join(reader.whole))
    return PageText(title=_tidy("".join(reader.title)), text=main if len(main) >= MAIN_MIN_CHARS else whole)


def decoded(body: bytes, charset: str | None) -> str:
    """Decode a body by the charset of its header, the one that it declares itself, or UTF-8."""
    named = charset
    if named is None and (match := _CHARSET.search(body[:_SNIFFED_BYTES])):
        named = match[1].decode("ascii")
    try:
        codec = codecs.lookup(named or "utf-8")
    except LookupError:
        codec = codecs.lookup("utf-8")
    # Python also has codecs that are not character sets, such as zlib.
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
    """The nesting depth inside elements that matter."""

    skipped: int = 0
    main: int = 0
    pre: int = 0
    title: int = 0


class _Reader(HTMLParser):
    """Collects the text of a page."""

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
            # SVG images inside a page have titles as well.
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
