"""Names of files: whatever somebody calls one, it is written under a plain name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.filenames import NAME_MAX_BYTES, safe


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("report.csv", "report.csv"),
        ("Müller (2).pdf", "Müller-(2).pdf"),
        ("über/../../etc/passwd", "passwd"),
        ("/etc/shadow", "shadow"),
        ("C:\\Users\\me\\notes.txt", "notes.txt"),
        ("..", "file"),
        ("", "file"),
        ("///", "file"),
        (".bashrc", "bashrc"),
        ("-rf", "rf"),
        ("a\0b\n\u202ec.txt", "a-b-c.txt"),
        ("日本語.txt", "日本語.txt"),
        ("cafe\u0301.txt", "café.txt"),
        ("folder/", "folder"),
    ],
)
def test_a_name_is_plain_and_says_what_it_said(name: str, plain: str) -> None:
    assert safe(name) == plain


def test_a_long_name_keeps_its_end() -> None:
    assert safe("ä" * 500 + ".csv") == "ä" * 58 + ".csv"
    assert len(safe("x" * 500).encode()) == NAME_MAX_BYTES


@given(st.text(max_size=300))
def test_no_name_leads_anywhere(name: str) -> None:
    plain = safe(name)
    assert 0 < len(plain.encode()) <= NAME_MAX_BYTES
    assert not plain.startswith((".", "-"))
    assert not set(plain) & set("/\\\0\n\r\"'`$;&|<>*?: ")
    assert safe(plain) == plain
