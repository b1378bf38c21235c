"""Set-up over HTTP: a model is found, tried and chosen, and its key goes to its own address and into the file only."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import draft
from holdfast.operations import setup
from tests.models.servers import SCENES, ModelServer
from tests.web.house import House, open_house
from tests.web.test_settings import KEY, toml

SECRET = "sk-a-key-that-nobody-else-sees"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that the machine of the tests has counts here."""
    for name in [each for each in os.environ if each.endswith("_API_KEY") or each.startswith("HOLDFAST_")]:
        monkeypatch.delenv(name)


async def post(house: House, path: str, **plan: Any) -> Any:
    answer = await house.web.post(f"/api/setup{path}", json=plan)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_model_is_found_tried_and_chosen(home: Path) -> None:
    async with ModelServer("say ready").running() as server, open_house(home, api_key=KEY) as house:
        found = await house.get("/api/setup")
        assert (found["needed"], found["model"]) == (True, {"name": "", "base_url": "", "has_key": False})
        by_name = {each["name"]: each for each in found["providers"]}
        assert (by_name["openai"]["needs_key"], by_name["openai"]["base_url"]) == (True, "")
        assert by_name["ollama"]["base_url"] == "http://127.0.0.1:11434/v1"
        assert (by_name["compatible"]["needs_address"], "anthropic" in by_name) == (True, True)
        place = {"base_url": server.url, "api_key": f" {SECRET}\n"}
        assert (await post(house, "/models", provider="openai", **place))["models"] == sorted(SCENES)
        tried = await post(house, "/test", name="openai:some-model", **place)
        assert (tried["ok"], tried["said"], tried["problem"], tried["took_ms"] >= 0) == (True, "ready", None, True)
        assert {each.headers["authorization"] for each in server.requests} == {f"Bearer {SECRET}"}
        # Trying has kept nothing.
        assert not (home / "holdfast.toml").exists()
        chosen = await post(house, "", provider="openai", name="some-model", **place)
        assert chosen["restart_needed"]
        file = home / "holdfast.toml"
        model = draft(file.read_text()).config.model
        assert (model.name, model.base_url, model.api_key) == ("openai:some-model", server.url, SECRET)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        found = await house.get("/api/setup")
        assert (found["needed"], found["model"]["has_key"]) == (True, True)
        assert SECRET not in f"{tried}{chosen}{found}"


