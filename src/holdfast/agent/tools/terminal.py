"""The terminal: commands in the workspace, waited for or in the background, unasked only where a sandbox confines them."""

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
from holdfast.agent.tools.port import Site, StructTool
from holdfast.agent.tools.workspace import Workspace, in_thread
from holdfast.clock import Clock, SystemClock
from holdfast.config import TerminalConfig
from holdfast.core import consent
from holdfast.core.consent import Consent, ConsentVerdict
from holdfast.core.effects import Effect
from holdfast.core.processes import Process
from holdfast.core.questions import ONCE_CHOICES, PASSING_CHOICES, About, Question, fingerprint
from holdfast.core.turns import Mode
from holdfast.errors import Rejected
from holdfast.sandbox import Sandbox
from holdfast.sandbox.proxy import HostRules, Network, NetworkAccess

NAME = "terminal"
COMMAND_MAX_CHARS = 100_000
# What takes longer belongs in the background, where a restart does not end it.
TIMEOUT_MAX_S = 1_800

Positive = Annotated[float, msgspec.Meta(gt=0)]
Smart = Callable[[str, Sequence[str], Sequence[str], Site], Awaitable[bool]]
# Where programs that can only print are found: nothing that a person or an agent could put there unasked.
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


# A pager or an editor would run whatever is typed into it.
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
            max_length=consent.HOSTS_MAX,
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
    """What an approval is bound to: one digest of it all, and the files of the workspace among it by their digests."""

    fingerprint: str
    files: Mapping[str, str]


async def unsure(_command: str, _reasons: Sequence[str], _hosts: Sequence[str], _site: Site) -> bool:
    """The second opinion of a gateway that has none: ask."""
    return False


