"""The HTML of the scripted server: Telegram's own error texts, offsets and lengths."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.drill.telegram.markup import Unreadable, dropped, read_html


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ("é<x>", 'Unsupported start tag "x" at byte offset 2'),
        ("<b>a", 'Can\'t find end tag corresponding to start tag "b"'),
        ("a</b>", "Unexpected end tag at byte offset 1"),
        ("<b><i>a</b></i>", 'Unmatched end tag at byte offset 7, expected "</i>", found "</b>"'),
        ("<b", "Unclosed start tag at byte offset 0"),
        ("a <", "Unclosed start tag at byte offset 2"),
        ("<b>a</b", "Unclosed end tag at byte offset 4"),
        ("<a href>", 'Expected equal sign in declaration of an attribute of the tag "a" at byte offset 0'),
        ("<a =b>", 'Empty attribute name in the tag "a" at byte offset 0'),
        ("<a href=b_c>", "Unexpected end of name token at byte offset 8"),
        ('<a href="b', "Unclosed start tag at byte offset 0"),
        ('<span class="x">a</span>', 'Tag "span" must have class "tg-spoiler" at byte offset 0'),
        ("a < b", 'Unsupported start tag "" at byte offset 2'),
    ],
)
def test_what_telegram_refuses(html: str, said: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read_html(html)
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("html", "text", "entities"),
    [
        ("&lt;&gt;&amp;&quot;&nbsp;&#65;&#x42;", '<>&"&nbsp;AB', []),
        (" <b>😀</b> x ", "😀 x", [{"type": "bold", "offset": 0, "length": 2}]),
        (
            '<pre><code class="language-py">x</code></pre>',
            "x",
            [{"type": "pre", "offset": 0, "length": 1, "language": "py"}],
        ),
        (
            '<a href="https://a.b/?x&amp;y">z</a>',
            "z",
            [{"type": "text_link", "offset": 0, "length": 1, "url": "https://a.b/?x&y"}],
        ),
        ('<a href="http://localhost">z</a>', "z", []),
        ("<B>x</b>", "x", [{"type": "bold", "offset": 0, "length": 1}]),
    ],
)
def test_what_telegram_reads(html: str, text: str, entities: list[dict[str, Any]]) -> None:
    assert read_html(html) == (text, entities)


def test_what_telegram_leaves_out_is_noticed() -> None:
    assert dropped(read_html("<pre>a <b>b</b></pre>")[1]) == ["bold in pre"]
    assert dropped(read_html("<blockquote>a <blockquote>b</blockquote></blockquote>")[1]) == ["a quote in a quote"]
    assert dropped(read_html("<b>a <code>b</code></b>")[1]) == []
