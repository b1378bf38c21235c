"""The page about the architecture is true where a machine can tell."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from holdfast import core
from holdfast.core import turns
from holdfast.store.audit import CHECKS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGE = DOCS / "architecture.md"
SCRIPT = DOCS / "diagrams.py"


@pytest.fixture(scope="module")
def diagrams() -> ModuleType:
    spec = importlib.util.spec_from_file_location("diagrams", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def page(tmp_path: Path) -> Path:
    copy = tmp_path / "architecture.md"
    copy.write_text(PAGE.read_text("utf-8"), "utf-8")
    return copy


def test_the_page_shows_the_tables_as_they_are() -> None:
    checked = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("shown", "instead"),
    [
        ("    running --> interrupted: lose\n", ""),
        ("    running --> interrupted: lose\n", "    running --> failed: lose\n"),
        ("    completed --> [*]\n", "    completed --> queued: resume\n"),
        ("[*] --> queued", "[*] --> running"),
    ],
)
def test_a_page_that_shows_other_moves_is_found_and_redrawn(
    diagrams: ModuleType, page: Path, capsys: pytest.CaptureFixture[str], shown: str, instead: str
) -> None:
    fresh = page.read_text("utf-8")
    assert shown in fresh
    page.write_text(fresh.replace(shown, instead), "utf-8")
    assert diagrams.main(["--check"], page) == 1
    assert "python docs/diagrams.py" in capsys.readouterr().err
    assert diagrams.main([], page) == 0
    assert page.read_text("utf-8") == fresh
    assert diagrams.main(["--check"], page) == 0


def test_checking_writes_nothing(diagrams: ModuleType, page: Path) -> None:
    stale = page.read_text("utf-8").replace("[*] --> queued", "[*] --> running")
    page.write_text(stale, "utf-8")
    diagrams.main(["--check"], page)
    assert page.read_text("utf-8") == stale


def test_redrawing_leaves_the_words_alone(diagrams: ModuleType, page: Path) -> None:
    words = re.compile(r"```mermaid.*?```", re.DOTALL)
    before = page.read_text("utf-8").replace("How Holdfast works", "How it works")
    page.write_text(before, "utf-8")
    diagrams.main([], page)
    assert words.sub("", page.read_text("utf-8")) == words.sub("", before)


@pytest.mark.parametrize("broken", ["<!-- diagram: turn -->", "<!-- end of diagram -->"])
def test_a_page_without_a_place_for_a_diagram_is_refused(diagrams: ModuleType, broken: str) -> None:
    with pytest.raises(SystemExit, match="one place for the"):
        diagrams.redraw(PAGE.read_text("utf-8").replace(broken, ""))


def test_an_unknown_argument_is_refused(diagrams: ModuleType, page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diagrams.main(["--chekc"], page) == 2
    assert "--check" in capsys.readouterr().err


def test_a_diagram_has_every_move_of_its_table(diagrams: ModuleType) -> None:
    drawn = diagrams.draw(turns.Turn, turns.MOVES)
    assert len(re.findall(r" --> \w+: \w+$", drawn, re.MULTILINE)) == len(turns.MOVES)
    assert set(re.findall(r"(\w+) --> \[\*\]", drawn)) == turns.FINAL


def test_every_kind_of_thing_that_has_states_is_drawn(diagrams: ModuleType) -> None:
    """A table of moves that nobody drew would be missing from the page without a sound."""
    modules = [importlib.import_module(f"holdfast.core.{each.name}") for each in pkgutil.iter_modules(core.__path__)]
    tables = [module.MOVES for module in modules if hasattr(module, "MOVES")]
    assert sorted(map(id, tables)) == sorted(id(moves) for _, moves in diagrams.TABLES.values())


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.name)
def test_every_link_leads_to_a_file(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text("utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def invariants() -> dict[str, list[str]]:
    """Return the table of invariants: the name of each with the folders where it is tried."""
    rows = re.findall(r"^\| ([A-Z]+\d?) \|.*\| ([a-z, ]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {name: folders.split(", ") for name, folders in rows}


def test_every_invariant_that_is_audited_is_explained() -> None:
    audited = {check.partition(" ")[0] for check in CHECKS}
    assert audited - invariants().keys() == set()


def test_every_invariant_is_tried_where_the_page_says() -> None:
    assert len(invariants()) == 30
    for name, folders in invariants().items():
        for folder in folders:
            tests = [path.read_text("utf-8") for path in (ROOT / "tests" / folder).glob("**/*.py")]
            assert any(re.search(rf"\b{name}\b", text) for text in tests), f"no test in tests/{folder} speaks of {name}"


def test_every_decision_is_listed_and_has_its_three_parts() -> None:
    decisions = sorted((DOCS / "decisions").glob("*.md"))
    assert [int(path.name[:4]) for path in decisions] == list(range(1, len(decisions) + 1))
    for path in decisions:
        text = path.read_text("utf-8")
        assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"], path.name
        assert text.startswith(f"# {int(path.name[:4])}. ")
        assert path.name in PAGE.read_text("utf-8")


def test_the_words_are_explained_once_and_in_order() -> None:
    words = re.findall(r"^\| \*\*`?(\w+)`?\*\* \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(words) > 30
    assert words == sorted(set(words), key=str.lower)


def test_every_proof_that_the_page_about_security_names_is_there() -> None:
    text = (DOCS / "security.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) > 20
    for file, test in named:
        assert (ROOT / file).exists(), file
        assert not test or f"def {test}(" in (ROOT / file).read_text("utf-8"), (file, test)
    for link in re.findall(r"\((decisions/[\w.-]+)\)", text):
        assert (DOCS / link).exists(), link


@pytest.mark.parametrize(
    ("page", "first", "last"),
    [
        (PAGE, "## The way of one message", "## Words"),
        (ROOT / "CONTRIBUTING.md", "## To add X", "## Rules"),
    ],
    ids=["the way of one message", "to add X, touch Y"],
)
def test_every_file_that_a_newcomer_is_sent_to_is_there(page: Path, first: str, last: str) -> None:
    text = page.read_text("utf-8").partition(first)[2].partition(last)[0]
    named = re.findall(r"`([\w./]+(?:\.(?:py|ts)|/))`", text)
    assert len(named) > 10
    roots = (ROOT, ROOT / "src" / "holdfast")
    assert [each for each in named if not any((root / each).exists() for root in roots)] == []
