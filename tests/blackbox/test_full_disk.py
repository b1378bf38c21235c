"""A disk that is really full, under many running turns, for some seconds: nothing is torn, nothing is lost, all goes on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.blackbox.client import Client, client
from tests.blackbox.gateway import until
from tests.blackbox.history import Receipt
from tests.blackbox.small_disk import CrampedGateway, cramped_gateway

pytestmark = pytest.mark.mounts

TURNS = 20
LAST = 150
FULL_S = 3
COUNTED = " ".join(map(str, range(1, LAST + 1)))


async def begin(somebody: Client) -> tuple[list[Receipt], list[Receipt]]:
    """Let conversations and runs count, and return when all are in the middle of it."""
    sessions = [await somebody.session() for _ in range(TURNS)]
    conversations = [await somebody.send(session_id, f"count to {LAST}") for session_id in sessions]
    runs = [await run(somebody) for _ in range(TURNS)]
    for turn in (*conversations, *runs):
        somebody.follow(turn.session_id)
        await until(lambda each=turn: counts(somebody, each), f"{turn.id} counts")
    return conversations, runs


async def run(somebody: Client) -> Receipt:
    """Hand in work that nobody waits for."""
    answer = await somebody.ask("POST", "/v1/runs", {"input": f"count to {LAST}"})
    assert answer.status_code == 202, answer.text
    return await somebody.turn(answer.json()["run_id"])


async def counts(somebody: Client, turn: Receipt) -> bool:
    return " 5 " in await somebody.said(turn)


async def judge_while_full(gateway: CrampedGateway, somebody: Client, session_id: str) -> None:
    """The API, `status` and `doctor` say that the disk is full, and what to do."""

    async def refused() -> bool:
        answer = await somebody.ask("POST", f"/api/sessions/{session_id}/messages", {"text": "more " * 1_000})
        assert answer.status_code in (202, 503), answer.text
        if answer.status_code == 202:
            return False
        assert answer.json()["error"]["code"] == "disk_full"
        return int(answer.headers["Retry-After"]) > 0

    async def is_told() -> bool:
        _, shown, _ = await gateway.attempt("status")
        return "the disk is full" in " ".join(shown.split())

    # A log that has just started over takes a little more, however full the disk is.
    await until(refused, "a message is refused")
    await until(is_told, "status says so")
    code, report, _ = await gateway.attempt("doctor", "--json")
    (found,) = [check for check in json.loads(report)["checks"] if check["name"] == "disk"]
    assert (code, found["level"], found["found"].partition(":")[0]) == (1, "fail", "full"), report


def numbers(text: str) -> str:
    """Return what was counted; before it stands what was asked for."""
    return text.partition("”.")[2].strip()


def judge_order(text: str, turn: Receipt) -> None:
    """J1: what is there is the beginning of what was to be said, with nothing left out or said twice."""
    said = numbers(text)
    assert COUNTED.startswith(said.rstrip(".")), (turn, said)


async def look_closely(somebody: Client, turn: Receipt, cut: list[Any]) -> None:
    judge_order(await somebody.said(turn), turn)
    journal = [entry for stream in somebody.history.streams for entry in stream.entries if entry.turn_id == turn.id]
    cut += [entry.data["cause"] for entry in journal if entry.kind == "turn.interrupted"]


@pytest.mark.parametrize(
    ("resume", "greedily"),
    [
        pytest.param("on_message", False, id="on_message-once"),
        pytest.param("auto", True, id="auto-greedily"),
        pytest.param("on_message", True, id="on_message-greedily", marks=pytest.mark.long),
        pytest.param("auto", False, id="auto-once", marks=pytest.mark.long),
    ],
)
async def test_a_disk_that_is_full_for_some_seconds_costs_a_pause(resume: str, greedily: bool) -> None:
    """J1, R5, R8, R10: every shown word stays, in order; detached work is answered; no restart is needed."""
    with cramped_gateway(gateway__resume=resume) as (gateway, disk):
        await gateway.start()
        async with client(gateway) as somebody:
            conversations, runs = await begin(somebody)
            spare = await somebody.session()
            with disk.full(greedily=greedily):
                await judge_while_full(gateway, somebody, spare)
                await asyncio.sleep(FULL_S)
            for turn in runs:
                assert (await somebody.comes_to(turn.id)).state == "completed"
                assert numbers(await somebody.said(turn)) == f"{COUNTED}."
            cut: list[str] = []
            for turn in conversations:
                rested = await somebody.comes_to(turn.id)
                if rested.state == "interrupted":
                    assert (resume, rested.cause) == ("on_message", "disk_full")
                    # R5: the next message continues the same session.
                    await somebody.answered(await somebody.send(turn.session_id, "count to 2"))
            for turn in (*conversations, *runs):
                await look_closely(somebody, turn, cut)
            assert set(cut) == {"disk_full"}
            await somebody.verify()
            await gateway.ready()
