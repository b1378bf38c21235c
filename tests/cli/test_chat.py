"""A chat on a real terminal: written to while it answers, and told what happens by itself."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.blackbox.models import ModelProcess
from tests.cli.terminal import Terminal
from tests.cli.test_gateway import PATIENCE_S, on_a_screen, serving


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


class Glass:
    """What can be seen of a terminal: rows of letters, and a cursor that is steered among them."""

    _PIECE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|([^\x1b])", re.DOTALL)

    def __init__(self) -> None:
        self.rows: list[str] = [""]
        self._row = self._column = 0
        self._rest = ""

    def show(self, text: str) -> None:
        text, end = self._rest + text, 0
        for piece in self._PIECE.finditer(text):
            number, steer, letter = piece.groups()
            self._put(letter) if letter else self._steer(steer, int(number) if number.isdigit() else 1)
            end = piece.end()
        self._rest = text[end:]

    def _put(self, letter: str) -> None:
        if letter == "\r":
            self._column = 0
        elif letter == "\n":
            self._row, self._column = self._row + 1, 0
            self.rows += [""] * (self._row + 1 - len(self.rows))
        else:
            row = self.rows[self._row].ljust(self._column)
            self.rows[self._row] = row[: self._column] + letter + row[self._column + 1 :]
            self._column += 1

    def _steer(self, steer: str, number: int) -> None:
        match steer:
            case "A":
                self._row -= number
            case "C":
                self._column += number
            case "J":
                self.rows[self._row :] = [self.rows[self._row][: self._column]]
            case _:
                assert steer in "mhl", steer


class Typist:
    """Somebody before a screen."""

    def __init__(self, screen: int) -> None:
        self._screen = screen
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._glass = Glass()

    def type(self, keys: str) -> None:
        os.write(self._screen, keys.encode())

    def sees(self, *rows: str) -> str:
        """Wait until these rows are on the screen, one below the other, and return all of it."""
        patterns = [re.compile(row) for row in rows]
        while not self._is_there(patterns):
            piece = b""
            # A screen whose last process has ended is an error to read.
            with contextlib.suppress(OSError):
                piece = os.read(self._screen, 4096)
            assert piece, f"the screen ended before it showed {rows}: {self._shown()}"
            self._glass.show(self._decoder.decode(piece))
        return self._shown()

    def _is_there(self, patterns: list[re.Pattern[str]]) -> bool:
        rows = iter(self._glass.rows)
        return all(any(pattern.fullmatch(row.rstrip()) for row in rows) for pattern in patterns)

    def _shown(self) -> str:
        return "\n".join(self._glass.rows)


@contextlib.contextmanager
def chatting(terminal: Terminal, *options: str) -> Iterator[Typist]:
    with on_a_screen(terminal, "chat", *options) as (chat, screen):
        typist = Typist(screen.fileno())
        typist.sees("›")
        yield typist
        typist.type("\x04")
        with contextlib.suppress(OSError):
            while os.read(screen.fileno(), 4096):
                pass
        assert chat.wait(PATIENCE_S) == 0


def test_a_line_typed_while_it_answers_is_sent_and_answered_next(terminal: Terminal) -> None:
    with serving(terminal), chatting(terminal) as typist:
        typist.type("count to 25 slowly\n")
        typist.sees("› count to 25 slowly", ".* 1 2 3.*", "…", "› Ctrl-C stops it.*")
        typist.type("and then? count to 2\n")
        typist.sees("… next: and then\\? count to 2", "› Ctrl-C stops it.*")
        shown = typist.sees(".* 24 25\\.", "› and then\\? count to 2", ".* 1 2\\.", "›")
        # Nothing of a prompt is left between what was said.
        assert "next:" not in shown
        assert "Ctrl-C" not in shown
    first, second = terminal.read("turns", "list", "terminal")["items"]
    assert (first["state"], second["state"]) == ("completed", "completed")
    assert second["accepted_at"] < first["answered_at"]


def test_a_turn_of_somebody_else_is_shown_while_the_prompt_waits(terminal: Terminal) -> None:
    """A5: what comes by itself arrives in the running chat, and what was being typed is still there."""
    with serving(terminal) as gateway, chatting(terminal) as typist:
        typist.type("half a li")
        typist.sees("› half a li")
        gateway.start_turn("news: count to 3")
        typist.sees("› news: count to 3", ".*You wrote: “news: count to 3”\\. 1 2 3\\.", "› half a li")
        typist.type("ne; count to 1\n")
        typist.sees("› half a line; count to 1", ".*“half a line; count to 1”\\. 1\\.", "›")


def test_a_question_is_answered_in_place(terminal: Terminal) -> None:
    with serving(terminal), chatting(terminal) as typist:
        typist.type("ask me which port; count to 2\n")
        typist.sees("\\? which port", "› your answer")
        typist.type("Bergen\n")
        typist.sees("\\? which port", "  → Bergen", "You answered: “Bergen”\\. 1 2\\.", "›")
    (turn,) = terminal.read("turns", "list", "terminal")["items"]
    assert turn["state"] == "completed"


def test_an_approval_is_given_in_place_with_one_letter(terminal: Terminal) -> None:
    with serving(terminal), chatting(terminal) as typist:
        typist.type("run: rm -rf ../elsewhere; count to 2\n")
        # Not for always: nothing confines it, and what it does depends on what it finds.
        typist.sees("! May I run this command.*", " +rm -rf ../elsewhere", "› \\[o\\]nce  \\[s\\]ession  \\[d\\]eny")
        typist.type("o\n")
        typist.sees("  → once", "✓ terminal  rm -rf ../elsewhere  .*", " ?1 2\\.", "›")
        typist.type("run: rm -rf ../elsewhere; count to 3\n")
        typist.sees("› run: rm -rf ../elsewhere; count to 3", "! May I run this command.*", "› \\[o\\]nce .*")
        typist.type("not that one\n")
        typist.sees("✗ terminal  rm -rf ../elsewhere  .*", ".*1 2 3\\.", "›")
    items = terminal.read("sessions", "show", "terminal")["items"]
    results = [item["result"] for item in items if item["name"] == "terminal"]
    assert results[1].endswith("They said: not that one")


def test_ask_is_answered_in_place_where_there_is_a_terminal(terminal: Terminal) -> None:
    with on_a_screen(terminal, "ask", "ask me which port; count to 2") as (asking, screen):
        typist = Typist(screen.fileno())
        typist.sees("\\? which port", "›")
        typist.type("Bergen\n")
        typist.sees("You answered: “Bergen”\\. 1 2\\.")
        assert asking.wait(PATIENCE_S) == 0


def test_ctrl_c_stops_the_answer_then_clears_the_line_then_leaves(terminal: Terminal) -> None:
    with on_a_screen(terminal, "chat") as (chat, screen):
        typist = Typist(screen.fileno())
        typist.sees("›")
        typist.type("count to 500 slowly\n")
        typist.sees(".* 1 2 3.*")
        typist.type("\x03")
        typist.sees("■ Cancelled\\.", "›")
        typist.type("never mind")
        typist.sees("› never mind")
        typist.type("\x03")
        assert "never" not in typist.sees("■ Cancelled\\.", "›")
        typist.type("count to 2\n")
        typist.sees("› count to 2", ".* 1 2\\.", "›")
        typist.type("\x03")
        assert chat.wait(PATIENCE_S) == 1


def test_nothing_of_a_cancelled_answer_stands_below_the_cancel(terminal: Terminal, tmp_path: Path) -> None:
    """J1 J9: the model speaks fast, so each time some words were on their way, and are handed in during the next answer."""
    with model(tmp_path) as settings, serving(terminal, **settings), chatting(terminal) as typist:
        for count in (60, 61):
            quick, calm = f"script: stream {count}00 at 400", f"script: stream {count} at 40"
            typist.type(f"{quick}\n")
            typist.sees(f"› {quick}", ".*word5.*", "› Ctrl-C stops it.*")
            typist.type("\x03")
            typist.sees(f"› {quick}", "■ Cancelled\\.", "›")
            typist.type(f"{calm}\n")
            shown = typist.sees(f"› {calm}", f".*word{count - 1}.*", ".* out")
            below = shown.rpartition("Cancelled.")[2]
            assert re.findall("word[0-9]+", below) == [f"word{number}" for number in range(count)]


@contextlib.contextmanager
def model(folder: Path) -> Iterator[dict[str, str]]:
    """A model that speaks as its messages say; yields the settings of a gateway that asks it."""
    process = ModelProcess(folder, "echo")
    process.start()
    try:
        url = f"http://127.0.0.1:{process.port}/v1"
        yield {f"HOLDFAST_MODEL__{name}": value for name, value in _MODEL.items()} | {"HOLDFAST_MODEL__BASE_URL": url}
    finally:
        process.kill()


_MODEL = {"NAME": "openai:scripted", "API_KEY": "a-key-for-nobody"}


def test_leaving_with_an_open_question_leaves_it_open(terminal: Terminal) -> None:
    left = terminal.run("chat", stdin="ask me which port; count to 2\n")
    assert left.returncode == 0, left.stderr
    (turn,) = terminal.read("turns", "list", "terminal")["items"]
    assert turn["state"] == "waiting"
    assert f"holdfast turns answer {turn['id']} TEXT" in left.stdout


def test_a_command_reaches_the_gateway_past_an_open_question(terminal: Terminal) -> None:
    done = terminal.run("chat", stdin="ask me which port\n/status\n/new\nhello again; count to 1\n")
    assert done.returncode == 0, done.stderr
    assert "The last one is waiting." in done.stdout
    assert "You wrote: “hello again; count to 1”" in done.stdout
    assert len(terminal.read("sessions", "list")["items"]) == 2


def test_whoever_leaves_in_the_middle_of_an_answer_is_told_what_becomes_of_it(terminal: Terminal) -> None:
    with serving(terminal), chatting(terminal) as typist:
        typist.type("count to 15 slowly\n")
        typist.sees(".* 1 2 3.*", "› Ctrl-C stops it.*")
        typist.type("\x04")
        typist.sees("The answer goes on without you, and is here when you come back\\.")
    with chatting(terminal, "--session", "own") as typist:
        typist.type("count to 10 slowly\n")
        typist.sees(".* 1 2 3.*", "› Ctrl-C stops it.*")
        typist.type("\x04")
        typist.sees("The answer is finished first, .*")
    (turn,) = terminal.read("turns", "list", "own")["items"]
    assert turn["state"] == "completed"


def test_commands_are_offered_while_one_is_typed_and_completed(terminal: Terminal) -> None:
    with serving(terminal), chatting(terminal) as typist:
        typist.type("/st")
        typist.sees("/stop  /status  /steer", "› /st")
        typist.type("at")
        typist.sees("/status: show where this conversation stands", "› /stat")
        typist.type("\t\n")
        typist.sees("Conversation terminal .*", "›")


def test_the_model_of_a_conversation_is_chosen_in_it(terminal: Terminal, tmp_path: Path) -> None:
    """The choice is used by the next turn, survives a restart, and is shown where the conversation is."""
    with model(tmp_path) as settings:
        with serving(terminal, **settings), chatting(terminal) as typist:
            typist.type("/model tokenz\n")
            typist.sees("There is no model 'tokenz' to choose; did you mean openai:tokens\\?", "›")
            typist.type("/model tokens\n")
            typist.sees("openai:tokens answers in this conversation from the next message on\\.", "›")
        with serving(terminal, **settings), chatting(terminal) as typist:
            typist.sees("Holdfast · session terminal · openai:tokens .*")
            typist.type("hello\n")
            typist.sees("openai:tokens · .* in, .* out.*")
    assert terminal.read("sessions", "show", "terminal")["session"]["model"] == "openai:tokens"
    assert "model      openai:tokens" in terminal.type("sessions", "show", "terminal").output


def test_a_conversation_from_elsewhere_goes_on_in_the_terminal(terminal: Terminal) -> None:
    with serving(terminal):
        assert terminal.type("ask", "--session", "garden", "herons; count to 1").exit_code == 0
        with chatting(terminal) as typist:
            typist.type("/sessions\n")
            typist.sees("1\\. “terminal” .*this one\\)", "2\\. “herons; count to 1” .*", ".*/resume.*", "›")
            typist.type("/resume herons\n")
            typist.sees("Going on with “herons; count to 1” .*", ".*herons.*", ".*You wrote: “herons; count to 1”.*", "›")
            typist.type("and storks; count to 1\n")
            typist.sees(".*“and storks; count to 1”.*", "›")
    said = [item["text"] for item in terminal.read("sessions", "show", "garden")["items"] if item["role"] == "user"]
    assert said == ["herons; count to 1", "and storks; count to 1"]


def test_a_command_gives_permission_in_the_terminal(terminal: Terminal) -> None:
    with serving(terminal), chatting(terminal) as typist:
        typist.type("run: rm -rf ../elsewhere; count to 2\n")
        typist.sees("! May I run this command.*", " +rm -rf ../elsewhere", "› \\[o\\]nce .*")
        typist.type("/deny not that one\n")
        typist.sees("✗ terminal  rm -rf ../elsewhere  .*", ".*1 2\\.", "›")
    items = terminal.read("sessions", "show", "terminal")["items"]
    assert next(item["result"] for item in items if item["name"] == "terminal").endswith("They said: not that one")
