"""What an agent has begun outlives the gateway: a background command, an approval that nobody gave yet, a helper."""

from __future__ import annotations

import json
from typing import Any

from tests.blackbox.client import Client, client
from tests.blackbox.gateway import Gateway, gateways, until
from tests.blackbox.history import Receipt
from tests.blackbox.models import workshop
from tests.machine import with_and_without_a_sandbox


async def turns(somebody: Client, session_id: str) -> list[Any]:
    return (await somebody.get("/api/turns", session=session_id))["items"]


async def transcript(somebody: Client, session_id: str) -> list[Any]:
    return (await somebody.get(f"/api/sessions/{session_id}/messages"))["items"]


async def killed_and_started(gateway: Gateway) -> None:
    await gateway.kill()
    await gateway.start()


@with_and_without_a_sandbox
async def test_a_background_command_ends_while_no_gateway_runs_and_is_told_once(sandbox: str) -> None:
    """A5, A8: kill -9 neither ends the command nor loses its end; the next gateway keeps the promise, and only once."""
    with gateways(tools__terminal__sandbox=sandbox, tools__terminal__approval="allow") as (gateway,):
        await gateway.start()
        async with client(gateway) as somebody:
            session_id = await somebody.session()
            follower = somebody.follow(session_id)
            asked = await somebody.send(session_id, "background: sleep 1 && echo all-is-well > proof && cat proof")
            card = await follower.saw("tool.finished", asked.id, "terminal")
            started = json.loads(str(card.data["result"]))
            assert started["notify_on_complete"] is True
            assert "notify_unsupported" not in started
            await somebody.comes_to(asked.id, "completed")
            await gateway.kill()
            proof = gateway.home / "workspace" / "proof"
            await until(proof.exists, "the command has ended by itself")
            await gateway.start()
            await until(lambda: _has_turns(somebody, session_id, 2), "the end of the command is a turn")
            told = (await turns(somebody, session_id))[1]
            await somebody.comes_to(told["id"], "completed")
            await killed_and_started(gateway)
            await somebody.comes_to((await somebody.send(session_id, "count to 2")).id, "completed")
            assert len(await turns(somebody, session_id)) == 3
            note = next(item for item in await transcript(somebody, session_id) if item["turn_id"] == told["id"])
            assert note["text"].startswith("[System note:")
            assert "all-is-well" in note["text"]
            (process,) = (await somebody.get("/api/processes"))["items"]
            assert (process["state"], process["exit_code"]) == ("exited", 0)


async def _has_turns(somebody: Client, session_id: str, count: int) -> bool:
    return len(await turns(somebody, session_id)) >= count


async def test_an_approval_is_still_asked_for_after_a_kill_and_then_allows_exactly_one_run() -> None:
    """R10, X1: a question costs nothing while it waits, whoever dies; the answer runs what was shown, once."""
    with gateways() as (gateway,):
        await gateway.start()
        async with client(gateway) as somebody:
            session_id = await somebody.session()
            asked, question = await _asking(somebody, session_id, "run: mkdir -p build && echo ran >> proof && rm -rf build")
            assert "rm -rf build" in json.dumps(question)
            proof = gateway.home / "workspace" / "proof"
            assert not proof.exists()
            await killed_and_started(gateway)
            (still,) = (await somebody.get("/api/approvals"))["items"]
            assert still["turn_id"] == asked.id
            answer = await somebody.answer(asked.id, "once")
            assert answer.status_code == 200, answer.text
            await somebody.comes_to(asked.id, "completed")
            assert proof.read_text() == "ran\n"
            assert (await somebody.get("/api/approvals"))["items"] == []
            # Once is once: the same command asks again.
            again, _ = await _asking(somebody, session_id, "run: mkdir -p build && echo ran >> proof && rm -rf build")
            await somebody.answer(again.id, "deny")
            await somebody.comes_to(again.id, "completed")
            assert proof.read_text() == "ran\n"


