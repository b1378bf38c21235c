"""Accounts of chat platforms in the configuration, each with the settings of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from holdfast.app.build import Builder
from holdfast.app.doctor import consult
from holdfast.channels.chat import kinds
from holdfast.channels.registry import OPENERS
from holdfast.channels.settings import KINDS, misconfigured
from holdfast.clock import SystemClock
from holdfast.config import Config, load, secrets
from holdfast.config.inventory import inventory
from holdfast.core.redaction import Redaction
from holdfast.errors import ConfigInvalid, KindUnusable, NotRunning, Overridden
from holdfast.operations.channels import TrialContext, try_account
from holdfast.operations.doctor import Level
from holdfast.operations.settings import Origin, Settings, SettingsChange

TOKEN = "83:x9Kq-27fLw0pTzR4vBnM"
TELEGRAM_TOKEN = "7000001:AAExampleTokenOfTheScriptedServer_0"
KNOWN = "unknown key; known are pigeon, telegram, webhook, url, github"
PLATFORM = """
from dataclasses import dataclass
from typing import Annotated
from holdfast.channels.chat.account import ChatKind
from holdfast.channels.chat.config import ChatSettings
from holdfast.channels.port import Capabilities

@dataclass(frozen=True, slots=True, kw_only=True)
class PigeonSettings(ChatSettings):
    token: Annotated[str, "The ring number."] = ""
    token_env: Annotated[str, "The variable that holds it."] = ""
    loft_base: Annotated[str, "Where the loft is."] = "https://loft.example"
    feeds: Annotated[int, "How often it is fed in a day."] = 2

    def problems(self):
        return {} if self.token or self.token_env else {"token": "is missing"}

def opened(settings, context):
    raise NotImplementedError

PIGEON = ChatKind(name="pigeon", settings=PigeonSettings, capabilities=Capabilities(), open=opened)
NOTHING = object()
"""


@pytest.fixture
def pigeon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with a platform, as pip would leave it."""
    installed(tmp_path, monkeypatch, "pigeon", PLATFORM, "pigeon = pigeon_platform:PIGEON")


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, source: str, *points: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(["[holdfast.channels]", *points, ""]))
    (folder / f"{name}_platform.py").write_text(source)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(__import__("sys").modules, f"{name}_platform", raising=False)


def read(folder: Path, text: str, environment: Mapping[str, str] | None = None) -> Config:
    file = folder / "holdfast.toml"
    file.write_text(text)
    file.chmod(0o600)
    return load(file, environment or {}, further=misconfigured, kinds=KINDS)


@pytest.mark.usefixtures("pigeon")
def test_an_account_has_the_settings_of_its_kind(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        f"""
        [channels.pigeon]
        token = "{TOKEN}"
        allow = ["7"]
        [channels.work]
        kind = "pigeon"
        token_env = "WORK_PIGEON"
        groups = "all"
        home = "12:3"
        """,
    )
    accounts = config.channels.accounts
    assert list(accounts) == ["pigeon", "work"]
    assert {type(each).__name__ for each in accounts.values()} == {"PigeonSettings"}
    assert (accounts["pigeon"].allow, accounts["pigeon"].groups, accounts["work"].groups) == (("7",), "mention", "all")
    assert kinds.find("pigeon").settings is type(accounts["work"])


