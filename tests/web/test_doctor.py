"""The doctor over HTTP: the report of `holdfast doctor`, by the gateway about itself, once for all who ask at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.cli.doctor import check_up
from holdfast.config import TerminalConfig, ToolsConfig
from holdfast.errors import Unavailable
from holdfast.operations import doctor
from holdfast.operations.doctor import Doctor, Finding, Level, Report
from tests.web.house import open_house

KEY = "a-key-for-the-operator"


def told(report: Any) -> list[tuple[str, str, str]]:
    """What is found does not change between two looks, but for what is counted and timed."""
    counted = ("disk", "clock", "store")
    return [(each["name"], each["level"], "" if each["name"] in counted else each["found"]) for each in report["checks"]]


async def test_the_gateway_finds_of_itself_what_the_command_finds(home: Path) -> None:
    async with open_house(home, api_key=KEY) as house:
        (home / "holdfast.toml").write_text('[gateway]\nbusy = "steer"\n')
        report = await house.get("/api/doctor")
        command = await check_up(home, home / "holdfast.toml", required=False)
        assert (report["ok"], told(report)) == (command.ok, told(msgspec.to_builtins(command)))
        (gateway,) = [each for each in report["checks"] if each["name"] == "gateway"]
        assert (gateway["level"], house.url in gateway["found"]) == ("ok", True)
        # What was written into the file since the start is looked at as well.
        (home / "holdfast.toml").write_text('[gateway]\nbusy = "stear"\n')
        report = await house.get("/api/doctor")
        (wrong,) = [each for each in report["checks"] if each["level"] == "fail"]
        assert ("holdfast.toml:2: gateway.busy" in wrong["found"], report["ok"]) == (True, False)


@pytest.mark.parametrize(
    ("approval", "disabled", "unsafe"), [("ask", (), False), ("allow", (), True), ("allow", ("terminal",), False)]
)
async def test_the_status_says_when_commands_run_unasked_and_unconfined(
    home: Path, approval: Any, disabled: tuple[str, ...], unsafe: bool
) -> None:
    """SECURITY 10: the command line and the page show it in red.  Without a sandbox alone, a person is asked."""
    tools = ToolsConfig(terminal=TerminalConfig(approval=approval), disabled=disabled)
    async with open_house(home, tools=tools) as house:
        assert (await house.get("/api/status"))["agent"]["unsafe"] is unsafe


async def test_only_the_operator_sees_it(home: Path) -> None:
    async with open_house(home) as house:
        answer = await house.web.get("/api/doctor")
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "operator_only")


async def test_those_who_ask_at_once_get_one_report_and_nobody_who_leaves_takes_it_away() -> None:
    began, go_on = 0, asyncio.Event()

    async def consult() -> Report:
        nonlocal began
        began += 1
        await go_on.wait()
        return Report(ok=True, checks=[Finding(name="clock", level=Level.OK, found=str(began))])

    consultations = Doctor(consult)
    leaves, stays = asyncio.create_task(consultations.report()), asyncio.create_task(consultations.report())
    await asyncio.sleep(0)
    leaves.cancel()
    go_on.set()
    assert ((await stays).checks[0].found, began) == ("1", 1)
    assert ((await consultations.report()).checks[0].found, began) == ("2", 2)


async def test_it_is_given_up_in_time_and_when_the_gateway_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    async def consult() -> Report:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")
        raise AssertionError

    monkeypatch.setattr(doctor, "REPORT_TIMEOUT_S", 0.05)
    consultations = Doctor(consult)
    with pytest.raises(Unavailable, match="not done within"):
        await consultations.report()
    monkeypatch.setattr(doctor, "REPORT_TIMEOUT_S", 60)
    asking = asyncio.create_task(consultations.report())
    await asyncio.sleep(0.01)
    await consultations.close()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert ended == ["ended", "ended"]