# What a command could try that runs unasked: to answer what waits for a person.
_ALLOWING = """
import json, sys, urllib.error, urllib.request
base = sys.argv[1]
try:
    found = json.load(urllib.request.urlopen(base + "/api/approvals"))
except urllib.error.URLError as error:
    sys.exit(f"unreachable {error.reason}")
for each in found["items"]:
    body = json.dumps({"text": "always", "question_id": each["question_id"]}).encode()
    path = base + "/api/turns/" + each["turn_id"] + "/answer"
    wish = urllib.request.Request(path, body, {"content-type": "application/json"})
    try:
        print("answered", urllib.request.urlopen(wish).status)
    except urllib.error.HTTPError as error:
        print("refused", error.code)
"""


@with_and_without_a_sandbox
async def test_a_command_cannot_allow_what_a_person_was_asked_about(sandbox: str) -> None:
    """SECURITY 9: a gateway without a key can be reached by what it runs, which must not speak for the operator."""
    with workshop(tools__terminal__sandbox=sandbox, tools__terminal__approval="allow") as shop:
        gateway = shop.gateway
        await gateway.start()
        async with client(gateway) as somebody:
            # Commands run unasked here, but a job never does.
            job = {"action": "add", "name": "helper", "schedule": "* * * * *", "prompt": "Help.", "deliver": "none"}
            asked, _ = await _asking(somebody, await somebody.session(), f"script: call schedule {json.dumps(job)} | result")
            (gateway.home / "workspace" / "allow.py").write_text(_ALLOWING)
            session_id = await somebody.session()
            command = json.dumps({"command": f"python3 allow.py {gateway.url}"})
            trying = await somebody.send(session_id, f"script: call terminal {command} | result")
            await somebody.comes_to(trying.id, "completed")
            items = (await somebody.get(f"/api/sessions/{session_id}/messages"))["items"]
            # In a sandbox there is no gateway to ask.
            assert ("unreachable" if sandbox == "on" else "refused 403") in json.dumps(items)
            await somebody.comes_to(asked.id, "waiting")
            assert (await somebody.answer(asked.id, "deny")).status_code == 200
            await somebody.comes_to(asked.id, "completed")


async def _asking(somebody: Client, session_id: str, text: str) -> tuple[Receipt, Any]:
    """Send a message and return when it waits for a person, with what they are asked."""
    asked = await somebody.send(session_id, text)
    await somebody.comes_to(asked.id, "waiting", "completed", "failed")
    (question,) = (await somebody.get("/api/approvals"))["items"]
    return asked, question


async def test_a_helper_goes_on_after_a_kill_and_its_answer_comes_home_once() -> None:
    """R10: the parent's call is repeated with its key, so it finds the helper that it had sent out before."""
    with gateways(gateway__resume="auto") as (gateway,):
        await gateway.start()
        async with client(gateway) as somebody:
            session_id = await somebody.session()
            follower = somebody.follow(session_id)
            asked = await somebody.send(session_id, "delegate: wait 2 seconds")
            await follower.saw("tool.started", asked.id, "delegate_task")
            await until(lambda: _has_helpers(somebody, 1), "there is a helper")
            await killed_and_started(gateway)
            done = await somebody.comes_to(asked.id, "completed")
            assert done.attempt == 2
            assert len(await helpers(somebody)) == 1
            cards = [item for item in await transcript(somebody, session_id) if item.get("name") == "delegate_task"]
            assert [card["outcome"] for card in cards if card["outcome"]][-1] == "ok"
            assert "I waited 2 seconds" in cards[-1]["result"]


async def helpers(somebody: Client) -> list[Any]:
    found = (await somebody.get("/api/sessions"))["items"]
    return [each for each in found if each["channel"] == "delegate"]


async def _has_helpers(somebody: Client, count: int) -> bool:
    return len(await helpers(somebody)) >= count


async def test_a_helper_is_cancelled_with_the_one_who_sent_it() -> None:
    with gateways() as (gateway,):
        await gateway.start()
        async with client(gateway) as somebody:
            session_id = await somebody.session()
            asked = await somebody.send(session_id, "delegate: wait 300 seconds")
            await until(lambda: _has_helpers(somebody, 1), "there is a helper")
            (helper,) = await helpers(somebody)
            assert (await somebody.ask("POST", f"/api/turns/{asked.id}/cancel")).status_code == 200
            (its_turn,) = await turns(somebody, helper["id"])
            assert (await somebody.comes_to(its_turn["id"])).state == "cancelled"
            await until(somebody.rests, "nothing runs any more", patience_s=5)