@pytest.mark.usefixtures("pigeon")
@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("[channels.pigeon]\ntokn = 1", 2, "channels.pigeon.tokn: unknown key; did you mean token?"),
        ("[channels.pigeon]\nenabled = 1", 2, "channels.pigeon.enabled: must be true or false"),
        ("[channels.pigeon]\nallow = [7]", 2, "channels.pigeon.allow: must be text in quotes"),
        ("[channels.pigeon]\ngroups = 'some'", 2, "channels.pigeon.groups: must be one of 'mention', 'all', 'off'"),
        ("[channels.pigeon]\nfeeds = 3", 1, "channels.pigeon.token: is missing"),
        ("[channels.pigon]\n", 1, "channels.pigon: unknown key; did you mean pigeon?"),
        ("[channels.ur]\n", 1, "channels.ur: unknown key; did you mean url?"),
        ("[channels]\nnothing = 1", 2, f"channels.nothing: {KNOWN}"),
        ("[channels.desk]\n", 1, f"channels.desk: {KNOWN}; a table with another name needs a kind"),
        ("[channels.work]\nkind = 'pigon'", 2, "channels.work.kind: unknown kind 'pigon'; did you mean pigeon?"),
        ("[channels.work]\nkind = 'owl'", 2, "channels.work.kind: unknown kind 'owl'; known are pigeon, telegram"),
        ("[channels]\npigeon = 1", 2, "channels.pigeon: must be a table"),
        ("[channels.cron]\nkind = 'pigeon'\ntoken = 'abcdefgh'", 1, "channels.cron: cannot be the name of an account"),
        ("[channels.'a b']\nkind = 'pigeon'\ntoken = 'abcdefgh'", 1, "channels.a b: must be named with letters"),
        ("[channels.pigeon]\ntoken = 'abcdefgh'\nallow = ['*']", 3, "channels.pigeon.allow: would make everybody"),
        ("[channels.pigeon]\ntoken = 'abcdefgh'\nhome = ':1'", 3, "channels.pigeon.home: ':1' is not <chat>"),
        ("[channels.pigeon]\ntoken = 'abcdefgh'\nloft_base = 'x'", 3, "channels.pigeon.loft_base: must be an address"),
        ("[channels.pigeon]\ntoken_env = 'not a name'", 2, "channels.pigeon.token_env: must be the name of an environment"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_account_names_its_file_and_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    with pytest.raises(ConfigInvalid) as raised:
        read(tmp_path, text)
    assert str(raised.value).startswith(f"{tmp_path}/holdfast.toml:{line}: {problem}")


@pytest.mark.usefixtures("pigeon")
def test_variables_decide_settings_of_accounts_with_their_types(tmp_path: Path) -> None:
    environment = {
        "HOLDFAST_CHANNELS__PIGEON__TOKEN": "1234567890",
        "HOLDFAST_CHANNELS__PIGEON__FEEDS": "3",
        "HOLDFAST_CHANNELS__PIGEON__ALLOW": '["7"]',
        "HOLDFAST_CHANNELS__WORK__KIND": "pigeon",
        "HOLDFAST_CHANNELS__WORK__TOKEN": TOKEN,
    }
    accounts = read(tmp_path, "[channels.pigeon]\nfeeds = 1\n", environment).channels.accounts
    assert (getattr(accounts["pigeon"], "feeds"), getattr(accounts["pigeon"], "token")) == (3, "1234567890")  # noqa: B009 - Of another package.
    assert accounts["pigeon"].allow == ("7",)
    assert list(accounts) == ["pigeon", "work"]
    with pytest.raises(ConfigInvalid, match=r"environment: HOLDFAST_CHANNELS__PIGEON__FEEDS: .*must be a number"):
        read(tmp_path, "", {**environment, "HOLDFAST_CHANNELS__PIGEON__FEEDS": "often"})


@pytest.mark.usefixtures("pigeon")
def test_the_secrets_of_accounts_are_known_as_such(tmp_path: Path) -> None:
    """K1"""
    text = f"[channels.pigeon]\ntoken = '{TOKEN}'\n[channels.work]\nkind='pigeon'\ntoken_env='WORK_PIGEON'\n"
    config = read(tmp_path, text)
    assert secrets(config, {"WORK_PIGEON": "another-one"}) == {TOKEN, "another-one"}
    (tmp_path / "holdfast.toml").chmod(0o644)
    for each in (tmp_path, *tmp_path.parents):
        if not each.stat().st_mode & 0o001:
            return  # Others cannot reach the file here.
    with pytest.raises(ConfigInvalid, match="chmod 600"):
        load(tmp_path / "holdfast.toml", {}, further=misconfigured, kinds=KINDS)


@pytest.mark.usefixtures("pigeon")
def test_the_inventory_has_the_settings_of_accounts_by_their_path_in_the_file(tmp_path: Path) -> None:
    config = read(tmp_path, f"[channels.pigeon]\ntoken = '{TOKEN}'\n")
    found = {each.key: each for each in inventory(config)}
    assert found["channels.pigeon.groups"].choices == ("mention", "all", "off")
    assert found["channels.pigeon.feeds"].doc == "How often it is fed in a day."
    assert not any("accounts" in key for key in found)


async def nothing(_config: Config) -> None:
    pass


@pytest.mark.usefixtures("pigeon")
async def test_settings_of_accounts_are_changed_and_shown_without_secrets(tmp_path: Path) -> None:
    """An account is made by its first setting, and its platform checks the rest."""
    file = tmp_path / "holdfast.toml"
    file.write_text("# mine\n[server]\nport = 9000  # kept\n")
    settings = Settings(Origin(file=file, loaded=Config()), nothing, Redaction(), {"HOLDFAST_CHANNELS__PIGEON__HOME": "7"})
    view = await settings.change(
        SettingsChange(changes={"channels.pigeon.token": TOKEN, "channels.pigeon.allow": ["7"], "channels.pigeon.feeds": 4})
    )
    shown = {each.key: each for each in view.items}
    assert (shown["channels.pigeon.token"].value, shown["channels.pigeon.token"].secret) == ("set", True)
    assert TOKEN not in repr(view)
    assert (shown["channels.pigeon.feeds"].value, shown["channels.pigeon.feeds"].editable) == (4, True)
    assert shown["channels.pigeon.home"].source == "environment"
    assert file.read_text().startswith("# mine\n[server]\nport = 9000  # kept\n")
    assert TOKEN in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    for change, problem in (
        ({"channels.pigeon.tokn": "x"}, "did you mean token"),
        ({"channels.owl.token": "x"}, "unknown key"),
        ({"channels.pigeon.token": None}, "is missing"),
    ):
        with pytest.raises(ConfigInvalid, match=problem):
            await settings.change(SettingsChange(changes=change))
    with pytest.raises(Overridden):
        await settings.change(SettingsChange(changes={"channels.pigeon.home": "8"}))


FAULTY = f"""{PLATFORM}
class Plain:
    pass

@dataclass(frozen=True, slots=True, kw_only=True)
class Needy(ChatSettings):
    ring: str

@dataclass(frozen=True, slots=True, kw_only=True)
class Untyped(ChatSettings):
    ring: "Unheard" = ""

PLAIN = ChatKind(name="plain", settings=Plain, capabilities=Capabilities(), open=opened)
NEEDY = ChatKind(name="needy", settings=Needy, capabilities=Capabilities(), open=opened)
UNTYPED = ChatKind(name="untyped", settings=Untyped, capabilities=Capabilities(), open=opened)
"""
FAULTS = {
    "gone": ("pigeon_platform:GONE", "cannot be imported: AttributeError: module 'pigeon_platform' has no attribute 'GONE'"),
    "absent": ("no_such_module:KIND", "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'"),
    "nothing": ("pigeon_platform:NOTHING", "is no ChatKind but of the type object"),
    "plain": ("pigeon_platform:PLAIN", "has settings that are no dataclass which extends ChatSettings: Plain"),
    "needy": ("pigeon_platform:NEEDY", "has settings without a default: ring of Needy"),
    "untyped": ("pigeon_platform:UNTYPED", "has settings whose types cannot be read: name 'Unheard' is not defined"),
}


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with a sound platform and with one of each fault."""
    points = [f"{name} = {value}" for name, (value, _) in FAULTS.items()]
    installed(tmp_path, monkeypatch, "pigeon", FAULTY, "pigeon = pigeon_platform:PIGEON", *points)


@pytest.mark.usefixtures("faulty")
@pytest.mark.parametrize("kind", FAULTS)
async def test_a_package_with_a_fault_closes_only_its_own_accounts(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The fault is named in one line, and the settings that every account has are read all the same."""
    value, problem = FAULTS[kind]
    line = f"the kind {kind!r} of pigeon 1.0 ({value}) {problem}"
    environment = {f"HOLDFAST_CHANNELS__{kind.upper()}__RING": "7"}
    text = f"""
        [channels.{kind}]
        nobody_knows_it = 1
        allow = ["7"]
        [channels.telegram]
        token = "{TELEGRAM_TOKEN}"
        api_base = "http://127.0.0.1:9"
        """
    config = read(tmp_path, text, environment)
    assert config.channels.accounts[kind].allow == ("7",)
    with pytest.raises(KindUnusable) as raised:
        kinds.find(kind)
    assert str(raised.value) == line
    async with (await Builder.of(config, tmp_path, Redaction(), SystemClock())).accounts() as accounts:
        assert list(accounts) == ["telegram"]
    assert [each.getMessage() for each in caplog.records] == [f"The account {kind} stays closed: {line}"]
    report = await consult(tmp_path, tmp_path / "holdfast.toml", NotRunning(tmp_path), required=True)
    found = [(each.level, each.found) for each in report.checks if each.found.startswith(f"{kind}: ")]
    assert found == [(Level.FAIL, f"{kind}: {line}")]


@pytest.mark.usefixtures("pigeon")
async def test_a_platform_that_cannot_be_opened_closes_only_its_own_accounts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = f"[channels.pigeon]\ntoken = '{TOKEN}'\n[channels.telegram]\ntoken = '{TELEGRAM_TOKEN}'"
    config = read(tmp_path, text)
    async with (await Builder.of(config, tmp_path, Redaction(), SystemClock())).accounts() as accounts:
        assert list(accounts) == ["telegram"]
    assert "The account pigeon stays closed: its platform cannot be opened" in caplog.text
    around = TrialContext(home=tmp_path, environment={}, clock=SystemClock(), redaction=Redaction())
    trial = await try_account("pigeon", config.channels.accounts["pigeon"], around)
    assert trial.problem == "the platform pigeon failed with NotImplementedError: "


def test_a_kind_that_two_packages_have_is_that_of_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, "pigeon", PLATFORM, "two = pigeon_platform:PIGEON")
    (tmp_path / "other").mkdir()
    installed(tmp_path / "other", monkeypatch, "owl", PLATFORM, "two = owl_platform:PIGEON")
    with pytest.raises(KindUnusable, match="several packages have the kind 'two': "):
        kinds.find("two")
    assert read(tmp_path, "[channels.two]").channels.accounts["two"] == kinds.UnusableSettings()


def test_no_account_takes_the_name_of_another_channel() -> None:
    assert set(OPENERS) <= kinds.RESERVED
    assert not set(kinds.BUILT_IN) & kinds.RESERVED
