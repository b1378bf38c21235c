"""Settings over HTTP: all of them are told, none of their secrets, and only what a start would take gets into the file."""

from __future__ import annotations

import asyncio
import logging
import stat
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast.config import Config, draft, is_secret
from holdfast.config.inventory import inventory
from holdfast.config.secrecy import held
from holdfast.core.redaction import Redaction
from holdfast.errors import Overridden, Rejected, Stale
from holdfast.operations.settings import Origin, Settings, SettingsChange
from holdfast.passwords import matches
from tests.web.house import House, open_house

KEY = "a-key-for-the-operator"
FILE = """\
# How we like it.
[gateway]
busy = "steer"  # people are impatient
"""
SECRETS = """\
[server]
api_key = "first-secret-of-9"
password = "scrypt$32768$AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
[store]
url = "postgresql://somebody:third-secret-of-9@127.0.0.1/none"
[model]
name = "openai:gpt-5"
base_url = "https://fourth-secret-of-9@models.example/v1?key=fifth-secret-of-9"
api_key = "sixth-secret-of-9"
[providers.mine]
base_url = "https://models.example/v1"
api_key = "seventh-secret-of-9"
[mcp.files]
command = ["files", "--token", "eighth-secret-of-9"]
env = { FILES_TOKEN = "eighth-secret-of-9", LANG = "C.UTF-8" }
[channels.webhook.routes.alerts]
secret = "ninth-secret-of-9"
"""


def toml(home: Path, text: str = FILE) -> Path:
    file = home / "holdfast.toml"
    file.write_text(text)
    file.chmod(0o600)
    return file


async def listed(house: House) -> dict[str, Any]:
    return {each["key"]: each for each in (await house.get("/api/settings"))["items"]}


async def patch(house: House, changes: dict[str, Any], **more: Any) -> httpx2.Response:
    return await house.web.patch("/api/settings", json={"changes": changes, **more})


