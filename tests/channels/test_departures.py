"""Through the outbox to a URL and to GitHub: tried again when they want it, repeated with a word, never forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.channels.url.channel import UrlCarrier
from holdfast.core.delivery import ATTEMPTS_MAX, EXPIRES_AFTER_MS, DeliveryState, backoff_ms
from holdfast.egress import Egress, Guard
from holdfast.engine.engine import Engine
from holdfast.errors import IllegalMove
from holdfast.ports import Carrier
from holdfast.store.store import Store
from tests.channels import test_github as hub
from tests.channels.receiver import Cut, Receiver, Reply, receiving
from tests.channels.test_url import SECRET, is_signed
from tests.engine.test_outbox import ECHO, deliveries_in, say, something_else_arrives
from tests.engine.world import Hang, ManualClock, Open, RecordingCarrier, opened, running_engine, until

HOUR_MS = 3_600_000


@asynccontextmanager
async def engine_to(there: Receiver, store: Store, clock: ManualClock, **carriers: Carrier) -> AsyncIterator[Engine]:
    """Run an engine that can send to a receiver, and elsewhere."""
    egress = Egress(Guard(there.hosts), 5)
    own = {"url": UrlCarrier(egress, SECRET, clock), "other": RecordingCarrier(), **carriers}
    try:
        async with running_engine(store, ECHO, carriers=own, clock=clock) as engine:
            yield engine
    finally:
        await egress.close()


async def test_every_try_has_the_same_id_and_its_own_signature(open_it: Open) -> None:
    """D1: what was refused is no repeat, and what is tried again waits, each time longer and never for the same time."""
    clock = ManualClock()
    async with (
        receiving(Reply("503 Away"), Reply("500 Oops"), Reply("429 Slow"), Reply()) as there,
        opened(open_it) as store,
    ):
        async with engine_to(there, store, clock) as engine:
            turn = await say(engine, store, "good morning", reply_to=f"url:{there.url()}")
            for attempt in range(1, 4):
                (waiting,) = await deliveries_in(store, turn, DeliveryState.RETRY)
                assert backoff_ms(attempt, 0) <= waiting.due_at - clock.now_ms() <= backoff_ms(attempt, 1)
                await clock.advance(waiting.due_at - clock.now_ms())
                await until(lambda after=attempt: len(there.posts) > after)
                assert there.posts[-1].headers["webhook-timestamp"] == str(clock.now_ms() // 1000)
                assert is_signed(SECRET, there.posts[-1], clock.now_ms() // 1000)
            (sent,) = await deliveries_in(store, turn, DeliveryState.DELIVERED)
        assert (sent.receipt, sent.attempt) == ("200", 4)
        assert [each.headers["webhook-id"] for each in there.posts] == [sent.id] * 4
        assert len({each.headers["webhook-signature"] for each in there.posts}) > 1
        assert [each.json["possible_repeat"] for each in there.posts] == [False] * 4


async def test_a_receiver_that_wants_to_be_left_alone_is_for_exactly_so_long(open_it: Open) -> None:
    """Longer than any back-off of our own, and nobody takes that for a clock that has jumped."""
    clock = ManualClock()
    script = (Reply("429 Slow", {"Retry-After": "7200"}), Reply())
    async with receiving(*script) as there, opened(open_it) as store, engine_to(there, store, clock) as engine:
        turn = await say(engine, store, "hello", reply_to=f"url:{there.url()}")
        (waiting,) = await deliveries_in(store, turn, DeliveryState.RETRY)
        assert waiting.due_at - clock.now_ms() == 2 * HOUR_MS
        assert "429 Slow" in (waiting.error or "")
        assert await store.deliveries.hasten(clock.now_ms()) == 0
        await clock.advance(2 * HOUR_MS - 1)
        await something_else_arrives(engine, store)
        assert len(there.posts) == 1
        await clock.advance(1)
        await deliveries_in(store, turn, DeliveryState.DELIVERED)


async def test_a_clock_that_jumps_back_makes_nobody_wait_for_it(open_it: Open) -> None:
    """C1: what was put off by a clock that was ahead is due as soon as that is noticed."""
    clock = ManualClock()
    async with receiving(Reply("429 Slow", {"Retry-After": "7200"})) as there, opened(open_it) as store:
        async with engine_to(there, store, clock) as engine:
            turn = await say(engine, store, "hello", reply_to=f"url:{there.url()}")
            (waiting,) = await deliveries_in(store, turn, DeliveryState.RETRY)
        earlier = waiting.created_at - HOUR_MS
        assert await store.deliveries.hasten(earlier) == 1
        assert (await store.deliveries.get(waiting.id)).due_at == earlier


async def test_a_wish_for_longer_than_a_delivery_lives_ends_with_it_and_it_can_be_sent_again(open_it: Open) -> None:
    clock = ManualClock()
    script = (Reply("503 Away", {"Retry-After": "9" * 400}), Reply("200 OK", {"X-Request-Id": "late"}))
    async with receiving(*script) as there, opened(open_it) as store, engine_to(there, store, clock) as engine:
        turn = await say(engine, store, "hello", reply_to=f"url:{there.url()}")
        (waiting,) = await deliveries_in(store, turn, DeliveryState.RETRY)
        assert waiting.due_at == waiting.created_at + EXPIRES_AFTER_MS
        await clock.advance(EXPIRES_AFTER_MS + 1)
        (expired,) = await deliveries_in(store, turn, DeliveryState.EXPIRED)
        assert expired.error == "too old to send; the last try: 127.0.0.1 cannot take it now: 503 Away"
        await store.deliveries.retry(expired.id, clock.now_ms())
        (sent,) = await deliveries_in(store, turn, DeliveryState.DELIVERED)
        assert (sent.receipt, len(there.posts)) == ("200 late", 2)


@pytest.mark.parametrize("reads", [True, False])
async def test_a_send_that_was_cut_off_is_repeated_and_says_so(open_it: Open, reads: bool) -> None:
    """D1: with the same id, so that a receiver which had the first drops the second."""
    clock = ManualClock()
    async with receiving(Cut(reads), Reply()) as there, opened(open_it) as store:
        async with engine_to(there, store, clock) as engine:
            turn = await say(engine, store, "hello", reply_to=f"url:{there.url()}")
            await deliveries_in(store, turn, DeliveryState.RETRY)
            await clock.advance(backoff_ms(1, 1))
            (sent,) = await deliveries_in(store, turn, DeliveryState.DELIVERED)
        assert (sent.repeats, there.connections) == (1, 2)
        assert (there.posts[-1].json["text"], there.posts[-1].json["possible_repeat"]) == ("hello", True)
        assert {each.headers["webhook-id"] for each in there.posts} == {sent.id}


async def test_a_send_that_is_cut_off_again_and_again_arrives_in_the_end(open_it: Open) -> None:
    """D1: a receiver that knows the id drops the rest, so it is repeated for as long as a refused one is tried again."""
    clock, cuts = ManualClock(), 5
    async with receiving(*[Cut()] * cuts, Reply()) as there, opened(open_it) as store:
        async with engine_to(there, store, clock) as engine:
            turn = await say(engine, store, "hello", reply_to=f"url:{there.url()}")
            for attempt in range(1, cuts + 1):
                await until(lambda after=attempt: len(there.posts) == after)
                (waiting,) = await deliveries_in(store, turn, DeliveryState.RETRY)
                assert backoff_ms(attempt, 0) <= waiting.due_at - clock.now_ms() <= backoff_ms(attempt, 1)
                await clock.advance(waiting.due_at - clock.now_ms())
            (sent,) = await deliveries_in(store, turn, DeliveryState.DELIVERED)
        assert {each.headers["webhook-id"] for each in there.posts} == {sent.id}
        assert [each.json["possible_repeat"] for each in there.posts] == [False, *[True] * cuts]


async def test_a_send_that_is_cut_off_for_ever_stays_unknown_and_nobody_can_wish_it_away(open_it: Open) -> None:
    """D1 A1: it ends after as many tries as a refused one, and nobody pretends to know."""
    clock = ManualClock()
    async with (
        receiving(by=lambda _: Cut()) as there,
        opened(open_it) as store,
        engine_to(there, store, clock) as engine,
    ):
        turn = await say(engine, store, "hello", reply_to=f"url:{there.url()}")
        for attempt in range(1, ATTEMPTS_MAX):
            await until(lambda after=attempt: len(there.posts) == after)
            (waiting,) = await deliveries_in(store, turn, DeliveryState.RETRY)
            await clock.advance(waiting.due_at - clock.now_ms())
        (lost,) = await deliveries_in(store, turn, DeliveryState.UNKNOWN)
        assert "may or may not have arrived" in (lost.error or "")
        with pytest.raises(IllegalMove, match=r"is unknown: it cannot be sent again: .* ask the recipient"):
            await store.deliveries.retry(lost.id, clock.now_ms())
        await something_else_arrives(engine, store)
        assert [each.json["possible_repeat"] for each in there.posts] == [False, *[True] * (ATTEMPTS_MAX - 1)]


async def test_what_was_being_sent_when_the_gateway_stopped_is_repeated_by_the_next(open_it: Open) -> None:
    """D2 D1: nobody saw how it ended."""
    clock, slow = ManualClock(), Hang()
    async with receiving(slow, Reply()) as there, opened(open_it) as store:
        async with engine_to(there, store, clock) as engine:
            turn = await say(engine, store, "hello", reply_to=f"url:{there.url()}")
            await until(lambda: there.posts)
        await deliveries_in(store, turn, DeliveryState.SENDING)
        async with engine_to(there, store, clock):
            (sent,) = await deliveries_in(store, turn, DeliveryState.DELIVERED)
        first, second = there.posts
        assert first.headers["webhook-id"] == second.headers["webhook-id"] == sent.id
        assert (first.json["possible_repeat"], second.json["possible_repeat"]) == (False, True)


async def test_a_dead_letter_says_why_and_can_be_sent_again(open_it: Open) -> None:
    clock = ManualClock()
    async with receiving(Reply("404 Not Found", body=b"no such hook"), Reply()) as there, opened(open_it) as store:
        async with engine_to(there, store, clock) as engine:
            turn = await say(engine, store, "hello", reply_to=f"url:{there.url()}")
            (failed,) = await deliveries_in(store, turn, DeliveryState.FAILED)
            assert failed.error == "127.0.0.1 refuses it: 404 Not Found: no such hook"
            await store.deliveries.retry(failed.id, clock.now_ms())
            (sent,) = await deliveries_in(store, turn, DeliveryState.DELIVERED)
        assert [each.headers["webhook-id"] for each in there.posts] == [sent.id] * 2
        assert there.posts[1].json["possible_repeat"] is False, "a refusal is certain"


async def test_a_comment_that_was_cut_off_is_found_instead_of_repeated(open_it: Open) -> None:
    """D1: unknown becomes delivered, and the issue has one comment."""
    issue = hub.Issue(2)
    issue.cuts = 1
    async with receiving(by=issue) as there, opened(open_it) as store, hub.a_carrier(there) as carrier:
        async with engine_to(there, store, ManualClock(), github_comment=carrier) as engine:
            turn = await say(engine, store, "Looks good.", reply_to=hub.TARGET)
            (sent,) = await deliveries_in(store, turn, DeliveryState.DELIVERED)
        assert (sent.receipt, len(issue.bodies)) == (issue.link(2), 3)


async def test_parts_of_a_comment_stay_in_order_while_github_wants_to_be_left_alone(open_it: Open) -> None:
    """D3."""
    clock, issue, slow = ManualClock(), hub.Issue(), [Reply("403 Forbidden", {"Retry-After": "1800"})]
    async with receiving(by=lambda post: slow.pop() if slow else issue(post)) as there, opened(open_it) as store:
        async with hub.a_carrier(there) as carrier, engine_to(there, store, clock, github_comment=carrier) as engine:
            turn = await say(engine, store, "a" * 65_400 + "b", reply_to=hub.TARGET)
            first, _ = await deliveries_in(store, turn, DeliveryState.RETRY, DeliveryState.PENDING)
            assert first.due_at - clock.now_ms() == 1_800_000
            await clock.advance(1_800_000)
            await deliveries_in(store, turn, DeliveryState.DELIVERED, DeliveryState.DELIVERED)
        assert [body[0] for body in issue.bodies] == ["a", "b"]
