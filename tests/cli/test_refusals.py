"""What cannot be: one clear line that says where, the exit code of its family, and never a traceback."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import Result

from holdfast.config import load
from tests.cli.terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


def assert_one_line(done: Result, code: int, *words: str) -> None:
    assert done.exit_code == code, done.output
    (line,) = done.stderr.splitlines()
    assert line.startswith("holdfast: ")
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[gateway]\nbusy = '\xff'\n", ("holdfast.toml:2:", "UTF-8")),
        (b"[store]\nurl = 'postgresql://h:abc/x'\n", ("holdfast.toml:2:", "store.url", "is not a valid URL")),
    ],
)
def test_a_configuration_that_cannot_be_read_is_refused_at_its_line(
    terminal: Terminal, content: bytes, words: tuple[str, ...]
) -> None:
    terminal.home.mkdir()
    (terminal.home / "holdfast.toml").write_bytes(content)
    assert_one_line(terminal.type("sessions", "list"), 78, *words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[tools]\ndisabled = ['termnal']\n", ("tools.disabled", "did you mean terminal?")),
        ("[tools]\ndisabled = ['bath']\n", ("tools.disabled", "there are ask_user, ")),
        ("[agent]\npersona = 'persona.md'\n", ("agent.persona", "persona.md", "the text itself")),
    ],
)
def test_a_name_of_nothing_is_refused_at_the_start(terminal: Terminal, content: str, words: tuple[str, ...]) -> None:
    terminal.home.mkdir()
    (terminal.home / "holdfast.toml").write_text(content)
    assert_one_line(terminal.type("ask", "hello"), 78, *words)


def test_names_of_tools_that_may_come_later_are_taken(terminal: Terminal) -> None:
    terminal.home.mkdir()
    (terminal.home / "holdfast.toml").write_text('[tools]\ndisabled = ["web_search", "tickets__close", "terminal"]\n')
    assert "there is no tool 'terminal'" in terminal.read("ask", "run: ls")["text"]


@pytest.mark.parametrize("workspace", [".", "..", "/", "workspace/.."])
def test_a_workspace_that_holds_the_home_is_refused(terminal: Terminal, workspace: str) -> None:
    """SECURITY 11: what the agent may write must not be what decides about it."""
    terminal.home.mkdir()
    (terminal.home / "holdfast.toml").write_text(f'[agent]\nworkspace = "{workspace}"\n')
    assert_one_line(terminal.type("ask", "hello"), 78, "agent.workspace", "holds the gateway's own home")


def test_a_number_in_place_of_a_table_is_refused_beside_a_variable_too(terminal: Terminal) -> None:
    terminal.home.mkdir()
    (terminal.home / "holdfast.toml").write_text("\ngateway = 5\n")
    done = terminal.run("sessions", "list", HOLDFAST_GATEWAY__BUSY="queue")
    assert done.returncode == 78
    assert done.stderr.startswith("holdfast: ")
    assert "holdfast.toml:2: gateway: must be a table" in done.stderr


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ('[agent]\nskills = "workspace/skills"', ("agent.skills", "is in the workspace")),
        ('[agent]\npersona = "workspace/persona.md"', ("agent.persona", "is in the workspace")),
        ('[tools.terminal]\nhosts = ["a_b..c"]', ("tools.terminal.hosts", "is not a host")),
    ],
)
def test_instructions_that_the_agent_could_write_and_hosts_that_are_none_are_refused(
    terminal: Terminal, setting: str, words: tuple[str, ...]
) -> None:
    """SECURITY 8."""
    (terminal.home / "workspace").mkdir(parents=True)
    (terminal.home / "workspace" / "persona.md").write_text("You obey.")
    (terminal.home / "holdfast.toml").write_text(f"{setting}\n")
    assert_one_line(terminal.type("ask", "hello"), 78, *words)


def test_a_configuration_that_the_agent_could_change_is_refused(terminal: Terminal) -> None:
    """SECURITY 11: a command would allow itself everything there, from the next start on."""
    file = terminal.home / "workspace" / "holdfast.toml"
    file.parent.mkdir(parents=True)
    file.write_text("")
    words = ("agent.workspace", "holds the configuration file")
    assert_one_line(terminal.type("--config", str(file), "ask", "hello"), 78, *words)
    (terminal.home / "holdfast.toml").symlink_to(file)
    assert_one_line(terminal.type("ask", "hello"), 78, *words)


@pytest.mark.parametrize("folder", [sys.prefix, Path(sys.prefix).parent])
@pytest.mark.parametrize("setting", ["agent]\nworkspace = {}", "tools.terminal]\nwritable = [{}]"])
def test_a_folder_that_holds_the_program_of_the_gateway_is_refused(terminal: Terminal, setting: str, folder: object) -> None:
    """SECURITY 11: a module that a command leaves in the virtual environment would run as the gateway."""
    terminal.home.mkdir()
    (terminal.home / "holdfast.toml").write_text("[" + setting.format(json.dumps(str(folder))) + "\n")
    assert_one_line(terminal.type("ask", "hello"), 78, "holds the program of the gateway")


def test_a_configuration_that_is_a_folder_or_is_missing_is_refused(terminal: Terminal) -> None:
    assert_one_line(terminal.type("--config", str(terminal.home / "no.toml"), "sessions", "list"), 78, "no.toml: No such")
    (terminal.home / "holdfast.toml").mkdir(parents=True)
    assert_one_line(terminal.type("sessions", "list"), 78, "holdfast.toml: Is a directory")


def test_a_number_in_a_variable_is_text_where_text_is_meant(tmp_path: Path) -> None:
    variables = {
        "HOLDFAST_SERVER__API_KEY": "8402957163",
        "HOLDFAST_SERVER__PORT": "9000",
        "HOLDFAST_STORE__URL": '"sqlite"',
    }
    config = load(tmp_path / "none.toml", variables)
    assert (config.server.api_key, config.server.port, config.store.url) == ("8402957163", 9000, "sqlite")


def test_a_home_that_cannot_be_is_named(terminal: Terminal) -> None:
    terminal.home.write_text("notes")
    assert_one_line(terminal.type("ask", "hello"), 74, f"Not a directory: {terminal.home}")
    assert_one_line(terminal.type("--home", "/proc/none", "ask", "hello"), 74, "/proc/none")
    assert terminal.home.read_text() == "notes"


def test_a_socket_that_is_a_folder_is_named(terminal: Terminal) -> None:
    (terminal.home / "gateway.sock").mkdir(parents=True)
    assert_one_line(terminal.type("ask", "hello"), 74, "gateway.sock")


def test_an_export_that_cannot_be_written_is_named(terminal: Terminal, tmp_path: Path) -> None:
    terminal.read("ask", "count to 1")
    nowhere = str(tmp_path / "none" / "x.md")
    assert_one_line(terminal.type("sessions", "export", "terminal", "--output", nowhere), 74, nowhere)


def test_an_argument_that_is_not_utf8_is_refused(terminal: Terminal) -> None:
    assert_one_line(terminal.type("ask", os.fsdecode(b"caf\xe9")), 74, "UTF-8", "caf")
