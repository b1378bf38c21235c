"""`holdfast doctor`: every ill that it knows, on real files, sockets and databases, and what it says to do."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import os
import re
import socket
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.plugins import Plugins
from holdfast.app import doctor
from holdfast.app.build import Builder
from holdfast.app.doctor import CHECKS, Patient, examine
from holdfast.cli.doctor import check_up
from holdfast.clock import SystemClock
from holdfast.config import Config, RouteConfig
from holdfast.core.redaction import MASK, Redaction
from holdfast.drill.telegram.server import TOKEN, telegram
from holdfast.ids import NodeId
from holdfast.operations.doctor import Finding, Level
from holdfast.operations.gateway import AgentView, Phase, Status
from holdfast.store.opening import open_store
from holdfast.store.store import Store
from holdfast.store.vitals import Vitals
from holdfast.store.webhooks import WebhookRoute
from tests.channels.receiver import Reply, receiving
from tests.cli.terminal import Terminal
from tests.cli.test_gateway import serving
from tests.conformance.scenes import Scene, on_postgres
from tests.engine.world import Hang, ManualClock
from tests.memory.test_http import answer
from tests.postgres import FreshDatabases, Server
from tests.web.test_people import received

COMMAND = importlib.import_module("holdfast.cli.doctor")
DAY_MS = 86_400_000


@pytest.fixture
def databases(postgres: Server) -> FreshDatabases:
    """Here a database without a schema is a finding."""
    return FreshDatabases(postgres)


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that the machine of the tests has chosen counts here."""
    for name in [each for each in os.environ if each.startswith("HOLDFAST_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (folder := tmp_path / "home").mkdir(mode=0o700)
    return folder


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


def configure(home: Path, text: str) -> Path:
    file = home / "holdfast.toml"
    file.write_text(text, "utf-8")
    file.chmod(0o600)
    return file


async def visit(home: Path) -> dict[str, list[Finding]]:
    """Return what is found in a home, by name."""
    report = await check_up(home, home / "holdfast.toml", required=False)
    found: dict[str, list[Finding]] = {}
    for each in report.checks:
        found.setdefault(each.name, []).append(each)
    assert report.ok == all(each.level is not Level.FAIL for each in report.checks)
    assert all(each.advice for each in report.checks if each.level is not Level.OK), "every ill has its advice"
    return found


async def only(home: Path, name: str) -> Finding:
    (found,) = (await visit(home))[name]
    return found


async def owe(home: Path, *owners: str) -> None:
    """Let a store of its own owe memory to each of them."""
    scene = Scene(lambda: open_store("sqlite", home), "sqlite")

    async def turns() -> None:
        for number, owner in enumerate(owners):
            turn = await scene.running("hello", conversation=f"chat:{number}")
            await scene.finish(turn, memory_owner=owner)

    await scene.play(turns)


def test_a_home_that_is_not_there_yet_is_well_and_stays_away(terminal: Terminal) -> None:
    done = terminal.type("doctor", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["ok"] is True
    assert {each["name"] for each in report["checks"]} == set(CHECKS)
    assert set(report["checks"][0]) == {"name", "level", "found", "advice"}
    assert {each["level"] for each in report["checks"]} <= {"ok", "warn"}
    assert not terminal.home.exists(), "whoever looks leaves nothing behind"


def test_what_it_finds_is_told_to_people_with_what_to_do(terminal: Terminal) -> None:
    shown = terminal.type("doctor").stdout
    assert "✓ configuration" in shown
    assert "! gateway" in shown
    assert "→ start one with: holdfast serve" in shown
    assert "to look at." in shown


def test_a_running_gateway_is_found_with_its_node_and_not_disturbed(terminal: Terminal) -> None:
    terminal.home.mkdir(mode=0o700)
    with serving(terminal):
        terminal.read("ask", "count to 1")
        node = terminal.read("status")["node"]
        found = {each["name"]: each for each in terminal.read("doctor")["checks"]}
        assert found["gateway"]["level"] == "ok"
        assert node in found["gateway"]["found"]
        assert found["store"]["level"] == "ok"
        assert found["memory"]["level"] == "ok"
        assert terminal.read("status")["node"] == node


def test_a_wrong_configuration_is_a_finding_with_its_line_and_the_rest_is_looked_at(terminal: Terminal) -> None:
    terminal.home.mkdir(mode=0o700)
    file = configure(terminal.home, "[server]\nport = 8420\n[memry]\nprovider = 'none'\n")
    done = terminal.type("doctor", "--json")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    wrong = report["checks"][0]
    assert (wrong["name"], wrong["level"]) == ("configuration", "fail")
    assert f"{file}:3: memry: unknown key; did you mean memory?" in wrong["found"]
    assert [each["name"] for each in report["checks"][1:]] == ["home", "disk", "clock", "gateway"]
    shown = terminal.type("doctor")
    assert shown.exit_code == 1
    assert "✗ configuration" in shown.stdout
    assert "1 fails, 1 to look at." in shown.stdout


def test_a_configuration_that_was_named_and_is_missing_is_a_finding(terminal: Terminal, tmp_path: Path) -> None:
    done = terminal.type("--config", str(tmp_path / "none.toml"), "doctor")
    assert done.exit_code == 1
    assert "none.toml: No such file" in done.stdout


async def test_a_gateway_that_hangs_is_not_one_that_does_not_run(home: Path) -> None:
    with contextlib.chdir(home), socket.socket(socket.AF_UNIX) as silent, pytest.MonkeyPatch.context() as hurried:
        hurried.setattr(COMMAND, "ANSWER_TIMEOUT_S", 0.2)
        silent.bind("gateway.sock")
        silent.listen()
        found = await only(home, "gateway")
    assert found.level is Level.FAIL
    assert "does not answer" in found.found
    # What a crash leaves behind is no gateway either.
    found = await only(home, "gateway")
    assert (found.level, found.advice) == (Level.WARN, "start one with: holdfast serve")


async def test_a_store_in_use_is_as_large_as_what_is_in_it(home: Path) -> None:
    """All of it may stand in the log, and next to nothing in the file."""
    store = await open_store("sqlite", home)
    try:
        assert (home / "holdfast.db").stat().st_size < 10_000
        found = (await visit(home))["store"][0].found
    finally:
        await store.close()
    assert re.search(r"\((\d{3} kB|1\.\d MB)\)", found), found


async def test_a_store_that_is_sound_is_well(home: Path) -> None:
    await owe(home)
    found = await visit(home)
    assert found["store"][0].level is Level.OK
    assert str(home / "holdfast.db") in found["store"][0].found
    assert "0 facts are known about you" in found["memory"][0].found
    assert "debts" not in found


async def test_an_account_of_a_chat_says_when_it_last_received(home: Path) -> None:
    async with telegram() as there:
        configure(home, f'[channels.telegram]\ntoken = "{TOKEN}"\napi_base = "{there.url}"\nallow = ["1"]\n')
        store = await open_store("sqlite", home)
        await received(store, SystemClock().now_ms() - 3 * 3_600_000)
        await store.close()
        found = (await visit(home))["channels"]
        assert any("last received 3 hours ago" in each.found for each in found), found


async def test_a_damaged_store_is_found_and_left_as_it_is(home: Path) -> None:
    """Integrity failure: read-only, and the doctor says so."""
    await owe(home, *("builtin",) * 40)
    file = home / "holdfast.db"
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'sessions_by_update'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    hurt = bytearray(file.read_bytes())
    hurt[(page - 1) * size + 8 : (page - 1) * size + 60] = b"\x7f" * 52
    file.write_bytes(hurt)
    found = await only(home, "store")
    assert found.level is Level.FAIL
    assert "damaged" in found.found or "malformed" in found.found
    assert file.read_bytes() == bytes(hurt)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"not a database at all, by any measure" * 40, "is not a Holdfast store"), (b"", "schema 0")],
)
async def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(home: Path, content: bytes, words: str) -> None:
    (home / "holdfast.db").write_bytes(content)
    (home / "holdfast.db").chmod(0o600)
    found = await visit(home)
    assert found["store"][0].level is Level.FAIL
    assert words in found["store"][0].found
    assert found["memory"][0].level is Level.WARN
    assert (home / "holdfast.db").read_bytes() == content


