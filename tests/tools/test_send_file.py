"""A file leaves through the outbox as it was at the call: once, from the workspace only, and only where files are taken."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.scripted import CallTool, Say, ScriptedAgent
from holdfast.agent.toolbox import Toolbox
from holdfast.agent.tools.send_file import send_file_tool
from holdfast.agent.tools.workspace import Workspace
from holdfast.clock import SystemClock
from holdfast.core.questions import About
from holdfast.core.redaction import MASK, Redaction
from holdfast.errors import NotFound, Rejected
from holdfast.store.store import Store
from tests.engine.world import Hang, Open, RecordingCarrier, answered, opened, running_engine, until
from tests.tools.contexts import call_context
from tests.tools.test_send_message import Twice

SECRET = "open-sesame-42"
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 16


def taking(*answers: Any) -> RecordingCarrier:
    return RecordingCarrier(*answers, takes_files=True)


def tool(store: Store, workspace: Path, carriers: Mapping[str, RecordingCarrier], **more: int) -> Any:
    find, kept, mask = store.sessions.find, store.kept_files, Redaction([SECRET])
    return send_file_tool(Workspace(workspace), store.deliveries, kept, find, carriers, mask, SystemClock(), **more)


def sending(store: Store, workspace: Path, carriers: Mapping[str, RecordingCarrier], **args: object) -> ScriptedAgent:
    toolbox = Toolbox([tool(store, workspace, carriers)])
    return ScriptedAgent(
        [CallTool("send_file", args, report=lambda call: f"{call.state}: {call.result}"), Say(".")], toolbox=toolbox
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "reports").mkdir(parents=True)
    (folder / "reports" / "tides.csv").write_bytes(b"high,low")
    (folder / "picture.bin").write_bytes(PNG)
    (folder / "empty").touch()
    return folder


async def test_a_file_is_sent_as_it_was_at_the_call(open_it: Open, workspace: Path) -> None:
    """R10: it may be changed or deleted before it leaves."""
    async with opened(open_it) as store:
        hang = Hang()
        carriers = {"chat": taking(hang)}
        agent = sending(store, workspace, carriers, path="reports/tides.csv", text=f"The tides; {SECRET}")
        async with running_engine(store, agent, carriers=carriers) as engine:
            turn = await answered(engine, store, reply_to="chat:1")
            (workspace / "reports" / "tides.csv").unlink()
            hang.release()
            await until(lambda: len(carriers["chat"].sent) == 2)
        first = next(each for each in await store.deliveries.of_turn(turn.id) if each.part < 0)
        file = first.extra.file
        assert file
        assert (first.target, first.text, file.name, file.bytes) == ("chat:1", f"The tides; {MASK}", "tides.csv", 8)
        assert file.media_type == "text/csv"
        assert await store.kept_files.read(file.id) == b"high,low"
        assert "In the outbox for chat:1: reports/tides.csv, 8 bytes" in await _answer(store, turn.id)


async def test_words_that_are_too_many_for_a_caption_stand_before_the_file(open_it: Open, workspace: Path) -> None:
    async with opened(open_it) as store:
        carriers = {"chat": taking()}
        words = "word " * 190 + "end"
        agent = Twice(tool(store, workspace, carriers), {"path": "picture.bin", "text": words})
        async with running_engine(store, agent, carriers=carriers) as engine:
            turn = await answered(engine, store, reply_to="chat:1")
            await until(lambda: len(carriers["chat"].sent) == 3)
        said, file = sorted(
            (each for each in await store.deliveries.of_turn(turn.id) if each.part < 0), key=lambda each: each.part
        )
        assert (said.text, said.extra.file, file.text) == (words, None, "")
        assert file.extra.file


async def _answer(store: Store, turn_id: Any) -> str:
    return "".join(each.text for each in await store.deliveries.of_turn(turn_id) if each.part > 0)


async def test_a_repeated_call_sends_what_the_first_kept(open_it: Open, workspace: Path) -> None:
    """R10: the id comes from the call, and the file may be gone by then."""
    async with opened(open_it) as store:
        carriers = {"chat": taking()}
        file_tool = tool(store, workspace, carriers)

        class Removing:
            async def run(self, args: Any, context: Any) -> str:
                result = await file_tool.run(args, context)
                (workspace / "picture.bin").unlink(missing_ok=True)
                return result

        agent = Twice(Removing(), {"path": "picture.bin"})
        async with running_engine(store, agent, carriers=carriers) as engine:
            turn = await answered(engine, store, reply_to="chat:1")
            await until(lambda: len(carriers["chat"].sent) == 2)
        (sent,) = [each for each in await store.deliveries.of_turn(turn.id) if each.part < 0]
        assert agent.results[0] == agent.results[1]
        assert sent.extra.file
        assert sent.extra.file.media_type == "image/png", "what a file is says its content"
        assert await store.kept_files.read(sent.extra.file.id) == PNG


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("../secret", "outside the workspace"),
        ("/etc/passwd", "outside the workspace"),
        ("link", "outside the workspace"),
        ("reports", "is a folder"),
        ("empty", "is empty"),
        ("pipe", "no ordinary file"),
        ("large", "can be read at most; send a part of it"),
    ],
)
async def test_only_files_of_the_workspace_are_sent(open_it: Open, workspace: Path, path: str, problem: str) -> None:
    (workspace.parent / "secret").write_text("secret")
    (workspace / "link").symlink_to(workspace.parent / "secret")
    (workspace / "large").write_bytes(b"0" * 65)
    os.mkfifo(workspace / "pipe")
    async with opened(open_it) as store:
        sends = tool(store, workspace, {"chat": taking()}, bytes_max=64)
        with pytest.raises(Rejected, match=problem):
            await sends.run({"path": path}, call_context(reply_to="chat:1"))


async def test_a_file_that_is_not_there_is_not_sent(open_it: Open, workspace: Path) -> None:
    async with opened(open_it) as store:
        with pytest.raises(NotFound):
            await tool(store, workspace, {"chat": taking()}).run({"path": "x"}, call_context(reply_to="chat:1"))


@pytest.mark.parametrize(
    ("turn", "args", "problem"),
    [
        ({"reply_to": "url:1"}, {}, "url:1 takes no files; targets are chat:<address>"),
        ({"reply_to": "chat:1", "delivers_later": False}, {}, "nothing but the answer reaches the person"),
        ({"reply_to": None}, {}, "has no address to send to"),
        ({"reply_to": None}, {"target": "chot:1"}, "did you mean chat:?"),
    ],
)
async def test_a_file_is_refused_where_it_cannot_arrive(
    open_it: Open, workspace: Path, turn: dict[str, Any], args: dict[str, Any], problem: str
) -> None:
    """A1"""
    async with opened(open_it) as store:
        carriers = {"chat": taking(), "url": RecordingCarrier()}
        with pytest.raises(Rejected, match=problem.replace("?", r"\?")):
            await tool(store, workspace, carriers).question({"path": "picture.bin", **args}, call_context(**turn))


async def test_a_file_to_another_chat_is_asked_about_with_its_content(open_it: Open, workspace: Path) -> None:
    async with opened(open_it) as store:
        asks, here = tool(store, workspace, {"chat": taking()}).question, call_context(reply_to="chat:1")
        assert await asks({"path": "picture.bin"}, here) is None
        first = await asks({"path": "picture.bin", "target": "chat:2"}, here)
        assert first.about is About.APPROVAL
        assert "picture.bin (24 bytes, SHA-256" in first.text
        (workspace / "picture.bin").write_bytes(b"another")
        second = await asks({"path": "picture.bin", "target": "chat:2"}, here)
        assert second.id != first.id


async def test_only_the_operator_sends_to_the_chats_of_others(open_it: Open, workspace: Path) -> None:
    async with opened(open_it) as store:
        carrier = RecordingCarrier(takes_files=True, in_line=True)
        asks = tool(store, workspace, {"chat": carrier}).question
        args = {"path": "picture.bin", "target": "chat:2"}
        with pytest.raises(Rejected, match="is not a chat of chat:7"):
            await asks(args, call_context({"owner": "chat:7"}, reply_to="chat:1"))
        assert await asks(args, call_context(reply_to="chat:1"))
        async with running_engine(store, ScriptedAgent([Say(".")]), carriers={"chat": carrier}) as engine:
            await answered(engine, store, conversation="chat:2", owner="chat:7")
        assert await asks(args, call_context({"owner": "chat:7"}, reply_to="chat:1")), "a chat of their own"
