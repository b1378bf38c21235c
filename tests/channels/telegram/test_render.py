"""Markdown as a phone shows it: what it looks like, and that Telegram takes all of it."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.channels.telegram.render import CAPTION_SIZE, SIZE, shown
from holdfast.drill.telegram.markup import dropped, read_html, units


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("plain", "plain"),
        ("a *b* **c** ~~d~~ `e`", "a <i>b</i> <b>c</b> <s>d</s> <code>e</code>"),
        ("1 < 2 & <b>3</b>", "1 &lt; 2 &amp; &lt;b&gt;3&lt;/b&gt;"),
        ("# Top\n\n## Next\n\ntext", "<u><b>Top</b></u>\n\n<b>Next</b>\n\ntext"),
        ("## a **b** c", "<b>a b c</b>"),
        ("one\ntwo", "one\ntwo"),
        ("a<br>b", "a\nb"),
        ("---", "———"),
        ("```python\nx < 1\n```", '<pre><code class="language-python">x &lt; 1</code></pre>'),
        ("```\nx\n```", "<pre>x</pre>"),
        ('```"><b>\nx\n```', "<pre>x</pre>"),
        ("```\n\n```", None),
        ("> a\n> > b", "<blockquote>a\n\n❯ b</blockquote>"),
        ("[a](https://x.example/?a=1&b=2)", '<a href="https://x.example/?a=1&amp;b=2">a</a>'),
        ("[a](tg://user?id=5)", '<a href="tg://user?id=5">a</a>'),
        ("[`a`](https://x.example)", '<a href="https://x.example">a</a>'),
        ("![p](https://x.example/p.png)", '<a href="https://x.example/p.png">p</a>'),
        ("[a](docs/b.md)", "a (docs/b.md)"),
        ("[a](http://localhost:80/)", "a (http://localhost:80/)"),
        ("[Ann](mailto:ann@x.example)", "Ann (ann@x.example)"),
        ("<ann@x.example>", "ann@x.example"),
        ("[a](javascript:alert)", "[a](javascript:alert)"),
        ("", None),
    ],
)
def test_markdown(markdown: str, html: str | None) -> None:
    assert shown(markdown).html == html


def test_lists() -> None:
    markdown = "- a\n  - b\n    1. c\n    2. d\n- [ ] open\n- [x] done\n\n  more\n\n3. third\n4. fourth"
    assert shown(markdown).html == ("• a\n   ◦ b\n      1. c\n      2. d\n☐ open\n☑ done\n   more\n\n3. third\n4. fourth")


def test_code_in_a_list_is_not_indented_because_it_is_copied() -> None:
    assert shown("- a\n\n  ```\n  x\n    y\n  ```\n- b").html == "• a\n<pre>x\n  y</pre>\n• b"
    assert shown("- ```\n  x\n  ```").html == "•\n<pre>x</pre>"


def test_a_narrow_table_stands_in_columns() -> None:
    assert shown("| a | n |\n|---|--:|\n| x | 1 |\n| 漢 | 22 |").plain == "a  |  n\n---+---\nx  |  1\n漢 | 22"


def test_a_wide_table_is_told_row_by_row() -> None:
    table = (
        "| Name | What it does | Where |\n|---|---|---|\n| alpha | a **long** description of it | here |\n| beta | | there |"
    )
    assert shown(table).html == (
        "<b>alpha</b>\nWhat it does: a <b>long</b> description of it\nWhere: here\n\n<b>beta</b>\nWhere: there"
    )


def test_the_plain_text_is_what_is_seen() -> None:
    assert shown("# T\n\n**a** & [b](https://x.example)").plain == "T\n\na & b"


def test_the_length_counts_what_is_seen_in_utf16_units() -> None:
    assert shown("**" + "😀" * 2048 + "**").html is not None
    # The Markdown itself is sent then; the shared splitter has made it short enough.
    too_long = shown("😀" * 2048 + "x")
    assert (too_long.html, too_long.plain) == (None, "😀" * 2048 + "x")
    assert shown("x" * 1025, CAPTION_SIZE).html is None


def test_a_table_that_grows_over_the_limit_is_sent_as_it_was_written() -> None:
    table = "| " + " | ".join("abcdefghij" for _ in range(40)) + " |\n" + "|---" * 40 + "|\n"
    table += ("| " + " | ".join("x" for _ in range(40)) + " |\n") * 20
    assert SIZE.fits(table)
    assert shown(table).html is None
    assert shown(table).plain == table


_PIECES = st.sampled_from(
    [
        "*",
        "**",
        "```py\n",
        "~~",
        "`",
        "```",
        "\n",
        "\n\n",
        "# ",
        "> ",
        "- ",
        "  - ",
        "1. ",
        "| a | b |\n|---|---|\n",
        "| ",
        " |",
        "[",
        "](",
        ")",
        "https://x.example/",
        "tg://user?id=1",
        "<",
        ">",
        "&",
        '"',
        "<b>",
        "</b>",
        "<br>",
        "&lt;",
        "&#0;",
        "![",
        "---\n",
        "    ",
        "😀",
        "\ud800",
        "\0",
        "[ ] ",
        "word",
        " ",
        "\\",
        "_",
        "\r\n",
        "\u2028",
        '[x]: https://y.example "t"\n',
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(_PIECES | st.text(max_size=5), max_size=40).map("".join))
@example("- - - ```\n")
@example("> - > x")
@example("**`a`** [**`b`**](https://x.example)")
@example("- # a\n  > `b`")
def test_telegram_takes_everything(markdown: str) -> None:
    found = shown(markdown)
    found.plain.encode()
    if found.html is None:
        return
    text, entities = read_html(found.html)
    assert text
    assert text == found.plain.strip(" \t\r\n") or text.split() == found.plain.split()
    assert units(text) <= SIZE.most
    assert dropped(entities) == []
