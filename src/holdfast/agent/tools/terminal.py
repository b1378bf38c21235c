"""The `terminal` tool: commands in the workspace, in the foreground or background.

A command runs without a person's approval only if a sandbox confines it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, assert_never

import msgspec

from holdfast.agent.processes import foreground, notices, patterns
from holdfast.agent.processes.background import BackgroundCommand, BackgroundProcesses
from holdfast.agent.processes.folder import readable
from holdfast.agent.tools import named_files
from holdfast.agent.tools.hosts import Hosts, as_listed, named
from holdfast.agent.tools.port import CallContext, StructTool
from holdfast.agent.tools.workspace import Workspace, in_thread
from holdfast.clock import Clock, SystemClock
from holdfast.config import TerminalConfig
from holdfast.core.effects import Effect
from holdfast.core.processes import Process
from holdfast.core.questions import ONCE_CHOICES, PASSING_CHOICES, About, Question, fingerprint
from holdfast.core.turns import Mode
from holdfast.errors import Rejected
from holdfast.sandbox import Sandbox, policy
from holdfast.sandbox.policy import CommandDecision, CommandVerdict
from holdfast.sandbox.proxy import HostRules, Network, NetworkAccess

NAME = "terminal"
COMMAND_MAX_CHARS = 100_000
# Longer commands belong in the background, where a restart does not end them.
TIMEOUT_MAX_S = 1_800

Positive = Annotated[float, msgspec.Meta(gt=0)]
SecondOpinion = Callable[[str, Sequence[str], Sequence[str], CallContext], Awaitable[bool]]
# The search path of programs that can only print; commands cannot write to these folders.
SYSTEM_FOLDERS = "/usr/bin:/bin"

_DESCRIPTION = """Run a shell command in the workspace.

In the foreground (default) it returns the exit code and what was printed; it has no input, and when the timeout is over \
it is ended. Nothing that it starts outlives it. For servers, long work, or anything that needs input use background=true: \
it returns a process_id at once, and the command goes on even if the gateway restarts. With notify_on_complete you are told \
when it ends, with watch_patterns when it prints a matching line; otherwise look with the process tool."""
_UNSUPPORTED = (
    "Nothing can be delivered on this channel after the answer, so nobody will be told when the process ends or what it "
    "prints. It runs all the same: poll it with the `process` tool."
)


# A pager or an editor would run commands that are typed into it.
_NO_WAY_OUT = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "LESSSECURE": "1",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
}


class TerminalArgs(msgspec.Struct):
    """What the model may choose."""

    command: Annotated[str, msgspec.Meta(description="The command, for the shell.", min_length=1)]
    background: Annotated[bool, msgspec.Meta(description="Return at once and let it run.")] = False
    timeout: Annotated[Positive | None, msgspec.Meta(description=f"Seconds in the foreground; {TIMEOUT_MAX_S} at most.")] = (
        None
    )
    workdir: Annotated[str | None, msgspec.Meta(description="A folder inside the workspace.")] = None
    pty: Annotated[bool, msgspec.Meta(description="Give it a terminal, for programs that insist on one.")] = False
    notify_on_complete: Annotated[bool, msgspec.Meta(description="With background: tell me when it ends.")] = False
    hosts: Annotated[
        list[str],
        msgspec.Meta(
            description="Hosts that the command needs to reach, as example.com or example.com:8080. A sandbox lets it reach "
            "no others. The person is asked about new ones.",
            max_length=policy.HOSTS_MAX,
        ),
    ] = []
    watch_patterns: Annotated[
        list[str],
        msgspec.Meta(
            description="With background: regular expressions; tell me, at most every 10 s and 20 times, of matching lines."
        ),
    ] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What an approval is bound to: a digest of everything, and the digests of the files in the workspace."""

    fingerprint: str
    files: Mapping[str, str]


async def always_ask(_command: str, _reasons: Sequence[str], _hosts: Sequence[str], _context: CallContext) -> bool:
    """Return that a person must be asked, without a second opinion."""
    return False


