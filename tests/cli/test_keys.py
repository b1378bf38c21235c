"""`holdfast keys` and `holdfast link`, as a user types them."""

from __future__ import annotations

import re
from pathlib import Path

import httpx2
import pytest

from holdfast.passwords import matches
from tests.cli.terminal import Terminal
from tests.cli.test_gateway import serving


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


def test_keys_are_made_listed_and_revoked_while_no_gateway_runs(terminal: Terminal) -> None:
    """SECURITY 3: shown once; what is listed opens nothing."""
    done = terminal.type("keys", "create", "laptop")
    key, *rest = done.stdout.splitlines()
    assert (done.exit_code, key.startswith("hf_"), "first one" in " ".join(rest)) == (0, True, True)
    made = terminal.read("keys", "create", "ci", "--scope", "webhook:alerts", "--owner", "support", "--rate-limit", "60")
    assert (made["key"].startswith("hf_"), made["first"]) == (True, False)
    shown = terminal.type("keys", "list").stdout
    assert ("laptop" in shown, key[:11] in shown, key in shown, made["key"] in shown) == (True, True, False, False)
    laptop, ci = terminal.read("keys", "list")["items"]
    assert (ci["scopes"], ci["owner"], ci["rate_limit"]) == (["webhook:alerts"], "support", 60)
    done = terminal.type("keys", "revoke", laptop["id"])
    assert (done.exit_code, "last one" in done.stdout) == (0, True)
    assert "laptop" not in terminal.type("keys", "list").stdout
    assert "revoked" in terminal.type("keys", "list", "--all").stdout
    assert terminal.type("keys", "revoke", "laptop").exit_code == 2
    assert terminal.type("keys", "create", "--scope", "root").exit_code == 2
    assert terminal.type("keys", "create", "--scope", "admin", "--owner", "support").exit_code == 2


def test_a_password_is_turned_into_what_may_stand_in_a_file(terminal: Terminal) -> None:
    done = terminal.run("keys", "password", stdin="tide and time\n")
    kept = done.stdout.strip()
    assert (done.returncode, "tide" in kept, matches(kept, "tide and time"), matches(kept, "tide")) == (
        0,
        False,
        True,
        False,
    )
    assert terminal.run("keys", "password", stdin="short\n").returncode == 2


def test_a_running_gateway_prints_a_link_and_makes_more(terminal: Terminal) -> None:
    assert terminal.type("link").exit_code == 69
    with serving(terminal) as gateway:
        shown = gateway.shown if "#code=" in gateway.shown else gateway.shown + gateway.until("holdfast link")
        links = [re.search(r"\S+/#code=\S+", shown), re.search(r"\S+/#code=\S+", terminal.type("link").stdout)]
        for link in links:
            assert link
            address, _, code = link[0].partition("#code=")
            assert address == f"{gateway.url}/"
            answer = httpx2.post(f"{gateway.url}/api/sign-in", json={"code": code})
            assert answer.status_code == 200
        # The key of a program counts at once, and so does taking it back.
        key = terminal.read("keys", "create", "program")["key"]
        headers = {"authorization": f"Bearer {key}"}
        assert httpx2.get(f"{gateway.url}/api/me", headers=headers).json()["how"] == "key"
        terminal.type("keys", "revoke", "program")
        assert httpx2.get(f"{gateway.url}/api/me", headers=headers).status_code == 401


@pytest.mark.parametrize(
    ("file", "options", "variables", "where"),
    [
        ('[server]\n\nhost = "0.0.0.0"\n', (), {}, r"holdfast\.toml:3: server\.host: '0\.0\.0\.0' can be reached"),
        ("", ("--host", "::"), {}, r"--host: '::' can be reached"),
        ("", (), {"HOLDFAST_SERVER__HOST": "0.0.0.0"}, r"environment: HOLDFAST_SERVER__HOST: server\.host: "),
        ('[server]\napi_key = "changeme123"\n', (), {}, r"holdfast\.toml:2: server\.api_key: is a placeholder"),
        ('[server]\npassword = "secret"\n', (), {}, r"holdfast\.toml:2: server\.password: must be a hash"),
    ],
)
def test_an_open_door_is_refused_where_it_was_left_open(
    terminal: Terminal, file: str, options: tuple[str, ...], variables: dict[str, str], where: str
) -> None:
    """SECURITY 1: exit 78, with the file and the line, and with what to do."""
    terminal.home.mkdir(mode=0o700)
    (terminal.home / "holdfast.toml").write_text(file)
    done = terminal.run("serve", "--no-open", "--port", "0", *options, **variables)
    assert done.returncode == 78, done.stderr
    assert re.search(where, done.stderr), done.stderr
    assert ("holdfast keys create" in done.stderr) is ("can be reached" in done.stderr)


def test_a_key_in_the_store_is_enough_to_let_others_near(terminal: Terminal) -> None:
    assert terminal.type("keys", "create", "first").exit_code == 0
    with serving(terminal, "--host", "0.0.0.0") as gateway:
        local = gateway.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx2.get(f"{local}/api/me").status_code == 401
        assert f"{local}/#code=" in terminal.type("link").stdout
        # Not even without any key is anybody a guest where others can come.
        terminal.type("keys", "revoke", "first")
        assert httpx2.get(f"{local}/api/me").status_code == 401