class Terminal:
    """Commands, as the operator allows them.  `environment` is what they see, with no secret left in it."""

    def __init__(
        self,
        config: TerminalConfig,
        workspace: Workspace,
        background: BackgroundProcesses,
        sandbox: Sandbox,
        environment: Mapping[str, str],
        hosts: Hosts,
        *,
        smart: Smart = unsure,
        network: Network | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._config = config
        self._workspace = workspace
        self._background = background
        self._sandbox = sandbox
        self._environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "dumb", **environment, **_NO_WAY_OUT}
        self._hosts = hosts
        self._smart = smart
        self._network = network or Network(background.home)
        self._clock = clock or SystemClock()
        found = Path(shutil.which("bash") or "/bin/sh").absolute()
        # PATH is the person's, and may lead into the workspace: a shell there could be anything.
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
        """Return whether a command could have read outside of the workspace.

        By its text alone: a file that it named may have been a link then, and be none any more.
        """
        found = consent.printing(args.command)
        return not self._sandbox.confines and (found is None or bool(found.files))

    async def question(self, args: TerminalArgs, site: Site) -> Question | None:
        """Return what a person must consent to.  Raises `Rejected` for what is never done, or nobody could consent to."""
        workdir = await self._check(args)
        hosts = await self._hosts.new(_hosts(args), site)
        found = self._decide(args, workdir, hosts)
        reasons = "; ".join(found.reasons)
        match found.verdict:
            case ConsentVerdict.RUN:
                return None
            case ConsentVerdict.REFUSE:
                raise Rejected(f"this command is forbidden here, and nothing allows it: {reasons}; find another way")
            case ConsentVerdict.ASK:
                pass
            case _:
                assert_never(found.verdict)
        if self._config.approval == "allow":
            return None
        if self._config.approval == "deny":
            raise Rejected(f"this command would need a person's consent, and the operator denies all such: {reasons}")
        bound = await in_thread(lambda: self._bound(args, workdir))
        # No model knows what a file of the workspace does, or what the host is told of what was read.
        is_smart = self._config.approval == "smart" and not bound.files and not site.private
        if is_smart and await self._smart(args.command, found.reasons, hosts, site):
            return None
        if site.turn.mode is Mode.SYNCHRONOUS:
            raise Rejected(
                f"this command needs a person's consent, and nobody can be asked here: {reasons}; find another way"
            )
        return self._question(args, site, workdir, found, hosts, bound)

    def _decide(self, args: TerminalArgs, workdir: Path, hosts: Sequence[str]) -> Consent:
        return consent.decide(
            args.command,
            confines=self._sandbox.confines,
            only_prints=self._printing(args, workdir) is not None,
            new_hosts=hosts,
            deny=self._config.deny,
            without="no sandbox on this machine" if self._sandbox.missing else "the sandbox is switched off",
        )

    def _question(
        self, args: TerminalArgs, site: Site, workdir: Path, found: Consent, hosts: Sequence[str], bound: Bound
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
            return self._hosts.question(hosts, wish, "; ".join(found.reasons), site, detail, expires_ms)
        return Question(
            id=f"approve:{site.call_id}:{bound.fingerprint[:16]}",
            text=f"{wish}\n\nIt is asked because: {'; '.join(found.reasons)}.",
            about=About.APPROVAL,
            # Never for always: what it runs lies where the agent writes, or depends on what lies there.
            choices=PASSING_CHOICES if named_files.is_plain(args.command) else ONCE_CHOICES,
            fingerprint=bound.fingerprint,
            expires_at=self._clock.now_ms() + expires_ms,
            detail={**detail, "files": sorted(bound.files), "hosts": [*args.hosts]},
        )

    def _bound(self, args: TerminalArgs, workdir: Path) -> Bound:
        """Return all that an approval is bound to.  It reads files."""
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
        """Return how to start a command that can only print, without a shell; None for every other.

        Its program is one of the system, and all files that it names are in the workspace.
        """
        found = consent.printing(args.command)
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
        self, args: TerminalArgs, site: Site, workdir: Path, access: NetworkAccess
    ) -> tuple[list[str], dict[str, str]]:
        """Return what is started, with its environment.  Raises `Rejected` where that is not what was allowed."""
        shell = [self._shell, "-c", args.command]
        if self._sandbox.confines or self._config.approval == "allow":
            argv, variables = self._sandbox.wrap(shell, workdir, access)
            return argv, {**self._environment, **variables}
        if (argv := self._printing(args, workdir)) is not None:
            return argv, self._environment
        if not site.approved and (self._config.approval != "smart" or consent.printing(args.command)):
            raise Rejected("not run: nobody has approved it; ask for it again")
        bound = await in_thread(lambda: self._bound(args, workdir))
        if site.approved:
            if bound.fingerprint != site.approved:
                raise Rejected("not run: a file that this command names has changed since it was approved; ask for it again")
        elif bound.files:
            # A model allowed the command while it named none; another call of the step may have written one since.
            raise Rejected(
                "not run: it names a file of the workspace by now, and only a person approves that; ask for it again"
            )
        return shell, self._environment

    def reachable(self, args: TerminalArgs) -> frozenset[str]:
        """Return the hosts that a command may reach once it runs: it does only when all that it names are approved."""
        return frozenset((*map(as_listed, self._config.hosts), *map(named, args.hosts)))

    async def run(self, args: TerminalArgs, site: Site) -> str:
        """Run a command.  What was consented to is exactly what is run."""
        workdir = await self._check(args)
        rules = HostRules.of(self.reachable(args))
        if args.background:
            return await self._start(args, site, workdir, rules)
        timeout_s = args.timeout or self._config.timeout
        async with self._network.opened(rules) as access:
            argv, environment = await self._program(args, site, workdir, access)
            try:
                result = await foreground.run(argv, workdir, environment, timeout_s, self._clock, pty=args.pty)
            except OSError as error:
                raise Rejected(f"the command could not be started: {error}") from error
        return told(result, timeout_s, access.refused)

    async def _start(self, args: TerminalArgs, site: Site, workdir: Path, rules: HostRules) -> str:
        # The one place where a promise of later delivery is made; on a turn that cannot keep it, none is.
        can = site.delivers_later

        async def begun(access: NetworkAccess) -> Process:
            argv, environment = await self._program(args, site, workdir, access)
            command = BackgroundCommand(
                text=args.command,
                argv=argv,
                workdir=workdir,
                environment=environment,
                pty=args.pty,
                notifies=args.notify_on_complete and can,
                patterns=tuple(args.watch_patterns) if can else (),
            )
            return await self._background.start(command, site.session, site.turn)

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
        """Refuse what cannot be run; returns the folder to run it in."""
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
    """Return what became of a command in words, with the hosts that it was refused, and then what it printed."""
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
        said += f" {consent.refusal(refused)}"
    printed = readable(result.output).strip("\n")
    return f"{said}\n\n{printed}" if printed else f"{said} It printed nothing."
