"""Deliveries: what is in one, which one it is, and the turn that it becomes."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest

from holdfast.channels.webhook.delivery import ID_MAX, delivery_id, inbound
from holdfast.channels.webhook.head import BadHeader, Head, head
from holdfast.channels.webhook.payload import FORM_FIELDS_MAX, BadPayload, Payload, read
from holdfast.channels.webhook.signatures import Scheme, Verified
from holdfast.core.sessions import Source
from holdfast.core.turns import Mode

NOW = 1_700_000_000_000
FORM = {"content-type": "application/x-www-form-urlencoded"}
TIMED = Verified(scheme=Scheme.HMAC, signed_at=NOW // 1000, mark="0123")


def payload(body: bytes, **headers: str) -> Payload:
    return read(head({name.replace("_", "-"): value for name, value in headers.items()}), body)


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (b"", "empty"),
        (b"  ", "empty"),
        (b"hello", "not JSON"),
        (b"[1]", "JSON object"),
        (b"1", "JSON object"),
        (b"null", "JSON object"),
        (b'"text"', "JSON object"),
        (b'{"a": NaN}', "not JSON"),
        (b'{"a": 1e999}', "not JSON"),
        (b'{"a": 1,}', "not JSON"),
        (b'{"a": 1} x', "not JSON"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 7"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "not JSON"),
        (b'{"a": "\\ud800"}', "not JSON"),
    ],
)
def test_what_is_no_json_object_is_refused(body: bytes, hint: str) -> None:
    with pytest.raises(BadPayload, match=hint):
        payload(body)


def test_a_form_is_understood_as_its_senders_mean_it() -> None:
    inner = {"action": "opened", "text": "ä & ö"}
    found = read(head(FORM), urlencode({"payload": json.dumps(inner)}).encode())
    assert (found.data, found.raw) == (inner, json.dumps(inner))
    command = read(head({"content-type": "application/x-www-form-urlencoded; charset=utf-8"}), b"command=%2Fask&text=")
    assert (command.data, command.raw) == ({"command": "/ask", "text": ""}, "command=%2Fask&text=")
    many = "&".join(f"a{number}=1" for number in range(FORM_FIELDS_MAX + 1)).encode()
    for body in (b"payload=hello", b"payload=", b"payload=[1]", b"no form", b"", b"a=%ff", many):
        with pytest.raises(BadPayload):
            read(head(FORM), body)


@pytest.mark.parametrize(
    ("headers", "data", "event"),
    [
        ({"X-GitHub-Event": "push"}, {"type": "other"}, "push"),
        ({"X-Gitlab-Event": "Push Hook"}, {"event_type": "other"}, "Push Hook"),
        ({}, {"type": "invoice.paid", "event_type": "x"}, "invoice.paid"),
        ({}, {"event_type": "alert"}, "alert"),
        ({}, {"event": {"type": "message"}}, "message"),
        ({}, {"type": "event_callback", "event": {"type": "app_mention"}}, "app_mention"),
        ({}, {"type": "event_callback"}, "event_callback"),
        ({}, {"type": 7, "event": "text"}, None),
        ({}, {"event": "deploy"}, None),
        ({}, {}, None),
        ({}, {"type": "x" * 1_000}, "x" * 200),
    ],
)
def test_the_type_is_what_the_sender_calls_it(headers: dict[str, str], data: object, event: str | None) -> None:
    assert read(head(headers), json.dumps(data).encode()).event_type == event


@pytest.mark.parametrize(
    ("headers", "verified", "data", "expected"),
    [
        ({"webhook-id": "msg_1", "X-Request-Id": "r"}, None, {}, "msg_1"),
        ({"X-GitHub-Delivery": "72d3162e-cc78"}, Verified(scheme=Scheme.GITHUB, mark="0"), {}, "sig_0"),
        ({"X-Request-Id": "r"}, Verified(scheme=Scheme.GITHUB, mark="0"), {}, "sig_0"),
        ({"X-Gitlab-Event-UUID": "u"}, Verified(scheme=Scheme.GITLAB), {}, "u"),
        ({"X-Gitlab-Event-UUID": "u", "Idempotency-Key": "k"}, Verified(scheme=Scheme.GITLAB), {}, "k"),
        ({"X-Delivery-Id": "d", "Idempotency-Key": "k"}, TIMED, {}, "d"),
        ({"Idempotency-Key": "k", "X-Request-Id": "r"}, TIMED, {}, "k"),
        ({"X-Request-Id": "r"}, TIMED, {}, "r"),
        ({}, TIMED, {}, "sig_0123"),
        ({"X-Delivery-Id": " "}, TIMED, {}, "sig_0123"),
        ({"X-Request-Id": "r"}, Verified(scheme=Scheme.SLACK, signed_at=1, mark="0"), {"event_id": "Ev1"}, "Ev1"),
        ({}, Verified(scheme=Scheme.SLACK, signed_at=1, mark="0"), {"command": "/ask"}, "sig_0"),
        ({"X-Request-Id": "r"}, Verified(scheme=Scheme.SLACK, signed_at=1, mark="0"), {"command": "/ask"}, "sig_0"),
        ({"X-Delivery-Id": "d"}, Verified(scheme=Scheme.STRIPE, signed_at=1, mark="0"), {}, "sig_0"),
        ({"X-Request-Id": "r"}, Verified(scheme=Scheme.STRIPE, signed_at=1, mark="0"), {"id": "evt_1"}, "evt_1"),
        ({}, Verified(scheme=Scheme.STRIPE, signed_at=1, mark="0"), {"id": 7}, "sig_0"),
        ({"X-Delivery-Id": "d"}, TIMED, {"id": "not an id of theirs"}, "d"),
    ],
)
def test_a_delivery_has_its_senders_id(
    headers: dict[str, str], verified: Verified | None, data: object, expected: str
) -> None:
    """W2: the delivery id is the sender's id header, else made up; a replay is the same."""
    found = read(head(headers), json.dumps(data).encode())
    assert delivery_id(head(headers), verified, found, NOW) == expected


