"""Signatures of every scheme: the vectors that their authors publish, and everything that must not pass for one."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping

import pytest

from holdfast.channels.webhook.head import VALUE_MAX, Head, head
from holdfast.channels.webhook.signatures import (
    SECRET_BYTES,
    SHOWN_BY,
    TOLERANCE_S,
    Scheme,
    Unverified,
    Verified,
    new_secret,
    sign,
    standard_key,
    verify,
)

NOW_S = 1_700_000_000
NOW = NOW_S * 1000
BODY = b'{"message": "disk full \xc3\xa9"}'
SECRET = "a secret of the usual length"
TIMED = (Scheme.STANDARD, Scheme.SLACK, Scheme.STRIPE, Scheme.HMAC)


def by_hand(secret: str, text: bytes) -> str:
    """HMAC-SHA256 from its definition, with nothing of hmac's in it."""
    key = secret.encode()
    key = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + text).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in key) + inner).hexdigest()


def signed(scheme: Scheme, body: bytes = BODY, secret: str = SECRET, at_s: int = NOW_S) -> Mapping[str, str]:
    """What a sender of each scheme would send, written down from its documentation."""
    match scheme:
        case Scheme.STANDARD:
            mac = bytes.fromhex(by_hand(secret, f"msg_1.{at_s}.".encode() + body))
            return {
                "webhook-id": "msg_1",
                "webhook-timestamp": str(at_s),
                "webhook-signature": f"v1,{base64.b64encode(mac).decode()}",
            }
        case Scheme.GITHUB:
            return {"X-Hub-Signature-256": f"sha256={by_hand(secret, body)}"}
        case Scheme.GITLAB:
            return {"X-Gitlab-Token": secret}
        case Scheme.SLACK:
            mac = by_hand(secret, f"v0:{at_s}:".encode() + body)
            return {"X-Slack-Request-Timestamp": str(at_s), "X-Slack-Signature": f"v0={mac}"}
        case Scheme.STRIPE:
            return {"Stripe-Signature": f"t={at_s},v1={by_hand(secret, f'{at_s}.'.encode() + body)}"}
        case Scheme.HMAC:
            return {"X-Timestamp": str(at_s), "X-Signature-256": by_hand(secret, f"{at_s}.".encode() + body)}


def passes(
    headers: Mapping[str, str], body: bytes = BODY, secret: str = SECRET, now: int = NOW, scheme: str = "any"
) -> bool:
    try:
        verify(head(dict(headers)), body, secret, now, scheme)
    except Unverified:
        return False
    return True


def test_standard_webhooks_own_vector() -> None:
    secret, body, at_s = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}', 1_614_265_330
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": str(at_s),
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    assert verify(head(headers), body, secret, at_s * 1000) == Verified(
        scheme=Scheme.STANDARD, signed_at=at_s, mark="83484cf52b04f8e4cf2531adfed9882a"
    )
    assert sign(Scheme.STANDARD, body, secret, at_s * 1000, "msg_p5jXN8AQM9LWM0D4loKWxJek") == headers


