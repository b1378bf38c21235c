"""Two gateways with a model on one PostgreSQL: what one was at when it was killed, and what only its own home can tell."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

from holdfast.clock import SystemClock
from holdfast.config import GatewayConfig, SessionsConfig
from holdfast.core.intake import Inbound
from holdfast.core.redaction import Redaction
from holdfast.core.turns import Mode
from holdfast.engine.inbox import Inbox
from holdfast.store.opening import open_store
from tests.blackbox.client import Client, client
from tests.blackbox.gateway import until
from tests.blackbox.models import Workshop, workshop
from tests.blackbox.test_model import call, cards, told, words
from tests.blackbox.test_nodes import OTHER, url

__all__ = ["url"]


@contextlib.asynccontextmanager
async def two(url: str, **settings: str) -> AsyncIterator[tuple[Workshop, Client]]:
    """Two homes on one store.  Only the first is started."""
    with workshop(2, store__url=url, **settings) as shop:
        await shop.gateway.start()
        async with client(*shop.nodes) as somebody:
            yield shop, somebody


async def ask_and_wait(url: str, home: Path, script: str, key: str) -> str:
    """Accept what a client waits for with its connection open, as an API request does; no route brings one in yet."""
    store = await open_store(url, home)
    try:
        message = Inbound(
            conversation=f"api:{key}",
            text=f"script: {script}",
            channel="api",
            mode=Mode.SYNCHRONOUS,
            delivers_later=False,
            dedupe_key=key,
        )
        return (await Inbox(store, GatewayConfig(), SessionsConfig(), Redaction(), SystemClock()).accept(message)).turn_id
    finally:
        await store.close()


async def test_a_node_is_killed_with_its_helper_its_question_and_its_command(url: str) -> None:
    """R9, R10, A8: the other goes on with the turns; the command is told of by its own home, once, when that is back."""
    async with two(url, gateway__resume="auto") as (shop, somebody):
        one, other = shop.nodes
        scripts = {
            "helper": f"{call('delegate_task', goal='script: held')} | result",
            "probe": f"{call('probe_effectful', word='once', waits=True)} | say it is told",
            "approval": f"{call('terminal', command='mkdir -p build && echo ran >> approved && rm -rf build')} | say it ran",
            "command": call(
                "terminal",
                command="until test -e go\ndo sleep 0.1\ndone\ntouch over",
                background=True,
                notify_on_complete=True,
            )
            + " | say begun",
        }
        turns = {name: await somebody.send(await somebody.session(), f"script: {each}") for name, each in scripts.items()}
        await somebody.comes_to(turns["approval"].id, "waiting")
        await somebody.comes_to(turns["command"].id, "waiting")
        await somebody.answer(turns["command"].id, "once")
        await somebody.comes_to(turns["command"].id, "completed")
        await shop.has_begun("once")
        await until(lambda: shop.model.asked("script: held"), "the helper is at work")
        await other.start()
        await one.kill()
        shop.open_gate()
        for name in ("helper", "probe"):
            done = await somebody.comes_to(turns[name].id, via=OTHER)
            assert (done.state, done.attempt) == ("completed", 2), (name, done, other.tail())
        # What was allowed was a command in the workspace of the one; in that of the other it is another command.
        for home in (one.home, other.home):
            await until(lambda: _asks_about(somebody, turns["approval"].id, home), "consent is asked for")  # noqa: B023 - Awaited.
            answer = await somebody.answer(turns["approval"].id, "once", OTHER)
            assert answer.status_code == 200, answer.text
        assert (await somebody.comes_to(turns["approval"].id, via=OTHER)).state == "completed"
        assert (await somebody.said(turns["helper"], via=OTHER)).endswith(words(20))
        assert shop.began == {"once": 1}
        (one.home / "workspace" / "go").touch()
        await until((one.home / "workspace" / "over").exists, "the command has ended")
        assert (other.home / "workspace" / "approved").read_text() == "ran\n"
        assert not (one.home / "workspace" / "approved").exists()
        session_id = turns["command"].session_id
        asked = await somebody.send(session_id, "script: say still here", via=OTHER)
        assert (await somebody.comes_to(asked.id, via=OTHER)).state == "completed"
        # Whoever does not have its folder cannot say how it ended, and does not.
        (process,) = (await somebody.get("/api/processes", OTHER))["items"]
        assert process["state"] == "running"
        await one.start()
        assert await cards(somebody, turns["probe"]) == {"once": "unknown"}
        await until(lambda: told(somebody, turns["command"], "ended with exit code 0"), "its home tells of the command")
        await until(somebody.rests, "nothing runs any more")
        assert await told(somebody, turns["command"], "ended with exit code 0") == 1
        shop.model.check()
        await shop.leaves_nothing()


async def test_a_turn_whose_client_waits_is_promised_nothing(url: str, tmp_path: Path) -> None:
    """A4, A6, R10: it is told that nobody will be told; cut off, it goes on when the same request comes again."""
    async with two(url, tools__terminal__approval="allow") as (shop, somebody):
        one, other = shop.nodes
        begun = call(
            "terminal", command="echo hi && sleep 1", background=True, notify_on_complete=True, watch_patterns=["hi"]
        )
        command = await ask_and_wait(url, tmp_path, f"{begun} | result", "a4")
        errand = await ask_and_wait(
            url, tmp_path, f"{call('delegate_task', goal='script: say done', background=True)} | result", "a6"
        )
        held = f"{call('probe_keyed', word='held', waits=True)} | result"
        cut = await ask_and_wait(url, tmp_path, held, "cut")
        answered = await somebody.comes_to(command)
        (first,) = [item for item in (await somebody.poll(answered.session_id)).items if item.role == "assistant"]
        promise = json.loads(first.text)
        assert (promise["notify_on_complete"], promise["watch_patterns"]) == (False, [])
        assert "process" in promise["notify_unsupported"]
        answered = await somebody.comes_to(errand)
        (first,) = [item for item in (await somebody.poll(answered.session_id)).items if item.role == "assistant"]
        assert first.text.startswith("Note: background was not possible")
        assert first.text.endswith("done")
        await shop.has_begun("held")
        await other.start()
        await one.kill()
        shop.open_gate()
        assert (await somebody.comes_to(cut, via=OTHER)).state == "interrupted"
        assert await ask_and_wait(url, tmp_path, held, "cut") == cut
        assert (await somebody.comes_to(cut, "completed", "failed", via=OTHER)).state == "completed"
        assert shop.began == {"held": 2}
        # The process has ended long ago, and its home looks at it; nobody is told.
        await one.start()
        await until(lambda: _all_exited(somebody), "the process is known to have ended")
        for turn_id in (command, errand, cut):
            turn = await somebody.turn(turn_id)
            found = (await somebody.get("/api/turns", session=turn.session_id))["items"]
            assert [each["id"] for each in found] == [turn_id]
        shop.model.check()
        await shop.leaves_nothing()


async def _asks_about(somebody: Client, turn_id: str, home: Path) -> bool:
    found = (await somebody.get("/api/approvals", OTHER))["items"]
    return [(each["turn_id"], each["detail"]["workdir"]) for each in found] == [(turn_id, str(home / "workspace"))]


async def _all_exited(somebody: Client) -> bool:
    found = (await somebody.get("/api/processes"))["items"]
    return bool(found) and all(each["state"] == "exited" for each in found)