def test_a_delivery_without_an_id_gets_a_new_one_each_time() -> None:
    """W2: else generated."""
    ids = {delivery_id(head({}), verified, payload(b"{}"), NOW) for verified in (None, Verified(scheme=Scheme.GITLAB)) * 50}
    assert len(ids) == 100
    assert all(each.startswith("whd_") for each in ids)


def test_an_id_that_is_none_is_refused() -> None:
    found = payload(b"{}")
    for odd in (b"x" * (ID_MAX + 1), b"a\x00b", b"a\x7fb", b"\xc3\xa9", b"x" * 100_000):
        with pytest.raises(BadHeader):
            delivery_id(Head([(b"x-delivery-id", odd)]), None, found, NOW)
    with pytest.raises(BadHeader, match="2 times"):
        delivery_id(Head([(b"x-delivery-id", b"a"), (b"x-delivery-id", b"b")]), None, found, NOW)
    slack = Verified(scheme=Scheme.SLACK, signed_at=1, mark="0")
    with pytest.raises(BadHeader):
        delivery_id(head({}), slack, payload(json.dumps({"event_id": "a\nb"}).encode()), NOW)


def test_a_delivery_becomes_a_turn_of_its_own() -> None:
    """W2: its own one-shot session, with exactly this source."""
    message = inbound("alerts", "d1", "Alert: disk full", "url:https://x.example")
    assert message.source == Source(
        chat_id="webhook:alerts:d1", chat_name="webhook/alerts", chat_type="webhook", user="webhook:alerts"
    )
    assert (message.conversation, message.dedupe_key, message.channel) == (
        "webhook:alerts:d1",
        "webhook:alerts:d1",
        "webhook",
    )
    assert (message.one_shot, message.mode, message.remembers) == (True, Mode.DETACHED, False)
    assert (message.delivers_later, message.reply_to, message.verbatim) == (True, "url:https://x.example", False)
    assert inbound("alerts", "d1", "x", None, verbatim=True).verbatim
