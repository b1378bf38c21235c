"""Templates: fields of a payload and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.channels.webhook.fields import MISSING, find
from holdfast.channels.webhook.fields import parse as parse_field
from holdfast.channels.webhook.payload import Payload
from holdfast.channels.webhook.template import RAW_MAX, TEMPLATE_MAX, TEXT_MAX, parse
from holdfast.errors import Rejected

DATA: dict[str, Any] = {
    "message": "disk full",
    "host": {"name": "db1", "tags": ["prod", {"zone": "b"}], "": "nameless", "a.b": "dotted"},
    "count": 3,
    "ratio": 0.5,
    "big": 10**18,
    "on": True,
    "off": False,
    "none": None,
    "empty": "",
    "nested": {"é": [1, "two"]},
    "kebab-case": "yes",
    "$ref": "r",
    "0": "zero",
    "braces": "{message} {{x}}",
}


def rendered(text: str, data: dict[str, Any] = DATA, raw: str = "RAW", event_type: str | None = "alert") -> str:
    return parse(text).render(Payload(data=data, raw=raw, event_type=event_type)).text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Alert: {message}", "Alert: disk full"),
        ("{host.name}/{host.tags.0}/{host.tags.1.zone}", "db1/prod/b"),
        ("{ message }", "disk full"),
        ("{count} {ratio} {big} {on} {off} {none}", "3 0.5 1000000000000000000 true false null"),
        ("[{empty}]", "[]"),
        ("{nested}", '{"é":[1,"two"]}'),
        ("{host.tags}", '["prod",{"zone":"b"}]'),
        ("{kebab-case} {$ref} {0}", "yes r zero"),
        ("{event_type}", "alert"),
        ("{__raw__}", "RAW"),
        ("{{message}} {{{message}}} }}{{", "{message} {disk full} }{"),
        ("{braces}", "{message} {{x}}"),
        ("no field at all", "no field at all"),
        ("{gone} {host.gone} {message.gone} {host.tags.2} {host.tags.x} {host.tags.-1}", " ".join(["<missing>"] * 6)),
        ("{host.tags.00}", "prod"),
        ("{none.x}", "<missing>"),
    ],
)
def test_fields_are_filled_in(text: str, shown: str) -> None:
    """W1: `{a.b}` dotted fields, list indexes, `{__raw__}`, `{event_type}`; what is no text is shown as JSON."""
    assert rendered(text) == shown


def test_what_is_missing_is_named_once() -> None:
    """W1: a missing field renders `<missing>`, and whoever renders is told which."""
    found = parse("{gone} {message} {gone} {host.gone} {event_type}").render(Payload(data=DATA, raw=""))
    assert found.text == "<missing> disk full <missing> <missing> <missing>"
    assert found.missing == ("gone", "host.gone", "event_type")


def test_the_raw_text_is_cut() -> None:
    """W1: `{__raw__}` is the first 4,000 characters."""
    assert rendered("{__raw__}", raw="é" * 5_000) == "é" * RAW_MAX
    assert RAW_MAX == 4_000


def test_an_event_type_of_the_payload_counts_where_the_sender_says_none() -> None:
    assert rendered("{event_type}", {"event_type": "pushed"}, event_type=None) == "pushed"
    assert rendered("{event_type}", {"event_type": "pushed"}, event_type="said") == "said"


@pytest.mark.parametrize(
    "text",
    [
        "{__class__}", "{message.__class__}", "{message.__class__.__mro__}", "{_private}", "{host._x}", "{__raw__.x}",
        "{host.__raw__}", "{__Raw__}", "{_}", "{__}", "{message!r}", "{message!s}", "{message:>10}", "{message:{width}}",
        "{count:d}", "{host[name]}", "{host['name']}", '{host["name"]}', "{0[1]}", "{message()}", "{message.upper()}",
        "{a b}", "{a,b}", "{a=}", "{a\nb}", "{}", "{ }", "{.}", "{a.}", "{.a}", "{a..b}", "{", "}", "{a", "a}", "{a{b}}",
        "{{a}", "{a}}", '{"a": 1}', "{`x`}", "{" + "a" * 201 + "}", "x" * (TEMPLATE_MAX + 1),
    ],
)  # fmt: skip
def test_whatever_is_no_plain_field_is_refused(text: str) -> None:
    """`{__class__}` in a template is refused when it is read, as is every trick of Python's own templates."""
    with pytest.raises(Rejected):
        parse(text)


def test_a_refusal_says_what_to_write_instead() -> None:
    for text, hint in (
        ("{__class__}", "underscore"),
        ("{a!r}", "a.b.0.c"),
        ('{"a": 1}', "{{ and }}"),
        ("{", "{{"),
        ("}", "}}"),
    ):
        with pytest.raises(Rejected, match=hint.replace("{", r"\{").replace("}", r"\}")):
            parse(text)


def test_a_text_has_an_end_however_often_a_field_is_named() -> None:
    text = rendered("{message}" * 1_000, {"message": "x" * 100_000})
    assert len(text) < TEXT_MAX + 100
    assert text.endswith("cut: the text was too long …]")


@given(st.text(alphabet="{}abc_.!:[]0 "))
def test_any_text_is_a_template_or_refused(text: str) -> None:
    try:
        template = parse(text)
    except Rejected:
        return
    template.render(Payload(data={"a": {"b": [{"c": 1}]}}, raw="r"))


@given(st.text())
def test_text_with_doubled_braces_is_itself(text: str) -> None:
    doubled = text.replace("{", "{{").replace("}", "}}")
    if len(doubled) <= TEMPLATE_MAX:
        assert rendered(doubled) == text


class Tempting(dict[str, Any]):
    """Something with attributes that no field may reach."""

    secret = "out"


def test_only_what_json_holds_can_be_reached() -> None:
    data = Tempting(items_=[1], text="x")
    for name in ("secret", "keys", "items_.append", "text.upper", "items_.0.real"):
        assert find(data, parse_field(name)) is MISSING
