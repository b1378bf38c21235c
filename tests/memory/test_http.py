"""Memory at an address, on real sockets: what is sent, what is understood, and what each way to fail is called."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import formatdate
from typing import Any

import msgspec
import pytest

from holdfast import egress
from holdfast.config import MemoryConfig
from holdfast.core.facts import Recollection
from holdfast.core.redaction import MASK, Redaction
from holdfast.core.segments import Segment, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.core.transcript import Role
from holdfast.errors import ConfigInvalid, HoldfastError, Rejected, Unavailable
from holdfast.ids import SegmentId, SessionId, TurnId
from holdfast.memory.address import configured, plain
from holdfast.memory.exchange import ANSWER_MAX_BYTES
from holdfast.memory.http import RECEIPT_MAX_CHARS, RECOLLECTION_MAX_CHARS, HttpProvider
from holdfast.ports import MemoryProvider
from tests.channels.receiver import Cut, Line, Reply, receiving
from tests.engine.world import START, Hang, ManualClock, until
from tests.http_server import Request

SESSION = Session(
    id=SessionId("ses_1"),
    key="tides",
    channel="telegram",
    owner="alice",
    one_shot=False,
    created_at=START,
    updated_at=START,
    generation=4,
)
SEGMENT = Segment(
    id=SegmentId("seg_1"),
    session_id=SESSION.id,
    owner="http:http://elsewhere",
    first_generation=3,
    last_generation=4,
    created_at=START,
    due_at=START,
)
SAID = [
    SpokenMessage(role=Role.USER, text="I sail in Bergen. ☀", turn_id=TurnId("trn_1"), at=START),
    SpokenMessage(role=Role.ASSISTANT, text="Noted.", turn_id=TurnId("trn_1"), at=START + 1),
]
KEY = "sk-memory-0123456789"


def answer(value: Any, status: str = "200 OK", **headers: str) -> Reply:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(status, {"Content-Type": "application/json", **named}, msgspec.json.encode(value))


@asynccontextmanager
async def a_provider(url: str, *, key: str = "", timeout_s: float = 20, secrets: tuple[str, ...] = ()) -> AsyncIterator[Any]:
    address = configured(MemoryConfig(provider="http", url=url, api_key=key), {})
    assert address
    provider = HttpProvider(address, timeout_s=timeout_s, redaction=Redaction(secrets), clock=ManualClock())
    try:
        yield provider
    finally:
        await provider.close()


async def refusal(provider: MemoryProvider, what: str = "commit") -> HoldfastError:
    with pytest.raises(HoldfastError) as refused:
        await {
            "commit": lambda: provider.commit(SESSION, SEGMENT, SAID),
            "recall": lambda: provider.recall(SESSION, "sail", 5),
            "forget": lambda: provider.forget("alice", memory_id="7"),
            "check": provider.check,
        }[what]()
    return refused.value


@pytest.mark.parametrize("path", ["", "/", "/memory/v1", "/memory/v1/"])
async def test_a_segment_is_sent_whole_to_the_address_and_any_2xx_is_success(path: str) -> None:
    """M6: success is what the server says it is."""
    script = [Reply("204 No Content"), answer({"receipt": " 2 facts \n kept "}, "201 Created")]
    async with receiving(*script) as there, a_provider(there.url(path), key=KEY) as provider:
        assert await provider.commit(SESSION, SEGMENT, SAID) == "answered 204 No Content"
        assert await provider.commit(SESSION, SEGMENT, SAID) == "2 facts kept"
    first, again = there.posts
    assert first == again, "a segment that is sent again is sent as it was"
    assert (first.method, first.path) == ("POST", f"{path.rstrip('/')}/commit")
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.headers["content-type"] == "application/json"
    assert first.json == {
        "session_id": "ses_1",
        "segment_id": "seg_1",
        "owner": f"http:{there.url(path.rstrip('/'))}",
        "generations": [3, 4],
        "messages": [
            {"role": "user", "text": "I sail in Bergen. ☀", "turn_id": "trn_1", "at": START},
            {"role": "assistant", "text": "Noted.", "turn_id": "trn_1", "at": START + 1},
        ],
        "person": "alice",
        "channel": "telegram",
    }


async def test_what_is_recalled_is_at_most_what_was_asked_for() -> None:
    memories = [{"text": "Sails in Bergen.", "id": "m1", "score": 0.9}, {"text": " "}, {"text": "x" * 9_000, "id": 7}]
    script = [answer({"memories": memories, "took": 3}), answer({"memories": memories})]
    async with receiving(*script) as there, a_provider(there.url("")) as provider:
        assert await provider.recall(SESSION, "where do I sail?", 8) == [
            Recollection(text="Sails in Bergen.", id="m1"),
            Recollection(text="x" * RECOLLECTION_MAX_CHARS, id="7"),
        ]
        assert [each.id for each in await provider.recall(SESSION, "again", 1)] == ["m1"]
    post = there.posts[0]
    assert post.path == "/recall"
    assert "authorization" not in post.headers
    assert post.json == {
        "session_id": "ses_1",
        "query": "where do I sail?",
        "limit": 8,
        "person": "alice",
        "channel": "telegram",
    }


async def test_a_server_that_only_takes_need_not_recall() -> None:
    script = [Reply("404 Not Found"), Reply("405 No"), Reply("404 Not Found")]
    async with receiving(*script) as there, a_provider(there.url("")) as provider:
        assert await provider.recall(SESSION, "sail", 5) == ()
        assert await provider.recall(SESSION, "sail", 5) == ()
        assert "does not recall: 404 Not Found" in await provider.check()


async def test_forgetting_is_asked_for_by_id_or_by_session() -> None:
    script = [answer({"forgotten": 1}), answer({"forgotten": 4}), Reply("404 Not Found")]
    async with receiving(*script) as there, a_provider(there.url("/m"), key=KEY) as provider:
        assert await provider.forget("alice", memory_id="m1") == 1
        assert await provider.forget("alice", session_id=SESSION.id) == 4
        # M12: of no session there is nothing to forget.
        assert await provider.forget("alice", session_id=SessionId("")) == 0
        with pytest.raises(Rejected, match="/m/forget answered 404 Not Found: it cannot be told to forget; delete it there"):
            await provider.forget("alice", memory_id="m1")
    assert [(post.path, post.json) for post in there.posts[:2]] == [
        ("/m/forget", {"id": "m1", "person": "alice"}),
        ("/m/forget", {"session_id": "ses_1", "person": "alice"}),
    ]


async def test_a_user_in_the_address_becomes_a_header_and_is_nowhere_else() -> None:
    """K1, M3: whom a debt is owed to is written down for everybody to read."""
    async with receiving(Reply("500 Oh", body=b"for Basic " + b64encode(b"me:s3cret pass/word"))) as there:
        url = f"http://me:s3cret%20pass%2Fword@127.0.0.1:{there.port}/m/"
        async with a_provider(url) as provider:
            error = await refusal(provider)
    assert there.posts[0].headers["authorization"] == "Basic " + b64encode(b"me:s3cret pass/word").decode()
    assert there.posts[0].json["owner"] == provider.owner == f"http:http://127.0.0.1:{there.port}/m"
    assert str(error) == f"http://127.0.0.1:{there.port}/m/commit answered 500 Oh: for Basic {MASK}"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("http://127.0.0.1:9300", "http://127.0.0.1:9300"),
        ("http://127.0.0.1:9300/", "http://127.0.0.1:9300"),
        ("HTTP://Memory.Example:80/A/b//", "http://memory.example/A/b"),
        ("https://me:pw@memory.example:443/x", "https://memory.example/x"),
        ("https://token@[::1]:9300", "https://[::1]:9300"),
    ],
)
def test_an_address_is_the_same_binding_however_it_is_written(written: str, shown: str) -> None:
    """M3: a slash more makes no other owner."""
    assert plain(written) == shown
    assert plain(shown) == shown


SHORT = "http://127.0.0.1:{port}/commit"


@pytest.mark.parametrize(
    ("reply", "family", "words", "wait_s"),
    [
        (Reply("500 Oh", body=b"no   disk\n\x1b[31m"), Unavailable, f"{SHORT} answered 500 Oh: no disk [31m", None),
        (Reply("503 Busy", {"Retry-After": "7"}), Unavailable, f"{SHORT} answered 503 Busy", 7),
        (Reply("429 Slow", {"Retry-After": formatdate(START // 1000 + 90, usegmt=True)}), Unavailable, "429 Slow", 90),
        (Reply("503 Busy", {"Retry-After": "soon"}), Unavailable, f"{SHORT} answered 503 Busy", None),
        (Reply("400 Bad", body=b"<html><p>what?"), Rejected, f"{SHORT} answered 400 Bad", None),
        (Reply("422 No", body=b"x" * 5_000), Rejected, f"{SHORT} answered 422 No: {'x' * 200}…", None),
        (Reply("401 Who"), Rejected, "answered 401 Who; put a key that it takes into memory.api_key or", None),
        (Reply("404 None"), Rejected, f"{SHORT} answered 404 None", None),
        (Reply("307 There", {"Location": "/other"}), Rejected, "307 There; redirects are not followed, so put", None),
        (Reply("302 In", {"Location": "http://127.0.0.1:1/login"}), Rejected, "answered 302 In; redirects are not", None),
        (Cut(), Unavailable, f"{SHORT}: 127.0.0.1 was sent it and did not answer", None),
        (Cut(reads=False), Unavailable, SHORT, None),
    ],
)
async def test_a_commit_that_fails_says_what_happened(reply: Line, family: Any, words: str, wait_s: float | None) -> None:
    """M6: everything but a 2xx is a failed commit, and the next one may be told when."""
    async with receiving(reply) as there, a_provider(there.url(""), key=KEY) as provider:
        error = await refusal(provider)
    assert type(error) is family
    assert words.format(port=there.port) in str(error)
    assert getattr(error, "retry_after_s", None) == wait_s
    assert KEY not in str(error)
    assert len(str(error)) < 400
    assert len(there.posts) <= 1, "a redirect was followed"


async def test_a_secret_that_the_server_repeats_is_masked_even_where_it_is_cut() -> None:
    """K1"""
    echo = Reply("500 Oh", body=b"y" * 190 + KEY.encode() + b" is no key")
    async with receiving(echo, echo) as there, a_provider(there.url(""), key=KEY) as provider:
        for what in ("commit", "recall"):
            assert KEY[:6] not in str(await refusal(provider, what))


async def test_nobody_there_is_told_with_the_address() -> None:
    async with receiving() as there:
        pass
    async with a_provider(there.url("")) as provider:
        error = await refusal(provider)
    assert type(error) is Unavailable
    assert f"http://127.0.0.1:{there.port}/commit: 127.0.0.1 cannot be reached" in str(error)


GARBAGE = [
    Reply(body=b"\xff\xfe{"),
    Reply(body=b""),
    Reply(body=b"[]"),
    answer({"memories": "none"}),
    answer({"memories": [{"words": "x"}]}),
    Reply(body=b"[" * 100_000),
]


@pytest.mark.parametrize("reply", GARBAGE)
async def test_what_cannot_be_read_is_no_recollection(reply: Reply) -> None:
    async with receiving(reply, reply, reply) as there, a_provider(there.url("")) as provider:
        for what, example in (("recall", '{"memories": [{"text"'), ("forget", '{"forgotten": 1}'), ("check", '{"memories"')):
            error = await refusal(provider, what)
            assert type(error) is Unavailable
            assert f"answered 200 OK with something else than {example}" in str(error)


async def test_an_answer_without_end_is_left_at_its_limit() -> None:
    """SECURITY 12: a body that never ends is not read for ever."""
    endless = Reply(body=b'{"memories": [' + b" " * 65_536, endless=True)
    async with receiving(endless, endless) as there, a_provider(there.url("")) as provider:
        assert "did not come to an end" in str(await refusal(provider, "recall"))
        assert await provider.commit(SESSION, SEGMENT, SAID) == "answered 200 OK"
        # What waits in the buffers of both sides comes on top.
        assert there.sent_bytes < 2 * (ANSWER_MAX_BYTES + 8 * 1024 * 1024)


async def test_an_answer_that_stops_in_its_middle_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """M10: whoever drips holds nobody up."""
    monkeypatch.setattr(egress, "POST_BODY_TIMEOUT_S", 0.1)
    half = Reply(body=b'{"memories": [', more=100)
    async with receiving(half, half) as there, a_provider(there.url("")) as provider:
        assert "did not come to an end" in str(await refusal(provider, "recall"))
        # The status has said what counts.
        assert await provider.commit(SESSION, SEGMENT, SAID) == "answered 200 OK"


async def test_a_server_that_hangs_is_left_by_whoever_has_waited_enough() -> None:
    """M10: a caller that gives up leaves nothing behind, and the next one is answered."""
    async with receiving(Hang(), answer({"memories": []})) as there, a_provider(there.url("")) as provider:
        waiting = asyncio.create_task(provider.recall(SESSION, "sail", 5))
        await until(lambda: there.posts)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await provider.recall(SESSION, "sail", 5) == []
        assert len(there.posts) == 2


async def test_a_server_that_hangs_is_left_at_the_limit_of_a_commit() -> None:
    async with receiving(Hang()) as there, a_provider(there.url(""), timeout_s=0.1) as provider:
        error = await refusal(provider)
    assert type(error) is Unavailable
    assert str(error).startswith(f"{there.url('/commit')}: 127.0.0.1 ")
    assert "no answer in time" in str(error)


async def test_health_is_asked_as_a_question_that_changes_nothing() -> None:
    async with receiving(answer({"memories": []}), Reply("500 Oh")) as there, a_provider(there.url(""), key=KEY) as provider:
        assert await provider.check() == "recalls in 0 ms"
        assert "answered 500 Oh" in str(await refusal(provider, "check"))
    assert {post.path for post in there.posts} == {"/recall"}
    assert there.posts[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_long_receipt_is_kept_short() -> None:
    async with (
        receiving(answer({"receipt": f"{KEY} " + "z" * 900})) as there,
        a_provider(there.url(""), key=KEY) as provider,
    ):
        receipt = await provider.commit(SESSION, SEGMENT, SAID)
    assert len(receipt) == RECEIPT_MAX_CHARS
    assert receipt.startswith(f"{MASK} zzz")


async def test_many_commits_at_once_are_all_taken() -> None:
    def taken(post: Request) -> Reply:
        return answer({"receipt": post.json["segment_id"]})

    async with receiving(by=taken) as there, a_provider(there.url("")) as provider:
        done = await asyncio.gather(*(provider.commit(SESSION, SEGMENT, SAID) for _ in range(200)))
    assert done == ["seg_1"] * 200


def test_the_key_comes_from_its_variable_and_is_missed_where_it_is_not_set() -> None:
    config = MemoryConfig(provider="http", url="http://127.0.0.1:9300", api_key_env="MEMORY_KEY")
    address = configured(config, {"MEMORY_KEY": f"{KEY}\n"})
    assert address
    assert address.headers == {"Authorization": f"Bearer {KEY}"}
    assert KEY not in repr(address)
    with pytest.raises(ConfigInvalid, match=r"^memory\.api_key_env: the variable MEMORY_KEY is not set$"):
        configured(config, {})
    with pytest.raises(ConfigInvalid, match=r"^memory\.api_key_env: holds characters that are not allowed in a key$"):
        configured(config, {"MEMORY_KEY": "schlüssel"})
    with pytest.raises(ConfigInvalid, match=r"^memory\.url: must be an address"):
        configured(MemoryConfig(provider="http", url="127.0.0.1:9300"), {})