class Terminal:
    """Runs commands as the configuration allows.  `environment` is their environment, without secrets."""

    def __init__(
        self,
        config: TerminalConfig,
        workspace: Workspace,
        background: BackgroundProcesses,
        sandbox: Sandbox,
        environment: Mapping[str, str],
        hosts: Hosts,
        *,
        second_opinion: SecondOpinion = always_ask,
        network: Network | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._config = config
        self._workspace = workspace
        self._background = background
        self._sandbox = sandbox
        self._environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "dumb", **environment, **_NO_WAY_OUT}
        self._hosts = hosts
        self._second_opinion = second_opinion
        self._network = network or Network(background.home)
        self._clock = clock or SystemClock()
        found = Path(shutil.which("bash") or "/bin/sh").absolute()
        # PATH may lead into the workspace, where a command could replace the shell.
        self._shell = "/bin/sh" if found.is_relative_to(workspace.root) else str(found)

    def tool(self) -> StructTool[TerminalArgs]:
        return StructTool(
            name=NAME,
            description=_DESCRIPTION,
            args=TerminalArgs,
            effect=Effect.EFFECTFUL,
            action=self.run,
            asks=self.question,
            reads_private=self._reads_private,
        )

    def _reads_private(self, args: TerminalArgs) -> bool:
        """Return whether a command may have read outside the workspace.

        Only its text counts, because a named file may have been a link when the command ran.
        """
        found = policy.printing(args.command)
        return not self._sandbox.confines and (found is None or bool(found.files))

    async def question(self, args: TerminalArgs, context: CallContext) -> Question | None:
        """Return what a person must approve.  Raises `Rejected` for a forbidden command, or if no person can be asked."""
        workdir = await self._check(args)
        hosts = await self._hosts.new(_hosts(args), context)
        found = self._decide(args, workdir, hosts)
        reasons = "; ".join(found.reasons)
        match found.verdict:
            case CommandVerdict.RUN:
                return None
            case CommandVerdict.REFUSE:
                raise Rejected(f"this command is forbidden here, and nothing allows it: {reasons}; find another way")
            case CommandVerdict.ASK:
                pass
            case _:
                assert_never(found.verdict)
        if self._config.approval == "allow":
            return None
        if self._config.approval == "deny":
            raise Rejected(f"this command would need a person's approval, which the operator does not allow: {reasons}")
        bound = await in_thread(lambda: self._bound(args, workdir))
        # A model cannot judge files of the workspace, or what a host would learn of private data.
        is_smart = self._config.approval == "smart" and not bound.files and not context.private
        if is_smart and await self._second_opinion(args.command, found.reasons, hosts, context):
            return None
        if context.turn.mode is Mode.SYNCHRONOUS:
            raise Rejected(
                f"this command needs a person's approval, and nobody can be asked here: {reasons}; find another way"
            )
        return self._question(args, context, workdir, found, hosts, bound)

    def _decide(self, args: TerminalArgs, workdir: Path, hosts: Sequence[str]) -> CommandDecision:
        return policy.decide(
            args.command,
            confines=self._sandbox.confines,
            only_prints=self._printing(args, workdir) is not None,
            new_hosts=hosts,
            deny=self._config.deny,
            without="no sandbox on this machine" if self._sandbox.missing else "the sandbox is switched off",
        )

    def _question(
        self,
        args: TerminalArgs,
        context: CallContext,
        workdir: Path,
        found: CommandDecision,
        hosts: Sequence[str],
        bound: Bound,
    ) -> Question:
        shown = self._workspace.shown(workdir)
        wish = f"May I run this command in {'the workspace' if shown == '.' else shown}?\n\n    {args.command}"
        detail: dict[str, object] = {
            "command": args.command,
            "workdir": str(workdir),
            "reasons": [*found.reasons],
            "background": args.background,
        }
        expires_ms = int(self._config.approval_expires * 1000)
        if self._sandbox.confines:
            return self._hosts.question(hosts, wish, "; ".join(found.reasons), context, detail, expires_ms)
        return Question(
            id=f"approve:{context.call_id}:{bound.fingerprint[:16]}",
            text=f"{wish}\n\nIt is asked because: {'; '.join(found.reasons)}.",
            about=About.APPROVAL,
            # Never for always: the command runs, or depends on, files that the agent can write.
            choices=PASSING_CHOICES if named_files.is_plain(args.command) else ONCE_CHOICES,
            fingerprint=bound.fingerprint,
            expires_at=self._clock.now_ms() + expires_ms,
            detail={**detail, "files": sorted(bound.files), "hosts": [*args.hosts]},
        )

    def _bound(self, args: TerminalArgs, workdir: Path) -> Bound:
        """Return what an approval is bound to.  This reads files."""
        if self._sandbox.confines:
            return Bound(fingerprint="", files={})
        found = named_files.digests(args.command, workdir, self._workspace, self._environment["PATH"])
        bound = fingerprint(
            tool=NAME,
            command=args.command,
            workdir=str(workdir),
            environment=self._environment_hash(),
            sandbox=self._sandbox.kind,
            background=args.background,
            pty=args.pty,
            files=found,
        )
        return Bound(fingerprint=bound, files=found)

    def _environment_hash(self) -> str:
        return hashlib.sha256(json.dumps(self._environment, sort_keys=True).encode("utf-8", "surrogateescape")).hexdigest()

    def _printing(self, args: TerminalArgs, workdir: Path) -> list[str] | None:
        """Return the argv of a command that can only print, without a shell; None for every other command.

        Its program must be one of the system, and all files that it names must be in the workspace.
        """
        found = policy.printing(args.command)
        if found is None:
            return None
        program = shutil.which(found.program, path=SYSTEM_FOLDERS)
        if program is None or Path(program).resolve().is_relative_to(self._workspace.root):
            return None
        try:
            for each in found.files:
                self._workspace.resolve(str(workdir / each))
        except Rejected:
            return None
        return [program, *found.arguments]

    async def _program(
        self, args: TerminalArgs, context: CallContext, workdir: Path, access: NetworkAccess
    ) -> tuple[list[str], dict[str, str]]:
        """Return the argv and the environment to start.  Raises `Rejected` if they are not what was approved."""
        shell = [self._shell, "-c", args.command]
        if self._sandbox.confines or self._config.approval == "allow":
            argv, variables = self._sandbox.wrap(shell, workdir, access)
            return argv, {**self._environment, **variables}
        if (argv := self._printing(args, workdir)) is not None:
            return argv, self._environment
        if not context.approved and (self._config.approval != "smart" or policy.printing(args.command)):
            raise Rejected("not run: it is not approved; ask for it again")
        bound = await in_thread(lambda: self._bound(args, workdir))
        if context.approved:
            if bound.fingerprint != context.approved:
                raise Rejected("not run: a file that this command names has changed since it was approved; ask for it again")
        elif bound.files:
            # A model allowed the command before it named files; another call of the same step may have written one.
            raise Rejected(
                "not run: it names a file of the workspace by now, and only a person approves that; ask for it again"
            )
        return shell, self._environment

    def reachable(self, args: TerminalArgs) -> frozenset[str]:
        """Return the hosts that a command may reach.  It only runs after all hosts that it names are approved."""
        return frozenset((*map(as_listed, self._config.hosts), *map(named, args.hosts)))

    async def run(self, args: TerminalArgs, context: CallContext) -> str:
        """Run a command, exactly as it was approved."""
        workdir = await self._check(args)
        rules = HostRules.of(self.reachable(args))
        if args.background:
            return await self._start(args, context, workdir, rules)
        timeout_s = args.timeout or self._config.timeout
        async with self._network.opened(rules) as access:
            argv, environment = await self._program(args, context, workdir, access)
            try:
                result = await foreground.run(argv, workdir, environment, timeout_s, self._clock, pty=args.pty)
            except OSError as error:
                raise Rejected(f"the command could not be started: {error}") from error
        return told(result, timeout_s, access.refused)

    async def _start(self, args: TerminalArgs, context: CallContext, workdir: Path, rules: HostRules) -> str:
        # Notifications are only promised if the turn can deliver them later.
        can = context.delivers_later

        async def begun(access: NetworkAccess) -> Process:
            argv, environment = await self._program(args, context, workdir, access)
            command = BackgroundCommand(
                text=args.command,
                argv=argv,
                workdir=workdir,
                environment=environment,
                pty=args.pty,
                notifies=args.notify_on_complete and can,
                patterns=tuple(args.watch_patterns) if can else (),
            )
            return await self._background.start(command, context.session, context.turn)

        process = await self._network.keep(rules, begun, self._background.ended)
        answer: dict[str, object] = {
            "process_id": process.id,
            "pid": process.pid,
            "state": process.state.value,
            "notify_on_complete": process.notifies,
            "watch_patterns": [*process.patterns],
        }
        if not can and (args.notify_on_complete or args.watch_patterns):
            answer["notify_unsupported"] = _UNSUPPORTED
        return json.dumps(answer)

    async def _check(self, args: TerminalArgs) -> Path:
        """Check the arguments, and return the working folder.  Raises `Rejected`."""
        if len(args.command) > COMMAND_MAX_CHARS:
            raise Rejected(f"a command has at most {COMMAND_MAX_CHARS} characters; write a script to a file, and run that")
        if "\0" in args.command or not _is_text(args.command):
            raise Rejected("a command cannot contain a NUL character or half a surrogate pair")
        if args.timeout is not None and args.timeout > TIMEOUT_MAX_S:
            raise Rejected(f"timeout is {TIMEOUT_MAX_S} s at most; run what takes longer with background=true")
        if (args.notify_on_complete or args.watch_patterns) and not args.background:
            raise Rejected(
                "notify_on_complete and watch_patterns are for background=true; a command in the foreground is waited for"
            )
        await patterns.check(self._background.pool, args.watch_patterns)
        workdir = self._workspace.resolve(args.workdir or ".")
        if not workdir.is_dir():
            raise Rejected(f"workdir {args.workdir!r} is not a folder in the workspace; make it first")
        return workdir


def _hosts(args: TerminalArgs) -> list[str]:
    return [named(each) for each in args.hosts]


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def told(result: foreground.Result, timeout_s: float, refused: Collection[str] = ()) -> str:
    """Describe the result of a command: how it ended, which hosts it could not reach, and its output."""
    took = notices.spoken(result.duration_ms)
    if result.timed_out:
        said = f"Timed out: after {timeout_s:g} s it was ended, with everything it had started. "
        said += "What takes longer can be run with background=true."
    elif result.exit_code < 0:
        said = f"Ended by signal {-result.exit_code} after {took}."
    else:
        said = f"Exit code {result.exit_code} after {took}."
    if result.left_behind:
        said += " It left processes running, which were ended; run what should go on with background=true."
    if refused:
        said += f" {policy.refusal(refused)}"
    printed = readable(result.output).strip("\n")
    return f"{said}\n\n{printed}" if printed else f"{said} It printed nothing."