async def test_other_formats_and_keyless_servers_are_asked_as_they_want_it(home: Path) -> None:
    async with ModelServer("say ready").running() as server, open_house(home, api_key=KEY) as house:
        tried = await post(house, "/test", name="anthropic:claude", base_url=server.url, api_key=SECRET)
        assert (tried["ok"], server.requests[-1].headers["x-api-key"]) == (True, SECRET)
        await post(house, "/models", name="anthropic:claude", base_url=server.url, api_key=SECRET)
        assert (server.requests[-1].path, server.requests[-1].headers["x-api-key"]) == ("/v1/models", SECRET)
        assert (await post(house, "/test", provider="compatible", name="qwen:8b", base_url=server.url))["ok"]
        assert (server.requests[-1].body["model"], "authorization" in server.requests[-1].headers) == ("qwen:8b", False)


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        (f'[model]\nname = "openai:a"\nbase_url = "URL"\napi_key = "{SECRET}"\n', {}),
        ('[model]\nname = "openai:a"\nbase_url = "URL"\napi_key_env = "OUR_MODEL_KEY"\n', {"OUR_MODEL_KEY": SECRET}),
        ('[model]\nname = "openai:a"\nbase_url = "URL"\n', {"OPENAI_API_KEY": SECRET}),
        (f'[providers.openai]\nbase_url = "URL"\napi_key = "{SECRET}"\n', {}),
    ],
)
async def test_a_stored_key_is_sent_to_its_own_address_and_to_no_other(
    home: Path, monkeypatch: pytest.MonkeyPatch, text: str, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    async with ModelServer("say ready").running() as own, ModelServer("say ready").running() as other:
        file = toml(home, text.replace("URL", own.url))
        before = file.read_text()
        async with open_house(home, api_key=KEY) as house:
            assert (await post(house, "/test", name="openai:b", base_url=own.url))["ok"]
            assert own.requests[-1].headers["authorization"] == f"Bearer {SECRET}"
            # A key of the model itself stays behind; one that would come along with the provider is not led there.
            stays = "api_key" in text.partition("[model]")[2]
            for path in ("/models", "/test"):
                told = await post(house, path, name="openai:b", base_url=other.url)
                assert stays or "is not meant for" in told["problem"]
            answer = await house.web.post("/api/setup", json={"name": "openai:b", "base_url": other.url})
            assert answer.status_code == (200 if stays else 400), answer.text
        assert [each.headers.get("authorization") for each in other.requests] == ([None, None] if stays else [])
        assert (SECRET in file.read_text(), SECRET in answer.text) == (SECRET in before and not stays, False)


async def test_no_redirect_is_followed_with_a_key(home: Path) -> None:
    async with ModelServer("say ready").running() as other, open_house(home, api_key=KEY) as house:
        async with ModelServer(f"status 307 location {other.url}/chat/completions").running() as server:
            tried = await post(house, "/test", name="openai:a", base_url=server.url, api_key=SECRET)
        assert (tried["ok"], "has moved" in tried["problem"], other.requests) == (False, True, [])


@pytest.mark.parametrize("script", [f"say it is {SECRET}", f"says 400 bad key {SECRET}", f"says 401 {SECRET}"])
async def test_a_key_that_a_server_repeats_is_told_to_nobody(
    home: Path, caplog: pytest.LogCaptureFixture, script: str
) -> None:
    caplog.set_level(logging.DEBUG, "holdfast")
    async with ModelServer(script).running() as server, open_house(home, api_key=KEY) as house:
        plan = {"name": "openai:a", "base_url": server.url, "api_key": SECRET}
        tried = await post(house, "/test", **plan)
        assert (tried["ok"], bool(tried["problem"])) == ("say it" in script, "say it" not in script)
        wrong = await house.web.post("/api/setup", json={**plan, "name": f"{SECRET}:a"})
        assert wrong.status_code == 422
        await house.stop()
    assert SECRET not in f"{tried}{wrong.text}{caplog.text}"
    assert [each for each in home.rglob("*") if each.is_file() and SECRET.encode() in each.read_bytes()] == []


@pytest.mark.parametrize(
    ("plan", "status", "told"),
    [
        ({}, 422, "must be a provider and a model"),
        ({"name": "opnai:gpt-5", "api_key": SECRET}, 422, "did you mean openai?"),
        ({"name": "openai:gpt-5"}, 422, "OPENAI_API_KEY"),
        ({"name": "ollama:a", "base_url": "file:///etc/passwd"}, 422, "model.base_url"),
        ({"name": "ollama:a", "base_url": "gopher://127.0.0.1"}, 422, "model.base_url"),
        ({"name": "openai:a", "api_key_env": "NOT_SET_ANYWHERE"}, 422, "NOT_SET_ANYWHERE"),
        ({"name": "ollama:a", "api_key": "a" * 3_000}, 400, "2000 characters"),
    ],
)
async def test_what_could_not_answer_is_not_chosen(home: Path, plan: dict[str, Any], status: int, told: str) -> None:
    async with open_house(home, api_key=KEY) as house:
        answer = await house.web.post("/api/setup", json=plan)
        assert (answer.status_code, told in answer.json()["error"]["message"]) == (status, True), answer.text
        if status == 422:
            tried = await post(house, "/test", **plan)
            assert (tried["ok"], told in tried["problem"], bool(tried["hint"])) == (False, True, True)
        assert not (home / "holdfast.toml").exists()


async def test_a_server_that_hangs_is_given_up(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "TRIAL_TIMEOUT_S", 0.3)
    async with ModelServer("hang").running() as server, open_house(home, api_key=KEY) as house:
        tried = await post(house, "/test", name="ollama:a", base_url=server.url)
        assert (tried["ok"], tried["problem"]) == (False, "it did not answer in time")
        nobody = await post(house, "/models", provider="ollama", base_url="http://127.0.0.1:1/v1")
        assert (nobody["models"], "cannot reach" in nobody["problem"]) == ([], True)


async def test_what_the_environment_decides_is_not_chosen_here(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_MODEL__NAME", "ollama:a")
    async with open_house(home, api_key=KEY) as house:
        answer = await house.web.post("/api/setup", json={"name": "ollama:b"})
        assert (answer.status_code, "HOLDFAST_MODEL__NAME" in answer.text) == (409, True)


async def test_only_the_operator_sets_a_gateway_up(home: Path) -> None:
    async with open_house(home) as house:
        answers = [await house.web.get("/api/setup")]
        answers += [await house.web.post(f"/api/setup{path}", json={}) for path in ("", "/models", "/test")]
        assert {(each.status_code, each.json()["error"]["code"]) for each in answers} == {(403, "operator_only")}
