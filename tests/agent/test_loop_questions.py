"""Approvals, questions and budgets: a turn is parked durably, and goes on as the person says, after a restart too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.agent.models.scripted import call
from holdfast.config import BudgetConfig
from holdfast.core import effects
from holdfast.core.effects import Effect
from holdfast.core.events import EntryKind
from holdfast.core.questions import About
from holdfast.core.redaction import Redaction
from holdfast.core.transcript import Role
from holdfast.core.turns import SETTLED, TurnState
from holdfast.engine.calls import DENIED, UNANSWERED
from tests.agent.world import (
    Lever,
    agent_of,
    assert_every_call_has_its_result,
    items_of,
    question_of,
    shape,
    waits_again,
)
from tests.engine.players import text_of
from tests.engine.world import FAST, START, ManualClock, Open, answered, message, opened, running_engine, settled, until


async def test_an_approval_parks_the_turn_and_the_exact_call_runs_once_after_a_restart(open_it: Open) -> None:
    """X1 R10: nothing of the step is forgotten, nothing of it starts before the answer, and nothing runs twice."""
    quiet, sharp = Lever("quiet"), Lever("sharp", asks=True)
    async with opened(open_it) as store:
        agent, _ = agent_of([["Both. ", call("quiet"), call("sharp", **{"with": "force"})]], store, quiet, sharp)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            asked = await question_of(store, receipt)
            assert (asked.question.about, quiet.pulls, sharp.pulls) == (About.APPROVAL, [], [])
            states = {each.id: each.state for each in await store.journal.calls(receipt.turn_id)}
            assert states == {"s1_c1": effects.CallState.PLANNED, "s1_c2": effects.CallState.AWAITING_APPROVAL}
        agent, model = agent_of([["Done."]], store, quiet, sharp)
        async with running_engine(store, agent) as engine:
            await engine.answer(receipt.turn_id, asked.question.id, "yes")
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
            assert (quiet.pulls, sharp.pulls) == ([{}], [{"with": "force"}])
            assert shape(model.requests[0])[1:] == [
                ("assistant", "Both. ", "quiet", "sharp"),
                ("tool", "pulled once"),
                ("tool", "pulled force"),
            ]
            assert_every_call_has_its_result(model.requests[0])


async def test_what_is_asked_says_what_it_is_about(open_it: Open) -> None:
    """The entry carries all that a page needs to show the card."""
    sharp = Lever("sharp", asks=True)
    async with opened(open_it) as store:
        agent, _ = agent_of([[call("sharp", **{"with": "x"})]], store, sharp)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            asked = await question_of(store, receipt)
            entry = (await store.journal.read_turn(receipt.turn_id))[-1]
            assert entry.kind is EntryKind.APPROVAL_ASKED
            assert entry.data == {
                "question_id": asked.question.id,
                "text": asked.question.text,
                "about": "approval",
                "choices": [],
                "detail": {},
                "expires_at": None,
                "call_id": "s1_c1",
                "name": "sharp",
                "args": {"with": "x"},
            }


@pytest.mark.parametrize(("answer", "words"), [("deny", ""), ("not today", " They said: not today")])
async def test_a_denied_call_is_never_made_and_the_model_reads_who_denied_it(open_it: Open, answer: str, words: str) -> None:
    """Whatever is not clearly a yes is a no; the others of the step are made."""
    quiet, sharp = Lever("quiet"), Lever("sharp", asks=True)
    async with opened(open_it) as store:
        agent, model = agent_of([[call("sharp"), call("quiet")], ["As you wish."]], store, quiet, sharp)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            asked = await question_of(store, receipt)
            await engine.answer(receipt.turn_id, asked.question.id, answer)
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
            assert (sharp.pulls, quiet.pulls) == ([], [{}])
            assert shape(model.requests[1])[-2:] == [("tool", f"Error: {DENIED}{words}"), ("tool", "pulled once")]
            cards = [item for item in await items_of(store, receipt) if item.role is Role.TOOL]
            assert [(card.name, card.outcome, card.args) for card in cards] == [("sharp", "error", {}), ("quiet", "ok", {})]


async def test_a_question_that_nobody_answers_in_time_allows_nothing_and_the_turn_goes_on(open_it: Open) -> None:
    """Approvals expire, and fail closed; the turn says so instead of waiting for ever."""
    clock = ManualClock()
    sharp = Lever("sharp", asks=True, expires_at=START + 60_000)
    async with opened(open_it) as store:
        agent, model = agent_of([[call("sharp")], ["Nobody was there."]], store, sharp, clock=ManualClock())
        async with running_engine(store, agent, clock=clock, tuning=replace(FAST, expiry_ms=1_000)) as engine:
            receipt = await engine.inbox.accept(message("go"))
            await question_of(store, receipt)
            await clock.advance(1_000)
            assert (await store.turns.get(receipt.turn_id)).state is TurnState.WAITING
            await clock.advance(60_000)

            async def expired() -> bool:
                # Whoever looks for what has expired may just have been about to sleep.
                await clock.advance(1_000)
                return (await store.turns.get(receipt.turn_id)).state in SETTLED

            await until(expired)
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
            assert (sharp.pulls, shape(model.requests[1])[-1]) == ([], ("tool", f"Error: {UNANSWERED}"))


async def test_two_approvals_of_one_step_are_asked_one_after_the_other_before_either_runs(open_it: Open) -> None:
    """X1: the first stays where it is until the second is decided too."""
    sharp = Lever("sharp", asks=True)
    async with opened(open_it) as store:
        agent, model = agent_of([[call("sharp", n=1), call("sharp", n=2)], ["Done."]], store, sharp)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            first = await question_of(store, receipt)
            await engine.answer(receipt.turn_id, first.question.id, "yes")
            second = await waits_again(store, receipt, 2)
            assert (second.question.id != first.question.id, sharp.pulls) == (True, [])
            await engine.answer(receipt.turn_id, second.question.id, "no")
            await settled(store, receipt)
            assert sharp.pulls == [{"n": 1}]
            assert [kind for kind, *_ in shape(model.requests[1])[-2:]] == ["tool", "tool"]


async def test_once_is_for_one_call_and_a_session_is_for_all_of_the_same(open_it: Open) -> None:
    """Exact binding: the same again is asked again, unless it was granted; another argument is another question."""
    sharp = Lever("sharp", asks=True)
    script = [[call("sharp", n=1)], [call("sharp", n=1)], [call("sharp", n=1)], [call("sharp", n=2)], ["Done."]]
    async with opened(open_it) as store:
        agent, _ = agent_of(script, store, sharp)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            for times, answer in ((1, "once"), (2, "session"), (3, "deny")):
                asked = await waits_again(store, receipt, times)
                await engine.answer(receipt.turn_id, asked.question.id, answer)
            await settled(store, receipt)
            assert sharp.pulls == [{"n": 1}] * 3
            assert [grant.session_id for grant in await store.questions.grants("local")] == [receipt.session_id]


async def test_what_a_person_denied_stays_denied_when_the_judge_changes_its_mind(open_it: Open) -> None:
    """Fail closed: a call that was asked about is not freed by a question that is found no more."""
    sharp = Lever("sharp", asks=True)
    async with opened(open_it) as store:
        agent, _ = agent_of([[call("sharp")], ["Fine."]], store, sharp)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            asked = await question_of(store, receipt)
            sharp.asks = False
            await engine.answer(receipt.turn_id, asked.question.id, "deny")
            await settled(store, receipt)
            assert sharp.pulls == []


async def test_an_answer_given_for_a_call_is_its_result_and_the_tool_does_not_run(open_it: Open) -> None:
    """A tool that only asks a person ends with what they said, as one card."""
    asker = Lever("asker", effect=Effect.PURE, asks=True, about=About.ANSWER)
    async with opened(open_it) as store:
        agent, model = agent_of([[call("asker")], ["Blue it is."]], store, asker)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            asked = await question_of(store, receipt)
            await engine.answer(receipt.turn_id, asked.question.id, "blue")
            await settled(store, receipt)
            assert (asker.pulls, shape(model.requests[1])[-1]) == ([], ("tool", "blue"))
            cards = [item for item in await items_of(store, receipt) if item.role is Role.TOOL]
            assert [(card.outcome, card.result) for card in cards] == [("ok", "blue")]


async def test_a_call_whose_arguments_held_a_secret_is_not_made_with_a_mask_in_its_place(open_it: Open) -> None:
    """K1: the secret is not stored, so what was approved cannot be done any more; the model is told."""
    sharp = Lever("sharp", asks=True)
    secret = "sk-live-0123456789"
    async with opened(open_it) as store:
        agent, model = agent_of([[call("sharp", key=secret)], ["Oh."]], store, sharp)
        async with running_engine(store, agent, redaction=Redaction([secret])) as engine:
            receipt = await engine.inbox.accept(message("go"))
            asked = await question_of(store, receipt)
            assert secret not in asked.question.text
            await engine.answer(receipt.turn_id, asked.question.id, "yes")
            await settled(store, receipt)
            assert sharp.pulls == []
            assert "held a secret" in shape(model.requests[1])[-1][1]


async def test_a_spent_budget_parks_the_turn_and_the_person_decides(open_it: Open) -> None:
    """Parked, never failed: to go on allows as much again, anything else ends it with a plain sentence."""
    budget = BudgetConfig(turn_tokens=200)
    async with opened(open_it) as store:
        agent, model = agent_of(lambda _: ["Hm. ", call("lever")], store, Lever(effect=Effect.PURE), budget=budget)
        async with running_engine(store, agent) as engine:
            receipt = await engine.inbox.accept(message("go"))
            asked = await question_of(store, receipt)
            assert (asked.question.id, asked.question.about) == ("budget:turn:1", About.BUDGET)
            assert "220 of 200 tokens" in asked.question.text
            assert asked.question.choices == ("continue", "stop")
            await engine.answer(receipt.turn_id, asked.question.id, "continue")
            asked = await waits_again(store, receipt, 2)
            assert (asked.question.id, len(model.requests)) == ("budget:turn:2", 4)
            await engine.answer(receipt.turn_id, asked.question.id, "no, thank you")
            assert (await settled(store, receipt)).state is TurnState.COMPLETED
            assert (await text_of(store, receipt)).endswith(
                "I stopped here: the budget for this turn is used up (440 of 200 tokens)."
            )
            assert len(model.requests) == 4


async def test_a_budget_of_the_day_counts_every_conversation_of_its_owner(open_it: Open) -> None:
    """The next turn is asked about before its first step, and another owner is not."""
    budget = BudgetConfig(day_tokens=100)
    async with opened(open_it) as store:
        agent, model = agent_of(lambda _: ["ok"], store, budget=budget)
        async with running_engine(store, agent) as engine:
            assert (await answered(engine, store, conversation="a")).state is TurnState.COMPLETED
            assert (await answered(engine, store, conversation="x", owner="other")).state is TurnState.COMPLETED
            receipt = await engine.inbox.accept(message(conversation="b"))
            asked = await question_of(store, receipt)
            assert (asked.question.id, len(model.requests)) == ("budget:day:1", 2)
            await engine.answer(receipt.turn_id, asked.question.id, "continue")
            assert (await settled(store, receipt)).state is TurnState.COMPLETED


@pytest.mark.parametrize("scope", ["session", "day"])
async def test_as_much_again_is_as_much_again_for_the_turns_that_follow(open_it: Open, scope: str) -> None:
    """Whoever has said to go on is not asked at every message, only when that is used up too."""
    async with opened(open_it) as store:
        agent, _ = agent_of(lambda _: ["ok"], store, budget=BudgetConfig(**{f"{scope}_tokens": 200}))
        async with running_engine(store, agent) as engine:
            for text in ("one", "two"):
                assert (await answered(engine, store, text)).state is TurnState.COMPLETED
            third = await engine.inbox.accept(message("three"))
            assert (await question_of(store, third)).question.id == f"budget:{scope}:1"
            await engine.answer(third.turn_id, f"budget:{scope}:1", "continue")
            assert (await settled(store, third)).state is TurnState.COMPLETED
            assert (await answered(engine, store, "four")).state is TurnState.COMPLETED
            fifth = await engine.inbox.accept(message("five"))
            assert (await question_of(store, fifth)).question.id == f"budget:{scope}:2"


async def test_a_summary_is_paid_from_the_same_budget(open_it: Open) -> None:
    """What is used to save space is used as well, also where a person asks for it."""
    async with opened(open_it) as store:
        agent, _ = agent_of(lambda _: ["ok"], store, budget=BudgetConfig(session_tokens=300))
        async with running_engine(store, agent) as engine:
            for text in ("one", "two"):
                assert (await answered(engine, store, text)).state is TurnState.COMPLETED
            assert (await answered(engine, store, "/compress")).state is TurnState.COMPLETED
            receipt = await engine.inbox.accept(message("/compress"))
            asked = await question_of(store, receipt)
            assert "330 of 300 tokens" in asked.question.text
            await engine.answer(receipt.turn_id, asked.question.id, "stop")
            await settled(store, receipt)
            assert (await text_of(store, receipt)).startswith("I stopped here")