def test_githubs_own_vector() -> None:
    secret, body = "It's a Secret to Everybody", b"Hello, World!"
    headers = {"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}
    assert passes(headers, body, secret)
    assert sign(Scheme.GITHUB, body, secret, NOW, "d")["X-Hub-Signature-256"] == headers["X-Hub-Signature-256"]


def test_slacks_own_vector() -> None:
    secret, at_s = "8f742231b10e8888abcd99yyyzzz85a5", 1_531_420_618
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar"
        b"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com"
        b"%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14"
        b"d10d2c447fce8b6703c"
    )
    headers = {
        "X-Slack-Request-Timestamp": str(at_s),
        "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    }
    assert passes(headers, body, secret, at_s * 1000)


def test_fixed_vectors_of_the_schemes_that_publish_none() -> None:
    """Computed once with `openssl dgst -sha256 -hmac`."""
    plain = {"X-Timestamp": "1700000000", "X-Signature-256": PLAIN}
    stripe = {"Stripe-Signature": f"t=1700000000,v1={PLAIN},v0=ignored"}
    assert passes(plain, b'{"a":1}', "0123456789abcdef")
    assert passes({**plain, "X-Signature-256": f"sha256={PLAIN}"}, b'{"a":1}', "0123456789abcdef")
    assert passes(stripe, b'{"a":1}', "0123456789abcdef")


PLAIN = "9eb18f493f8ec135d9eb2dad817c369bb4e9cbfa818657897a7437c1cd8c3a23"


@pytest.mark.parametrize("scheme", Scheme)
def test_what_a_sender_signs_passes_and_what_we_sign_is_the_same(scheme: Scheme) -> None:
    found = verify(head(dict(signed(scheme))), BODY, SECRET, NOW)
    assert (found.scheme, found.signed_at) == (scheme, NOW_S if scheme in TIMED else None)
    assert bool(found.mark) == (scheme in (*TIMED, Scheme.GITHUB))
    ours = sign(scheme, BODY, SECRET, NOW, "msg_1")
    assert passes(ours)
    assert {name: value.removeprefix("sha256=") for name, value in signed(scheme).items()}.items() <= {
        name: value.removeprefix("sha256=") for name, value in ours.items()
    }.items()


@pytest.mark.parametrize("scheme", Scheme)
def test_no_flipped_bit_of_a_signature_passes(scheme: Scheme) -> None:
    """A flipped signature is refused, whichever bit of whichever byte it is."""
    name = {**SHOWN_BY}[scheme]
    headers = {key.lower(): value.encode() for key, value in signed(scheme).items()}
    for place in range(len(headers[name])):
        for bit in range(8):
            value = bytearray(headers[name])
            value[place] ^= 1 << bit
            flipped = Head((key.encode(), bytes(value) if key == name else each) for key, each in headers.items())
            with pytest.raises(Unverified):
                verify(flipped, BODY, SECRET, NOW)


@pytest.mark.parametrize("scheme", [each for each in Scheme if each is not Scheme.GITLAB])
def test_no_flipped_bit_of_a_body_passes(scheme: Scheme) -> None:
    headers = signed(scheme)
    for place in range(len(BODY)):
        for bit in range(8):
            body = bytearray(BODY)
            body[place] ^= 1 << bit
            assert not passes(headers, bytes(body))
    for body in (b"", BODY[:-1], BODY + b" ", b" " + BODY):
        assert not passes(headers, body)


@pytest.mark.parametrize("scheme", Scheme)
def test_a_truncated_empty_or_longer_signature_is_refused(scheme: Scheme) -> None:
    headers, shown = dict(signed(scheme)), SHOWN_BY[scheme]
    name = next(key for key in headers if key.lower() == shown)
    for value in (headers[name][:-1], headers[name][1:], "", " ", headers[name] + "0", "v1,", "sha256=", "t=1,v1=", "v0="):
        assert not passes({**headers, name: value}), value


@pytest.mark.parametrize("scheme", Scheme)
def test_another_secret_is_refused(scheme: Scheme) -> None:
    for secret in (SECRET + "x", SECRET[:-1], SECRET.upper(), "", f"whsec_{SECRET}"):
        assert not passes(signed(scheme), secret=secret)


@pytest.mark.parametrize("scheme", TIMED)
def test_the_time_may_be_five_minutes_off_and_no_more(scheme: Scheme) -> None:
    """A stale or a future timestamp is refused."""
    for offset, good in ((-TOLERANCE_S, True), (TOLERANCE_S, True), (-TOLERANCE_S - 1, False), (TOLERANCE_S + 1, False)):
        assert passes(signed(scheme, at_s=NOW_S + offset)) is good, offset
    assert not passes(signed(scheme, at_s=NOW_S - TOLERANCE_S), now=NOW + 1)
    assert not passes(signed(scheme, at_s=0))
    assert not passes(signed(scheme, at_s=NOW))


@pytest.mark.parametrize("scheme", TIMED)
def test_the_time_is_signed(scheme: Scheme) -> None:
    """A replay cannot be given a new time."""
    old = {name.lower(): value for name, value in signed(scheme, at_s=NOW_S - 1000).items()}
    renewed = {name: value.replace(str(NOW_S - 1000), str(NOW_S)) for name, value in old.items()}
    assert renewed != old
    assert not passes(renewed)


@pytest.mark.parametrize("scheme", TIMED)
@pytest.mark.parametrize("time", ["", "now", "-1", "+1", "1e9", "1700000000.5", " 17", "٣٣", "9" * 13, "0x1", "1_0", "\t"])
def test_a_time_that_is_none_is_refused(scheme: Scheme, time: str) -> None:
    odd = {name: value.replace(str(NOW_S), time) for name, value in signed(scheme).items()}
    raw = Head((name.lower().encode(), value.encode()) for name, value in odd.items())
    with pytest.raises(Unverified):
        verify(raw, BODY, SECRET, NOW)


def test_a_replay_has_the_same_mark_and_anything_else_another() -> None:
    marks = [
        verify(head(dict(signed(scheme, body, at_s=at_s))), body, SECRET, NOW).mark
        for scheme in TIMED
        for body in (BODY, BODY + b" ")
        for at_s in (NOW_S, NOW_S - 1)
    ]
    again = [verify(head(dict(signed(scheme))), BODY, SECRET, NOW + 5_000).mark for scheme in TIMED]
    # Stripe and the plain HMAC sign the same way.
    assert len(set(marks)) == len(marks) - 4
    assert set(again) < set(marks)


def test_one_of_several_signatures_suffices() -> None:
    """One of two signatures valid is accepted, as while a sender changes its secret."""
    good = signed(Scheme.STANDARD)["webhook-signature"]
    wrong = "v1," + base64.b64encode(bytes(32)).decode()
    rest = {name: value for name, value in signed(Scheme.STANDARD).items() if name != "webhook-signature"}
    for value, fits in (
        (f"{wrong} {good}", True),
        (f"{good} {wrong}", True),
        (f"v1a,{'x' * 88} {good}", True),
        (f"{wrong} {wrong}", False),
        (good.replace("v1,", "v2,"), False),
        (good.replace("v1,", ""), False),
        (good.replace(",", ", "), False),
    ):
        assert passes({**rest, "webhook-signature": value}) is fits, value
    mac = by_hand(SECRET, f"{NOW_S}.".encode() + BODY)
    for value, fits in (
        (f"t={NOW_S},v1={'0' * 64},v1={mac}", True),
        (f"t={NOW_S}, v1={mac}", True),
        (f"v1={mac},t={NOW_S}", True),
        (f"t={NOW_S},v0={mac}", False),
        (f"t={NOW_S},t={NOW_S},v1={mac}", False),
        (f"v1={mac}", False),
        (f"t={NOW_S}", False),
    ):
        assert passes({"Stripe-Signature": value}) is fits, value


def test_sha1_alone_is_refused() -> None:
    sha1 = hmac.new(SECRET.encode(), BODY, "sha1").hexdigest()
    with pytest.raises(Unverified, match="SHA-1"):
        verify(head({"X-Hub-Signature": f"sha1={sha1}"}), BODY, SECRET, NOW)
    assert not passes({"X-Hub-Signature-256": f"sha1={sha1}"})
    assert passes({"X-Hub-Signature": f"sha1={sha1}", **signed(Scheme.GITHUB)})


def test_signatures_of_one_scheme_are_none_of_another() -> None:
    names: dict[Scheme, Callable[[str], Mapping[str, str]]] = {
        Scheme.GITHUB: lambda value: {"X-Hub-Signature-256": value},
        Scheme.SLACK: lambda value: {"X-Slack-Signature": value, "X-Slack-Request-Timestamp": str(NOW_S)},
        Scheme.HMAC: lambda value: {"X-Signature-256": value, "X-Timestamp": str(NOW_S)},
    }
    values = {scheme: signed(scheme)[next(reversed(signed(scheme)))] for scheme in names}
    for scheme, build in names.items():
        assert passes(build(values[scheme]))
        for other, value in values.items():
            assert other is scheme or not passes(build(value)), (scheme, other)


@pytest.mark.parametrize("scheme", Scheme)
def test_a_route_may_take_one_scheme_only(scheme: Scheme) -> None:
    for other in Scheme:
        assert passes(signed(other), scheme=scheme) is (other is scheme)


def test_the_first_scheme_shown_decides() -> None:
    """A signature that does not fit is not made good by one that cannot tell a replay."""
    stale = signed(Scheme.STANDARD, at_s=NOW_S - 1000)
    assert not passes({**stale, **signed(Scheme.GITHUB)})
    assert not passes({**stale, **signed(Scheme.GITLAB)})
    assert passes({**stale, **signed(Scheme.GITHUB)}, scheme="github")


def test_nothing_shown_is_refused() -> None:
    for headers in ({}, {"Authorization": f"Bearer {SECRET}"}, {"webhook-id": "1", "webhook-timestamp": str(NOW_S)}):
        with pytest.raises(Unverified, match="not signed"):
            verify(head(headers), BODY, SECRET, NOW)
    without = {name: value for name, value in signed(Scheme.STANDARD).items() if name != "webhook-id"}
    assert not passes(without)


@pytest.mark.parametrize("scheme", Scheme)
def test_odd_headers_are_refused_and_break_nothing(scheme: Scheme) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in signed(scheme).items()]
    for name, value in headers:
        for odd in (value + b"\xff", b"\x00" + value, "é".encode(), b"x" * (VALUE_MAX + 1), b"\n", b"," * 1000, b"=" * 1000):
            with pytest.raises(Unverified):
                verify(Head([each if each[0] != name else (name, odd) for each in headers]), BODY, SECRET, NOW)
        with pytest.raises(Unverified, match="2 times"):
            verify(Head([*headers, (name, value)]), BODY, SECRET, NOW)


