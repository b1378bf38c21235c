"""A real model at the other end of a wire, and a gateway that ends in the middle of everything an agent can be at."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.blackbox.client import Client, Follower, client
from tests.blackbox.gateway import until
from tests.blackbox.history import Receipt, check
from tests.blackbox.models import Workshop, workshop

WORDS = 150
CHILD_WORDS = 120


def words(count: int) -> str:
    return "".join(f" word{each}" for each in range(count))


def call(name: str, **args: object) -> str:
    return f"call {name} {json.dumps(args)}"


SCRIPTS = {
    "between": f"{call('probe_effectful', word='between')} | first 1 hang; say went on",
    "parallel": "; ".join(
        [
            call("probe_pure", word="pure", waits=True),
            call("probe_keyed", word="keyed", waits=True),
            call("probe_effectful", word="effectful", waits=True),
            call("probe_effectful", word="quick"),
        ]
    )
    + " | say all are told",
    "approval": f"{call('terminal', command='mkdir -p build && echo ran >> approved && rm -rf build')} | say it ran",
    "question": f"{call('ask_user', question='Which colour?')} | result",
    "helper": f"{call('delegate_task', goal=f'script: stream {CHILD_WORDS} at 40')} | result",
    "errand": f"{call('delegate_task', goal=f'script: stream {CHILD_WORDS} at 40', background=True)} | say sent",
    "notified": call(
        "terminal",
        command="sleep 3 && echo now-ready && sleep 0.5",
        background=True,
        notify_on_complete=True,
        watch_patterns=["now-ready"],
    )
    + " | say begun",
    "refused": "first 1 status 429 retry-after 3; say was let in",
    "cut": "first 1 say half; first 1 cut; say  and the other half",
    "stalled": "first 1 say half; first 1 stall; say  and the other half",
}
STREAMING = f"stream {WORDS} at 40"
# Turns that are over before anything ends, and whose promises are kept later.
PROMISED = ("errand", "notified")
ASKING = {"approval": "once", "question": "blue"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    turn: Receipt
    follower: Follower


async def bring_about(somebody: Client, shop: Workshop) -> dict[str, Scene]:
    """Have everything in its middle at once."""
    scenes: dict[str, Scene] = {}
    for name, script in SCRIPTS.items():
        scenes[name] = await _begin(somebody, script)
    await somebody.comes_to(scenes["notified"].turn.id, "waiting")
    assert (await somebody.answer(scenes["notified"].turn.id, "once")).status_code == 200
    for name in PROMISED:
        await somebody.comes_to(scenes[name].turn.id, "completed")
    for name in ASKING:
        await somebody.comes_to(scenes[name].turn.id, "waiting")
    await shop.has_begun("pure", "keyed", "effectful", "quick", "between")
    await until(lambda: shop.model.asked(f"script: {SCRIPTS['between']}") >= 2, "the model is asked for the second step")
    await scenes["parallel"].follower.saw("tool.finished", scenes["parallel"].turn.id, "probe_effectful")
    await scenes["helper"].follower.saw("tool.started", scenes["helper"].turn.id, "delegate_task")
    await until(lambda: shop.model.asked(f"script: stream {CHILD_WORDS} at 40") == 2, "both helpers are at work")
    # The last to begin: an answer that is over before the end comes was not cut.
    scenes["streaming"] = await _begin(somebody, STREAMING)
    await scenes["streaming"].follower.saw("text", scenes["streaming"].turn.id)
    return scenes


async def _begin(somebody: Client, script: str) -> Scene:
    session_id = await somebody.session()
    follower = somebody.follow(session_id)
    return Scene(turn=await somebody.send(session_id, f"script: {script}"), follower=follower)


async def kill(shop: Workshop) -> None:
    await shop.gateway.kill()
    shop.open_gate()
    await shop.gateway.start()


async def stop(shop: Workshop) -> None:
    shop.gateway.signal(signal.SIGTERM)
    assert await shop.gateway.ended() == 0, shop.gateway.tail()
    shop.open_gate()
    await shop.gateway.start()


async def restart(shop: Workshop) -> None:
    position = len(shop.gateway.log.read_text())
    restarting = asyncio.create_task(shop.gateway.run("restart", "--timeout", "0.3"))
    await shop.gateway.says("interrupted", position)
    shop.open_gate()
    await restarting
    await shop.gateway.ready()


End = Callable[[Workshop], Awaitable[None]]


async def answer_all(somebody: Client, scenes: dict[str, Scene]) -> None:
    """Answer each question once; a second answer finds nothing to answer."""
    for name, text in ASKING.items():
        turn_id = scenes[name].turn.id
        assert (await somebody.answer(turn_id, text)).status_code == 200
        await somebody.comes_to(turn_id, "completed")
        assert (await somebody.answer(turn_id, text)).status_code == 409


async def cards(somebody: Client, turn: Receipt) -> dict[str, Any]:
    """Return the outcome of each probe of a turn, by its word."""
    items = (await somebody.get(f"/api/sessions/{turn.session_id}/messages"))["items"]
    return {item["args"]["word"]: item["outcome"] for item in items if (item["name"] or "").startswith("probe_")}


async def told(somebody: Client, turn: Receipt, words_: str) -> int:
    """Return how many turns of a session were begun by a message with these words."""
    items = (await somebody.get(f"/api/sessions/{turn.session_id}/messages"))["items"]
    return sum(item["role"] == "user" and words_ in item["text"] for item in items)


async def all_promises_are_kept(somebody: Client, scenes: dict[str, Scene]) -> None:
    promises = (
        ("errand", "has ended: script: stream"),
        ("notified", "printed what you watch for"),
        ("notified", "ended with exit code 0"),
    )
    for name, words_ in promises:
        await until(lambda: told(somebody, scenes[name].turn, words_), f"{name}: {words_}")  # noqa: B023 - Awaited.
    await until(somebody.rests, "nothing runs any more")
    for name, words_ in promises:
        assert await told(somebody, scenes[name].turn, words_) == 1, (name, words_)
    (errand,) = [
        item["text"]
        for item in (await somebody.get(f"/api/sessions/{scenes['errand'].turn.session_id}/messages"))["items"]
        if "has ended: script" in item["text"] and item["role"] == "user"
    ]
    assert errand.endswith(words(CHILD_WORDS)), errand


async def nothing_is_broken(somebody: Client, shop: Workshop) -> None:
    """The checker's rules hold, the model got what it can read, and every answer of it was counted once."""
    outcome = await somebody.settle()
    # A scripted model does not repeat the word by which a message is known.
    assert not [each for each in check(somebody.history, outcome) if not each.startswith("answer: ")]
    shop.model.check()
    for ack in somebody.history.acknowledged:
        counted = [e for e in outcome.journals[ack.session_id] if (e.turn_id, e.kind) == (ack.turn_id, "usage")]
        assert len(counted) == shop.model.answered(somebody.history.sent[ack.nonce]), somebody.history.sent[ack.nonce]
    assert (await somebody.get("/api/approvals"))["items"] == []
    assert await somebody.rests()
    await shop.leaves_nothing()