async def test_a_newer_schema_is_told_with_what_to_do(home: Path) -> None:
    await owe(home)
    with contextlib.closing(sqlite3.connect(home / "holdfast.db")) as connection, connection:
        connection.execute("INSERT INTO schema_versions VALUES (1000, 0)")
    found = await only(home, "store")
    assert found.level is Level.FAIL
    assert "the store has schema 1000; start the gateway of this version once, or install the right one" in found.found


async def test_files_that_others_can_read_are_found(home: Path) -> None:
    await owe(home)
    home.chmod(0o755)
    (home / "holdfast.db").chmod(0o644)
    found = await visit(home)
    assert (found["home"][0].level, found["home"][0].advice) == (Level.WARN, f"run: chmod 700 {home}")
    assert (found["store"][0].level, found["store"][0].advice) == (Level.WARN, f"run: chmod 600 {home / 'holdfast.db'}")
    assert found["store"][1].level is Level.OK


async def test_a_home_that_is_no_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("notes")
    found = await only(tmp_path / "home", "home")
    assert found.level is Level.FAIL
    assert (tmp_path / "home").read_text() == "notes"


@on_postgres
async def test_postgresql_is_looked_at_too(home: Path, store_url: str, open_it: Callable[[], Awaitable[Store]]) -> None:
    configure(home, f'[store]\nurl = "{store_url}"\n')
    missing = await only(home, "store")
    assert missing.level is Level.FAIL
    assert "the store has schema 0; start the gateway" in missing.found
    await (await open_it()).close()
    found = await visit(home)
    assert found["store"] == [Finding(name="store", level=Level.OK, found="PostgreSQL answers")]
    assert found["clock"][0].level is Level.OK
    assert found["memory"][0].level is Level.OK


