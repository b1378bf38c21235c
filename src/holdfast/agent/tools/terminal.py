"""The terminal: commands in the workspace, waited for or in the background, dangerous ones only with somebody's consent."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, assert_never

import msgspec

from holdfast.agent.processes import foreground, notices, patterns
from holdfast.agent.processes.folder import readable
from holdfast.agent.processes.keeping import Command, Keeping
from holdfast.agent.sandbox import Sandbox
from holdfast.agent.tools.files import Workspace
from holdfast.agent.tools.port import Site, StructTool
from holdfast.clock import Clock, SystemClock
from holdfast.config import TerminalConfig
from holdfast.core.danger import judge
from holdfast.core.effects import Effect
from holdfast.core.evidence import Judgement, Verdict
from holdfast.core.questions import APPROVAL_CHOICES, About, Question, fingerprint
from holdfast.core.turns import Mode
from holdfast.errors import Rejected

NAME = "terminal"
COMMAND_MAX_CHARS = 100_000
# What takes longer belongs in the background, where a restart does not end it.
TIMEOUT_MAX_S = 1_800

Positive = Annotated[float, msgspec.Meta(gt=0)]
Smart = Callable[[str, Judgement, Site], Awaitable[bool]]

_DESCRIPTION = """Run a shell command in the workspace.

