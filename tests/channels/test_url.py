"""Answers sent to a URL: signed, once without a label, to the public internet only, and honest about what is not known."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from holdfast.channels.url.channel import UrlCarrier
from holdfast.channels.url.client import ANSWER_MAX_BYTES
from holdfast.channels.webhook.signatures import new_secret
from holdfast.clock import Clock, SystemClock
from holdfast.core.delivery import Delivery
from holdfast.egress import Egress, Guard
from holdfast.errors import ConfigInvalid, OutcomeUnknown, Rejected, Unavailable
from tests.channels.receiver import Cut, Line, Receiver, Reply, receiving
from tests.engine.world import START, Hang, ManualClock
from tests.http_server import Request

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide.md"
SHORT_S = 1.5
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SENT = Delivery(
    id="dlv_1", turn_id="trn_1", session_id="ses_1", target="url:", part=2, text="good morning\n☀", created_at=5, due_at=9
)


def is_signed(secret: str, post: Request, now_s: int) -> bool:
    """Check a signature as somebody who has only read the specification would."""
    moment = int(post.headers["webhook-timestamp"])
    content = b".".join([post.headers["webhook-id"].encode(), str(moment).encode(), post.body])
    key = base64.b64decode(secret.split("_", 1)[1])
    expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    versions = [each.split(",", 1) for each in post.headers["webhook-signature"].split(" ")]
    return abs(now_s - moment) <= 300 and any(v == "v1" and hmac.compare_digest(s, expected) for v, s in versions)


async def nobody(host: str, port: int) -> Sequence[str]:
    raise OSError("Name or service not known")


@asynccontextmanager
async def a_carrier(
    *allow_hosts: str,
    timeout_s: float = 5,
    secret: str = SECRET,
    names: dict[str, list[str]] | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[UrlCarrier]:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return (names or {})[host] if host in (names or {}) else await nobody(host, port)

    egress = Egress(Guard(allow_hosts, resolve, setting="channels.url.allow_hosts", encrypted=True), timeout_s)
    try:
        yield UrlCarrier(egress, secret, clock or ManualClock())
    finally:
        await egress.close()


async def sent_to(receiver: Receiver, clock: Clock | None = None, **changes: object) -> str:
    async with a_carrier(*receiver.hosts, clock=clock) as carrier:
        return await carrier.send(replace(SENT, target=f"url:{receiver.url()}", **changes))


def test_the_check_of_these_tests_agrees_with_the_specification() -> None:
    """The example that the libraries of Standard Webhooks are tested with."""
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    post = Request(method="POST", path="/", headers=headers, body=b'{"test": 2432232314}')
    assert is_signed(SECRET, post, 1614265330)
    assert not is_signed(SECRET, replace(post, body=post.body + b" "), 1614265330)


async def test_a_part_arrives_whole_and_signed() -> None:
    async with receiving(Reply("202 Accepted", {"X-Request-Id": "their-7"})) as there:
        assert await sent_to(there) == "202 their-7"
    (post,) = there.posts
    assert (post.method, post.path) == ("POST", "/hook")
    assert post.json == {
        "id": "dlv_1",
        "created_at": 5,
        "session_id": "ses_1",
        "turn_id": "trn_1",
        "part": 2,
        "text": "good morning\n☀",
        "possible_repeat": False,
    }
    assert (post.headers["content-type"], post.headers["user-agent"]) == ("application/json", "Holdfast")
    assert (post.headers["webhook-id"], post.headers["webhook-timestamp"]) == ("dlv_1", str(START // 1000))
    assert is_signed(SECRET, post, START // 1000)
    assert not is_signed(new_secret(), post, START // 1000)
    assert not is_signed(SECRET, replace(post, headers={**post.headers, "webhook-id": "dlv_2"}), START // 1000)
    assert not is_signed(SECRET, replace(post, body=post.body.replace(b"good", b"bad ")), START // 1000)


async def test_the_receiver_in_the_guide_takes_what_is_ours_and_takes_it_once(capsys: pytest.CaptureFixture[str]) -> None:
    """D1: what it has already it drops, labelled or not; what somebody else signed it refuses."""
    (example,) = re.findall(r"^```python\n(import base64.*?)^```", GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    theirs: dict[str, Any] = {}
    exec(example.replace("whsec_…", SECRET), theirs)
    receive = theirs["receive"]

    async with receiving() as there:
        now = SystemClock()
        await sent_to(there, clock=now)
        await sent_to(there, clock=now, repeats=1)
        await sent_to(there, clock=ManualClock())
    first, repeat, old = there.posts
    forged = replace(first, body=first.body.replace(b"good", b"evil"))
    assert [receive(each.headers, each.body) for each in (forged, first, repeat, old)] == [401, 200, 200, 401]
    assert capsys.readouterr().out == "good morning\n☀\n"


async def test_a_repeat_says_so_beside_the_text_and_not_in_it() -> None:
    """D1: a program reads a field more easily than a label, and knows the part by its id."""
    async with receiving() as there:
        await sent_to(there)
        await sent_to(there, repeats=1, attempt=2)
    first, second = there.posts
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert second.json == {**first.json, "possible_repeat": True}


@pytest.mark.parametrize(
    ("reply", "refusal", "words", "wait_s"),
    [
        (Reply("408 Request Timeout"), Unavailable, "cannot take it now: 408", None),
        (Reply("425 Too Early"), Unavailable, "425 Too Early", None),
        (Reply("429 Too Many Requests", {"Retry-After": "17"}), Unavailable, "429", 17),
        (Reply("500 Oops", body=b'{"error": "busy"}'), Unavailable, '500 Oops: {"error": "busy"}', None),
        (Reply("503 Away", {"Retry-After": "0"}), Unavailable, "503", 0),
        (Reply("503 Away", {"Retry-After": formatdate(START // 1000 + 90, usegmt=True)}), Unavailable, "503", 90),
        (Reply("503 Away", {"Retry-After": "soon"}), Unavailable, "503", None),
        (Reply("301 Moved", {"Location": "http://169.254.169.254/"}), Rejected, "redirects are not followed", None),
        (Reply("302 Found", {"Location": "/elsewhere"}), Rejected, "has moved: 302 Found", None),
        (Reply("304 Not Modified"), Rejected, "304", None),
        (Reply("307 Temporary Redirect", {"Location": "https://public.example/"}), Rejected, "307", None),
        (Reply("400 Bad Request", body=b"no\x1b[31m such\nfield"), Rejected, r"400 Bad Request: no \[31m such field$", None),
        (Reply("401 Unauthorized"), Rejected, "refuses it: 401", None),
        (Reply("404 Not Found", body=b"<html><title>404"), Rejected, "refuses it: 404 Not Found$", None),
        (Reply("410 Gone"), Rejected, "does not take it any more: 410", None),
        (Reply("413 Too Large", body=b"x" * 999), Rejected, "x" * 200 + "…$", None),
        (Reply("422 Unprocessable"), Rejected, "422", None),
    ],
    ids=lambda value: value.status if isinstance(value, Reply) else "",
)
async def test_an_answer_means_what_it_says(
    reply: Reply, refusal: type[Exception], words: str, wait_s: float | None
) -> None:
    async with receiving(reply) as there:
        with pytest.raises(refusal, match=words) as refused:
            await sent_to(there)
    assert len(there.posts) == 1, "something was followed, or sent again"
    assert getattr(refused.value, "retry_after_s", None) == wait_s
    assert "/hook" not in str(refused.value), "the rest of an address may be a secret"


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "204 No Content", "299 Fine"])
async def test_every_success_is_a_receipt(status: str) -> None:
    async with receiving(Reply(status)) as there:
        assert await sent_to(there) == status[:3]


@pytest.mark.parametrize("line", [Cut(), Cut(reads=False), Hang()], ids=["read, then cut", "cut at once", "no answer"])
async def test_nobody_knows_what_became_of_a_request_that_had_left(line: Line) -> None:
    """D1: no answer is no refusal."""
    async with receiving(Reply(), line) as there, a_carrier(*there.hosts, timeout_s=SHORT_S) as carrier:
        # The first one pays for reading certificates.
        await carrier.send(replace(SENT, target=f"url:{there.url()}"))
        with pytest.raises(OutcomeUnknown, match=r"127\.0\.0\.1 was sent it and did not answer"):
            await carrier.send(replace(SENT, target=f"url:{there.url()}"))
    assert there.connections == 2


async def test_garbage_for_an_answer_says_nothing_about_the_request() -> None:
    async with receiving(Reply("\x00\x01 2 3")) as there:
        with pytest.raises(OutcomeUnknown):
            await sent_to(there)


async def test_what_never_left_is_certainly_not_there() -> None:
    async with receiving() as gone:
        pass
    with pytest.raises(Unavailable, match="cannot be reached"):
        await sent_to(gone)
    async with a_carrier() as carrier:
        with pytest.raises(Unavailable, match="has no address"):
            await carrier.send(replace(SENT, target="url:https://nowhere.example/"))


async def test_a_handshake_that_fails_is_no_departure() -> None:
    async with receiving(Cut(reads=False)) as there, a_carrier(*there.hosts) as carrier:
        with pytest.raises(Unavailable, match="cannot be reached"):
            await carrier.send(replace(SENT, target=f"url:{there.url(scheme='https')}"))
    assert (there.connections, there.posts) == (1, [])


async def test_a_status_is_a_status_however_its_body_goes_on() -> None:
    """The far side has said that it has it: that the rest is huge, slow or cut changes nothing."""
    endless = Reply("200 OK", body=b"x" * 65_536, endless=True)
    slow = (Reply("201 Created", body=b"half", more=9), Reply("507 Full", body=b"half", more=9))
    async with receiving(endless, *slow) as there, a_carrier(*there.hosts, timeout_s=SHORT_S) as carrier:
        sent = replace(SENT, target=f"url:{there.url()}")
        assert await carrier.send(sent) == "200"
        assert there.sent_bytes < 64 * 1024 * 1024 > ANSWER_MAX_BYTES
        assert await carrier.send(sent) == "201"
        with pytest.raises(Unavailable, match="507 Full: half"):
            await carrier.send(sent)


INNER = [
    "https://169.254.169.254/latest/meta-data/",
    "https://[::ffff:169.254.169.254]/",
    "https://[fd00:ec2::254]/",
    "https://100.100.100.200/",
    "https://10.1.2.3/",
    "https://192.168.0.1/",
    "https://172.16.0.1/",
    "https://127.0.0.1/",
    "https://[::1]/",
    "https://localhost/",
    "https://LocalHost./",
    "https://hooks.localhost/",
    "https://2130706433/",
    "https://0177.0.0.1/",
    "https://0x7f.1/",
    "https://127.1/",
    "https://0.0.0.0/",
    "https://0/",
]
ODD = [
    "https://user:secret@public.example/",
    "https://public.example:22/",
    "https://public.example:6379/",
    "ftp://public.example/",
    "file:///etc/passwd",
    "http://public.example/",
    "//public.example/",
    "public.example",
    "https://",
    "",
    "https://[::1",
    "https://pub\nlic.example/",
    "https://public.example/" + "x" * 9_000,
]


@pytest.mark.parametrize("url", [*INNER, *ODD])
async def test_a_target_that_must_not_be_reached_is_refused_when_it_is_named(url: str) -> None:
    """SECURITY 6: before anything is looked up; and again when something is to be sent there."""
    async with a_carrier(names={"public.example": ["93.184.216.34"]}) as carrier:
        with pytest.raises(Rejected):
            carrier.check(f"url:{url}")
        with pytest.raises(Rejected):
            await carrier.send(replace(SENT, target=f"url:{url}"))


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "10.0.0.7", "::1", "fe80::1", "fd00:ec2::254"])
async def test_a_name_that_leads_inside_is_refused_when_it_is_looked_up(address: str) -> None:
    """SECURITY 6: one address of several is enough."""
    async with receiving() as there, a_carrier(names={"inside.example": ["93.184.216.34", address]}) as carrier:
        target = f"url:{there.url(host='inside.example', scheme='https')}"
        carrier.check(target)
        with pytest.raises(Rejected, match="not on the public internet"):
            await carrier.send(replace(SENT, target=target))
    assert there.connections == 0


async def test_what_the_operator_names_may_be_inside_and_nothing_else_there() -> None:
    async with receiving(by=lambda post: Reply()) as there, receiving() as beside:
        names = {"inside.example": ["127.0.0.1"]}
        async with a_carrier(f"inside.example:{there.port}", names=names) as carrier:
            target = f"url:{there.url(host='inside.example')}"
            carrier.check(target)
            assert await carrier.send(replace(SENT, target=target)) == "200"
            for other in (there.url(), beside.url(), beside.url(host="inside.example")):
                with pytest.raises(Rejected, match=r"channels\.url\.allow_hosts"):
                    await carrier.send(replace(SENT, target=f"url:{other}"))
    assert beside.connections == 0


@pytest.mark.parametrize(
    ("secret", "problem"),
    [
        ("whsec_not base64!", "must be base64"),
        ("whsec_c2hvcnQ=", "24 bytes or more"),
        ("whsec_", "24 bytes or more"),
        ("short", "24 bytes or more"),
    ],
)
async def test_a_secret_that_protects_nobody_is_refused(secret: str, problem: str) -> None:
    with pytest.raises(ConfigInvalid, match=rf"channels\.url\.secret: .*{problem}") as refused:
        async with a_carrier(secret=secret):
            pass
    assert secret == "whsec_" or secret not in str(refused.value)


async def test_a_secret_without_the_prefix_is_taken_literally() -> None:
    literal = "a phrase of the operator, long enough"
    async with receiving() as there, a_carrier(*there.hosts, secret=literal) as carrier:
        await carrier.send(replace(SENT, target=f"url:{there.url()}"))
    assert is_signed(f"whsec_{base64.b64encode(literal.encode()).decode()}", there.posts[0], START // 1000)