def test_a_secret_of_standard_webhooks_is_base64_for_them_and_text_for_the_others() -> None:
    secret = "whsec_" + base64.b64encode(b"twenty-four bytes of key").decode()
    assert standard_key(secret) == b"twenty-four bytes of key"
    assert standard_key(secret.rstrip("=")) == b"twenty-four bytes of key"
    assert passes(signed(Scheme.STANDARD, secret="twenty-four bytes of key"), secret=secret)
    assert not passes(signed(Scheme.STANDARD, secret=secret), secret=secret)
    for scheme in Scheme:
        if scheme is not Scheme.STANDARD:
            assert passes(signed(scheme, secret=secret), secret=secret)
    with pytest.raises(Unverified, match="not base64"):
        verify(head(dict(signed(Scheme.STANDARD))), BODY, "whsec_this is text", NOW)


def test_a_secret_may_be_anything_that_a_variable_can_hold() -> None:
    for secret in ("pässwörter sind lang", "\udcff" * 16, "🐙" * 16):
        for scheme in Scheme:
            if scheme is not Scheme.GITLAB:
                assert passes(sign(scheme, BODY, secret, NOW, "1"), secret=secret)
            assert not passes(signed(scheme), secret=secret)


def test_secrets_that_are_made_up_differ_and_are_long() -> None:
    secrets = {new_secret() for _ in range(100)}
    assert len(secrets) == 100
    assert {len(standard_key(secret)) for secret in secrets} == {SECRET_BYTES}


