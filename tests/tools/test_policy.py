"""What a person is asked about: commands that nothing confines, new hosts, and what changes after it was approved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.agent.models.scripted import Step, call
from holdfast.agent.processes.background import BackgroundProcesses
from holdfast.agent.processes.foreground import Result
from holdfast.agent.tools.files import Workspace, file_tools
from holdfast.agent.tools.hosts import Hosts
from holdfast.agent.tools.process import ProcessTool
from holdfast.agent.tools.terminal import Terminal, TerminalArgs, told
from holdfast.clock import SystemClock
from holdfast.config import TerminalConfig
from holdfast.core.questions import APPROVAL_CHOICES, ONCE_CHOICES, PASSING_CHOICES
from holdfast.core.turns import Mode, TurnState
from holdfast.errors import Rejected
from holdfast.offload.pool import Pool
from holdfast.sandbox import Sandbox
from holdfast.sandbox.profile import Profile
from holdfast.store.store import Store
from tests.agent.world import agent_of, items_of, question_of, waits_again
from tests.engine.world import Open, message, opened, running_engine, settled
from tests.processes.scene import ENVIRONMENT, HOME_ID, Scene, scene
from tests.processes.test_terminal import call_context, look
from tests.tools import attacks


@dataclass(frozen=True, slots=True, kw_only=True)
class Confining(Sandbox):
    """A sandbox as the policy sees it: it confines, and lets through what it is told to run."""

    @property
    def confines(self) -> bool:
        return True


def made(here: Scene, smart: Any = None, *, confines: bool = False, **config: Any) -> Terminal:
    kind = Confining if confines else Sandbox
    sandbox = kind(description="", profile=Profile(writable=(here.workspace,)), missing=not confines)
    hosts = Hosts(here.store.questions.is_granted, here.clock, config.get("hosts", ()))
    more = {"second_opinion": smart} if smart else {}
    return Terminal(
        TerminalConfig(**config),
        Workspace(here.workspace),
        here.background,
        sandbox,
        ENVIRONMENT,
        hosts,
        clock=here.clock,
        **more,
    )


def terminal(here: Scene, smart: Any = None, *, confines: bool = False, **config: Any) -> Any:
    return made(here, smart, confines=confines, **config).tool()


async def test_without_a_sandbox_every_attack_is_asked_about_or_refused(tmp_path: Path) -> None:
    """SECURITY 9: a corpus of shell lines, each of which would do more than print."""
    async with scene(tmp_path) as here:
        attacks.prepare(here.workspace)
        tool = terminal(here)
        assert len({*attacks.ONCE_UNASKED, *attacks.OTHERS}) >= 140
        for command in (*attacks.ONCE_UNASKED, *attacks.OTHERS):
            try:
                asked = await tool.question({"command": command}, call_context(here))
            except Rejected:
                continue
            assert asked is not None, command
            assert "always" not in asked.choices, command
            with pytest.raises(Rejected, match="it is not approved"):
                await tool.run({"command": command}, call_context(here))
        assert not (here.workspace / attacks.PROOF).exists()


async def test_a_command_that_can_only_print_runs_unasked_and_without_a_shell(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        attacks.prepare(here.workspace)
        tool = terminal(here)
        for command in ("ls -la", "cat notes.txt", "head -n 1 folder/../notes.txt", "pwd", "echo hello", "wc -l notes.txt"):
            assert await tool.question({"command": command}, call_context(here)) is None, command
            assert (await tool.run({"command": command}, call_context(here))).startswith("Exit code 0"), command
        # The program of the system is meant, not the one in the workspace.
        assert not (here.workspace / attacks.PROOF).exists()
        assert not tool.is_private({"command": "ls -la"})
        # Whatever it is now, it may have been a link when it was printed.
        for command in ("cat notes.txt", "cat /etc/passwd", "make"):
            assert tool.is_private({"command": command})
        assert not terminal(here, confines=True).is_private({"command": "make"})


async def test_a_file_that_becomes_a_link_to_elsewhere_is_not_printed(tmp_path: Path) -> None:
    """SECURITY 7: what was looked at before is looked at again when it starts."""
    async with scene(tmp_path) as here:
        attacks.prepare(here.workspace)
        tool = terminal(here)
        assert await tool.question({"command": "cat notes.txt"}, call_context(here)) is None
        (here.workspace / "notes.txt").unlink()
        (here.workspace / "notes.txt").symlink_to("/etc/passwd")
        with pytest.raises(Rejected, match="it is not approved"):
            await tool.run({"command": "cat notes.txt"}, call_context(here))


async def test_in_a_sandbox_that_confines_everything_runs_unasked_but_new_hosts(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        tool = terminal(here, confines=True, hosts=("pypi.org",))
        for command in ("rm -rf build", "git push --force", "sh evil.sh"):
            assert await tool.question({"command": command}, call_context(here)) is None
        assert await tool.question({"command": "pip install x", "hosts": ["PyPI.org:443"]}, call_context(here)) is None
        asked = await tool.question({"command": "pip install x", "hosts": ["pypi.org", "evil.example"]}, call_context(here))
        assert asked.detail["hosts"] == ["evil.example"]
        assert asked.choices == APPROVAL_CHOICES
        other = await tool.question({"command": "curl evil.example", "hosts": ["evil.example"]}, call_context(here))
        # Once is for one command; for longer, it is for the host.
        assert asked.id != other.id
        assert asked.fingerprint == other.fingerprint
        with pytest.raises(Rejected, match="is not a host"):
            await tool.question({"command": "curl x", "hosts": ["*.example"]}, call_context(here))
        alone = replace(here.turn, mode=Mode.SYNCHRONOUS)
        with pytest.raises(Rejected, match="nobody can be asked"):
            await tool.question({"command": "curl x", "hosts": ["evil.example"]}, call_context(here, alone))
        with pytest.raises(Rejected, match="forbidden"):
            await terminal(here, confines=True, deny=("git push",)).question({"command": "git push"}, call_context(here))


async def test_a_command_may_reach_what_it_names_and_the_operator_lists_and_is_told_what_it_was_refused(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as here:
        args = TerminalArgs(command="pip install x", hosts=["Files.example:443", "db.example:5432"])
        assert made(here, hosts=("pypi.org",)).reachable(args) == {"pypi.org", "files.example", "db.example:5432"}
        said = told(Result(exit_code=1, output=b"no route", duration_ms=5), 10, {"evil.example:443"})
        assert said.startswith("Exit code 1")
        assert "evil.example, which is not approved" in said
        assert "hosts=['evil.example']" in said
        assert said.endswith("no route")


async def test_no_model_decides_about_code_of_the_workspace_or_after_private_things_were_read(tmp_path: Path) -> None:
    async def yes(*_facts: Any) -> bool:
        return True

    async with scene(tmp_path) as here:
        attacks.prepare(here.workspace)
        tool = terminal(here, yes, approval="smart")
        assert await tool.question({"command": "uptime"}, call_context(here)) is None
        assert await tool.question({"command": "sh evil.sh"}, call_context(here))
        assert await tool.question({"command": "uptime"}, replace(call_context(here), private=("memory",)))


async def test_a_file_that_is_written_after_a_model_allowed_the_command_is_not_run(tmp_path: Path) -> None:
    """SECURITY 9: calls of one step are prepared together, so the first may write what the second names."""

    async def yes(*_facts: Any) -> bool:
        return True

    async with scene(tmp_path) as here:
        tool = terminal(here, yes, approval="smart")
        judged = {"command": "sh x.sh; true"}
        assert await tool.question(judged, call_context(here)) is None
        assert (await tool.run(judged, call_context(here))).startswith("Exit code 0")
        (here.workspace / "x.sh").write_text("touch ran")
        for background in (False, True):
            with pytest.raises(Rejected, match="names a file of the workspace by now"):
                await tool.run({**judged, "background": background}, call_context(here))
        assert not (here.workspace / "ran").exists()
        asked = await tool.question(judged, call_context(here))
        assert (await tool.run(judged, replace(call_context(here), approved=asked.fingerprint))).startswith("Exit code 0")
        assert (here.workspace / "ran").exists()


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("sh build.sh", ["build.sh"]),
        ("sh 'build.sh'", ["build.sh"]),
        ('sh bu"il"d.sh', ["build.sh"]),
        ("sh -c 'sh bu\"il\"d.sh'", ["build.sh"]),
        ("sh b?ild.sh", ["build.sh"]),
        ("sh *.sh", ["build.sh"]),
        ("./build.sh", ["build.sh"]),
        ("python3 --config=build.sh sub/tool", ["build.sh", "sub/tool"]),
        ("sh 'with blank.sh'", ["with blank.sh"]),
        ("cd sub && sh tool", ["sub/tool"]),
        ("cd sub && cd deep && sh tool", ["sub/deep/tool"]),
        ("cd sub/deep && cd .. && cd deep && sh tool", ["sub/deep/tool", "sub/tool"]),
        ("env -C sub env -C deep sh tool", ["sub/deep/tool"]),
        ("sh sub/*/tool", ["sub/deep/tool"]),
        ("sh s*/d?ep/tool", ["sub/deep/tool"]),
        ("sh */../sub/*/to*", ["sub/deep/tool"]),
        ("tool", ["bin/tool"]),
        ("sh link/../tool tool sub/../tool", ["sub/tool"]),
        ("make", []),
    ],
)
async def test_an_approval_is_bound_to_every_file_that_the_command_names(
    command: str, names: list[str], tmp_path: Path
) -> None:
    """SECURITY 9."""
    async with scene(tmp_path) as here:
        for name in ("build.sh", "sub/tool", "sub/deep/tool", "with blank.sh", "bin/tool"):
            (here.workspace / name).parent.mkdir(exist_ok=True)
            (here.workspace / name).write_text("one")
        (here.workspace / "tool").write_text("another")
        (here.workspace / "link").symlink_to("sub/deep")
        sandbox = Sandbox(description="", profile=Profile(writable=(here.workspace,)))
        hosts = Hosts(here.store.questions.is_granted, here.clock)
        path = {"PATH": f"{here.workspace}/bin:{ENVIRONMENT['PATH']}"}
        tool = Terminal(TerminalConfig(), Workspace(here.workspace), here.background, sandbox, path, hosts).tool()
        asked = await tool.question({"command": command}, call_context(here))
        assert asked
        assert [name for name in names if name not in asked.detail["files"]] == []
        for name in names:
            (here.workspace / name).write_text("two")
            again = await tool.question({"command": command}, call_context(here))
            assert again
            assert again.fingerprint != asked.fingerprint
            asked = again


async def test_a_command_that_names_too_much_to_be_bound_to_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path) as here:
        for number in range(1_100):
            (here.workspace / f"{number}.sh").write_text("")
        for command in ("sh *.sh", "sh " + " ".join(f"{number}.sh" for number in range(1_100))):
            with pytest.raises(Rejected, match="names more than 1000 things"):
                await terminal(here).question({"command": command}, call_context(here))
        assert await terminal(here, approval="allow").question({"command": "sh *.sh"}, call_context(here)) is None


async def test_a_command_that_names_too_many_folders_to_be_bound_to_is_refused(tmp_path: Path) -> None:
    """SECURITY 9: none of them is left out, because the script may lie in that one."""
    async with scene(tmp_path) as here:
        for number in range(25):
            (here.workspace / f"f{number}").mkdir()
        (here.workspace / "f24" / "run.sh").write_text("one")
        folders = " ".join(f"f{number}" for number in range(24))
        with pytest.raises(Rejected, match="more than 20 folders"):
            await terminal(here).question({"command": f"ls {folders}; env -C f24 sh run.sh"}, call_context(here))
        few = await terminal(here).question({"command": "ls f1 f2; sh f24/run.sh"}, call_context(here))
        assert few.detail["files"] == ["f24/run.sh"]


async def test_globs_that_match_too_much_to_look_at_are_refused(tmp_path: Path) -> None:
    """S6: each `*/..` comes back to where it was, and multiplies what there is to look at."""
    async with scene(tmp_path) as here:
        for number in range(12):
            (here.workspace / f"f{number}").mkdir()
        with pytest.raises(Rejected, match="names more than 1000 things"):
            await terminal(here).question({"command": "sh " + "*/../" * 4 + "x"}, call_context(here))


TOLD = ("sh build.sh", "make", "pytest tests/test_a.py && make -j2", "sh *.sh > log", "cmake -DCMAKE_X=1 --config a")
UNTOLD = (
    "sh $X",
    "cd sub && sh tool",
    "sh */x.sh",
    "sh {a,b}.sh",
    "sh ~/x",
    "ls | xargs sh",
    "sh `ls`",
    "sh << x",
    "env -C sub sh tool",
    "env -Csub sh tool",
    "env -iC sub sh tool",
    "env -S-Csub sh tool",
    "env --chdir=sub sh tool",
    "env --ch sub sh tool",
    "eval x",
)
HIDDEN = ("python3 -c \"open('bui'+'ld.sh')\"", "sh build\\.sh", "sh 'build.sh'", "sh <(cat build.sh)")


@pytest.mark.parametrize(
    ("command", "choices"),
    [*((each, PASSING_CHOICES) for each in TOLD), *((each, ONCE_CHOICES) for each in (*UNTOLD, *HIDDEN))],
)
async def test_what_the_workspace_can_change_is_never_approved_for_always(
    command: str, choices: tuple[str, ...], tmp_path: Path
) -> None:
    """SECURITY 9: where the files cannot be told, not even for the session."""
    async with scene(tmp_path) as here:
        asked = await terminal(here).question({"command": command}, call_context(here))
        assert asked.choices == choices


async def test_what_is_typed_into_a_command_that_nothing_confines_is_asked_about(tmp_path: Path) -> None:
    """SECURITY 9: a pager or a shell runs what is typed into it."""
    async with scene(tmp_path) as here:
        started = await here.start("cat")
        typing = {"action": "write", "process_id": started.id, "text": "!sh evil.sh\n"}
        parts = (here.store.processes, here.store.sessions, here.background)
        tool = ProcessTool(*parts).tool()
        asked = await tool.question(typing, call_context(here))
        assert asked
        assert asked.choices == ONCE_CHOICES
        assert "!sh evil.sh" in asked.text
        for free in ({"action": "list"}, {"action": "poll", "process_id": started.id}):
            assert await tool.question(free, call_context(here)) is None
        assert await ProcessTool(*parts, confines=True).tool().question(typing, call_context(here)) is None
        assert await ProcessTool(*parts, approval="allow").tool().question(typing, call_context(here)) is None
        with pytest.raises(Rejected, match="nobody can be asked here"):
            await tool.question(typing, call_context(here, replace(here.turn, mode=Mode.SYNCHRONOUS)))
        await look(here, "kill", process_id=started.id)


@asynccontextmanager
async def at_work(store: Store, home: Path, script: list[Step], kind: type[Sandbox] = Sandbox) -> AsyncIterator[Any]:
    """Run an engine whose agent has a terminal, without a sandbox unless told, and the files of its workspace."""
    workspace = home / "workspace"
    workspace.mkdir(exist_ok=True)
    sandbox = kind(description="off", profile=Profile(writable=(workspace,)), missing=True)
    hosts = Hosts(store.questions.is_granted, SystemClock())
    background = BackgroundProcesses(store.processes, home, HOME_ID)
    tool = Terminal(TerminalConfig(), Workspace(workspace), background, sandbox, ENVIRONMENT, hosts).tool()
    agent, _ = agent_of(script, store, tool, *file_tools(Workspace(workspace), Pool()))
    async with running_engine(store, agent) as engine:
        yield engine


BUILD = "sh build.sh"


async def test_a_script_that_changes_before_the_answer_is_asked_about_again(open_it: Open, tmp_path: Path) -> None:
    """SECURITY 9, "once": what the person saw is not what would run."""
    (tmp_path / "workspace").mkdir()
    script = tmp_path / "workspace" / "build.sh"
    script.write_text("echo good >> ran")
    async with opened(open_it) as store, at_work(store, tmp_path, [[call("terminal", command=BUILD)], ["done"]]) as engine:
        receipt = await engine.inbox.accept(message("go"))
        first = await question_of(store, receipt)
        script.write_text("echo evil >> ran")
        await engine.answer(receipt.turn_id, first.question.id, "once")
        second = await waits_again(store, receipt, 2)
        assert second.question.id != first.question.id
        assert not (tmp_path / "workspace" / "ran").exists()
        await engine.answer(receipt.turn_id, second.question.id, "deny")
        await settled(store, receipt)
        assert not (tmp_path / "workspace" / "ran").exists()


async def test_a_script_that_the_same_step_changes_runs_as_it_was_approved(open_it: Open, tmp_path: Path) -> None:
    """SECURITY 9: calls of one step run side by side, but what was approved goes first and alone."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "build.sh").write_text("sleep 0.2; echo good >> ran")
    both = [call("write_file", path="build.sh", content="echo evil >> ran"), call("terminal", command=BUILD)]
    async with opened(open_it) as store, at_work(store, tmp_path, [both, ["done"]]) as engine:
        receipt = await engine.inbox.accept(message("go"))
        asked = await question_of(store, receipt)
        await engine.answer(receipt.turn_id, asked.question.id, "once")
        assert (await settled(store, receipt)).state is TurnState.COMPLETED
        assert (tmp_path / "workspace" / "ran").read_text() == "good\n"