@pytest.mark.parametrize(("end", "wire"), [(kill, "openai"), pytest.param(stop, "anthropic", marks=pytest.mark.long)])
async def test_every_turn_goes_on_by_itself_from_where_it_was(end: End, wire: str) -> None:
    """R10, J1, X1: what was shown begins the answer, what had taken effect does not again, promises are kept."""
    with workshop(wire=wire, gateway__resume="auto", gateway__drain_timeout="0.3", model__stall_timeout="4") as shop:
        await shop.gateway.start()
        async with client(shop.gateway) as somebody:
            scenes = await bring_about(somebody, shop)
            await end(shop)
            await answer_all(somebody, scenes)
            for name, scene in scenes.items():
                done = await somebody.comes_to(scene.turn.id)
                assert done.state == "completed", (name, done, shop.gateway.tail())
            said = {name: await somebody.said(scene.turn) for name, scene in scenes.items() if name not in PROMISED}
            assert said["streaming"] == words(WORDS)
            assert said["between"] == "went on"
            assert said["helper"].endswith(words(CHILD_WORDS))
            assert said["question"] == "blue"
            assert said["refused"] == "was let in"
            assert said["cut"] == said["stalled"] == "half and the other half"
            assert (shop.gateway.home / "workspace" / "approved").read_text() == "ran\n"
            assert shop.began == {"pure": 2, "keyed": 2, "effectful": 1, "quick": 1, "between": 1}
            outcomes = await cards(somebody, scenes["parallel"].turn)
            assert outcomes == {"pure": "ok", "keyed": "ok", "effectful": "unknown", "quick": "ok"}
            await all_promises_are_kept(somebody, scenes)
            await nothing_is_broken(somebody, shop)


