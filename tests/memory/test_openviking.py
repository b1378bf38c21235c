"""Memory in OpenViking, on real sockets: what it is told, once and in order, and whose memory is whose.

What a server has to do with is shown against a scripted one and, where it is installed, the real one; how failures end,
against the scripted one.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from holdfast.clock import Clock, SystemClock
from holdfast.core.keys import LOCAL
from holdfast.core.redaction import MASK, Redaction
from holdfast.core.segments import Segment, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.core.transcript import Role
from holdfast.errors import HoldfastError, Rejected, Unavailable
from holdfast.ids import SegmentId, SessionId, TurnId
from holdfast.memory.address import Address
from holdfast.memory.exchange import Exchange
from holdfast.memory.openviking import client as viking
from holdfast.memory.openviking.provider import POLL_MAX_MS, RECOLLECTION_MAX_CHARS, OpenVikingProvider, identity
from tests.channels.receiver import Cut, Line, Reply, receiving
from tests.engine.world import START, Hang, ManualClock
from tests.http_server import Request
from tests.memory import longship
from tests.memory.vikings import KEY, Fault, OpenViking, an_openviking

Reach = Callable[[], AbstractAsyncContextManager[Address]]
_numbers = itertools.count(1)


class HastyClock(ManualClock):
    """A clock that needs nobody to move it: whoever sleeps wakes at once, and that much later."""

    async def sleep_ms(self, duration_ms: float) -> None:
        self.naps.append(duration_ms)
        await self.advance(int(duration_ms))


def a_session(owner: str = LOCAL) -> Session:
    return Session(
        id=SessionId(f"ses_{next(_numbers)}"),
        key="tides",
        channel="telegram",
        owner=owner,
        one_shot=False,
        created_at=START,
        updated_at=START,
    )


def a_segment(session: Session) -> Segment:
    return Segment(
        id=SegmentId(f"seg_{next(_numbers)}"),
        session_id=session.id,
        owner="openviking:http://elsewhere",
        first_generation=1,
        last_generation=2,
        created_at=START,
        due_at=START,
    )


def turns(*texts: str) -> list[list[SpokenMessage]]:
    """Return what was said in turns, in each something and an answer to it."""
    return [
        [
            SpokenMessage(role=Role.USER, text=text, turn_id=TurnId(f"trn_{number}"), at=START + 2 * number),
            SpokenMessage(
                role=Role.ASSISTANT, text=f"Noted: {text}", turn_id=TurnId(f"trn_{number}"), at=START + 2 * number + 1
            ),
        ]
        for number, text in enumerate(texts)
    ]


def name_of(segment: Segment) -> str:
    return f"holdfast-{segment.session_id}-{segment.id}"


def at(server: OpenViking, key: str = KEY) -> Address:
    return Address(url=server.url, authorization=f"Bearer {key}" if key else "")


@asynccontextmanager
async def a_provider(
    address: Address, *, timeout_s: float = 20, clock: Clock | None = None
) -> AsyncIterator[OpenVikingProvider]:
    redaction = Redaction()
    provider = OpenVikingProvider(address, timeout_s=timeout_s, redaction=redaction, clock=clock or HastyClock())
    try:
        yield provider
    finally:
        await provider.close()


@pytest.fixture(scope="module")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if longship.command() is None:
        pytest.skip("openviking-server is not installed; put it on the path, or its command into HOLDFAST_TEST_OPENVIKING")
    with longship.running(tmp_path_factory.mktemp("openviking")) as url:
        yield url


@pytest.fixture(params=["scripted", "real"])
def reach(request: pytest.FixtureRequest) -> Reach:
    """Reach a server that believes whom it is told it is asked for: a scripted one, and the real one."""
    real = request.getfixturevalue("real_server") if request.param == "real" else None

    @asynccontextmanager
    async def scripted() -> AsyncIterator[Address]:
        async with an_openviking("trusted") as server:
            yield at(server)

    @asynccontextmanager
    async def installed() -> AsyncIterator[Address]:
        yield Address(url=str(real), authorization=f"Bearer {longship.KEY}")

    return installed if real else scripted


async def told(address: Address, session: Session, segment: Segment) -> tuple[list[str], int]:
    """Return what a server extracted from, in order, and how often it did."""
    exchange = Exchange(address, timeout_s=20, redaction=Redaction(), clock=SystemClock())
    who = identity(session.owner)
    headers = {"X-OpenViking-Account": who.account_id, "X-OpenViking-User": who.user_id}
    name = name_of(segment)
    archive = await exchange.request("GET", f"/api/v1/sessions/{name}/archives/archive_001", headers)
    tasks = await exchange.request("GET", f"/api/v1/tasks?task_type=session_commit&resource_id={name}", headers)
    await exchange.close()
    messages = msgspec.json.decode(archive.body)["result"]["messages"]
    return [each["parts"][0]["text"] for each in messages], len(msgspec.json.decode(tasks.body)["result"])


def texts(said: list[list[SpokenMessage]]) -> list[str]:
    return [message.text for turn in said for message in turn]


def whole(said: list[list[SpokenMessage]]) -> list[SpokenMessage]:
    return [message for turn in said for message in turn]


async def test_turns_are_told_as_they_end_and_extracted_once_when_the_conversation_is_over(reach: Reach) -> None:
    """M4: one commit of all that was said; again, it answers what it answered, and nothing is done."""
    async with reach() as address, a_provider(address, clock=SystemClock()) as provider:
        session, said = a_session("ada"), turns("I keep bees.", "My bicycle is red.")
        segment = a_segment(session)
        for turn in said:
            await provider.note(session, segment, turn)
        assert await provider.commit(session, segment, whole(said)) == "2 memories extracted"
        assert await provider.commit(session, segment, whole(said)) == "2 memories extracted"
        await provider.note(session, segment, said[-1])
        assert await told(address, session, segment) == (texts(said), 1)


@pytest.mark.parametrize("how", ["none came", "the first was lost", "one came twice", "they crossed", "one was undone"])
async def test_whatever_became_of_the_notes_each_message_is_there_once_and_in_order(reach: Reach, how: str) -> None:
    """M4: notes are hints; a commit makes good what became of them."""
    async with reach() as address, a_provider(address, clock=SystemClock()) as provider:
        session, said = a_session("ada"), turns("I keep bees.", "My bicycle is red.", "I sail in Bergen.")
        segment = a_segment(session)
        match how:
            case "the first was lost":
                await provider.note(session, segment, said[1])
            case "one came twice":
                await provider.note(session, segment, said[0])
                await _add_again(address, session, segment, said[0])
            case "they crossed":
                await asyncio.gather(*(provider.note(session, segment, turn) for turn in reversed(said)))
            case "one was undone":
                await provider.note(session, segment, said[0])
                del said[0]
            case _:
                pass
        assert await provider.commit(session, segment, whole(said)) == f"{len(said)} memories extracted"
        assert await told(address, session, segment) == (texts(said), 1)


async def _add_again(address: Address, session: Session, segment: Segment, turn: list[SpokenMessage]) -> None:
    """Add a turn that is there already, as a note does that was slow on its way."""
    exchange = Exchange(address, timeout_s=20, redaction=Redaction(), clock=SystemClock())
    spoken = [
        viking.VikingMessage(
            role=each.role, content=each.text, turn_id=each.turn_id, created_at="2023-11-14T22:13:20.000+00:00"
        )
        for each in turn
    ]
    await viking.Viking(exchange).add(viking.Place(who=identity(session.owner), name=name_of(segment)), spoken)
    await exchange.close()


async def test_each_person_recalls_and_forgets_what_is_theirs_and_nobody_else_s(reach: Reach) -> None:
    """Tenants do not read each other."""
    async with reach() as address, a_provider(address, clock=SystemClock()) as provider:
        ada, bob = a_session(f"Ada:{next(_numbers)}"), a_session(f"ada-{next(_numbers)}")
        for session, text in ((ada, "I keep bees."), (bob, "I fear bees.")):
            await provider.commit(session, a_segment(session), whole(turns(text)))
        (kept,) = await provider.recall(ada, "who has to do with bees?", 8)
        (feared,) = await provider.recall(bob, "who has to do with bees?", 8)
        assert "I keep bees." in kept.text
        assert "I fear bees." in feared.text
        assert kept.id
        assert feared.id
        with pytest.raises(Rejected, match="no memory of theirs"):
            await provider.forget(bob.owner, memory_id=kept.id)
        assert await provider.forget(ada.owner, memory_id=kept.id) == 1
        assert await provider.forget(ada.owner, memory_id=kept.id) == 0
        assert await provider.recall(ada, "bees", 8) == []
        assert await provider.recall(a_session(f"nobody-{next(_numbers)}"), "bees", 8) == []
        assert await provider.forget(bob.owner, session_id=bob.id) == 1
        assert await provider.forget(bob.owner, session_id=bob.id) == 0
        assert await provider.recall(bob, "bees", 8) == []


async def test_it_says_how_it_is(reach: Reach) -> None:
    async with reach() as address, a_provider(address) as provider:
        assert re.fullmatch(rf"OpenViking [\d.]+ at {re.escape(address.url)} recalls in \d+ ms", await provider.check())
        async with a_provider(replace(address, authorization="Bearer another-key")) as stranger:
            with pytest.raises(Rejected, match=r"answered 401 .*memory\.api_key"):
                await stranger.check()


async def test_the_operator_is_the_user_whom_openviking_knows_by_default() -> None:
    """So that what other programs of theirs remember there is remembered here, too."""
    async with an_openviking() as server, a_provider(at(server, key="")) as provider:
        session = a_session()
        await provider.commit(session, a_segment(session), whole(turns("I keep bees.")))
        assert server.memories.keys() == {("default", "default")}
        assert "authorization" not in server.receiver.posts[0].headers


def test_persons_are_never_taken_for_each_other_and_are_spelt_as_openviking_allows() -> None:
    people = ["ada", "Ada", "ada ", "ada:1", "ada-1", "default", "øyvind", "", "x" * 900, "a/../b", "_system"]
    names = [identity(person).account_id for person in people]
    assert len({name.lower() for name in names}) == len(people)
    for name in names:
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]{1,99}", name)
    assert "default" not in names


async def test_a_server_that_goes_by_its_key_alone_hears_the_words_of_nobody_but_the_operator() -> None:
    """Everybody would be the same person there."""
    async with an_openviking("api_key") as server, a_provider(at(server)) as provider:
        operator, tenant, said = a_session(), a_session("ada"), whole(turns("I keep bees."))
        assert await provider.commit(operator, a_segment(operator), said) == "1 memory extracted"
        assert [each.id for each in await provider.recall(operator, "bees", 8)] == [*server.memories["acme", "alice"]]
        before, kept = len(server.receiver.posts), dict(server.sessions)
        segment = a_segment(tenant)
        for attempt in (provider.note, provider.commit, provider.commit):
            with pytest.raises(Rejected, match=r'takes everybody for one person.*auth_mode = "trusted"'):
                await attempt(tenant, segment, said)
        with pytest.raises(Rejected, match="takes everybody for one person"):
            await provider.recall(tenant, "bees", 8)
        assert not [post for post in server.receiver.posts[before:] if b"I keep bees" in post.body]
        assert server.sessions == kept, "a session of theirs was left with somebody else"
        assert "only what the operator says" in await provider.check()


@pytest.mark.parametrize("taken", [True, False], ids=["whose answer is lost", "that never arrives"])
async def test_cut_off_at_any_request_a_commit_that_is_repeated_ends_as_if_it_had_not_been(taken: bool) -> None:
    """M6: killed anywhere, between adding and committing too, everything is extracted from once."""
    for nth in itertools.count(1):
        async with an_openviking() as server:
            session, said = a_session(), turns("I keep bees.", "My bicycle is red.", "I sail in Bergen.")
            segment = a_segment(session)
            server.faults[nth] = Fault(Cut(), taken)
            async with a_provider(at(server)) as provider:
                attempts = [await _attempt(provider.note(session, segment, said[1]))]
                attempts.append(await _attempt(provider.commit(session, segment, whole(said))))
            if server.faults:
                assert nth > 8, "the requests were not all tried"
                return
            assert None in attempts, "nobody noticed that it was cut off"
            async with a_provider(at(server)) as another:
                assert await another.commit(session, segment, whole(said)) == "3 memories extracted"
            assert await told(at(server), session, segment) == (texts(said), 1)
            assert server.extractions == {name_of(segment): 1}, f"cut off at request {nth}"


async def _attempt(call: Any) -> str | None:
    """Return how a call ended; None where it failed as what may pass."""
    try:
        return await call or "ended"
    except Unavailable:
        return None


async def test_an_extraction_that_failed_is_repeated_from_the_beginning() -> None:
    """M6: the debt stays until something came of it."""
    async with an_openviking() as server, a_provider(at(server)) as provider:
        session, said = a_session(), turns("I keep bees.", "My bicycle is red.")
        segment = a_segment(session)
        for stages in (["pending", "failed"], ["pending", "running", "cancelled"]):
            server.stages = stages
            with pytest.raises(Unavailable, match=rf"did not extract from {name_of(segment)}: {stages[-1]}: "):
                await provider.commit(session, segment, whole(said))
        server.stages = ["pending", "completed"]
        assert await provider.commit(session, segment, whole(said)) == "2 memories extracted"
        assert server.kept(name_of(segment)).archives == [server.kept(name_of(segment)).archives[0]]
        assert [each["turn_id"] for each in server.kept(name_of(segment)).archives[0]] == [
            "trn_0",
            "trn_0",
            "trn_1",
            "trn_1",
        ]
        assert server.extractions == {name_of(segment): 1}


async def test_an_extraction_that_takes_long_is_waited_for_and_never_begun_again() -> None:
    """M6: what was accepted there is not paid yet, and is not owed twice either."""
    clock = HastyClock()
    async with an_openviking() as server, a_provider(at(server), timeout_s=60, clock=clock) as provider:
        session, said = a_session(), turns("I keep bees.")
        segment = a_segment(session)
        server.stages = ["pending", *["running"] * 40, "completed"]
        with pytest.raises(Unavailable, match=r"is still extracting from .* asked again later"):
            await provider.commit(session, segment, whole(said))
        assert clock.naps[0] < clock.naps[1] < clock.naps[-1] == POLL_MAX_MS
        assert clock.monotonic_ms() < 60_000, "whoever waits has given up before that"
        while (receipt := await _attempt(provider.commit(session, segment, whole(said)))) is None:
            pass
        assert receipt == "1 memory extracted"
        assert len(server.asked("POST .*/commit$")) == 1
        assert len(server.asked("POST .*/messages/batch$")) == 1


@pytest.mark.parametrize("done", [True, False], ids=["and it is done", "and nothing came of it"])
async def test_a_commit_whose_task_is_forgotten_there_is_known_by_what_it_left(done: bool) -> None:
    """A finished task is kept for a day only, and a crash may come before there is one."""
    async with an_openviking() as server, a_provider(at(server)) as provider:
        session, said = a_session(), turns("I keep bees.")
        segment = a_segment(session)
        await provider.commit(session, segment, whole(said))
        server.tasks.clear()
        server.kept(name_of(segment)).done = done
        receipt = await provider.commit(session, segment, whole(said))
        assert receipt == ("extracted before" if done else "0 memories extracted"), "what is known already adds nothing"
        assert server.extractions == {name_of(segment): 1 if done else 2}


@pytest.mark.parametrize("times", [1, 100])
async def test_a_late_note_that_comes_amid_a_commit_does_not_get_into_it(times: int) -> None:
    """What nobody can take out again there is not committed."""
    async with an_openviking() as server, a_provider(at(server)) as provider:
        session, said = a_session(), turns("I keep bees.", "My bicycle is red.")
        segment = a_segment(session)
        await provider.note(session, segment, said[0])
        late = iter(range(times))

        def note_where_nobody_looks(post: Request) -> None:
            if re.search("/context|/sessions$", post.path) and next(late, None) is not None:
                parts = [{"type": "text", "text": "I keep bees."}]
                spoken = {"role": "user", "turn_id": "trn_0", "created_at": "2023-11-14T22:13:20.000+00:00", "parts": parts}
                server.kept(name_of(segment)).messages.append(spoken)

        server.meanwhile = note_where_nobody_looks
        if times > 1:
            with pytest.raises(Unavailable, match=r"holds something else in .* each time that it is looked at"):
                await provider.commit(session, segment, whole(said))
            assert server.asked("POST .*/commit$") == []
            server.meanwhile = lambda _: None
        await provider.commit(session, segment, whole(said))
        assert await told(at(server), session, segment) == (texts(said), 1)


async def test_a_note_that_is_repeated_or_comes_when_all_is_over_adds_nothing() -> None:
    async with an_openviking() as server, a_provider(at(server)) as provider:
        session, said = a_session(), turns("I keep bees.", "My bicycle is red.")
        segment = a_segment(session)
        for turn in (said[0], said[0], said[1], said[0]):
            await provider.note(session, segment, turn)
        assert [each["parts"][0]["text"] for each in server.kept(name_of(segment)).messages] == texts(said)
        await provider.commit(session, segment, whole(said))
        await provider.note(session, segment, said[1])
        assert server.kept(name_of(segment)).messages == []
        assert server.asked("DELETE") == []


async def test_a_conversation_is_added_in_pieces_that_the_server_takes() -> None:
    async with an_openviking() as server, a_provider(at(server)) as provider:
        session, said = a_session(), turns(*map(str, range(180)), "x" * 600_000, "the end")
        segment = a_segment(session)
        await provider.commit(session, segment, whole(said))
        added = [len(post.json["messages"]) for post in server.asked("POST .*/messages/batch$")]
        assert added == [100, 100, 100, 60, 1, 1, 2], "the long ones by themselves"
        (archive,) = server.kept(name_of(segment)).archives
        assert [each["parts"][0]["text"] for each in archive] == texts(said)


async def test_a_conversation_too_long_to_be_read_back_is_added_anew() -> None:
    """What cannot be compared is not taken for what it should be."""
    async with an_openviking() as server, a_provider(at(server)) as provider:
        session, said = a_session(), turns("x" * (viking.CONTEXT_MAX_BYTES + 1), "I keep bees.")
        segment = a_segment(session)
        await provider.note(session, segment, said[0])
        await provider.commit(session, segment, whole(said))
        (archive,) = server.kept(name_of(segment)).archives
        assert [each["turn_id"] for each in archive] == ["trn_0", "trn_0", "trn_1", "trn_1"]
        assert len(server.asked("DELETE .*/sessions/")) == 1


async def test_what_is_recalled_is_the_nearest_and_no_more_than_asked_for() -> None:
    async with an_openviking() as server, a_provider(at(server)) as provider:
        session = a_session()
        uri = "viking://user/default/memories/events/{}.md"
        server.memories["default", "default"] = {
            uri.format("bees"): "I keep bees. " + "x" * 9_000,
            uri.format("blank"): "  ",
            uri.format("bike"): "My bicycle is red.",
        }
        (bees,) = await provider.recall(session, "do I keep bees?", 1)
        assert (bees.id, len(bees.text)) == (uri.format("bees"), RECOLLECTION_MAX_CHARS)
        assert {each.id for each in await provider.recall(session, "bicycle", 8)} == {uri.format("bike"), uri.format("bees")}
        server.down = Reply(body=msgspec.json.encode({"result": {"memories": [{"uri": "a", "content": "b"}] * 9}}))
        assert len(await provider.recall(session, "bees", 8)) == 8, "it answered with more than it was asked for"
        server.down = None
        await provider.recall(session, "y" * 100_000, 8)
        assert len(server.asked("/find$")[-1].json["query"]) < 10_000
        asked = len(server.receiver.posts)
        assert await provider.recall(session, " \n", 8) == ()
        assert len(server.receiver.posts) == asked


@pytest.mark.parametrize(
    "uri",
    [
        "viking://resources/handbook.md",
        "viking://user/default/sessions/s1/messages.jsonl",
        "viking://user/default/memories/",
        "viking://user/default/memories/../resources/a.md",
        "viking://user/default/memories/a.md?recursive=true",
        "mem_1",
        "",
    ],
)
async def test_only_memories_can_be_forgotten_by_their_id(uri: str) -> None:
    async with an_openviking() as server, a_provider(at(server)) as provider:
        with pytest.raises(Rejected, match="is no memory of theirs: give an id as a search"):
            await provider.forget(LOCAL, memory_id=uri)
        assert server.receiver.posts == []


async def test_forgetting_a_conversation_says_what_else_holds_something_of_it() -> None:
    async with an_openviking() as server, a_provider(at(server)) as provider:
        earlier, session = a_session(), a_session()
        await provider.commit(earlier, a_segment(earlier), whole(turns("I keep bees.", "I sail.")))
        said = turns("I keep bees.", "My bicycle is red.", "I sail.")
        await provider.commit(session, a_segment(session), whole(said))
        await provider.commit(session, a_segment(session), whole(turns("My bicycle is red.")))
        assert await provider.forget(LOCAL, memory_id="viking://user/default/memories/events/i_sail_.md") == 1
        with pytest.raises(Rejected, match=r"^1 memories .* 1 from before .*/i_keep_bees_\.md; look at these"):
            await provider.forget(LOCAL, session_id=session.id)
        assert [*server.memories["default", "default"]] == ["viking://user/default/memories/events/i_keep_bees_.md"]
        assert [name for *_, name in server.sessions if session.id in name] == []
        assert len(server.sessions) == 1, "another conversation was forgotten, too"
        assert await provider.forget(LOCAL, session_id=session.id) == 0
        assert await provider.forget(LOCAL, session_id=SessionId("")) == 0


GARBAGE = [
    Reply(body=b"<html>hello</html>"),
    Reply(body=b'{"status": "ok", "result": null}'),
    Reply(body=b'{"status": "ok", "result": {"messages": 7, "memories": 7, "commit_count": "x"}}'),
    Reply(body=b"[" * 100_000),
    Reply(body=b'{"status": "ok"', more=10),
    Reply("500 Internal Server Error", body=b'{"status":"error","error":{"code":"INTERNAL","message":"oops"}}'),
    Reply("503 Service Unavailable"),
    Cut(),
]


@pytest.mark.parametrize("line", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("what", ["commit", "recall", "note", "check"])
async def test_a_server_that_makes_no_sense_is_a_failure_that_may_pass(line: Line, what: str) -> None:
    """M6: no answer that is not understood is taken for success."""
    async with receiving(by=lambda _: line) as there, a_provider(Address(url=there.url("")), timeout_s=1) as provider:
        with pytest.raises(Unavailable):
            await _do(provider, what)


async def _do(provider: OpenVikingProvider, what: str) -> None:
    session = a_session()
    await {
        "commit": lambda: provider.commit(session, a_segment(session), whole(turns("I keep bees."))),
        "recall": lambda: provider.recall(session, "bees", 8),
        "note": lambda: provider.note(session, a_segment(session), whole(turns("I keep bees."))),
        "check": provider.check,
    }[what]()


@pytest.mark.parametrize("what", ["commit", "recall", "note", "check"])
async def test_a_server_that_hangs_is_left_in_time(what: str) -> None:
    """M10: nobody waits for ever."""
    async with receiving(by=lambda _: Hang()) as there, a_provider(Address(url=there.url("")), timeout_s=0.2) as provider:
        with pytest.raises(Unavailable, match=r"did not answer|no answer in time"):
            await _do(provider, what)


async def test_a_server_that_has_moved_or_wants_another_key_says_what_to_do() -> None:
    """K1: and the key that it repeats is shown to nobody."""
    secret = "sk-0123456789abcdef"
    refused = Reply("403 Forbidden", body=f'{{"error":{{"message":"{secret} is no key"}}}}'.encode())
    for line, told_what in ((refused, "memory.api_key"), (Reply("301 Moved", {"Location": "/v2"}), "memory.url")):
        async with receiving(by=lambda _, line=line: line) as there:
            address = Address(url=there.url(""), authorization=f"Bearer {secret}")
            async with a_provider(address) as provider:
                for what in ("commit", "recall", "note", "check"):
                    with pytest.raises(HoldfastError) as failed:
                        await _do(provider, what)
                    assert isinstance(failed.value, Rejected)
                    assert told_what in str(failed.value)
                    assert secret not in str(failed.value)
                    assert line is not refused or MASK in str(failed.value)


async def test_a_binding_is_named_after_its_address_and_mirrors() -> None:
    async with a_provider(Address(url="http://127.0.0.1:1933", authorization="Bearer secret-0123456789")) as provider:
        assert (provider.owner, provider.mirrors) == ("openviking:http://127.0.0.1:1933", True)
        assert await provider.commit(a_session(), a_segment(a_session()), []) == "nothing was said"
