"""Reading private things and sending things out do not meet unasked, in whatever order, turn or process they happen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.models.port import Request, ToolMessage, UserMessage
from holdfast.agent.models.scripted import Step, call
from holdfast.agent.tools.delegate import delegate_tool
from holdfast.agent.tools.fetch import fetch_tool
from holdfast.agent.tools.files import Workspace, file_tools
from holdfast.agent.tools.hosts import Hosts
from holdfast.agent.tools.memory import memory_tool
from holdfast.agent.tools.session_search import session_search_tool
from holdfast.agent.tools.web_search import SearchResult, web_search_tool
from holdfast.clock import SystemClock
from holdfast.config import DelegateConfig
from holdfast.core import delegation
from holdfast.core.delegation import DelegatedTask, child_message
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.redaction import Redaction
from holdfast.core.turns import Mode, TurnState
from holdfast.egress import Egress, Guard
from holdfast.errors import Rejected
from holdfast.offload.pool import Pool
from holdfast.store.store import Store
from tests.agent.world import Lever, agent_of, items_of, question_of, waits_again
from tests.engine.world import Open, message, opened, running_engine, settled, until
from tests.tools.contexts import HOSTS, call_context
from tests.tools.servers import Reply, Served, serving

REMEMBER = call("memory", action="list")
LOOK = call("session_search", query="treasure")


@dataclass
class Searching:
    """A search engine that keeps what it was asked."""

    asked: list[str] = field(default_factory=list)

    async def search(self, query: str, limit: int) -> list[SearchResult]:
        self.asked.append(query)
        return [SearchResult(title=query, url="https://a.example/")][:limit]


@dataclass
class Scene:
    store: Store
    there: Served
    other: Served
    engine: Any
    searching: Searching

    async def go(self, **changes: Any) -> Any:
        return await self.engine.inbox.accept(message("go", **changes))

    async def results(self, receipt: Any, tool: str) -> list[str]:
        return [f"{item.outcome}: {item.result}" for item in await items_of(self.store, receipt) if item.name == tool]


@asynccontextmanager
async def at_work(store: Store, home: Path, script: Any, listed: tuple[str, ...] = ()) -> AsyncIterator[Scene]:
    """Run an engine whose agent can read private things, and reach two servers."""
    (home / "uploads").mkdir(exist_ok=True)
    (home / "uploads" / "bill.txt").write_text("the treasure")
    (home / "notes.txt").write_text("nothing")
    searching = Searching()
    async with serving(lambda asked: Reply(b"here")) as there, serving(lambda asked: Reply(b"there")) as other:
        egress = Egress(Guard([f"127.0.0.1:{there.port}", f"127.0.0.1:{other.port}"]), timeout_s=5)
        pool = Pool()
        known = [f"127.0.0.1:{there.port}"] if "there" in listed else []
        hosts = Hosts(store.questions.is_granted, SystemClock(), known)
        tools = [
            memory_tool(store.memories, Redaction(), SystemClock()),
            session_search_tool(store.passages),
            fetch_tool(egress, pool, hosts),
            web_search_tool(searching, hosts, "search.example"),
            *file_tools(Workspace(home), pool),
            Lever("server__tool", harmless=False),
            Lever("quiet"),
        ]
        engines: list[Any] = []

        async def accept(sent: Inbound) -> Receipt:
            return await engines[0].inbox.accept(sent)

        tools.append(delegate_tool(store, accept, DelegateConfig(), look_s=0.05))
        agent, _ = agent_of(script(there, other) if callable(script) else script, store, *tools)
        try:
            async with running_engine(store, agent) as engine:
                engines.append(engine)
                yield Scene(store, there, other, engine, searching)
        finally:
            await egress.close()
            await pool.close()


def fetching(server: Served, path: str = "/") -> Any:
    return call("fetch", url=server.url(path))


@pytest.mark.parametrize(
    "reading",
    [
        REMEMBER,
        LOOK,
        call("read_file", path="uploads/bill.txt"),
        call("search_files", pattern="treasure", path="uploads"),
        call("read_file", path="link/bill.txt"),
        call("search_files", pattern="treasure", path="link"),
        call("server__tool"),
    ],
)
async def test_after_private_things_were_read_a_new_host_is_asked_about(open_it: Open, tmp_path: Path, reading: Any) -> None:
    def script(there: Served, other: Served) -> list[Step]:
        steps = [[reading], [fetching(there, "/?q=treasure")], [fetching(there, "/again")], [fetching(other)]]
        return [*steps, ["done"]]

    (tmp_path / "link").symlink_to("uploads")
    async with opened(open_it) as store, at_work(store, tmp_path, script) as here:
        receipt = await here.go()
        asked = await question_of(store, receipt)
        assert asked.question.detail["hosts"] == [f"127.0.0.1:{here.there.port}"]
        assert "has read private things" in asked.question.text
        assert "/?q=treasure" in asked.question.text
        assert here.there.asked == []
        await here.engine.answer(receipt.turn_id, asked.question.id, "session")
        # The same host is not asked about again; another one is.
        second = await waits_again(store, receipt, 2)
        assert second.question.detail["hosts"] == [f"127.0.0.1:{here.other.port}"]
        assert [each.path for each in here.there.asked] == ["/?q=treasure", "/again"]
        await here.engine.answer(receipt.turn_id, second.question.id, "deny")
        await settled(store, receipt)
        assert here.other.asked == []


@pytest.mark.parametrize(
    "reading",
    [
        call("read_file", path="notes.txt"),
        call("search_files", pattern="treasure"),
        call("quiet"),
        call("write_file", path="x", content="y"),
        fetching,
    ],
)
async def test_what_is_in_the_workspace_or_on_the_web_is_not_private(open_it: Open, tmp_path: Path, reading: Any) -> None:
    def script(there: Served, other: Served) -> list[Step]:
        return [[reading(there) if callable(reading) else reading], [fetching(other)], ["done"]]

    async with opened(open_it) as store, at_work(store, tmp_path, script) as here:
        assert (await settled(store, await here.go())).state is TurnState.COMPLETED
        assert len(here.other.asked) == 1


async def test_what_a_call_was_asked_for_beside_could_not_tell_it_anything(open_it: Open, tmp_path: Path) -> None:
    def script(there: Served, _other: Served) -> list[Step]:
        return [[REMEMBER, fetching(there)], ["done"]]

    async with opened(open_it) as store, at_work(store, tmp_path, script) as here:
        assert (await settled(store, await here.go())).state is TurnState.COMPLETED
        assert len(here.there.asked) == 1


async def test_it_holds_in_later_turns_and_after_a_restart(open_it: Open, tmp_path: Path) -> None:
    """What was read stands in the journal, so neither a turn that goes on nor one that follows forgets it."""

    def first(there: Served, _other: Served) -> list[Step]:
        return [[REMEMBER], [fetching(there)]]

    def then(_there: Served, other: Served) -> list[Step]:
        # The call that waited is denied; the model tries the next host, and in the next turn once more.
        return [[fetching(other)], ["done"], [fetching(other)], ["done"]]

    async with opened(open_it) as store:
        async with at_work(store, tmp_path, first) as here:
            receipt = await here.go()
            asked = await question_of(store, receipt)
        async with at_work(store, tmp_path, then) as here:
            await here.engine.answer(receipt.turn_id, asked.question.id, "deny")
            again = await waits_again(store, receipt, 2)
            assert again.question.detail["hosts"] == [f"127.0.0.1:{here.other.port}"]
            await here.engine.answer(receipt.turn_id, again.question.id, "deny")
            await settled(store, receipt)
            follows = await here.go()
            assert "memory" in (await question_of(store, follows)).question.text
            assert here.other.asked == []


async def test_where_nobody_can_be_asked_it_is_refused_and_said_why(open_it: Open, tmp_path: Path) -> None:
    def script(there: Served, _other: Served) -> list[Step]:
        return [[REMEMBER], [fetching(there)], [call("web_search", query="treasure")], ["done"]]

    async with opened(open_it) as store, at_work(store, tmp_path, script) as here:
        receipt = await here.go(mode=Mode.SYNCHRONOUS)
        assert (await settled(store, receipt)).state is TurnState.COMPLETED
        for tool in ("fetch", "web_search"):
            (result,) = await here.results(receipt, tool)
            assert result.startswith("error: ")
            assert "has read private things (memory)" in result
            assert "nobody can be asked here" in result
        assert (here.there.asked, here.searching.asked) == ([], [])


async def test_the_words_of_a_search_are_asked_about_too(open_it: Open, tmp_path: Path) -> None:
    script = [[REMEMBER], [call("web_search", query="the treasure")], ["done"]]
    async with opened(open_it) as store, at_work(store, tmp_path, script) as here:
        receipt = await here.go()
        asked = await question_of(store, receipt)
        assert "the treasure" in asked.question.text
        assert asked.question.detail["hosts"] == ["search.example"]
        assert here.searching.asked == []
        await here.engine.answer(receipt.turn_id, asked.question.id, "once")
        await settled(store, receipt)
        assert here.searching.asked == ["the treasure"]


async def test_a_host_that_the_operator_lists_is_not_new(open_it: Open, tmp_path: Path) -> None:
    def script(there: Served, _other: Served) -> list[Step]:
        return [[REMEMBER], [fetching(there)], ["done"]]

    async with opened(open_it) as store, at_work(store, tmp_path, script, listed=("there",)) as here:
        assert (await settled(store, await here.go())).state is TurnState.COMPLETED
        assert len(here.there.asked) == 1


async def test_an_approved_host_cannot_hand_on_what_it_was_told(tmp_path: Path) -> None:
    """A redirect to another host is a new host."""
    async with serving(lambda asked: Reply(b"sink")) as sink:
        away = Reply(b"", status=302, headers={"Location": sink.url("/?q=treasure")})
        async with serving(lambda asked: away) as there:
            egress = Egress(Guard([f"127.0.0.1:{there.port}", f"127.0.0.1:{sink.port}"]), timeout_s=5)
            pool = Pool()
            tool = fetch_tool(egress, pool, HOSTS)
            try:
                with pytest.raises(Rejected, match="redirects to another host"):
                    await tool.run({"url": there.url("/")}, call_context(private=("memory",)))
                assert sink.asked == []
                await tool.run({"url": there.url("/")}, call_context())
                assert len(sink.asked) == 1
            finally:
                await egress.close()
                await pool.close()


@pytest.mark.parametrize("reads", [True, False])
async def test_a_helper_cannot_send_out_what_its_sender_has_read(open_it: Open, tmp_path: Path, reads: bool) -> None:
    def script(there: Served, _other: Served) -> Any:
        def answer(request: Request) -> Step:
            asked = [each.text for each in request.messages if isinstance(each, UserMessage)][-1]
            done = sum(isinstance(each, ToolMessage) for each in request.messages)
            if asked.startswith("Look it up"):
                return [fetching(there, "/?q=treasure")] if not done else ["looked"]
            steps = [REMEMBER if reads else call("quiet"), call("delegate_task", goal="Look it up")]
            return [steps[done]] if done < len(steps) else ["done"]

        return answer

    async with opened(open_it) as store, at_work(store, tmp_path, script) as here:
        receipt = await here.go()
        if not reads:
            await settled(store, receipt)
            assert len(here.there.asked) == 1
            return
        (asked,) = await until(lambda: store.questions.open("local"))
        assert asked.turn_id != receipt.turn_id
        assert "the conversation that this task comes from" in asked.question.text
        assert here.there.asked == []
        await here.engine.answer(asked.turn_id, asked.question.id, "deny")
        await settled(store, receipt)
        assert here.there.asked == []


def test_a_helper_knows_that_its_task_may_tell_private_things() -> None:
    here = call_context()
    for private in (False, True):
        sent = child_message(DelegatedTask(goal="look"), here.session, here.turn, here.key, 1, later=False, private=private)
        child = call_context({"key": sent.conversation, "channel": sent.channel}).session
        assert delegation.is_private(child) is private
        assert delegation.depth(child) == 1
