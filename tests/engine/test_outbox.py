"""The outbox: every answer leaves in order, at most once without a label, and says so when nobody knows whether it did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.agent.scripted import Say, ScriptedAgent
from holdfast.core.delivery import ATTEMPTS_MAX, REPEAT_LABEL, Delivery, DeliveryState, backoff_ms
from holdfast.core.turns import Turn, TurnState
from holdfast.engine.engine import Engine
from holdfast.errors import Rejected, Unavailable
from holdfast.ids import new_node_id
from holdfast.ports import Assignment
from holdfast.store.store import Store
from tests.engine.world import (
    FAST,
    START,
    TARGET,
    Altered,
    Hang,
    LosingAnswer,
    ManualClock,
    Open,
    RecordingCarrier,
    answered,
    opened,
    running_engine,
    until,
)

IMPATIENT = replace(FAST, send_timeout_ms=50)
ALERT = replace(FAST, beat_ms=100, lease_ms=300)


def _repeat(work: Assignment) -> list[Say]:
    return [Say(work.message)]


# Answers with the message itself, so that a test chooses the parts.
ECHO = ScriptedAgent(_repeat)


async def deliveries_in(store: Store, turn: Turn, *states: DeliveryState) -> list[Delivery]:
    """Return the deliveries of a turn once they are in these states, part by part."""

    async def look() -> list[Delivery] | None:
        found = await store.deliveries.of_turn(turn.id)
        return found if [each.state for each in found] == list(states) else None

    return await until(look)


async def say(engine: Engine, store: Store, text: str, **changes: Any) -> Turn:
    """Let the agent answer with this text, to be delivered."""
    return await answered(engine, store, text, **{"reply_to": TARGET, **changes})


async def something_else_arrives(engine: Engine, store: Store) -> None:
    """Return once a later answer, in another chat, has been delivered: whatever was due before had its chance."""
    other = await say(engine, store, "something else", conversation="chat:other", reply_to="other:1")
    await deliveries_in(store, other, DeliveryState.DELIVERED)


async def test_an_answer_is_delivered_and_the_turn_says_when(open_it: Open) -> None:
    carrier = RecordingCarrier("their receipt")
    async with opened(open_it) as store, running_engine(store, ECHO, carriers={"chat": carrier}) as engine:
        turn = await say(engine, store, "good morning")
        (sent,) = await deliveries_in(store, turn, DeliveryState.DELIVERED)
        assert (sent.receipt, sent.attempt, sent.repeats, sent.error) == ("their receipt", 1, 0, None)
        assert await store.turns.delivered_at(turn.id) == sent.settled_at is not None
        assert carrier.texts(turn) == ["good morning"]


async def test_a_turn_without_a_target_leaves_nothing_to_deliver(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, ECHO) as engine:
        turn = await say(engine, store, "only here", reply_to=None)
        assert await store.deliveries.of_turn(turn.id) == []
        assert await store.turns.delivered_at(turn.id) is None


async def test_the_failure_of_a_turn_is_delivered_like_an_answer(open_it: Open) -> None:
    """A1: whoever asked learns of the outcome, also when there is no answer."""

    class Failing:
        async def run(self, work: Assignment, stage: object) -> str:
            raise Rejected("the model is not there")

    carrier = RecordingCarrier()
    async with opened(open_it) as store, running_engine(store, Failing(), carriers={"chat": carrier}) as engine:
        turn = await say(engine, store, "hello?")
        await deliveries_in(store, turn, DeliveryState.DELIVERED)
        assert turn.state is TurnState.FAILED
        assert carrier.texts(turn) == ["Failed: the model is not there"]


async def test_a_refused_delivery_is_tried_again_later_and_later_and_fails_at_last(open_it: Open) -> None:
    """The far side certainly has nothing, so that every try may go without a label; D1 holds all the same."""
    clock = ManualClock()
    carrier = RecordingCarrier(*(Unavailable(f"busy {number}") for number in range(1, ATTEMPTS_MAX + 1)))
    carriers = {"chat": carrier, "other": RecordingCarrier()}
    async with opened(open_it) as store, running_engine(store, ECHO, carriers=carriers, clock=clock) as engine:
        turn = await say(engine, store, "hello")
        for attempt in range(1, ATTEMPTS_MAX):
            (waiting,) = await deliveries_in(store, turn, DeliveryState.RETRY)
            assert (waiting.attempt, waiting.error, len(carrier.sent)) == (attempt, f"busy {attempt}", attempt)
            wait = waiting.due_at - clock.now_ms()
            assert backoff_ms(attempt, 0) <= wait <= backoff_ms(attempt, 1)
            await clock.advance(wait - 1)
            await something_else_arrives(engine, store)
            assert len(carrier.sent) == attempt, "tried again before it was due"
            await clock.advance(1)
            await until(lambda after=attempt: len(carrier.sent) > after)
        (failed,) = await deliveries_in(store, turn, DeliveryState.FAILED)
        assert (failed.attempt, failed.error) == (ATTEMPTS_MAX, f"busy {ATTEMPTS_MAX}")
        assert carrier.texts(turn) == ["hello"] * ATTEMPTS_MAX
        assert await store.turns.delivered_at(turn.id) is None


async def test_a_rejected_part_fails_and_takes_the_later_ones_with_it(open_it: Open) -> None:
    """D3: what would follow a gap is not sent, and says why."""
    carrier = RecordingCarrier("one arrived", Rejected("the chat was deleted"))
    async with opened(open_it) as store, running_engine(store, ECHO, carriers={"chat": carrier}) as engine:
        turn = await say(engine, store, "one|two|three|four")
        parts = await deliveries_in(
            store, turn, DeliveryState.DELIVERED, DeliveryState.FAILED, DeliveryState.FAILED, DeliveryState.FAILED
        )
        assert [each.error for each in parts[1:3]] == ["the chat was deleted", "an earlier part did not arrive"]
        assert carrier.texts(turn) == ["one", "two"]
        assert await store.turns.delivered_at(turn.id) is None


LOSSES = {"no answer": Hang, "a crash": lambda: RuntimeError("connection reset while reading the answer")}


@pytest.mark.parametrize("loss", LOSSES)
async def test_a_send_that_may_have_arrived_is_repeated_once_with_a_label(open_it: Open, loss: str) -> None:
    """D1: the second time it says what it is."""
    carrier = RecordingCarrier(LOSSES[loss](), "the second arrived")
    carriers = {"chat": carrier}
    async with opened(open_it) as store, running_engine(store, ECHO, carriers=carriers, tuning=IMPATIENT) as engine:
        turn = await say(engine, store, "hello")
        (sent,) = await deliveries_in(store, turn, DeliveryState.DELIVERED)
        assert carrier.texts(turn) == ["hello", f"{REPEAT_LABEL} hello"]
        assert (sent.receipt, sent.repeats, sent.text) == ("the second arrived", 1, "hello")
        assert [each.id for each in carrier.sought] == [sent.id], "it was not asked whether the first had arrived"


@pytest.mark.parametrize("loss", LOSSES)
async def test_a_second_loss_stays_unknown_for_good(open_it: Open, loss: str) -> None:
    """D1: nobody guesses a third time, and nobody pretends to know."""
    carrier = RecordingCarrier(LOSSES[loss](), LOSSES[loss]())
    carriers = {"chat": carrier, "other": RecordingCarrier()}
    async with opened(open_it) as store, running_engine(store, ECHO, carriers=carriers, tuning=IMPATIENT) as engine:
        turn = await say(engine, store, "hello")
        await until(lambda: len(carrier.sent) == 2)
        (lost,) = await deliveries_in(store, turn, DeliveryState.UNKNOWN)
        assert lost.repeats == 1
        assert "may or may not have arrived" in (lost.error or "")
        await something_else_arrives(engine, store)
        assert carrier.texts(turn) == ["hello", f"{REPEAT_LABEL} hello"]
        assert await store.turns.delivered_at(turn.id) is None


async def test_a_labelled_repeat_that_is_refused_keeps_its_label(open_it: Open) -> None:
    """D1: a refusal of the second send says nothing about the first."""
    clock = ManualClock()
    carrier = RecordingCarrier(RuntimeError("lost"), Unavailable("busy"), "arrived")
    async with opened(open_it) as store, running_engine(store, ECHO, carriers={"chat": carrier}, clock=clock) as engine:
        turn = await say(engine, store, "hello")
        await deliveries_in(store, turn, DeliveryState.RETRY)
        await clock.advance(backoff_ms(2, 1))
        await deliveries_in(store, turn, DeliveryState.DELIVERED)
        assert carrier.texts(turn) == ["hello", f"{REPEAT_LABEL} hello", f"{REPEAT_LABEL} hello"]


async def test_a_lost_send_that_the_far_side_has_is_not_sent_again(open_it: Open) -> None:
    """D1: where the platform can tell, nobody sees a repeat."""
    carrier = RecordingCarrier(Hang(), finds=["found there"])
    carriers = {"chat": carrier}
    async with opened(open_it) as store, running_engine(store, ECHO, carriers=carriers, tuning=IMPATIENT) as engine:
        turn = await say(engine, store, "hello")
        (sent,) = await deliveries_in(store, turn, DeliveryState.DELIVERED)
        assert sent.receipt == "found there"
        assert carrier.texts(turn) == ["hello"]
        assert await store.turns.delivered_at(turn.id) == sent.settled_at is not None


@pytest.mark.parametrize("failure", [RuntimeError("cannot look"), None], ids=["a crash", "no answer"])
async def test_a_far_side_that_fails_to_look_cannot_tell_so_it_is_sent_again(
    open_it: Open, failure: Exception | None
) -> None:
    """D1: asking has sent nothing, so the one labelled resend is still due."""
    carrier = RecordingCarrier(RuntimeError("lost"), "arrived", finds=[failure or Hang()])
    carriers = {"chat": carrier}
    async with opened(open_it) as store, running_engine(store, ECHO, carriers=carriers, tuning=IMPATIENT) as engine:
        turn = await say(engine, store, "hello")
        await deliveries_in(store, turn, DeliveryState.DELIVERED)
        assert carrier.texts(turn) == ["hello", f"{REPEAT_LABEL} hello"]


async def test_an_answer_for_a_channel_that_is_not_there_fails_visibly(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, ECHO, carriers={"chat": RecordingCarrier()}) as engine:
        turn = await say(engine, store, "hello", reply_to="pigeon:7")
        (failed,) = await deliveries_in(store, turn, DeliveryState.FAILED)
        assert failed.error == "no channel can reach pigeon:7"
        assert turn.state is TurnState.COMPLETED, "the answer itself is there to be read"


async def test_parts_leave_in_order_however_slow_the_first_one_is(open_it: Open) -> None:
    """D3: a later part waits while an earlier one is on its way; other chats do not."""
    slow = Hang()
    carrier = RecordingCarrier(slow)
    carriers = {"chat": carrier, "other": RecordingCarrier()}
    async with opened(open_it) as store, running_engine(store, ECHO, carriers=carriers) as engine:
        turn = await say(engine, store, "one|two|three")
        await until(lambda: carrier.sent)
        await something_else_arrives(engine, store)
        assert carrier.texts(turn) == ["one"]
        assert await store.turns.delivered_at(turn.id) is None
        slow.release()
        parts = await deliveries_in(store, turn, *[DeliveryState.DELIVERED] * 3)
        assert carrier.texts(turn) == ["one", "two", "three"]
        assert await store.turns.delivered_at(turn.id) == parts[-1].settled_at


async def test_parts_stay_in_order_when_the_first_is_refused_or_lost(open_it: Open) -> None:
    """D3: a part that will be sent again holds the later ones back."""
    clock = ManualClock()
    carrier = RecordingCarrier(Unavailable("busy"), RuntimeError("lost"))
    carriers = {"chat": carrier, "other": RecordingCarrier()}
    async with opened(open_it) as store, running_engine(store, ECHO, carriers=carriers, clock=clock) as engine:
        turn = await say(engine, store, "one|two")
        await deliveries_in(store, turn, DeliveryState.RETRY, DeliveryState.PENDING)
        await something_else_arrives(engine, store)
        assert carrier.texts(turn) == ["one"]
        await clock.advance(backoff_ms(1, 1))
        await deliveries_in(store, turn, DeliveryState.DELIVERED, DeliveryState.DELIVERED)
        assert carrier.texts(turn) == ["one", "one", f"{REPEAT_LABEL} one", "two"]


async def test_what_a_stopped_engine_was_sending_is_sent_by_the_next_with_a_label(open_it: Open) -> None:
    """D2 D1: nobody saw how the first send ended."""
    first, second = RecordingCarrier(Hang()), RecordingCarrier()
    async with opened(open_it) as store:
        async with running_engine(store, ECHO, carriers={"chat": first}) as engine:
            turn = await say(engine, store, "hello")
            await until(lambda: first.sent)
        await deliveries_in(store, turn, DeliveryState.SENDING)
        async with running_engine(store, ECHO, carriers={"chat": second}):
            await deliveries_in(store, turn, DeliveryState.DELIVERED)
        assert first.texts(turn) + second.texts(turn) == ["hello", f"{REPEAT_LABEL} hello"]


async def test_nothing_stays_sending_when_its_node_falls_silent(open_it: Open) -> None:
    """D2: a node that says no goodbye is found out by its silence."""
    refusing, second = RecordingCarrier(Unavailable("busy")), RecordingCarrier()
    async with opened(open_it) as store:
        async with running_engine(store, ECHO, carriers={"chat": refusing}) as engine:
            turn = await say(engine, store, "hello")
            (waiting,) = await deliveries_in(store, turn, DeliveryState.RETRY)
        silent = new_node_id(START)
        await store.nodes.join(silent, START)
        assert await store.deliveries.claim(silent, waiting.due_at, 10)
        async with running_engine(store, ECHO, carriers={"chat": second}, tuning=ALERT):
            await deliveries_in(store, turn, DeliveryState.DELIVERED)
        assert second.texts(turn) == [f"{REPEAT_LABEL} hello"]


async def test_a_delivery_whose_end_was_recorded_without_an_answer_is_not_sent_again(open_it: Open) -> None:
    """D1: the store took the receipt, only its answer was lost; what else is on its way is not disturbed."""
    slow = Hang()
    carrier, other = RecordingCarrier("arrived"), RecordingCarrier(slow)
    carriers = {"chat": carrier, "other": other}
    async with opened(open_it) as store:
        settle = LosingAnswer(store.deliveries.settle)
        lossy = Altered(store, deliveries=Altered(store.deliveries, settle=settle))
        async with running_engine(lossy, ECHO, carriers=carriers) as engine:
            beside = await say(engine, store, "beside it", conversation="chat:other", reply_to="other:1")
            await until(lambda: other.sent)
            turn = await say(engine, store, "hello")
            await until(lambda: settle.calls == 2)
            await something_else_arrives(engine, store)
            slow.release()
            await deliveries_in(store, beside, DeliveryState.DELIVERED)
        assert other.texts(beside) == ["beside it"]
        (sent,) = await store.deliveries.of_turn(turn.id)
        assert (sent.state, sent.receipt) == (DeliveryState.DELIVERED, "arrived")
        assert carrier.texts(turn) == ["hello"]


async def test_a_delivery_that_was_claimed_without_an_answer_is_let_go_and_sent(open_it: Open) -> None:
    """D2: the claim took effect, but its claimer does not know; it finds out by looking at what it holds."""
    carrier = RecordingCarrier()
    async with opened(open_it) as store:

        async def claim(*args: Any) -> list[Delivery]:
            """Lose the answer only of a claim that took something."""
            claimed = await store.deliveries.claim(*args)
            if claimed and not claimed[0].repeats:
                raise Unavailable("the connection was lost before the answer came")
            return claimed

        lossy = Altered(store, deliveries=Altered(store.deliveries, claim=claim))
        async with running_engine(lossy, ECHO, carriers={"chat": carrier}, tuning=ALERT) as engine:
            turn = await say(engine, store, "hello again")
            await deliveries_in(store, turn, DeliveryState.DELIVERED)
        assert carrier.texts(turn) == [f"{REPEAT_LABEL} hello again"]
