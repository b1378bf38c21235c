"""What the operator is told by itself: each fact once, whichever node tells it, and many facts in one message."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from holdfast.core import delivery
from holdfast.core.chats import AccountState, Lease
from holdfast.core.delivery import EXPIRES_AFTER_MS, Delivery, DeliveryEvent, DeliveryState
from holdfast.core.news import OUTAGE_MS, PAUSE_MS, SINCE_MS, News
from holdfast.core.turns import TurnEvent
from holdfast.errors import Stale
from tests.conformance.scenes import MINUTE, Scene, on_postgres
from tests.conformance.test_jobs import fire, job

HOME = "telegram:home"


async def tell(scene: Scene) -> str:
    """Do what a node does when it looks; returns what it writes to the operator."""
    if not await scene.store.news.is_due(scene.now):
        return ""
    return await write(scene)


async def write(scene: Scene) -> str:
    told = await scene.store.news.tell(lambda news: compose(scene, news), scene.now)
    return "\n".join(each.text for each in told)


def compose(scene: Scene, news: News) -> Sequence[Delivery]:
    text = news.text(scene.now)
    return delivery.notice(f"news:{scene.now}", "local", HOME, [text], scene.now) if text else ()


async def given_up(scene: Scene, count: int = 1, **changes: str) -> list[Delivery]:
    """Let deliveries of different turns fail for good."""
    failed: list[Delivery] = []
    for number in range(count):
        (sent,) = await scene.sent_for("hi", conversation=f"chat:{number}:{scene.now}", **changes)
        claimed = next(each for each in await scene.send() if each.id == sent.id)
        failed.append(await scene.settle(claimed, DeliveryEvent.FAIL, error="chat not found"))
    return failed


async def leased(scene: Scene) -> Lease:
    lease = await scene.store.channels.claim("telegram", "telegram", scene.node)
    assert lease
    return lease


async def test_a_quiet_gateway_has_nothing_to_tell(scene: Scene) -> None:
    await scene.sent_for("hi")
    (sent,) = await scene.send()
    await scene.settle(sent, DeliveryEvent.CONFIRM)
    await scene.store.nodes.note_found(scene.node, [])
    assert not await scene.store.news.is_due(scene.now)


async def test_a_dead_letter_is_told_once_with_what_to_do(scene: Scene) -> None:
    (lost,) = await given_up(scene)
    told = await tell(scene)
    assert (lost.id in told, "chat not found" in told, f"holdfast deliveries retry {lost.id}" in told) == (True, True, True)
    scene.now += PAUSE_MS
    assert await tell(scene) == ""
    await scene.store.deliveries.retry(lost.id, scene.now)
    again = next(each for each in await scene.send() if each.id == lost.id)
    await scene.settle(again, DeliveryEvent.FAIL, error="chat not found")
    assert lost.id in await tell(scene), "it was sent again, and failed again"


async def test_a_storm_is_one_message_in_a_few_minutes(scene: Scene) -> None:
    first = await given_up(scene)
    assert first[0].id in await tell(scene)
    await given_up(scene, 40)
    scene.now += PAUSE_MS - 1
    assert await tell(scene) == ""
    scene.now += 1
    told = await tell(scene)
    assert "And 35 more" in told
    assert len(told.splitlines()) == 6
    scene.now += PAUSE_MS
    assert await tell(scene) == ""


async def test_a_node_that_looked_a_moment_before_another_wrote_writes_nothing(scene: Scene) -> None:
    """And what it found is told later."""
    await given_up(scene)
    assert await tell(scene)
    (lost,) = await given_up(scene)
    scene.now += PAUSE_MS - 1
    with pytest.raises(Stale):
        await write(scene)
    scene.now += 1
    assert lost.id in await tell(scene)


async def test_that_a_message_to_the_operator_fails_is_told_by_no_other_one(scene: Scene) -> None:
    await given_up(scene)
    assert await tell(scene)
    (news,) = await scene.send()
    await scene.settle(news, DeliveryEvent.FAIL, error="bot was blocked by the user")
    scene.now += PAUSE_MS
    assert await tell(scene) == ""


async def test_an_answer_in_parts_is_one_dead_letter(scene: Scene) -> None:
    first, *_ = await scene.sent_for("one", "two", "three")
    (claimed,) = await scene.send()
    await scene.settle(claimed, DeliveryEvent.FAIL, error="too long")
    assert (await tell(scene)).count("dlv_") == 2, "its id, and its id in the command"
    states = [each.state for each in await scene.store.deliveries.of_turn(first.turn_id or first.id)]  # type: ignore[arg-type]
    assert states == [DeliveryState.FAILED] * 3


async def test_an_answer_that_expired_is_a_dead_letter_and_a_banner_is_none(scene: Scene) -> None:
    turn = await scene.running(reply_to=HOME)
    await scene.store.settlement.announce(scene.node, "restart", "restarting", scene.now)
    await scene.finish(turn, deliveries=scene.parts(turn, "late"))
    scene.now += EXPIRES_AFTER_MS + 1
    assert await scene.send() == []
    answer = next(each for each in await scene.store.deliveries.of_turn(turn.id) if each.part == 1)
    told = await tell(scene)
    assert (answer.id in told, len(told.splitlines())) == (True, 1)


async def test_missed_instants_of_a_job_are_counted(scene: Scene) -> None:
    await scene.store.jobs.save(job())
    await scene.store.jobs.save(job(name="asleep", paused=True))
    for name in ("report", "asleep"):
        for minute in range(1, 4):
            await scene.store.jobs.miss(name, scene.now + minute * MINUTE)
    scene.now += 10 * MINUTE
    told = await tell(scene)
    assert "The job report was missed 3 times, the last 7 minutes ago" in told
    assert "asleep" not in told, "its operator has paused it"
    scene.now += PAUSE_MS
    assert await tell(scene) == ""


@pytest.mark.parametrize("reply_to", [None, HOME])
async def test_a_job_that_fails_is_told_where_its_answer_goes_nowhere(scene: Scene, reply_to: str | None) -> None:
    await scene.store.jobs.save(job())
    scene.now += MINUTE
    receipt = await fire(scene, scene.now)
    await scene.sql("UPDATE turns SET reply_to = :to WHERE id = :id", to=reply_to, id=receipt.turn_id)
    assert await tell(scene) == "", "it runs"
    turn = await scene.claim_and_start(receipt.turn_id)
    await scene.finish(turn, event=TurnEvent.FAIL, error="the model is away")
    told = await tell(scene)
    assert (f"holdfast turns show {turn.id}" in told, "the model is away" in told) == ((reply_to is None,) * 2)


async def test_what_happened_long_ago_is_no_news(scene: Scene) -> None:
    await given_up(scene)
    scene.now += SINCE_MS
    assert await tell(scene) == ""


async def test_a_node_that_stopped_without_leaving_is_told_once(scene: Scene) -> None:
    """R9: by the node that takes over, with what it found."""
    if scene.postgres:
        beats = await scene.store.nodes.beats()
        await scene.store.nodes.bury(scene.node, beats[scene.node])
    after = await scene.joined()
    await scene.store.nodes.note_found(after, ["1 turn cut off by a crash"])
    told = await tell(scene)
    assert told == f"The gateway stopped without warning ({scene.node}).\n1 turn cut off by a crash"
    scene.now += PAUSE_MS
    await scene.store.nodes.note_found(after, [])
    assert await tell(scene) == ""


async def test_a_node_that_leaves_is_no_news(scene: Scene) -> None:
    await scene.store.nodes.leave(scene.node)
    after = await scene.joined()
    await scene.store.nodes.note_found(after, [])
    assert await tell(scene) == ""


async def test_an_account_that_is_refused_is_told_once_and_again_when_it_is_back(scene: Scene) -> None:
    lease = await leased(scene)
    for _ in range(3):
        await scene.store.channels.report(lease, AccountState.REFUSED, "the token is not valid", scene.now)
    assert await tell(scene) == "telegram has received no messages for 1 minute: the token is not valid"
    scene.now += PAUSE_MS
    await scene.store.channels.report(lease, AccountState.REFUSED, "the token is not valid", scene.now)
    assert await tell(scene) == ""
    await scene.store.channels.stage(lease, [], None, scene.now)
    assert await tell(scene) == "telegram receives messages again. It did not for 3 minutes: the token is not valid"
    scene.now += PAUSE_MS
    assert await tell(scene) == ""


@pytest.mark.parametrize(("lasted_ms", "is_told"), [(OUTAGE_MS - 1, False), (OUTAGE_MS, True)])
async def test_an_account_that_only_connects_again_is_no_news(scene: Scene, lasted_ms: int, is_told: bool) -> None:
    lease = await leased(scene)
    await scene.store.channels.report(lease, AccountState.CONNECTING, "nothing was received for 120 s", scene.now)
    scene.now += lasted_ms
    await scene.store.channels.stage(lease, [], None, scene.now)
    assert bool(await tell(scene)) == is_told
    scene.now += PAUSE_MS
    assert await tell(scene) == ""


async def test_an_account_that_stays_deaf_is_told(scene: Scene) -> None:
    lease = await leased(scene)
    await scene.store.channels.report(lease, AccountState.CONNECTING, "nothing was received for 120 s", scene.now)
    assert await tell(scene) == ""
    scene.now += OUTAGE_MS
    assert await tell(scene) == "telegram has received no messages for 5 minutes: nothing was received for 120 s"


async def test_a_message_that_cannot_be_written_marks_nothing(scene: Scene) -> None:
    (lost,) = await given_up(scene)

    def fail(_news: News) -> Sequence[Delivery]:
        raise RuntimeError("the process dies here")

    with pytest.raises(RuntimeError):
        await scene.store.news.tell(fail, scene.now)
    assert lost.id in await tell(scene)


async def test_a_clock_that_jumped_back_holds_nothing_up(scene: Scene) -> None:
    """C1"""
    await given_up(scene)
    assert await tell(scene)
    scene.now -= 24 * 60 * MINUTE
    (lost,) = await given_up(scene)
    assert lost.id in await tell(scene)


@on_postgres
async def test_of_nodes_that_look_at_the_same_moment_one_tells(scene: Scene) -> None:
    lost = await given_up(scene, 3)
    told = await asyncio.gather(*(write(scene) for _ in range(4)), return_exceptions=True)
    texts = [each for each in told if isinstance(each, str) and each]
    assert len(texts) == 1
    assert all(isinstance(each, Stale) or each in ("", texts[0]) for each in told)
    assert all(each.id in texts[0] for each in lost)