async def test_a_database_that_does_not_answer_is_found(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    configure(home, f'[store]\nurl = "postgresql://me:very-secret-word@127.0.0.1:{port}/x"\n')
    found = await visit(home)
    assert found["store"][0].level is Level.FAIL
    assert "PostgreSQL does not answer" in found["store"][0].found
    assert found["memory"][0].level is Level.WARN
    assert "very-secret-word" not in str(found), "K1"


@pytest.mark.parametrize(
    ("reply", "level", "words"),
    [
        (answer({"memories": []}), Level.OK, "recalls in "),
        (Reply("404 Not Found"), Level.OK, "does not recall: 404"),
        (Reply("500 Oh", body=b"no disk"), Level.FAIL, "/recall answered 500 Oh: no disk"),
        (Reply("401 Who"), Level.FAIL, "memory.api_key"),
        (Reply(body=b"hello"), Level.FAIL, "something else than"),
        (Reply(body=b"{" + b" " * 65_536, endless=True), Level.FAIL, "did not come to an end"),
        (Reply("302 In", {"Location": "/login"}), Level.FAIL, "redirects are not followed"),
    ],
)
async def test_a_memory_server_is_asked_how_it_is(home: Path, reply: Reply, level: Level, words: str) -> None:
    async with receiving(reply) as there:
        configure(home, f'[memory]\nprovider = "http"\nurl = "{there.url("")}"\n')
        found = await only(home, "memory")
    assert found.level is level
    assert found.found.startswith(f"http:{there.url('')}: ")
    assert words in found.found


async def test_a_memory_server_that_hangs_is_waited_for_only_so_long(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """M10: it takes nobody's time, not even the doctor's."""
    monkeypatch.setattr(doctor, "PROVIDER_TIMEOUT_S", 0.1)
    async with receiving(Hang()) as there:
        configure(home, f'[memory]\nprovider = "http"\nurl = "{there.url("")}"\n')
        found = await only(home, "memory")
    assert found.level is Level.FAIL
    assert "did not answer within 0.1 s" in found.found
    assert "nothing is lost" in found.advice


async def test_debts_are_told_by_whom_they_are_owed_to_and_those_to_nobody_as_parked(home: Path) -> None:
    """M3: what nobody here can pay is shown with what to do, and touched by nobody."""
    await owe(home, "builtin", "builtin", "elephant:herd-7", "http:http://127.0.0.1:1")
    configure(home, '[memory]\nprovider = "none"\n')
    found = await visit(home)
    assert found["memory"] == [
        Finding(name="memory", level=Level.OK, found='nothing is remembered: memory.provider is "none"')
    ]
    told = [(each.level, each.found) for each in found["debts"]]
    assert told == [
        (Level.OK, "builtin: 0 waiting, 2 in progress"),
        (Level.WARN, "elephant:herd-7: 0 waiting, 1 in progress; it cannot be opened here"),
        (Level.WARN, told[2][1]),
    ]
    # An earlier one that can be opened, and does not answer, is waited for as well.
    assert told[2][1].startswith("http:http://127.0.0.1:1: 0 waiting, 1 in progress; ")
    assert "cannot be reached" in told[2][1]
    assert all("holdfast memory waive SEGMENT" in each.advice for each in found["debts"][1:])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[memory]\nprovider = 'bultin'\n", "holdfast.toml:2: memory.provider: there is no 'bultin'"),
        ("[memory]\nprovider = 'http'\nurl = 'http://x.example'\napi_key_env = 'NO_SUCH_KEY'\n", ":4: memory.api_key_env"),
        ("[memory]\nmodel = 'openai:gpt-5-mini'\n", ":2: memory.model: openai wants a key: set the variable OPENAI_API_KEY"),
        (
            "[memory]\nmodel = 'opnai:x'\nprovider = 'none'\n",
            ":2: memory.model: unknown provider 'opnai', did you mean openai?",
        ),
    ],
)
async def test_memory_that_could_not_be_opened_is_found(
    home: Path, text: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    await owe(home)
    configure(home, text)
    found = (await visit(home))["memory"][0]
    assert found.level is Level.FAIL
    assert words in found.found


@pytest.mark.parametrize(
    ("text", "level", "words"),
    [
        ("", Level.WARN, "the built-in demonstration answers"),
        ("[model]\nname = 'openai:gpt-5'\n", Level.FAIL, "set the variable OPENAI_API_KEY"),
        ("[model]\nname = 'openai:gpt-5'\napi_key_env = 'MY_KEY'\n", Level.OK, "openai:gpt-5"),
        (
            "[model]\nname = 'openai:gpt-5'\napi_key_env = 'NO_KEY'\n",
            Level.FAIL,
            ":3: model.api_key_env: the variable NO_KEY",
        ),
        ("[model]\nname = 'opnai:gpt-5'\n", Level.FAIL, "did you mean openai?"),
        ("[model]\nname = 'ollama:x'\nfallback = ['ollama:y']\n", Level.OK, "ollama:x, then ollama:y"),
    ],
)
async def test_a_model_without_its_key_is_found(
    home: Path, text: str, level: Level, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("MY_KEY", "sk-very-secret-indeed")
    configure(home, text)
    found = await only(home, "model")
    assert found.level is level
    assert words in found.found
    assert "very-secret" not in found.found, "K1"


ROUTE = "[channels.webhook.routes.alerts]\n"
SECRET = "secret = 'whsec_dGhlIHRpZGUgdHVybnMgYXQgZm91ci4u'\n"


@pytest.mark.parametrize(
    ("text", "name", "level", "words"),
    [
        ("", "channels", Level.OK, "a secret that is made up"),
        (
            "[channels.url]\nsecret = 'whsec_c2hvcnQ='\n",
            "channels",
            Level.FAIL,
            ":2: channels.url.secret: must hold 24 bytes",
        ),
        (f"{ROUTE}{SECRET}", "webhooks", Level.OK, "1 ready: alerts"),
        (
            f"{ROUTE}secret_env = 'NO_KEY'\n",
            "webhooks",
            Level.FAIL,
            ":2: channels.webhook.routes.alerts.secret_env: the var",
        ),
        (f"{ROUTE}{SECRET}deliver = 'pigeon:7'\n", "webhooks", Level.FAIL, "nothing can be sent to 'pigeon:7'"),
        (f"{ROUTE}{SECRET}deliver = 'github_comment:a/b#1'\n", "webhooks", Level.FAIL, "environment variable HUB_TOKEN"),
        (f"{ROUTE}{SECRET}deliver = 'url:http://169.254.169.254/'\n", "webhooks", Level.FAIL, "use https"),
    ],
)
async def test_a_channel_that_could_not_work_is_found(home: Path, text: str, name: str, level: Level, words: str) -> None:
    configure(home, f"{text}[channels.github]\ntoken_env = 'HUB_TOKEN'\n")
    found = (await visit(home))[name][0]
    assert found.level is level
    assert words in found.found


async def test_a_token_is_looked_for_and_never_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUB_TOKEN", "ghp_very_secret_token")
    configure(home, "[channels.github]\ntoken_env = 'HUB_TOKEN'\n")
    found = await visit(home)
    assert [each.found for each in found["channels"]][1] == "github_comment: there is a token in HUB_TOKEN"


async def test_a_route_that_was_added_and_is_closed_by_now_is_found(home: Path) -> None:
    store = await open_store("sqlite", home)
    await store.webhooks.save(
        WebhookRoute(name="old", config=RouteConfig(secret="x" * 4 + "-long-enough-1", deliver="pigeon:7"))
    )
    await store.webhooks.save(WebhookRoute(name="new", config=RouteConfig(secret="another-long-secret-2")))
    await store.close()
    closed, sound = (await visit(home))["webhooks"]
    assert (closed.level, closed.advice) == (Level.WARN, "add it again: until then it is closed")
    assert "the route old: deliver: nothing can be sent to 'pigeon:7'" in closed.found
    assert sound.found == "1 ready: new"


@pytest.mark.parametrize(
    ("choice", "workspace", "level", "words"),
    [
        ("off", "", Level.WARN, 'tools.terminal.sandbox is "off", and every command is asked about'),
        pytest.param("auto", "", Level.OK, "by Holdfast's own launcher", marks=pytest.mark.launcher),
        ("auto", "/", Level.WARN, "the workspace is the whole machine"),
        ("on", "/", Level.FAIL, 'holdfast.toml:2: tools.terminal.sandbox: is "on", but the workspace is the whole machine'),
    ],
)
async def test_how_commands_are_confined_is_told(home: Path, choice: str, workspace: str, level: Level, words: str) -> None:
    """SECURITY 10: without a sandbox it is an explicit choice, which is shown as a problem."""
    configure(
        home, f'[tools.terminal]\nsandbox = "{choice}"\n' + (f'[agent]\nworkspace = "{workspace}"\n' if workspace else "")
    )
    found = await only(home, "sandbox")
    assert found.level is level
    assert words in found.found


@pytest.mark.parametrize("more", ['sandbox = "off"\n', '[agent]\nworkspace = "/"\n'])
async def test_commands_that_run_unasked_and_unconfined_are_a_failure(home: Path, more: str) -> None:
    """SECURITY 10: an explicit setting, which is shown in red."""
    configure(home, f'[tools.terminal]\napproval = "allow"\n{more}')
    found = await only(home, "sandbox")
    assert found.level is Level.FAIL
    assert 'tools.terminal.approval is "allow"' in found.found
    assert "nobody is asked" in found.found
    assert 'set tools.terminal.approval = "ask"' in found.advice


async def test_without_a_terminal_nothing_needs_a_sandbox(home: Path) -> None:
    configure(home, '[tools]\ndisabled = ["terminal"]\n[tools.terminal]\nsandbox = "off"\n')
    assert (await only(home, "sandbox")).level is Level.OK


async def test_a_disk_that_fills_up_is_told_before_it_is_full(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await only(home, "disk")).level is Level.OK
    monkeypatch.setattr(doctor, "FREE_LOW_BYTES", 1 << 62)
    assert (await only(home, "disk")).level is Level.WARN
    monkeypatch.setattr(doctor, "FREE_MIN_BYTES", 1 << 62)
    assert (await only(home, "disk")).level is Level.FAIL


def patient(
    home: Path,
    *,
    config: Config | None = None,
    clock: ManualClock | None = None,
    redaction: Redaction | None = None,
    problems: tuple[str, ...] = (),
    **seen: Any,
) -> Patient:
    builder = Builder(
        config=config or Config(),
        home=home,
        redaction=redaction or Redaction(),
        clock=clock or ManualClock(doctor.EARLIEST_MS + DAY_MS),
        plugins=Plugins(problems=problems),
        environment={},
    )
    return Patient(builder=builder, file=home / "holdfast.toml", **seen)


async def found_by(name: str, ill: Patient) -> Finding:
    return next(each for each in (await examine(ill)).checks if each.name == name)


def vitals(**changes: Any) -> Vitals:
    return Vitals(**{"newest_at": None, "now_ms": None, "looked_through": True, "damage": (), **changes})


@pytest.mark.parametrize(
    ("now_ms", "seen", "level", "words"),
    [
        (0, None, Level.FAIL, "1970-01-01 00:00:00 UTC cannot be"),
        (doctor.LATEST_MS, None, Level.FAIL, "cannot be"),
        (doctor.EARLIEST_MS + DAY_MS, None, Level.OK, "2025-01-02 00:00:00 UTC"),
        (doctor.EARLIEST_MS + DAY_MS, {"newest_at": doctor.EARLIEST_MS}, Level.OK, "2025-01-02"),
        (doctor.EARLIEST_MS + DAY_MS, {"newest_at": doctor.EARLIEST_MS + DAY_MS + 4_000}, Level.OK, "2025-01-02"),
        (doctor.EARLIEST_MS + 1, {"newest_at": doctor.EARLIEST_MS + DAY_MS}, Level.WARN, "24 h before the newest entry"),
        (doctor.EARLIEST_MS + DAY_MS, {"now_ms": doctor.EARLIEST_MS + DAY_MS - 4_000}, Level.OK, "2025-01-02"),
        (
            doctor.EARLIEST_MS + DAY_MS,
            {"now_ms": doctor.EARLIEST_MS + DAY_MS - 60_000},
            Level.WARN,
            "60 s ahead of the database",
        ),
        (
            doctor.EARLIEST_MS + DAY_MS,
            {"now_ms": doctor.EARLIEST_MS + DAY_MS + 600_000},
            Level.WARN,
            "10 min behind the data",
        ),
    ],
)
async def test_a_clock_that_is_wrong_is_found(
    home: Path, now_ms: int, seen: dict[str, int] | None, level: Level, words: str
) -> None:
    """C1: nothing breaks by it, and people still want to know."""
    ill = patient(home, clock=ManualClock(now_ms), vitals=vitals(**seen) if seen else None)
    found = await found_by("clock", ill)
    assert found.level is level
    assert words in found.found


async def test_a_check_that_breaks_or_hangs_is_a_finding_and_no_end(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_ill: Patient) -> doctor.Findings:
        yield Finding(name="broken", level=Level.OK, found="so far so good")
        raise ZeroDivisionError("no luck")

    async def hanging(_ill: Patient) -> doctor.Findings:
        await asyncio.Event().wait()
        yield Finding(name="hanging", level=Level.OK, found="never")

    monkeypatch.setattr(doctor, "CHECK_TIMEOUT_S", 0.1)
    monkeypatch.setattr(doctor, "CHECKS", {"broken": broken, "hanging": hanging, "disk": CHECKS["disk"]})
    report = await examine(patient(home))
    assert [(each.name, each.level) for each in report.checks] == [
        ("broken", Level.OK),
        ("broken", Level.FAIL),
        ("hanging", Level.FAIL),
        ("disk", Level.OK),
    ]
    assert report.checks[1].found == "could not be looked at: ZeroDivisionError: no luck"
    assert "did not come to an end within 0.1 s" in report.checks[2].found
    assert not report.ok


async def test_no_secret_is_told_wherever_it_turns_up(home: Path) -> None:
    """K1"""
    ill = patient(home, redaction=Redaction(["very-secret-word"]), problems=("it said very-secret-word",))
    report = await examine(ill)
    assert f"it said {MASK}" in [each.found for each in report.checks]
    assert "very-secret-word" not in str(report)


async def test_a_service_with_a_key_that_is_not_seen_from_here_is_only_told(home: Path) -> None:
    """A gateway that answers has its key, whatever this shell knows."""
    running = Status(
        pid=1,
        node=NodeId("nod_1"),
        version="0",
        home=str(home),
        url="http://127.0.0.1:8420",
        store="sqlite",
        state=Phase.READY,
        ready=True,
        started_at=0,
        uptime_s=1,
        running=0,
        agent=AgentView(model="openai:gpt-5"),
    )
    config = Config(model=replace(Config().model, name="openai:gpt-5"))
    found = await found_by("model", patient(home, config=config, gateway=running))
    assert found.level is Level.WARN
    assert "the gateway that runs has it, and answers with openai:gpt-5" in found.found
    assert (await found_by("gateway", patient(home, gateway=running))).advice == "run: holdfast restart"
    away = replace(running, ready=False, problem="PostgreSQL does not answer")
    assert "is PostgreSQL does not answer" in (await found_by("gateway", patient(home, gateway=away))).found
    # The service may have been started in another environment than the doctor.
    unsafe = replace(running, agent=AgentView(sandbox="off: because", unsafe=True))
    found = await found_by("sandbox", patient(home, gateway=unsafe))
    assert (found.level, "started with other settings (off: because)" in found.found) == (Level.FAIL, True)