async def test_every_conversation_goes_on_with_its_next_message() -> None:
    """R5, R6, R10: what was cut off rests, the model reads all of it once, and what is unknown as unknown."""
    with workshop(wire="anthropic", model__stall_timeout="4") as shop:
        await shop.gateway.start()
        async with client(shop.gateway) as somebody:
            scenes = await bring_about(somebody, shop)
            await restart(shop)
            await answer_all(somebody, scenes)
            for name, scene in scenes.items():
                rested = await somebody.comes_to(scene.turn.id)
                assert rested.state in ("interrupted", "completed"), (name, rested)
                following = await somebody.send(scene.turn.session_id, "script: say next")
                assert following.session_id == scene.turn.session_id
                assert (await somebody.comes_to(following.id)).state == "completed", (name, shop.gateway.tail())
            assert shop.began == {"pure": 1, "keyed": 1, "effectful": 1, "quick": 1, "between": 1}
            await all_promises_are_kept(somebody, scenes)
            await nothing_is_broken(somebody, shop)


async def test_a_summary_a_budget_and_an_absent_model_outlive_the_gateway() -> None:
    """R10: a summary is made once, what is spent stays spent, and a model that was away is asked when both are back."""
    script = "first 1 hang; say a summary"
    with workshop(script=script, gateway__resume="auto", budget__turn_tokens="20") as shop:
        await shop.gateway.start()
        async with client(shop.gateway) as somebody:
            talk, paid = await somebody.session(), await somebody.session()
            for each in ("one", "two", "three"):
                await somebody.answered(await somebody.send(talk, f"script: say {each}"))
            costly = await somebody.send(
                paid, f"script: {call('probe_effectful', word='a')} | {call('probe_effectful', word='b')} | say enough"
            )
            await somebody.comes_to(costly.id, "waiting")
            compacting = (await somebody.ask("POST", f"/api/sessions/{talk}/compact")).json()
            await until(lambda: len(shop.model.lines) - 2 * shop.model.answered() == 1, "the model is to summarise")
            await shop.gateway.kill()
            await shop.gateway.start()
            await somebody.comes_to(compacting["turn_id"], "completed")
            assert (await somebody.answer(costly.id, "continue")).status_code == 200
            await somebody.answered(costly)
            assert shop.began == {"a": 1, "b": 1}
            shop.model.kill()
            position = len(shop.gateway.log.read_text())
            last = await somebody.send(talk, "script: say you are back")
            await shop.gateway.says("asking again", position)
            await shop.gateway.kill()
            shop.model.start()
            await shop.gateway.start()
            await somebody.answered(last)
            journal = (await somebody.settle()).journals[talk]
            assert [each.text for each in journal if each.kind == "context.compacted"] == ["a summary"]
            await nothing_is_broken(somebody, shop)