In the foreground (default) it returns the exit code and what was printed; it has no input, and when the timeout is over \
it is ended. Nothing that it starts outlives it. For servers, long work, or anything that needs input use background=true: \
it returns a process_id at once, and the command goes on even if the gateway restarts. With notify_on_complete you are told \
when it ends, with watch_patterns when it prints a matching line; otherwise look with the process tool."""
_UNSUPPORTED = (
    "Nothing can be delivered on this channel after the answer, so nobody will be told when the process ends or what it "
    "prints. It runs all the same: poll it with the `process` tool."
)


# A pager or an editor would run whatever is typed into it, and nobody judges that.
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
    watch_patterns: Annotated[
        list[str],
        msgspec.Meta(
            description="With background: regular expressions; tell me, at most every 10 s and 20 times, of matching lines."
        ),
    ] = []


async def unsure(_command: str, _judgement: Judgement, _site: Site) -> bool:
    """The second opinion of a gateway that has none: ask."""
    return False


class Terminal:
    """Commands, as the operator allows them.  `environment` is what they see, with no secret left in it."""

    def __init__(
        self,
        config: TerminalConfig,
        workspace: Workspace,
        keeping: Keeping,
        sandbox: Sandbox,
        environment: Mapping[str, str],
        *,
        private: Sequence[Path] = (),
        smart: Smart = unsure,
        clock: Clock | None = None,
    ) -> None:
        self._config = config
        self._workspace = workspace
        self._keeping = keeping
        self._sandbox = sandbox
        self._environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "dumb", **environment, **_NO_WAY_OUT}
        self._private = [str(folder.resolve()) for folder in private]
        self._smart = smart
        self._clock = clock or SystemClock()
        self._shell = shutil.which("bash") or "/bin/sh"

    def tool(self) -> StructTool[TerminalArgs]:
        return StructTool(
            name=NAME,
            description=_DESCRIPTION,
            args=TerminalArgs,
            effect=Effect.EFFECTFUL,
            action=self.run,
            asks=self.question,
        )

    async def question(self, args: TerminalArgs, site: Site) -> Question | None:
        """Return what a person must consent to.  Raises `Rejected` for what is never done, or nobody could consent to."""
        workdir = self._check(args)
        judgement = judge(
            args.command,
            self._config.deny,
            workspace=str(self._workspace.root),
            workdir=str(workdir),
            private=() if self._sandbox.is_on else self._private,
            bounded=not self._sandbox.missing,
        )
        reasons = "; ".join(judgement.reasons)
        match judgement.verdict:
            case Verdict.SAFE:
                return None
            case Verdict.FORBIDDEN:
                raise Rejected(f"this command is forbidden here, and nothing allows it: {reasons}; find another way")
            case Verdict.DANGEROUS:
                return await self._consent(args, site, workdir, judgement)
            case _:
                assert_never(judgement.verdict)

    async def _consent(self, args: TerminalArgs, site: Site, workdir: Path, judgement: Judgement) -> Question | None:
        reasons = "; ".join(judgement.reasons)
        match self._config.approval:
            case "allow":
                return None
            case "deny":
                raise Rejected(
                    f"this command was judged dangerous, and the operator denies such: {reasons}; find another way"
                )
            case "smart" if await self._smart(args.command, judgement, site):
                return None
            case "smart" | "ask":
                pass
        if site.turn.mode is Mode.SYNCHRONOUS:
            raise Rejected(
                f"this command needs a person's consent, and nobody can be asked here: {reasons}; find another way"
            )
        return self._question(args, site, workdir, judgement)

    def _question(self, args: TerminalArgs, site: Site, workdir: Path, judgement: Judgement) -> Question:
        bound = fingerprint(
            tool=NAME,
            command=args.command,
            workdir=str(workdir),
            environment=self._environment_hash(),
            # What was allowed behind walls was not allowed without them.
            sandbox=self._sandbox.is_on,
            background=args.background,
            pty=args.pty,
        )
        shown = self._workspace.shown(workdir)
        return Question(
            id=f"approve:{site.call_id}:{bound[:16]}",
            text=f"May I run this command in {'the workspace' if shown == '.' else shown}?\n\n    {args.command}\n\n"
            f"It was judged dangerous: {'; '.join(judgement.reasons)}.",
            about=About.APPROVAL,
            choices=APPROVAL_CHOICES,
            fingerprint=bound,
            expires_at=self._clock.now_ms() + int(self._config.approval_expires * 1000),
            detail={
                "command": args.command,
                "workdir": str(workdir),
                "reasons": [*judgement.reasons],
                "background": args.background,
            },
        )

    def _environment_hash(self) -> str:
        return hashlib.sha256(json.dumps(self._environment, sort_keys=True).encode("utf-8", "surrogateescape")).hexdigest()

    async def run(self, args: TerminalArgs, site: Site) -> str:
        """Run a command.  What was consented to is exactly what is run."""
        workdir = self._check(args)
        argv = self._sandbox.wrap([self._shell, "-c", args.command], workdir)
        if args.background:
            return await self._start(args, site, workdir, argv)
        timeout_s = args.timeout or self._config.timeout
        try:
            result = await foreground.run(argv, workdir, self._environment, timeout_s, self._clock, pty=args.pty)
        except OSError as error:
            raise Rejected(f"the command could not be started: {error}") from error
        return _told(result, timeout_s)

    async def _start(self, args: TerminalArgs, site: Site, workdir: Path, argv: list[str]) -> str:
        # The one place where a promise of later delivery is made; on a turn that cannot keep it, none is.
        can = site.delivers_later
        command = Command(
            text=args.command,
            argv=argv,
            workdir=workdir,
            environment=self._environment,
            pty=args.pty,
            notifies=args.notify_on_complete and can,
            patterns=tuple(args.watch_patterns) if can else (),
        )
        process = await self._keeping.start(command, site.session, site.turn)
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

    def _check(self, args: TerminalArgs) -> Path:
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
        patterns.compiled(args.watch_patterns)
        workdir = self._workspace.resolve(args.workdir or ".")
        if not workdir.is_dir():
            raise Rejected(f"workdir {args.workdir!r} is not a folder in the workspace; make it first")
        return workdir


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _told(result: foreground.Result, timeout_s: float) -> str:
    """Return what became of a command in words, and then what it printed."""
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
    printed = readable(result.output).strip("\n")
    return f"{said}\n\n{printed}" if printed else f"{said} It printed nothing."
