"""The configuration: any depth from the file and from the environment, and errors that say where to look."""

from __future__ import annotations

import dataclasses
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import Config, McpConfig, ProviderConfig, RouteConfig, load, placed, secrets
from holdfast.errors import ConfigInvalid

OWN_MODEL = """
[model]
name = "mine:small"
fallback = ["anthropic:claude-sonnet-5"]

[providers.mine]
base_url = "http://127.0.0.1:11434/v1"

[tools]
disabled = ["fetch"]

[tools.terminal]
approval = "ask"
sandbox = "auto"

[mcp.files]
command = ["files-server", "--quiet"]
env = { ROOT = "/srv" }
"""


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "holdfast.toml"
    file.write_text(text, "utf-8")
    file.chmod(mode)
    return file


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that others may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def refusal(folder: Path, text: str, **variables: str) -> str:
    with pytest.raises(ConfigInvalid) as refused:
        load(written(folder, text), variables)
    return str(refused.value)


@pytest.mark.parametrize("table", ["server.allowed_hosts", "tools.fetch.allow_hosts", "channels.url.allow_hosts"])
@pytest.mark.parametrize("name", ["https://a.example", "a.example/", "*.example", "", "a b", "me@a.example"])
def test_a_host_that_no_request_could_ever_name_is_refused(tmp_path: Path, table: str, name: str) -> None:
    assert f"holdfast.toml:1: {table}: {name!r} must be a name" in refusal(tmp_path, f'{table} = ["b.example", "{name}"]\n')


def test_hosts_are_names_and_addresses_with_or_without_a_port(tmp_path: Path) -> None:
    hosts = ["a.example", "a.example:8443", "localhost", "10.0.0.7", "10.0.0.7:80", "[::1]", "[::1]:80", "::1", "fe80::1"]
    assert load(written(tmp_path, f"server.allowed_hosts = {hosts}\n"), {}).server.allowed_hosts == tuple(hosts)


def test_what_turns_out_to_be_wrong_later_is_told_with_its_place(tmp_path: Path) -> None:
    file = written(tmp_path, '[channels.url]\nsecret = "abc"\n')
    problem = ConfigInvalid("channels.url.secret: must hold 24 bytes or more")
    assert str(placed(file, problem, {})) == f"{file}:2: {problem}"
    variables = {"HOLDFAST_CHANNELS__URL__SECRET": "abc"}
    assert str(placed(file, problem, variables)) == f"environment: HOLDFAST_CHANNELS__URL__SECRET: {problem}"
    # What stands nowhere, or says so already, is told as it is.
    for other in ("model.name: there is no such model", f"{file}:2: channels.url.secret: is wrong", "a key is needed"):
        assert str(placed(file, ConfigInvalid(other), {})) == other


def test_what_is_missing_in_a_table_of_the_environment_is_told_with_its_variable(tmp_path: Path) -> None:
    variable = "HOLDFAST_CHANNELS__WEBHOOK__ROUTES__ALERTS__PROMPT"
    told = refusal(tmp_path, "", **{variable: "x"})
    assert told.startswith(f"environment: {variable}: channels.webhook.routes.alerts.secret: is missing")


def test_a_file_may_nest_its_tables_as_it_likes(tmp_path: Path) -> None:
    config = load(written(tmp_path, OWN_MODEL), {})
    assert (config.model.name, config.model.fallback) == ("mine:small", ("anthropic:claude-sonnet-5",))
    assert config.providers["mine"].base_url == "http://127.0.0.1:11434/v1"
    assert (config.tools.disabled, config.tools.terminal.sandbox) == (("fetch",), "auto")
    assert config.mcp["files"].command == ("files-server", "--quiet")
    dotted = "tools.terminal.approval = 'deny'\nmcp.files.url = 'https://files.example/mcp'\n"
    config = load(written(tmp_path, dotted), {})
    assert (config.tools.terminal.approval, config.mcp["files"].url) == ("deny", "https://files.example/mcp")


