"""`holdfast webhooks`, as an operator types it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import httpx2
import pytest

from tests.cli.terminal import Terminal
from tests.cli.test_gateway import serving


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


def test_a_route_from_its_making_to_its_end(terminal: Terminal) -> None:
    """Hot: a route that is added works at once; its secret is shown once and never again."""
    with serving(terminal) as gateway:
        assert "No routes yet" in terminal.type("webhooks", "list").stdout
        made = terminal.read("webhooks", "add", "alerts", "--prompt", "count to 3: {message}", "--event", "fired")
        assert made["url"] == f"{gateway.url}/webhooks/alerts"
        assert made["secret"].startswith("whsec_")
        tried = terminal.read("webhooks", "test", "alerts", "--event", "fired", "--payload", '{"message": "disk full"}')
        assert (tried["status_code"], tried["answer"]["status"]) == (202, "accepted")
        assert tried["turn"]["state"] == "completed"
        session = terminal.read("sessions", "show", tried["turn"]["session_id"])
        assert session["items"][0]["text"] == "count to 3: disk full"
        source = session["session"]["source"]
        assert (source["chat_name"], source["user_id"], source["thread_id"]) == ("webhook/alerts", "webhook:alerts", None)
        (listed,) = terminal.read("sessions", "list")["items"]
        assert listed["source"] == source
        shown = terminal.type("sessions", "show", listed["id"]).stdout
        named = dict(line.split(maxsplit=1) for line in shown.partition("\n\n")[0].splitlines())
        assert named == {name: value for name, value in source.items() if value}, "one line for each that is set"
        ignored = terminal.type("webhooks", "test", "alerts")
        assert (ignored.exit_code, "200 ignored" in ignored.stdout) == (0, True)
        assert "The route takes only events of the type fired (--event)." in ignored.stdout
        told = terminal.type("webhooks", "test", "alerts", "--event", "fired", "--scheme", "github").stdout
        assert "202 accepted" in told
        assert "1 2 3" in told
        for words in (("list",), ("show", "alerts")):
            shown = terminal.type("webhooks", *words).stdout
            assert "count to 3: {message}" in shown
            assert made["secret"] not in shown
        changed = terminal.type("webhooks", "add", "alerts", "--prompt", "fail")
        assert f"takes deliveries at {gateway.url}/webhooks/alerts" in changed.stdout
        assert "secret" not in changed.stdout
        failed = terminal.type("webhooks", "test", "alerts")
        assert (failed.exit_code, "the turn failed" in failed.stderr) == (1, True)
        assert "alerts is removed" in terminal.type("webhooks", "remove", "alerts").stdout
        gone = terminal.type("webhooks", "test", "alerts")
        assert (gone.exit_code, "there is no webhook route 'alerts'" in gone.stderr) == (2, True)


@pytest.mark.parametrize("scheme", ["standard", "github", "slack", "stripe", "hmac"])
def test_signed_headers_are_taken_from_any_client(terminal: Terminal, scheme: str) -> None:
    with serving(terminal) as gateway:
        terminal.read("webhooks", "add", "alerts", "--prompt", "count to 1")
        payload = '{"message":  "as it stands"}'
        shown = terminal.type("webhooks", "sign", "alerts", "--scheme", scheme, "--payload", payload).stdout
        headers = dict(line.split(": ", 1) for line in shown.splitlines())
        answer = httpx2.post(f"{gateway.url}/webhooks/alerts", content=payload.encode(), headers=headers)
        assert (answer.status_code, answer.json()["status"]) == (202, "accepted")
        other = httpx2.post(f"{gateway.url}/webhooks/alerts", content=b'{"message": "other"}', headers=headers)
        assert other.status_code == 401


def test_a_payload_comes_from_a_file_or_a_pipe(terminal: Terminal, tmp_path: Path) -> None:
    with serving(terminal):
        terminal.read("webhooks", "add", "alerts", "--prompt", "count to 1: {message}")
        file = tmp_path / "payload.json"
        file.write_text('{"message": "from a file"}', "utf-8")
        tried = terminal.read("webhooks", "test", "alerts", "--payload", f"@{file}")
        assert (
            terminal.read("sessions", "show", tried["turn"]["session_id"])["items"][0]["text"] == "count to 1: from a file"
        )
        piped = terminal.run("webhooks", "test", "alerts", "--payload", "@-", "--json", stdin='{"message": "x"}')
        assert json.loads(piped.stdout)["turn"]["state"] == "completed"


def test_what_cannot_be_meant_is_one_line_and_exit_2(terminal: Terminal) -> None:
    with serving(terminal):
        terminal.read("webhooks", "add", "alerts", "--prompt", "count to 1")
        for words, hint in (
            (("add", "bad", "--prompt", "{__class__}"), "underscore"),
            (("add", "bad", "--filter", "{"), "--filter is not JSON"),
            (("add", "bad", "--filter", '{"field": "a"}'), "exactly one of"),
            (("add", "bad", "--secret", "short"), "too short"),
            (("add", "bad", "--deliver", "pigeon:x"), "nothing can be sent to"),
            (("add", "bad", "--deliver", "url:http://169.254.169.254/"), "deliver: "),
            (("add", "b/d"), "is not a valid name of a route"),
            (("show", "none"), "there is no webhook route 'none'"),
            (("remove", "none"), "there is no webhook route 'none'"),
            (("test", "alerts", "--payload", "{"), "--payload is not JSON"),
            (("sign", "alerts", "--scheme", "gitlab"), "the secret itself"),
        ):
            done = terminal.type("webhooks", *words)
            assert (done.exit_code, hint in done.stderr) == (2, True), (words, done.output)
            assert done.stderr.startswith("holdfast: ")
        missing = terminal.type("webhooks", "test", "alerts", "--payload", "@/nowhere/at/all")
        assert (missing.exit_code, "No such file" in missing.stderr) == (74, True)
        array = terminal.type("webhooks", "test", "alerts", "--payload", "[1]")
        assert (array.exit_code, "400 the body must be a JSON object" in array.stdout) == (1, True)


def test_without_a_gateway_routes_are_kept_and_nothing_is_sent(terminal: Terminal) -> None:
    config = terminal.home / "holdfast.toml"
    terminal.home.mkdir(mode=0o700, parents=True)
    config.write_text('[channels.webhook.routes.fixed]\nsecret = "a secret of some length"\n', "utf-8")
    config.chmod(0o600)
    made = terminal.read("webhooks", "add", "alerts", "--deliver", "file:alerts")
    assert made["route"]["deliver"] == "file:alerts"
    listed = terminal.read("webhooks", "list")["items"]
    assert [(each["name"], each["source"]) for each in listed] == [("alerts", "added"), ("fixed", "configuration")]
    away = terminal.type("webhooks", "test", "alerts")
    assert (away.exit_code, "no gateway runs" in away.stderr) == (69, True)
    refused = terminal.type("webhooks", "remove", "fixed")
    assert (refused.exit_code, "one of the configuration" in refused.stderr) == (2, True)
    assert terminal.type("webhooks", "secret").stdout.strip() == terminal.read("webhooks", "secret")["secret"]
    config.write_text('[channels.webhook.routes.fixed]\nsecret = "a secret of some length"\nprompt = "{a!r}"\n', "utf-8")
    bad: subprocess.CompletedProcess[str] = terminal.run("serve", "--port", "0")
    assert bad.returncode == 78
    assert f"{config}:3: channels.webhook.routes.fixed.prompt" in bad.stderr


def test_an_unsigned_route_is_refused_for_everybodys_address(terminal: Terminal) -> None:
    """Unsigned webhooks only on loopback: also where only the command line says another host."""
    terminal.home.mkdir(mode=0o700, parents=True)
    config = terminal.home / "holdfast.toml"
    config.write_text(
        '[server]\napi_key = "a-key-of-some-length-1"\n[channels.webhook.routes.open]\ninsecure_no_auth = true\n'
    )
    config.chmod(0o600)
    bad = terminal.run("serve", "--port", "0", "--host", "0.0.0.0")
    assert bad.returncode == 78
    assert "channels.webhook.routes.open.insecure_no_auth: would accept deliveries from everyone" in bad.stderr
