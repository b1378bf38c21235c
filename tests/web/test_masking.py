"""S8, S12: known secrets reach no row and no answer, and nobody finds one out by what is masked."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import httpx2
import pytest

from holdfast.config import ModelConfig
from holdfast.core.redaction import MASK, is_unguessable
from holdfast.operations.keys import KeyPlan
from holdfast.operations.webhooks import RoutePlan, Signing
from holdfast.passwords import hashed
from tests.web.house import House, open_house

# As providers make them up.
SECRET = "sk-9eb18f493f8ec135d9eb2dad817c369b"
# As people make them up.
CHOSEN = "a-key-for-the-operator"
PASSWORD = "tide and time"
GUESSES = 20_000


def tenant(house: House, key: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=house.url, verify=False, timeout=30, headers={"authorization": f"Bearer {key}"})


@pytest.mark.parametrize("secret", [CHOSEN, PASSWORD])
async def test_a_tenant_learns_no_key_and_no_password_by_guessing(home: Path, secret: str) -> None:
    """S8: of many guesses in one message, none is masked, not even the right one."""
    password = hashed(PASSWORD, bytes(16))
    async with open_house(home, api_key=CHOSEN, password=password) as house:
        key = (await house.services.keys.create(KeyPlan(name="bob", owner="bob"))).key
        guesses = "\n".join([*(f"guess {number}" for number in range(GUESSES)), secret])
        async with tenant(house, key) as bob:
            session = (await bob.post("/api/sessions", json={"title": secret})).json()["id"]
            sent = await bob.post(f"/api/sessions/{session}/messages", json={"text": guesses})
            assert sent.status_code == 202, sent.text
            seen = (await bob.get(f"/api/sessions/{session}/messages")).text
            seen += (await bob.get(f"/api/sessions/{session}")).text
            seen += (await bob.get(f"/api/sessions/{secret}")).text
        assert secret in seen
        assert MASK not in seen


@pytest.mark.parametrize(
    "guessable",
    [
        PASSWORD, CHOSEN, "correct horse battery staple", "correcthorsebatterystaple", "Summer2026!", "hunter2" * 10,
        "a" * 100, "0" * 20, "1234567890123456", "qwertyuiopasdfghjkl", "", "München-an-der-Isar",
    ],
)  # fmt: skip
def test_what_people_make_up_could_be_guessed_and_is_not_masked(guessable: str) -> None:
    assert not is_unguessable(guessable)


@pytest.mark.parametrize(
    "random",
    [
        SECRET, "9eb18f493f8ec135d9eb2dad817c369b", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "hf_01j_uJ8cGxbEXSXRLTAbkXYoDhdS6TKqnuxy3q3Y1MmsCBY",
    ],
)  # fmt: skip
def test_what_programs_make_up_could_not_and_is(random: str) -> None:
    assert is_unguessable(random)


async def test_a_secret_is_masked_in_every_field_and_every_refusal(home: Path) -> None:
    """S12: titles, keys, names of jobs, memories, grants, and what was looked for in vain."""
    async with open_house(home, model=ModelConfig(api_key=SECRET)) as house:
        session = await house.post("/api/sessions", {"key": f"work {SECRET}", "title": f"about {SECRET}"}, 201)
        await house.web.patch(f"/api/sessions/{session['id']}", json={"title": f"now {SECRET}"})
        job = {"name": f"job {SECRET}"[:60], "schedule": "0 7 * * *", "prompt": f"say {SECRET}"}
        await house.post("/api/jobs", job, 201)
        await house.web.post("/api/memory", json={"text": f"The harbour is {SECRET}."})
        sent = await house.send(session["id"], f"count to 1, {SECRET}", **{"Idempotency-Key": f"key-{SECRET}"})
        await house.settled(sent["turn_id"])
        # Who asks by the same key finds the same session, and the same message is the same turn.
        found = (await house.get("/api/sessions", key=f"work {SECRET}"))["items"]
        assert [(each["id"], each["title"], each["key"]) for each in found] == [
            (session["id"], f"now {MASK}", f"work {MASK}")
        ]
        again = await house.send(session["id"], f"count to 1, {SECRET}", **{"Idempotency-Key": f"key-{SECRET}"})
        assert again["turn_id"] == sent["turn_id"]
        for path in ("/api/sessions", "/api/jobs", "/api/memory", f"/api/sessions/{session['id']}/messages"):
            answer = await house.web.get(path)
            assert (answer.status_code, SECRET in answer.text) == (200, False), path
        for path in (f"/api/sessions/{SECRET}", f"/api/turns/{SECRET}", f"/api/jobs/{SECRET}", f"/webhooks/{SECRET}"):
            answer = await house.web.get(path) if path.startswith("/api") else await house.web.post(path, json={})
            assert (answer.status_code, SECRET in answer.text) == (404, False), path
            assert answer.headers["content-length"] == str(len(answer.content))
        await house.stop()
    for table, value in _cells(home / "holdfast.db"):
        assert SECRET not in str(value), table


def _cells(file: Path) -> list[tuple[str, object]]:
    with sqlite3.connect(file) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return [
            (table, cell)
            for table in tables
            if not table.startswith("passages")
            for row in database.execute(f"SELECT * FROM {table}")
            for cell in row
        ]


async def test_the_secret_of_a_route_is_kept_as_it_is_and_shown_nowhere_else(home: Path) -> None:
    """What signs deliveries has to be known; the route that is added still works after a restart."""
    async with open_house(home) as house:
        made = await house.services.webhooks.add(RoutePlan(name="alerts", prompt="count to 1"))
        session = await house.session(title=made.secret)
        assert (await house.get(f"/api/sessions/{session}"))["title"] == MASK
        await house.stop()
    async with open_house(home) as house:
        signed = await house.services.webhooks.sign("alerts", Signing(body="{}"))
        answer = await house.web.post("/webhooks/alerts", content=signed.body, headers=dict(signed.headers))
        assert answer.status_code == 202, answer.text
