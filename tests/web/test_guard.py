"""Who is let in over TCP: hosts, origins and keys."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.config import Config, ServerConfig, load
from holdfast.errors import ConfigInvalid
from holdfast.web.answers import Refused
from holdfast.web.guard import Rules, judge
from holdfast.web.principal import GUEST, NOBODY, OPERATOR
from tests.web.house import open_house

KEY = "a-key-for-the-operator"
OPEN = Rules()
KEYED = Rules(api_key=KEY, host="10.0.0.7", allowed_hosts=("gateway.example", "Other.Example:8443"))
HOST = {"host": "127.0.0.1:8420"}


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8420", "localhost", "LOCALHOST:1", "[::1]", "[::1]:8420", "127.8.8.8"]
)
def test_without_a_key_this_machine_is_let_in_as_a_guest(host: str) -> None:
    assert judge(OPEN, "/api/status", {"host": host}) == GUEST


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8420",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "10.0.0.1",
        "[::2]:8420",
        "a@b",
    ],
)
@pytest.mark.parametrize("path", ["/", "/health", "/ready", "/api/sessions/x/events"])
@pytest.mark.parametrize("rules", [OPEN, KEYED], ids=["open", "keyed"])
def test_a_name_that_only_leads_here_is_misdirected_on_every_route(rules: Rules, host: str, path: str) -> None:
    """DNS rebinding: the browser believes to speak to the page's own host."""
    with pytest.raises(Refused) as refused:
        judge(rules, path, {"host": host, "authorization": f"Bearer {KEY}"})
    assert refused.value.status == 421


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8420",
        "localhost",
        "10.0.0.7",
        "10.0.0.7:8420",
        "gateway.example",
        "GATEWAY.example:443",
        "other.example:8443",
    ],
)
def test_with_a_key_the_gateway_answers_under_its_own_names(host: str) -> None:
    headers = {"host": host, "authorization": f"bearer {KEY}", "origin": f"https://{host}"}
    assert judge(KEYED, "/api/stop", headers) == OPERATOR


