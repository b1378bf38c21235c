"""`holdfast pair` and `holdfast channels`, as a user types them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.core.sessions import Source
from holdfast.ids import new_session_id
from holdfast.store.opening import open_store
from tests.cli.terminal import Terminal
from tests.web.test_people import CODE, asked

CONFIG = """
[channels.telegram]
token = "7000001:AAExampleTokenOfTheScriptedServer_0"
allow = ["1"]
enabled = false
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    home = tmp_path / "home"
    home.mkdir()
    (home / "holdfast.toml").write_text(CONFIG)
    (home / "holdfast.toml").chmod(0o600)
    return Terminal(home)


def test_a_person_is_let_in_with_the_code_that_they_were_shown(terminal: Terminal) -> None:
    """SECURITY 13: the list never shows a code."""
    id_ = asyncio.run(asked(terminal.home))
    shown = terminal.type("pair", "list").stdout
    assert ("Ann" in shown, "hello, may I?" in shown, "telegram:1" in shown, CODE in shown) == (True, True, True, False)
    listed = terminal.read("pair", "list")
    assert [each["id"] for each in listed["items"]] == [id_]
    assert terminal.type("pair", "approve", "ABCD2346").exit_code == 2
    done = terminal.type("pair", "approve", CODE, "--as", "trusted")
    assert (done.exit_code, "telegram:7 is let in, with the tools of this machine" in done.stdout) == (0, True)
    assert terminal.read("pair", "approve", CODE, "--as", "trusted")["new"] is False
    assert terminal.type("pair", "deny", CODE).exit_code != 0
    listed = terminal.read("pair", "list")
    assert [(each["person"], each["role"]) for each in listed["people"]] == [
        ("telegram:7", "trusted"),
        ("telegram:1", "operator"),
    ]
    assert terminal.read("pair", "role", "telegram:7", "guest")["role"] == "guest"
    assert terminal.read("pair", "revoke", "telegram:7") == {"revoked": "telegram:7"}
    done = terminal.type("pair", "revoke", "telegram:1")
    assert (done.exit_code, "channels.telegram.allow" in done.output) == (2, True)


@pytest.mark.parametrize(("chosen", "role"), [((), "guest"), (("--as", "me"), "operator")])
def test_a_person_is_a_guest_unless_more_is_said(terminal: Terminal, chosen: tuple[str, ...], role: str) -> None:
    asyncio.run(asked(terminal.home))
    terminal.read("pair", "approve", CODE, *chosen)
    assert terminal.read("pair", "list")["people"][0]["role"] == role


def test_a_refused_person_is_in_no_list(terminal: Terminal) -> None:
    asyncio.run(asked(terminal.home))
    done = terminal.type("pair", "deny", CODE)
    assert (done.exit_code, "no new code for a week" in done.stdout) == (0, True)
    listed = terminal.read("pair", "list")
    assert (listed["items"], [each["person"] for each in listed["people"]]) == ([], ["telegram:1"])


def test_accounts_are_listed_and_shown_without_a_gateway(terminal: Terminal) -> None:
    """K1: and without their tokens."""
    asyncio.run(asked(terminal.home))
    (row,) = terminal.read("channels", "list")["items"]
    assert (row["name"], row["state"], row["enabled"]) == ("telegram", "stopped", False)
    shown = terminal.type("channels", "show", "telegram").stdout + terminal.type("channels", "list").stdout
    assert ("disabled" in shown, "AAExample" in shown) == (True, False)
    assert terminal.type("channels", "show", "work").exit_code == 2


def test_sessions_are_listed_by_account(terminal: Terminal) -> None:
    """Two accounts of one platform are two channels."""

    async def talked() -> None:
        store = await open_store("sqlite", terminal.home)
        for number, (account, chat) in enumerate((("telegram", "Ann"), ("work", "Crew"), ("work", "Boss"))):
            source = Source(chat_id=str(number), chat_name=chat, chat_type="private", user=str(number), user_name=chat)
            key, at = f"{account}:{number}", 1_000 + number
            await store.sessions.open("local", key, account, new_session_id(at), at, source)
        await store.close()

    asyncio.run(talked())
    listed = terminal.read("sessions", "list", "--channel", "work")["items"]
    assert [(each["channel"], each["source"]["chat_name"], each["label"]) for each in listed] == [
        ("work", "Boss", "Boss"),
        ("work", "Crew", "Crew"),
    ]
    assert [each["key"] for each in terminal.read("sessions", "list", "--channel", "telegram")["items"]] == ["telegram:0"]


def test_a_wrong_account_is_told_with_its_line(terminal: Terminal) -> None:
    file = terminal.home / "holdfast.toml"
    file.write_text(CONFIG.replace("allow", "alow"))
    done = terminal.type("channels", "list")
    assert done.exit_code == 78
    assert f"{file}:4: channels.telegram.alow: unknown key; did you mean allow?" in done.output