async def test_every_setting_is_told_with_what_it_means_and_where_it_comes_from(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_GATEWAY__MAX_RUNNING", "7")
    file = toml(home)
    async with open_house(home, api_key=KEY) as house:
        answer = await house.get("/api/settings")
        assert (answer["file"], answer["restart_needed"], answer["problem"]) == (str(file), False, None)
        found = await listed(house)
    busy, running, host = found["gateway.busy"], found["gateway.max_running"], found["server.host"]
    assert (busy["value"], busy["default"], busy["source"], busy["choices"][1]) == ("steer", "queue", "file", "interrupt")
    assert (running["value"], running["source"], host["value"], host["source"]) == (7, "environment", "127.0.0.1", "default")
    assert found["sessions.daily_at"]["value"] == "04:00"
    assert found["model.api_key"]["value"] is None
    assert {"server.port", "tools.terminal.approval", "channels.url.allow_hosts", "memory.idle_minutes"} <= found.keys()
    assert all(each["doc"].endswith(".") for each in found.values())


async def test_of_a_secret_only_that_there_is_one(home: Path) -> None:
    toml(home, SECRETS)
    found = draft(SECRETS).config
    assert {path for path in held(found) if not is_secret(path)} == {("store", "url"), ("model", "base_url")}
    async with open_house(home, api_key=KEY) as house:
        answer = await house.web.get("/api/settings")
        assert (answer.status_code, "secret-of-9" in answer.text) == (200, False)
        items = await listed(house)
    values = {key: items[key]["value"] for key in ("server.api_key", "model.api_key", "mcp.files.env", "memory.api_key")}
    assert values == {"server.api_key": "set", "model.api_key": "set", "mcp.files.env": "set", "memory.api_key": None}
    address = items["model.base_url"]
    assert (address["value"], address["secret"]) == ("https://models.example/v1", True)
    assert (items["store.url"]["value"], items["store.url"]["secret"]) == ("postgresql://127.0.0.1/none", True)
    assert (items["providers.mine.base_url"]["editable"], items["model.name"]["editable"]) == (False, True)


async def test_what_is_changed_stands_in_the_file_and_nothing_else_does(home: Path) -> None:
    file = toml(home)
    file.chmod(0o644)
    async with open_house(home, api_key=KEY) as house:
        answer = await patch(house, {"gateway.busy": "interrupt", "tools.disabled": ["terminal"], "model.retries": None})
        assert (answer.status_code, answer.json()["restart_needed"]) == (200, True), answer.text
        assert file.read_text() == FILE.replace('"steer"', '"interrupt"') + '\n[tools]\ndisabled = ["terminal"]\n'
        assert stat.S_IMODE(file.stat().st_mode) == 0o644
        # Only a secret has to be kept from others.
        assert (await patch(house, {"memory.api_key": "a-secret-of-ours"})).status_code == 200
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        back = await patch(house, {"gateway.busy": "steer", "tools.disabled": None, "memory.api_key": None})
        assert (back.status_code, back.json()["restart_needed"]) == (200, False)
        assert draft(file.read_text()).config == draft(FILE).config
        assert [each.name for each in home.iterdir() if each.name.startswith(".")] == []


async def test_a_file_that_is_not_there_is_made_for_its_owner_alone(home: Path) -> None:
    async with open_house(home, api_key=KEY) as house:
        assert (await patch(house, {"gateway.busy": "steer"})).status_code == 200
        file = home / "holdfast.toml"
        assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ('[gateway]\nbusy = "steer"\n', 0o600)


@pytest.mark.parametrize(
    ("changes", "status", "key", "told"),
    [
        ({"gateway.bussy": "steer"}, 422, "gateway.bussy", "did you mean gateway.busy?"),
        ({"gateway.busy": "stear"}, 422, "gateway.busy", "must be one of 'queue', 'interrupt', 'steer', 'reject'"),
        ({"gateway.busy": ["steer"]}, 422, "gateway.busy", "must be one of"),
        ({"tools.disabled": [["deep"]]}, 422, "tools.disabled", "a list or a table of these"),
        ({"tools.disabled": ["terminall"]}, 422, "tools.disabled", "did you mean terminal?"),
        ({"server.host": "0.0.0.0"}, 422, "server.host", "server.api_key or server.password"),
        ({"model.name": "opnai:gpt-5"}, 422, "model.name", "did you mean openai?"),
        ({"store.url": "postgresql://127.0.0.1:1/none"}, 422, "store.url", "127.0.0.1:1"),
        ({"agent.persona": "nobody.md"}, 422, "agent.persona", "there is no file"),
        ({"providers.mine.base_url": "https://x.example"}, 422, "providers.mine.base_url", "by hand"),
        ({"gateway.max_running": 3}, 409, None, "HOLDFAST_GATEWAY__MAX_RUNNING"),
        ({"gateway.on_crash": "suspend", "gateway.stall_timeout": -1}, 422, "gateway.stall_timeout", "not negative"),
    ],
)
async def test_what_a_start_would_not_take_changes_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], status: int, key: str | None, told: str
) -> None:
    monkeypatch.setenv("HOLDFAST_GATEWAY__MAX_RUNNING", "7")
    file = toml(home)
    before = file.stat()
    async with open_house(home):
        operator = httpx2.AsyncHTTPTransport(uds=str(home / "gateway.sock"))
        async with httpx2.AsyncClient(transport=operator, base_url="http://localhost", timeout=20) as web:
            answer = await web.patch("/api/settings", json={"changes": changes})
    error = answer.json()["error"]
    assert (answer.status_code, error.get("key"), told in error["message"]) == (status, key, True), answer.text
    assert (file.read_text(), file.stat().st_ino, bool(error["hint"])) == (FILE, before.st_ino, True)


async def test_a_port_that_is_taken_is_not_moved_to(home: Path) -> None:
    toml(home)
    async with open_house(home, api_key=KEY) as house:
        taken = httpx2.URL(house.url).port
        answer = await patch(house, {"server.port": taken})
        assert (answer.status_code, "cannot listen" in answer.text) == (422, True)


async def test_changes_are_made_of_what_was_read_or_not_at_all(home: Path) -> None:
    file = toml(home)
    async with open_house(home, api_key=KEY) as house:
        base = (await house.get("/api/settings"))["revision"]
        # Two at once, of the same file: the second finds that it is another one.
        both = await asyncio.gather(
            patch(house, {"gateway.busy": "queue"}, base=base), patch(house, {"model.retries": 1}, base=base)
        )
        assert sorted(each.status_code for each in both) == [200, 409]
        # Whoever says nothing of what they have read has both.
        both = await asyncio.gather(patch(house, {"gateway.busy": "reject"}), patch(house, {"model.retries": 2}))
        assert [each.status_code for each in both] == [200, 200]
    found = draft(file.read_text()).config
    assert (found.gateway.busy, found.model.retries) == ("reject", 2)