async def test_of_two_approved_commands_the_second_is_refused_if_the_first_has_changed_its_script(
    open_it: Open, tmp_path: Path
) -> None:
    """SECURITY 9: checked again at the start, with a message that says what to do."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "build.sh").write_text("echo good >> ran")
    both = [call("terminal", command="echo echo evil > build.sh"), call("terminal", command=BUILD)]
    async with opened(open_it) as store, at_work(store, tmp_path, [both, ["done"]]) as engine:
        receipt = await engine.inbox.accept(message("go"))
        first = await question_of(store, receipt)
        await engine.answer(receipt.turn_id, first.question.id, "once")
        second = await waits_again(store, receipt, 2)
        await engine.answer(receipt.turn_id, second.question.id, "once")
        await settled(store, receipt)
        results = [item.result or "" for item in await items_of(store, receipt) if item.name == "terminal"]
        assert results[0].startswith("Exit code 0")
        assert "has changed since it was approved; ask for it again" in results[1]
        assert not (tmp_path / "workspace" / "ran").exists()


async def test_approved_for_the_session_means_as_long_as_the_script_is_the_same(open_it: Open, tmp_path: Path) -> None:
    """SECURITY 9, for longer than once; and "always" is not offered, nor taken."""
    (tmp_path / "workspace").mkdir()
    script = tmp_path / "workspace" / "build.sh"
    script.write_text("echo good >> ran")
    steps: list[Step] = [[call("terminal", command=BUILD)], ["one"], [call("terminal", command=BUILD)], ["two"]]
    steps += [[call("terminal", command=BUILD)], ["three"]]
    async with opened(open_it) as store, at_work(store, tmp_path, steps) as engine:
        receipt = await engine.inbox.accept(message("go"))
        asked = await question_of(store, receipt)
        with pytest.raises(Rejected, match="'always' is not offered"):
            await engine.answer(receipt.turn_id, asked.question.id, "always")
        await engine.answer(receipt.turn_id, asked.question.id, "session")
        await settled(store, receipt)
        again = await engine.inbox.accept(message("again"))
        assert (await settled(store, again)).state is TurnState.COMPLETED
        assert (tmp_path / "workspace" / "ran").read_text() == "good\n" * 2
        script.write_text("echo evil >> ran")
        changed = await engine.inbox.accept(message("once more"))
        await question_of(store, changed)
        assert (tmp_path / "workspace" / "ran").read_text() == "good\n" * 2


async def test_hosts_that_were_approved_together_are_approved_one_by_one(open_it: Open, tmp_path: Path) -> None:
    """SECURITY 10: for the session, and for whatever command wants to reach them."""
    steps: list[Step] = [
        [call("terminal", command="echo one", hosts=["a.example", "b.example"])],
        [call("terminal", command="echo two; true", hosts=["b.example:443"])],
        [call("terminal", command="echo three", hosts=["b.example", "c.example"])],
        ["done"],
    ]
    async with opened(open_it) as store, at_work(store, tmp_path, steps, Confining) as engine:
        receipt = await engine.inbox.accept(message("go"))
        first = await question_of(store, receipt)
        assert first.question.detail["hosts"] == ["a.example", "b.example"]
        await engine.answer(receipt.turn_id, first.question.id, "session")
        second = await waits_again(store, receipt, 2)
        assert second.question.detail["hosts"] == ["c.example"]
        results = [item.result or "" for item in await items_of(store, receipt) if item.name == "terminal"]
        assert [result.split()[-1] for result in results] == ["one", "two"]