@pytest.mark.parametrize("scheme", TIMED)
def test_what_was_signed_with_its_time_is_nothing_without(scheme: Scheme) -> None:
    """SECURITY 4: a delivery that was overheard must not live on as one of a scheme that knows no time."""
    body = b'{"seen": "http://example.com/?a=b"}'
    before = {Scheme.STANDARD: f"msg_1.{NOW_S}.", Scheme.SLACK: f"v0:{NOW_S}:"}.get(scheme, f"{NOW_S}.")
    longer = before.encode() + body
    mac = hmac.new(SECRET.encode(), longer, "sha256")
    shown = " ".join(sign(scheme, body, SECRET, NOW, "msg_1").values())
    assert mac.hexdigest() in shown or base64.b64encode(mac.digest()).decode() in shown
    with pytest.raises(Unverified, match="begins with a time"):
        verify(head({"X-Hub-Signature-256": f"sha256={mac.hexdigest()}"}), longer, SECRET, NOW)


@pytest.mark.parametrize("body", [b"{}", b' {"a": "1."}', b"payload=%7B%7D", b"a.b=1.2.3", b"[1]", b"hello", b""])
def test_what_was_signed_without_a_time_is_let_in(body: bytes) -> None:
    verify(head(dict(sign(Scheme.GITHUB, body, SECRET, NOW, "d"))), body, SECRET, NOW)
