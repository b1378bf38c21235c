"""People and accounts of chat platforms over HTTP, as the page asks for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.channels.telegram.config import TelegramSettings
from holdfast.clock import SystemClock
from holdfast.config import ChannelsConfig
from holdfast.core.chats import Place
from holdfast.core.people import PAIRING_MS, Asked, Pairing, code_digest
from holdfast.drill.telegram.server import TOKEN, telegram
from holdfast.errors import Stale
from holdfast.ids import NodeId, new_pairing_id
from holdfast.operations.people import Approval
from holdfast.store import people
from holdfast.store.opening import open_store
from holdfast.store.store import Store
from tests.web.house import open_house
from tests.web.test_keys import KEY, made, status_with

CODE = "ABCD2345"
# Its own account is not received for here.
ACCOUNTS = ChannelsConfig(accounts={"telegram": TelegramSettings(token=TOKEN, enabled=False, allow=("1",))})
PERSON = {"person": "telegram:7", "account": "telegram", "user_id": "7", "user_name": "Ann", "owner": "telegram:7"}


async def asked(home: Path, user: str = "7", code: str = CODE) -> str:
    """Let somebody have asked to be let in, before the gateway starts."""
    home.mkdir(exist_ok=True)
    store = await open_store("sqlite", home)
    now = SystemClock().now_ms()
    id_ = new_pairing_id(now)
    pairing = Pairing(
        id=id_,
        account="telegram",
        user_id=user,
        user_name="Ann",
        place=Place(chat_id=user),
        code_digest=code_digest(id_, code),
        asked_at=now,
        expires_at=now + PAIRING_MS,
        message="hello, may I?",
    )
    assert await store.database.write(lambda: people.ask(pairing)) is Asked.NEW
    await store.close()
    return id_


async def received(store: Store, at: int) -> None:
    """Let the account of Telegram have received."""
    lease = await store.channels.claim("telegram", "telegram", NodeId("nod_x"))
    assert lease
    await store.channels.stage(lease, [], None, at)


def open_chats(home: Path, **more: Any) -> Any:
    return open_house(home, channels=ACCOUNTS, api_key=KEY, **more)


@pytest.mark.parametrize("by", ["id", "code"])
async def test_a_person_is_let_in_from_the_page(home: Path, by: str) -> None:
    """SECURITY 13"""
    id_ = await asked(home)
    async with open_chats(home) as house:
        (request,) = (await house.get("/api/pairings"))["items"]
        assert (request["id"], request["message"], request["user_name"]) == (id_, "hello, may I?", "Ann")
        assert set(request) == {"id", "account", "user_id", "user_name", "asked_at", "expires_at", "message"}
        assert (await house.get("/api/status"))["pairings"] == 1
        name = id_ if by == "id" else CODE.lower()
        for new in (True, False):
            settled = await house.post(f"/api/pairings/{name}/approve", {"role": "trusted"})
            assert settled == {"id": id_, "person": "telegram:7", "choice": "trusted", "new": new}
        assert (await house.get("/api/pairings"))["items"] == []
        assert (await house.get("/api/status"))["pairings"] == 0
        person, operator = (await house.get("/api/people"))["items"]
        assert {**person, "role": "trusted"} | PERSON == person
        assert (operator["person"], operator["role"], operator["owner"]) == ("telegram:1", "operator", "local")
        answer = await house.web.post(f"/api/pairings/{name}/deny", json={})
        assert (answer.status_code, "settled already: trusted" in answer.text) == (409, True)


async def test_a_person_is_refused_or_let_in_as_a_guest(home: Path) -> None:
    await asked(home, "7")
    await asked(home, "8", "WXYZ6789")
    async with open_chats(home) as house:
        assert (await house.services.pairings.deny(CODE)).choice == "deny"
        # Nothing said about the role is the least that there is.
        assert (await house.post("/api/pairings/WXYZ6789/approve"))["choice"] == "guest"
        with pytest.raises(Stale):
            await house.services.pairings.approve(CODE, Approval())
        people = (await house.get("/api/people"))["items"]
        assert [(each["person"], each["role"]) for each in people] == [("telegram:8", "guest"), ("telegram:1", "operator")]


async def test_a_role_is_changed_and_taken_away(home: Path) -> None:
    """The tools of this machine go with it, in the gateway that runs."""
    await asked(home)
    async with open_chats(home) as house:
        await house.post(f"/api/pairings/{CODE}/approve", {"role": "guest"})
        answer = await house.web.patch("/api/people/telegram:7", json={"role": "trusted"})
        assert (answer.status_code, answer.json()["role"]) == (200, "trusted")
        for _ in range(2):
            answer = await house.web.delete("/api/people/telegram%3A7")
            assert (answer.status_code, answer.json()) == (200, {"revoked": "telegram:7"})
        assert [each["person"] for each in (await house.get("/api/people"))["items"]] == ["telegram:1"]
        assert (await house.web.patch("/api/people/telegram:7", json={"role": "guest"})).status_code == 404
        assert (await house.web.delete("/api/people/telegram:9")).status_code == 404


async def test_who_stands_in_the_configuration_is_changed_there(home: Path) -> None:
    async with open_chats(home) as house:
        for answer in (
            await house.web.delete("/api/people/telegram:1"),
            await house.web.patch("/api/people/telegram:1", json={"role": "guest"}),
        ):
            assert (answer.status_code, "channels.telegram.allow" in answer.text) == (400, True)


@pytest.mark.parametrize("body", [{"role": "root"}, {"role": 7}, []])
async def test_no_other_role_is_taken(home: Path, body: object) -> None:
    await asked(home)
    async with open_chats(home) as house:
        assert (await house.web.post(f"/api/pairings/{CODE}/approve", json=body)).status_code == 400
        assert len((await house.get("/api/pairings"))["items"]) == 1


async def test_a_guessed_code_lets_nobody_in(home: Path) -> None:
    await asked(home)
    async with open_chats(home) as house:
        for guess in ("ABCD2346", "pair_1", "%2e%2e", CODE[:7]):
            assert (await house.web.post(f"/api/pairings/{guess}/approve", json={})).status_code == 404


async def test_only_the_operator_sees_and_decides(home: Path) -> None:
    """SECURITY 13, 14"""
    id_ = await asked(home)
    async with open_chats(home) as house:
        key = await made(house)
        paths = ["/api/people", "/api/pairings", "/api/channels", "/api/channels/telegram"]
        asks = [
            *(("GET", path) for path in paths),
            ("POST", f"/api/pairings/{id_}/approve"),
            ("POST", f"/api/pairings/{id_}/deny"),
            ("DELETE", "/api/people/telegram:7"),
            ("PATCH", "/api/people/telegram:7"),
            ("POST", "/api/channels/try"),
            ("POST", "/api/channels/telegram/test"),
        ]
        assert [await status_with(house, key, path, method) for method, path in asks] == [403] * len(asks)
        assert len((await house.services.pairings.list()).items) == 1


async def test_accounts_are_shown_without_their_tokens(home: Path) -> None:
    """K1"""
    async with open_chats(home) as house:
        answer = await house.get("/api/channels")
        (row,) = answer["items"]
        assert {
            each: row[each] for each in ("name", "kind", "state", "last_receive_at", "problem", "pending_deliveries")
        } == {
            "name": "telegram",
            "kind": "telegram",
            "state": "stopped",
            "last_receive_at": None,
            "problem": None,
            "pending_deliveries": 0,
        }
        assert TOKEN not in str(answer)
        assert await house.get("/api/channels/telegram") == row
        assert (await house.web.get("/api/channels/none")).status_code == 404


async def test_when_an_account_last_received_is_a_metric(home: Path) -> None:
    """The time of the last receive is the evidence that an account works."""
    home.mkdir(exist_ok=True)
    store = await open_store("sqlite", home)
    await received(store, 1_700_000_000_500)
    await store.close()
    async with open_chats(home) as house:
        found = (await house.web.get("/metrics")).text.splitlines()
        assert 'holdfast_channel_last_receive_timestamp_seconds{account="telegram"} 1700000000.5' in found
        # It is switched off.
        assert 'holdfast_channel_connected{account="telegram",state="stopped"} 0' in found


async def test_a_token_is_tried_and_not_kept(home: Path) -> None:
    """What the page does before it writes anything."""
    async with telegram() as server, open_house(home, api_key=KEY) as house:
        server.add_bot(TOKEN, "Harbour", "harbour_bot")
        plan = {"kind": "telegram", "settings": {"token": TOKEN, "api_base": server.url}}
        trial = await house.post("/api/channels/try", plan)
        assert (trial["ok"], trial["bot_name"], trial["bot_id"]) == (True, "Harbour", TOKEN.partition(":")[0])
        wrong = {**plan["settings"], "token": f"{TOKEN[:-1]}9"}
        trial = await house.post("/api/channels/try", {**plan, "settings": wrong})
        assert (trial["ok"], trial["bot_name"]) == (False, None)
        assert "token" in trial["hint"]
        assert wrong["token"] not in str(trial)
        assert (await house.get("/api/channels"))["items"] == []
        no_setting = {"kind": "telegram", "settings": {"tokn": "x"}}
        no_token = {"kind": "telegram", "settings": {"token": "x"}}
        for bad in ({"kind": "owl"}, no_setting, no_token):
            trial = await house.post("/api/channels/try", bad)
            assert (trial["ok"], bool(trial["problem"])) == (False, True)


@pytest.mark.parametrize(("name", "problem"), [("web", "other messages go to web:"), ("my bot", "letters, digits")])
async def test_a_name_that_no_account_can_have_is_refused_before_anything_is_asked(
    home: Path, name: str, problem: str
) -> None:
    async with telegram() as server, open_house(home, api_key=KEY) as house:
        plan = {"kind": "telegram", "name": name, "settings": {"token": TOKEN, "api_base": server.url}}
        trial = await house.post("/api/channels/try", plan)
        assert (trial["ok"], problem in trial["problem"], trial["hint"]) == (False, True, "correct it, then try again")
        assert server.calls == []


async def test_a_configured_account_is_tried_with_its_own_token(home: Path) -> None:
    async with telegram() as server:
        server.add_bot(TOKEN, "Harbour", "harbour_bot")
        settings = TelegramSettings(token=TOKEN, api_base=server.url, enabled=False)
        async with open_house(home, channels=ChannelsConfig(accounts={"work": settings}), api_key=KEY) as house:
            # Without a kind, the name of an account is its platform.
            assert not (await house.post("/api/channels/work/test"))["ok"]
        settings = TelegramSettings(kind="telegram", token=TOKEN, api_base=server.url, enabled=False)
        async with open_house(home, channels=ChannelsConfig(accounts={"work": settings}), api_key=KEY) as house:
            trial = await house.post("/api/channels/work/test")
            assert (trial["ok"], trial["bot_name"]) == (True, "Harbour")
            assert (await house.web.post("/api/channels/none/test", json={})).status_code == 404