def test_a_page_behind_a_proxy_that_asks_under_another_name_is_our_own() -> None:
    """The proxy may speak to us as 127.0.0.1, while the browser knows its own name only."""
    headers = {**HOST, "authorization": f"Bearer {KEY}"}
    for origin in ("https://gateway.example", "https://other.example:8443"):
        assert judge(KEYED, "/api/stop", {**headers, "origin": origin}) == OPERATOR
    for origin in ("https://gateway.example:8443", "https://other.example", "https://10.0.0.7", "https://evil.example"):
        with pytest.raises(Refused) as refused:
            judge(KEYED, "/api/stop", {**headers, "origin": origin})
        assert refused.value.status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:3000"},
        {"origin": "http://localhost:8420"},
        {"origin": ""},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1:8420"},
    ],
)
@pytest.mark.parametrize("rules", [OPEN, KEYED], ids=["open", "keyed"])
def test_another_site_is_refused_whatever_it_knows(rules: Rules, headers: dict[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        judge(rules, "/health", {**HOST, "authorization": f"Bearer {KEY}", **headers})
    assert refused.value.status == 403


@pytest.mark.parametrize(
    "headers",
    [{}, {"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8420"}, {"sec-fetch-site": "none"}],
)
def test_the_own_page_and_tools_are_not_foreign(headers: dict[str, str]) -> None:
    assert judge(OPEN, "/api/status", {**HOST, **headers}) == GUEST


@pytest.mark.parametrize(
    "authorization", ["", KEY, "Bearer", "Bearer ", "Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}x", "Bearer clé"]
)
def test_with_a_key_nothing_but_the_key_opens(authorization: str) -> None:
    with pytest.raises(Refused) as refused:
        judge(KEYED, "/api/status", {"host": "gateway.example", "authorization": authorization})
    assert refused.value.status == 401
    assert judge(KEYED, "/ready", {"host": "gateway.example", "authorization": authorization}) == NOBODY


async def test_the_server_refuses_what_the_guard_refuses(home: Path) -> None:
    async with open_house(home) as house:
        for path in ("/health", "/api/sessions", "/nowhere"):
            foreign = await house.web.get(path, headers={"host": "evil.example"})
            assert (foreign.status_code, foreign.json()["error"]["code"]) == (421, "foreign_host")
            crossed = await house.web.get(path, headers={"origin": "https://evil.example"})
            assert (crossed.status_code, crossed.json()["error"]["code"]) == (403, "foreign_origin")
        # A guest may look, but only the operator may end the gateway.
        stopped = await house.web.post("/api/stop", json={})
        assert (stopped.status_code, stopped.json()["error"]["code"]) == (403, "operator_only")
        assert (await house.get("/ready"))["ready"]


async def test_a_configured_key_is_asked_for(home: Path) -> None:
    async with open_house(home, api_key=KEY) as house:
        assert (await house.get("/api/status"))["ready"]
        house.web.headers.pop("authorization")
        refused = await house.web.get("/api/status")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert (await house.web.get("/health")).status_code == 200
        assert (await house.web.get("/health", headers={"host": "evil.example"})).status_code == 421
        # Whoever can open the socket is the operator, key or not.
        assert (await house.desk.status()).ready


async def test_the_socket_belongs_to_its_owner_alone_and_is_taken_away_at_the_end(home: Path) -> None:
    async with open_house(home) as house:
        mode = (home / "gateway.sock").stat().st_mode
        assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
        await house.stop()
        assert not (home / "gateway.sock").exists()


async def test_a_home_too_deep_for_a_socket_works_all_the_same(home: Path) -> None:
    deep = home / ("deep" * 20) / ("deeper" * 10)
    async with open_house(deep) as house:
        assert (await house.desk.status()).home == str(deep)


@pytest.mark.parametrize(
    ("server", "key"),
    [('host = "0.0.0.0"', "server.host"), ('api_key = "short"', "server.api_key"), ("port = 70000", "server.port")],
)
def test_a_door_left_open_is_refused_with_its_line(tmp_path: Path, server: str, key: str) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_text(f"[gateway]\n\n[server]\n{server}\n")
    with pytest.raises(ConfigInvalid, match=rf"holdfast\.toml:4: {key}: "):
        load(file, {})


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user of the machine can walk into."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize(
    ("secret", "key"),
    [(f'[server]\napi_key = "{KEY}"', "server.api_key"), ('[store]\nurl = "postgresql://me:word@db/x"', "store.url")],
)
def test_a_secret_that_others_can_read_is_refused_with_what_to_do(public: Path, secret: str, key: str) -> None:
    """K1"""
    file = public / "holdfast.toml"
    file.write_text(secret + "\n")
    file.chmod(0o644)
    with pytest.raises(ConfigInvalid, match=rf"holdfast\.toml:2: {key}: .*chmod 600") as refused:
        load(file, {})
    assert KEY not in str(refused.value)
    file.chmod(0o600)
    load(file, {})
    # In a folder that nobody else can enter, the file's own mode does not matter.
    file.chmod(0o644)
    public.chmod(0o700)
    load(file, {})


def test_a_store_address_that_is_none_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_text('[store]\nurl = "postgresql://[half/x"\n')
    with pytest.raises(ConfigInvalid, match=r"holdfast\.toml:2: store\.url: is no address"):
        load(file, {})


def test_a_secret_from_the_environment_needs_no_private_file(public: Path) -> None:
    file = public / "holdfast.toml"
    file.write_text("[server]\nport = 9000\n")
    assert load(file, {"HOLDFAST_SERVER__API_KEY": KEY}).server.api_key == KEY


@pytest.mark.parametrize("hosts", ['"gateway.example"', "[7]", "{ a = 1 }"])
def test_names_that_are_no_list_are_refused_with_their_line(tmp_path: Path, hosts: str) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_text(f"[server]\nallowed_hosts = {hosts}\n")
    with pytest.raises(ConfigInvalid, match=r"holdfast\.toml:2: server\.allowed_hosts: "):
        load(file, {})
    assert load(tmp_path / "none.toml", {"HOLDFAST_SERVER__ALLOWED_HOSTS": '["a", "b"]'}).server.allowed_hosts == ("a", "b")


@pytest.mark.parametrize(
    "setting",
    [
        "gateway.drain_timeout = inf",
        "gateway.drain_timeout = nan",
        "gateway.drain_timeout = 1e306",
        "gateway.stall_timeout = -1",
        "gateway.max_running = inf",
        "gateway.max_running = 1.5",
        "gateway.max_running = 0",
        "sessions.idle_minutes = 1e18",
        "sessions.retention_days.web = 1e306",
    ],
)
def test_a_number_beyond_all_reason_is_refused_with_its_line(tmp_path: Path, setting: str) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_text(f"{setting}\n")
    with pytest.raises(ConfigInvalid, match=rf"holdfast\.toml:1: {setting.partition(' ')[0]}: must be"):
        load(file, {})


def test_another_host_is_allowed_with_a_key(tmp_path: Path) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_text(f'[server]\nhost = "0.0.0.0"\napi_key = "{KEY}"\n')
    assert load(file, {}).server == ServerConfig(host="0.0.0.0", api_key=KEY)
    assert Config().server == ServerConfig()
