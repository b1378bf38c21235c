"""What an agent has begun does not outlive everybody who could want it: commands, helpers, sessions that are gone."""

from __future__ import annotations

import json
from typing import Any

from tests.blackbox.client import Client, client
from tests.blackbox.gateway import until
from tests.blackbox.models import workshop


def call(name: str, **args: object) -> str:
    return f"call {name} {json.dumps(args)}"


async def turns(somebody: Client, session_id: str) -> list[Any]:
    return (await somebody.get("/api/turns", session=session_id))["items"]


async def helpers(somebody: Client) -> list[Any]:
    found = (await somebody.get("/api/sessions"))["items"]
    return [each for each in found if each["channel"] == "delegate"]


async def test_a_command_that_is_waited_for_ends_with_the_gateway_that_waits() -> None:
    """R10: killed or not, nothing of a command in the foreground goes on when nobody is left to see its end."""
    with workshop(tools__terminal__sandbox="off", tools__terminal__approval="allow") as shop:
        await shop.gateway.start()
        async with client(shop.gateway) as somebody:
            session_id = await somebody.session()
            script = call("terminal", command="touch began && sleep 300 && touch ended")
            asked = await somebody.send(session_id, f"script: {script} | say it ended")
            began = shop.gateway.home / "workspace" / "began"
            await until(began.exists, "the command runs")
            await shop.gateway.kill()
            await shop.leaves_nothing()
            await shop.gateway.start()
            assert (await somebody.comes_to(asked.id)).state == "interrupted"
            items = (await somebody.get(f"/api/sessions/{session_id}/messages"))["items"]
            (card,) = [item for item in items if item["role"] == "tool"]
            assert card["outcome"] == "unknown"


async def test_a_deleted_session_takes_its_background_commands_with_it() -> None:
    """A5: nobody could read what they print, or be told how they end; so they do, also when nobody was there to see it."""
    with workshop(tools__terminal__approval="allow") as shop:
        await shop.gateway.start()
        async with client(shop.gateway) as somebody:
            for is_away in (False, True):
                session_id = await somebody.session()
                script = call("terminal", command="sleep 300", background=True, notify_on_complete=True)
                asked = await somebody.send(session_id, f"script: {script} | say begun")
                await somebody.comes_to(asked.id, "completed")
                assert shop.processes()
                if is_away:
                    await shop.gateway.kill()
                    await shop.gateway.run("sessions", "delete", session_id)
                    await shop.gateway.start()
                else:
                    assert (await somebody.ask("DELETE", f"/api/sessions/{session_id}")).status_code < 300
                await shop.leaves_nothing()
            assert (await somebody.get("/api/processes"))["items"] == []


async def test_ten_helpers_are_cancelled_with_the_one_who_sent_them() -> None:
    """R10: nothing works on for a turn that was cancelled, and the store is not left with anything in flight."""
    with workshop(tools__delegate__children_max="10") as shop:
        await shop.gateway.start()
        async with client(shop.gateway) as somebody:
            session_id = await somebody.session()
            tasks = [{"goal": f"script: stream {900 + each} at 20"} for each in range(10)]
            asked = await somebody.send(session_id, f"script: {call('delegate_task', tasks=tasks)} | result")
            await until(lambda: all(shop.model.asked(each["goal"]) for each in tasks), "ten helpers are at work")
            assert (await somebody.ask("POST", f"/api/turns/{asked.id}/cancel")).status_code == 200
            sent = await helpers(somebody)
            assert len(sent) == 10
            for helper in sent:
                (its_turn,) = await turns(somebody, helper["id"])
                assert (await somebody.comes_to(its_turn["id"])).state == "cancelled"
                ended = await somebody.get(f"/api/sessions/{helper['id']}")
                assert ended["state"] == "ended"
            await until(somebody.rests, "nothing runs any more", patience_s=5)
            following = await somebody.send(session_id, "script: say next")
            await somebody.answered(following)
            shop.model.check()