def test_the_environment_reaches_every_depth_and_every_name(tmp_path: Path) -> None:
    variables = {
        "HOLDFAST_TOOLS__TERMINAL__APPROVAL": "smart",
        "HOLDFAST_MODEL__NAME": "mine:large",
        "HOLDFAST_MODEL__FALLBACK": '["openai:gpt-5", "mine:small"]',
        "HOLDFAST_PROVIDERS__MINE__BASE_URL": "https://models.example/v1",
        "HOLDFAST_PROVIDERS__OTHER__API_KEY": "12345678",
        "HOLDFAST_AGENT__COMPACT_AT": "0.5",
        "HOLDFAST_MCP__FILES__ENV__root": "/elsewhere",
        "HOLDFAST_MCP__FILES__ENV__Lang": "C",
        "HOLDFAST_HOME": "/somewhere",
        "UNRELATED__NAME": "x",
    }
    config = load(written(tmp_path, OWN_MODEL), variables)
    assert config.tools.terminal.approval == "smart"
    assert config.tools.terminal.sandbox == "auto"
    assert (config.model.name, config.model.fallback) == ("mine:large", ("openai:gpt-5", "mine:small"))
    assert config.providers["mine"].base_url == "https://models.example/v1"
    assert config.providers["other"].api_key == "12345678"
    assert config.agent.compact_at == 0.5
    # What the file names keeps the file's spelling; what is new below text keeps the variable's.
    assert config.mcp["files"].env == {"ROOT": "/elsewhere", "Lang": "C"}
    assert load(tmp_path / "none.toml", variables | {"HOLDFAST_MCP__FILES__COMMAND": '["x"]'}).providers.keys() == {
        "mine",
        "other",
    }


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("[model]\nname = 'mine:x'\n\n[tools.terminal]\n# why\naproval = 'ask'\n", 6, "did you mean approval?"),
        ("[tools]\n[tools.terminl]\napproval = 'ask'\n", 2, "tools.terminl: unknown key; did you mean terminal?"),
        ("[terminal]\nsandbox = 'on'\n", 1, "did you mean tools.terminal?"),
        ("[model]\napproval = 'ask'\n", 2, "did you mean tools.terminal.approval or mcp.NAME.approval?"),
        ("[mcp.files]\ncommand = ['x']\n[mcp.web]\nurll = 'https://x.example'\n", 4, "mcp.web.urll: unknown key"),
        ("[mcp.files]\ncommand = ['x']\n[mcp.web]\nurl = 7\n", 4, "mcp.web.url: must be text"),
        ("tools.terminal.sandbox = 'perhaps'\n", 1, "'auto', 'on', 'off'"),
        ("tools.terminal.hosts = ['https://pypi.org']\n", 1, "must be a host alone"),
        ("tools.terminal.hosts = ['*']\n", 1, "must be a host alone"),
        ("tools.terminal.writable = ['data']\n", 1, "must be an absolute path"),
        ("[mcp.a]\ncommand = ['a']\nreadable = ['../b']\n", 3, "must be an absolute path"),
        ("[tools]\nterminal = { approval = 'ask', sandbx = 'on' }\n", 2, "tools.terminal.sandbx: unknown key"),
        ("[agent]\npersona = '''\n[model]\ncompact_at = 2\n'''\ncompact_at = 2\n", 6, "between 0.1 and 1"),
        ("[model]\nfallback = [\n  'openai:gpt-5',\n  'claude',\n]\n", 2, "'claude' must be provider:model"),
        ("[server]\nport = 1\n[model]\nname = 'gpt-5'\n", 4, 'must be provider:model, like "openai:gpt-5"'),
        ("[model]\nname = 'openai:'\n", 2, "provider:model"),
        ("[model]\nfallback = ['openai:gpt-5']\n", 2, "needs model.name"),
        ("[agent]\nsteps_max = 0\n", 2, "1 or more"),
        ("[agent]\ncompact_at = 0.05\n", 2, "between 0.1 and 1"),
        ("[model]\nstall_timeout = 0\n", 2, "more than 0"),
        ("[tools.fetch]\ntimeout = 0\n", 2, "more than 0"),
        ("[model]\nbase_url = '127.0.0.1:11434'\n", 2, "begins with http://"),
        ("[model]\nbase_url = 'http://'\n", 2, "begins with http://"),
        ("[providers.mine]\nbase_url = 'ftp://x.example'\n", 2, "begins with http://"),
        ("[mcp.files]\nurl = 'http://x.example:port'\n", 2, "begins with http://"),
        ("[mcp.files]\ntimeout = 3\n", 1, "exactly one of command"),
        ("[mcp.files]\nurl = 'https://x.example'\ncommand = ['x']\n", 1, "exactly one of command"),
        ('[mcp."my files"]\nurl = "https://x.example"\n', 1, "letters, digits"),
        ("[memory]\nprovider = ' '\n", 2, 'is empty; "none" remembers nothing'),
        ("[memory]\nprovider = 'http'\n", 2, "needs memory.url, the address at which http answers"),
        ("[memory]\nprovider = 'openviking'\n", 2, "needs memory.url, the address at which openviking answers"),
        ("[memory]\nurl = '127.0.0.1:9300'\n", 2, "memory.url: must be an address that begins with http://"),
        ("[memory]\nurl = 'http://127.0.0.1:port'\n", 2, "memory.url: must be an address that begins with http://"),
        ("[memory]\nurl = 'http://m.example/?key=abc'\n", 2, "memory.url: must end before ? and #"),
        ("[memory]\nurl = 'http://m.example/#abc'\n", 2, "memory.url: must end before ? and #"),
        ("[memory]\napi_key = 'k'\nurl = 'http://me:pw@m.example'\n", 3, "memory.url: names a user although"),
        ("[memory]\napi_key_env = 'K'\nurl = 'http://me@m.example'\n", 3, "memory.url: names a user although"),
        ("[memory]\nmodel = 'gpt-5'\n", 2, "'gpt-5' must be provider:model"),
        ("[memory]\nmodel = 'openai: '\n", 2, "'openai: ' must be provider:model"),
        ("[memory]\n\nrecall_timeout = 2.5\n", 3, "must be 2 or less: every answer may have to wait for it"),
        ("[memory]\nrecall_timeout = 0\n", 2, "memory.recall_timeout: must be more than 0"),
        ("[memory]\ncommit_timeout = 0\n", 2, "memory.commit_timeout: must be more than 0"),
        ("[memory]\nidle_minutes = 0\n", 2, "memory.idle_minutes: must be more than 0"),
        ("[memory]\nlive_sessions = 0\n", 2, "memory.live_sessions: must be more than 0"),
        ("[memory]\nrecall_limit = 101\n", 2, "memory.recall_limit: must be 100 or less"),
        ("[memory]\nrecall_limit = -1\n", 2, "memory.recall_limit: must be a number, not negative"),
        ("[memory]\nprovidr = 'none'\n", 2, "memory.providr: unknown key; did you mean provider?"),
        ("[[tools]]\ndisabled = []\n", 1, "tools: must be a table"),
        ("mcp = { files = 3 }\n", 1, "mcp.files: must be a table"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_its_line(tmp_path: Path, text: str, line: int, hint: str) -> None:
    said = refusal(tmp_path, text)
    assert said.startswith(f"{tmp_path / 'holdfast.toml'}:{line}: "), said
    assert hint in said


def test_what_a_variable_got_wrong_is_named_by_the_variable(tmp_path: Path) -> None:
    assert refusal(tmp_path, "", HOLDFAST_TOOLS__TERMINAL__APPROVAL="maybe").startswith(
        "environment: HOLDFAST_TOOLS__TERMINAL__APPROVAL: tools.terminal.approval: must be one of"
    )
    assert refusal(tmp_path, "", HOLDFAST_TOLS__TERMINAL__APPROVAL="ask").startswith(
        "environment: HOLDFAST_TOLS__TERMINAL__APPROVAL: tols: unknown key; did you mean tools?"
    )
    assert "HOLDFAST_MCP__FILES__TIMEOUT: mcp.files: needs exactly one" in refusal(
        tmp_path, "", HOLDFAST_MCP__FILES__TIMEOUT="5"
    )
    # What the file says is the file's to answer for, whatever else a variable adds beside it.
    beside = refusal(tmp_path, "[mcp.files]\ntimeout = 3\n", HOLDFAST_MCP__FILES__APPROVAL="allow")
    assert beside.startswith(f"{tmp_path / 'holdfast.toml'}:1: mcp.files: needs exactly one")
    assert ":1: tools: must be a table" in refusal(tmp_path, "tools = 5\n", HOLDFAST_TOOLS__TERMINAL__APPROVAL="ask")


def test_a_key_in_place_of_its_variable_is_refused_and_not_repeated(tmp_path: Path) -> None:
    """K1: the message goes to a log."""
    for table in ("model", "providers.mine", "tools.web_search", "memory"):
        said = refusal(tmp_path, f"[{table}]\napi_key_env = 'sk-very-secret-indeed'\n")
        assert f":2: {table}.api_key_env: must be the name of an environment variable" in said
        assert "very-secret" not in said


@pytest.mark.parametrize(
    "text",
    [
        "[model]\napi_key = 'sk-very-secret-indeed'\n",
        "[providers.mine]\napi_key = 'sk-very-secret-indeed'\n",
        "[tools.web_search]\napi_key = 'sk-very-secret-indeed'\n",
        "[mcp.web]\nurl = 'https://x.example'\nheaders = { Authorization = 'Bearer sk-very-secret-indeed' }\n",
        "[mcp.web]\ncommand = ['x']\nenv = { WEB_TOKEN = 'sk-very-secret-indeed' }\n",
        "[store]\nurl = 'postgresql://me:sk-very-secret-indeed@h/x'\n",
        "[model]\nname = 'openai:a'\nbase_url = 'https://me:sk-very-secret-indeed@h.example/v1'\n",
        "[providers.mine]\nbase_url = 'https://me:sk-very-secret-indeed@h.example/v1'\n",
        "[tools.web_search]\nurl = 'https://me:sk-very-secret-indeed@h.example'\n",
        "[mcp.web]\nurl = 'https://me:sk-very-secret-indeed@h.example'\n",
        "[memory]\napi_key = 'sk-very-secret-indeed'\n",
        "[memory]\nurl = 'https://me:sk-very-secret-indeed@h.example'\n",
        "[memory]\nurl = 'https://sk-very-secret-indeed@h.example'\n",
    ],
)
def test_a_secret_in_a_file_that_others_can_read_is_refused(public: Path, text: str) -> None:
    """K1: and every such secret is one that is masked wherever it turns up."""
    with pytest.raises(ConfigInvalid, match=r"is a secret that others can read; run: chmod 600 "):
        load(written(public, text, 0o644), {})
    assert "sk-very-secret-indeed" in secrets(load(written(public, text), {}), {})


def test_a_secret_in_a_variable_needs_no_file_to_be_hidden(tmp_path: Path) -> None:
    file = written(tmp_path, "[model]\nname = 'openai:gpt-5'\n", 0o644)
    assert load(file, {"HOLDFAST_MODEL__API_KEY": "sk-very-secret-indeed"}).model.api_key == "sk-very-secret-indeed"


def test_the_keys_that_the_environment_holds_are_secrets_too(tmp_path: Path) -> None:
    """K1"""
    text = """
        model = { name = "a:b", api_key_env = "MINE" }
        providers.x.api_key_env = "THEIRS"
        mcp.files = { command = ["x"], env = { LANG = "C.UTF-8" } }
    """
    environment = {"MINE": "one-of-mine", "OPENAI_API_KEY": "known-by-name", "HOME": "/home/me", "PATH": "/usr/bin:/bin"}
    assert secrets(load(written(tmp_path, text), {}), environment) == {"one-of-mine", "known-by-name"}
    assert secrets(Config(), {}) == frozenset()


SECRET = "dGhlIHRpZGUgdHVybnMgYXQgZm91ci4u"
DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks(page: str) -> list[str]:
    found = re.findall(r"^```toml\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [block for block in found if "entry-points" not in block]


BLOCKS = blocks("guide.md")


@pytest.mark.parametrize("block", [*BLOCKS[:-1], *blocks("http.md")], ids=lambda block: block.split("]")[0].strip("["))
def test_what_the_pages_show_can_be_used(tmp_path: Path, block: str) -> None:
    # Where a page leaves a secret out, its reader puts one.
    load(written(tmp_path, block.replace('"whsec_…"', f'"whsec_{SECRET}"').replace('"…"', f'"{SECRET}"')), {})


def test_the_guide_lists_every_setting_with_its_default(tmp_path: Path) -> None:
    shown = tomllib.loads(BLOCKS[-1])
    named = {key: shown.pop(key) for key in ("providers", "mcp")}
    route = shown["channels"]["webhook"]["routes"].pop("NAME")
    whole = load(written(tmp_path, BLOCKS[-1].partition("[providers.NAME]")[0]), {})
    assert whole.model == Config().model
    assert keys(shown) == {path for path in keys(dataclasses.asdict(Config())) if path[0] not in named}
    assert keys(named["providers"]["NAME"]) == keys(dataclasses.asdict(ProviderConfig()))
    assert keys(named["mcp"]["NAME"]) == keys(dataclasses.asdict(McpConfig()))
    # No filters cannot be written down, so they are only shown.
    assert {**route, "events": (), "filters": None} == dataclasses.asdict(RouteConfig())
    assert "# filters = " in BLOCKS[-1]
    del shown["sessions"]["daily_at"]
    defaults = dataclasses.asdict(Config())
    for path in keys(shown):
        told, actual = shown, defaults
        for key in path:
            told, actual = told[key], actual[key]
        assert told == (list(actual) if isinstance(actual, tuple) else actual), path


def keys(tree: Mapping[str, Any]) -> set[tuple[str, ...]]:
    """Return the path of every setting in a tree; a table whose names are anybody's choice is one setting."""
    found: set[tuple[str, ...]] = set()
    for key, value in tree.items():
        is_table = isinstance(value, dict) and key not in ("retention_days", "reset_by_channel", "env", "headers")
        found |= {(key, *path) for path in keys(value)} if is_table else {(key,)}
    return found