async def test_a_file_that_was_broken_by_hand_is_told_and_can_be_mended(home: Path) -> None:
    file = toml(home)
    async with open_house(home, api_key=KEY) as house:
        file.write_text('[gateway]\nbusy = "stear"\n')
        answer = await house.get("/api/settings")
        assert ("gateway.busy" in answer["problem"], answer["restart_needed"]) == (True, False)
        assert (await patch(house, {"gateway.busy": "steer"})).status_code == 200
        file.write_text("[gateway\n")
        assert "line 1" in (await house.get("/api/settings"))["problem"]
        assert (await patch(house, {"gateway.busy": "steer"})).status_code == 422


async def test_only_the_operator_reads_and_changes_them(home: Path) -> None:
    async with open_house(home) as house:
        for answer in (await house.web.get("/api/settings"), await patch(house, {})):
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "operator_only")


async def test_a_secret_that_is_set_is_in_the_file_and_nowhere_else(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    secret = "hunter2-9eb18f493f8ec135d9eb2dad"
    caplog.set_level(logging.DEBUG)
    async with open_house(home, api_key=KEY) as house:
        good = await patch(house, {"model.api_key": secret})
        bad = await patch(house, {"model.api_key": secret, "model.name": f"{secret}:x"})
        assert (good.status_code, bad.status_code) == (200, 422)
        session = await house.session()
        receipt = await house.send(session, f"echo: {secret}")
        await house.settled(receipt["turn_id"])
        assert secret not in good.text + bad.text + str(await house.get(f"/api/sessions/{session}/messages"))
        await house.stop()
    holders = [each.name for each in home.rglob("*") if each.is_file() and secret.encode() in each.read_bytes()]
    assert (holders, secret in caplog.text) == (["holdfast.toml"], False)


async def test_of_a_password_only_its_hash_is_written(home: Path) -> None:
    async with open_house(home, api_key=KEY) as house:
        assert (await patch(house, {"server.password": "tide and time"})).status_code == 200
        kept = draft((home / "holdfast.toml").read_text()).config.server.password
        assert (matches(kept, "tide and time"), "tide" in kept) == (True, False)
        # A hash stays what it is.
        assert (await patch(house, {"server.password": kept})).status_code == 200
        assert draft((home / "holdfast.toml").read_text()).config.server.password == kept
        for weak in ("short", "Password123"):
            assert (await patch(house, {"server.password": weak})).status_code == 422
        assert (await patch(house, {"server.password": None})).status_code == 200
        assert "password" not in (home / "holdfast.toml").read_text()


def test_no_setting_is_without_a_meaning() -> None:
    found = list(inventory(Config()))
    assert len({each.key for each in found}) == len(found) > 70
    assert all(each.doc[0].isupper() and each.doc.endswith(".") for each in found)


async def unrehearsed(_config: Config) -> None:
    """Take every configuration."""


async def test_what_the_command_line_decides_the_file_does_not(home: Path) -> None:
    origin = Origin(file=toml(home), arguments={"server.port": 9000})
    settings = Settings(origin, unrehearsed, Redaction(), {})
    (port,) = [each for each in (await settings.view()).items if each.key == "server.port"]
    assert (port.value, port.default, port.source) == (9000, 8420, "arguments")
    with pytest.raises(Overridden, match="without --port"):
        await settings.change(SettingsChange(changes={"server.port": 9001}))


async def test_whoever_edits_the_file_meanwhile_keeps_what_they_wrote(home: Path) -> None:
    file = toml(home)

    async def edit(_config: Config) -> None:
        file.write_text("# mine now\n")

    settings = Settings(Origin(file=file), edit, Redaction(), {})
    with pytest.raises(Stale):
        await settings.change(SettingsChange(changes={"gateway.busy": "queue"}))
    assert file.read_text() == "# mine now\n"


async def test_a_link_stays_one_and_what_cannot_be_written_says_so(home: Path) -> None:
    (home / "dotfiles").mkdir()
    kept, file = home / "dotfiles" / "ours.toml", home / "holdfast.toml"
    kept.write_text(FILE)
    file.symlink_to(kept)
    await Settings(Origin(file=file), unrehearsed, Redaction(), {}).change(SettingsChange(changes={"gateway.busy": "queue"}))
    assert (file.is_symlink(), kept.read_text()) == (True, FILE.replace("steer", "queue"))
    nowhere = Settings(Origin(file=home / "gone" / "holdfast.toml"), unrehearsed, Redaction(), {})
    with pytest.raises(Rejected, match="cannot be written: No such file"):
        await nowhere.change(SettingsChange(changes={"gateway.busy": "queue"}))
