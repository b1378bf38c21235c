"""A plugin that remembers, in whole gateways one after the other: installed, ill, gone, and back again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holdfast.cli import main

CODE = """
import json, os
from pathlib import Path
from holdfast.memory.provider import Provider

class Elephant(Provider):
    def __init__(self, config):
        super().__init__("elephant:herd-7")

    async def commit(self, session, segment, messages):
        if "ELEPHANT_IS_ILL" in os.environ:
            raise RuntimeError("no hay")
        with Path(os.environ["HOLDFAST_HOME"], "kept.jsonl").open("a") as kept:
            said = [[each.role, each.text] for each in messages]
            kept.write(json.dumps({"segment": segment.id, "owner": segment.owner, "said": said}) + "\\n")
        return "never forgotten"
"""


class House:
    """A home, and a folder beside it in which the plugin is installed or not."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir(mode=0o700)
        self.call_context = folder / "call_context"
        info = self.call_context / "holdfast_elephant-1.2.dist-info"
        info.mkdir(parents=True)
        (self.call_context / "holdfast_elephant.py").write_text(CODE)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: holdfast-elephant\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text("[holdfast.memory]\nelephant = holdfast_elephant:Elephant\n")

    def run(self, *words: str, provider: str, installed: bool = True, ill: bool = False) -> Result:
        with pytest.MonkeyPatch.context() as changed:
            changed.setenv("HOLDFAST_MEMORY__PROVIDER", provider)
            if installed:
                changed.syspath_prepend(str(self.call_context))
            if ill:
                changed.setenv("ELEPHANT_IS_ILL", "1")
            return CliRunner().invoke(main, words, env={"HOLDFAST_HOME": str(self.home), "COLUMNS": "120"})

    def read(self, *words: str, **chosen: Any) -> Any:
        done = self.run(*words, "--json", **chosen)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    @property
    def kept(self) -> list[dict[str, Any]]:
        file = self.home / "kept.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def owed(self, **chosen: Any) -> list[str]:
        return [each["found"] for each in self.read("doctor", **chosen)["checks"] if each["name"] == "debts"]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_a_plugin_that_is_gone_is_missed_and_paid_when_it_is_back(house: House) -> None:
    """M3, M6: its debt waits for it through other providers and restarts, and reaches it once it can be paid."""
    house.read("ask", "I sail in Bergen.", provider="elephant", ill=True)
    assert house.kept == []
    assert house.owed(provider="elephant") == ["elephant:herd-7: 0 waiting, 1 in progress"]

    house.read("ask", "My name is Ada.", provider="builtin", installed=False)
    assert house.owed(provider="builtin", installed=False) == [
        "builtin: 0 waiting, 1 in progress",
        "elephant:herd-7: 0 waiting, 1 on hold; it cannot be opened here",
    ]
    assert house.kept == []

    # Whether this command pays, or the gateway that it is has done so before it asks, is nobody's concern.
    house.read("memory", "commit", "terminal", provider="builtin")
    (paid,) = house.kept
    assert paid["owner"] == "elephant:herd-7"
    assert paid["said"][0] == ["user", "I sail in Bergen."]
    assert not any("Ada" in text for _, text in paid["said"]), "what was said under another provider is that one's"
    assert house.owed(provider="builtin") == []
    assert "Ada" in house.run("memory", "show", provider="builtin").stdout


def test_a_chosen_plugin_that_is_not_installed_keeps_the_gateway_from_starting(house: House) -> None:
    refused = house.run("ask", "hello", provider="elephant", installed=False)
    assert refused.exit_code == 78
    assert "environment: HOLDFAST_MEMORY__PROVIDER: memory.provider: there is no 'elephant'" in refused.stderr
    assert "Traceback" not in refused.stderr
