"""Danger: how a shell command is judged before it runs.  What is not understood with certainty is never safe.

The command is read, not searched for words: quotes, pipes, substitutions and programs that run others are followed.
Reading is free, apart from known secrets; ordinary work inside the workspace is free; what destroys, leaves the machine,
or reaches outside of the workspace is asked about.  A few things are never done, whoever allows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from fnmatch import fnmatchcase

from holdfast.core import programs
from holdfast.core.places import ANYWHERE, Place, locate
from holdfast.core.shell import UNKNOWN, Simple, Word, parse

# No system takes a longer word, and a command is one word to the shell that runs it.
COMMAND_MAX_BYTES = 131_072
WRAPPED_MAX = 10
# Commands within commands are read once for each level: so many characters in all.
EFFORT_MAX_CHARS = 300_000
REASONS_MAX = 8
SHOWN_MAX_CHARS = 80
_WORD_EFFORT_CHARS = 5
_GLANCES_MAX = 500
_GLANCE_MAX_WORDS = 50

_SEPARATORS = re.compile(r"[;&|()`\n{}<>]|\$\(")
_TO_DEVICE = re.compile(r">[>|]?\s*(/dev/\S+)")
_VERSIONED = re.compile(r"(python|pypy|perl|ruby|php|node|lua|pip|clang|gcc|g\+\+)-?\d[\d.]*")
_MODE = re.compile(r"[0-7]{3,4}|[ugoa]*([+=-][rwxXstugo]*)+(,[ugoa]*([+=-][rwxXstugo]*)+)*")
_SEDS = re.compile(
    r"\s*(?:(?:\d+|\$|/[^/\n]*/)(?:,\s*[+~]?(?:\d+|\$|/[^/\n]*/))?\s*!?\s*)?"
    r"(?:[pdqDPnNgGhHx=]|s([/|#,:!@])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gpiI0-9]*)?\s*"
)
_AWK_RISKS = re.compile(r"system|getline|[|>]|close|@|fflush|ENVIRON|PROCINFO")
_SHOWS_VERSION = frozenset({"--version", "-V", "--help", "-version"})


class Verdict(IntEnum):
    """What a command needs before it runs, in rising order: nothing, a person's word, or it never may."""

    SAFE = 0
    DANGEROUS = 1
    FORBIDDEN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict, with what led to it in plain words."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()


def judge(command: str, deny: Sequence[str] = (), *, workspace: str = "") -> Judgement:
    """Judge a command that would run in the workspace, or below it; never raises.

    `deny` are the operator's patterns, which nothing overrides: a glob that a whole command matches or begins with, or a
    regular expression between slashes.  `workspace` makes absolute paths below it known as part of it.
    """
    if len(command.encode("utf-8", "surrogatepass")) > COMMAND_MAX_BYTES:
        return Judgement(verdict=Verdict.FORBIDDEN, reasons=("it is longer than a system can start; put it into a file",))
    case = _Case(workspace=workspace.rstrip("/"), deny=tuple(_denial(pattern) for pattern in deny))
    case.check_denied(command)
    case.script(command, 0)
    found = case.findings
    verdict = max(found.values(), default=Verdict.SAFE)
    reasons = [reason for reason, each in found.items() if each == verdict]
    return Judgement(verdict=verdict, reasons=tuple(reasons[:REASONS_MAX]))


def _denial(pattern: str) -> tuple[str, Callable[[str], bool]]:
    """Return a pattern and what finds it.  One that is no pattern denies everything: it was meant to deny something."""
    if len(pattern) > 2 and pattern[0] == pattern[-1] == "/":
        try:
            found = re.compile(pattern[1:-1])
        except re.error:
            return f"{pattern} (which is not valid)", lambda _text: True
        return pattern, lambda text: found.search(text) is not None
    return pattern, lambda text: fnmatchcase(text, pattern) or fnmatchcase(text, f"{pattern} *")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """The arguments of a program: its options one by one, and the rest."""

    options: frozenset[str]
    values: tuple[Word, ...]
    rest: tuple[Word, ...]

    def has(self, *options: str) -> bool:
        """Return whether one of the options is given; a long one may be cut short, as most programs allow."""
        if not self.options.isdisjoint(options):
            return True
        cut = tuple(option for option in self.options if option.startswith("--"))
        return any(whole.startswith(option) for option in cut for whole in options)


def _given(words: Sequence[Word]) -> _Given:
    options: set[str] = set()
    values: list[Word] = []
    rest: list[Word] = []
    for at, word in enumerate(words):
        text = word.text
        if text == "--":
            rest += words[at + 1 :]
            break
        if text.startswith("--"):
            name, equals, value = text.partition("=")
            options.add(name)
            if equals:
                values.append(Word(text=value, varies=word.varies, glob=word.glob))
        elif text.startswith("-") and len(text) > 1:
            options |= {f"-{letter}" for letter in text[1:]}
        else:
            rest.append(word)
    return _Given(options=frozenset(options), values=tuple(values), rest=tuple(rest))


def _shown(word: Word) -> str:
    text = word.text.replace(UNKNOWN, "…")
    return repr(text if len(text) <= SHOWN_MAX_CHARS else f"{text[:SHOWN_MAX_CHARS]}…")


def _joined(words: Iterable[Word]) -> str:
    return " ".join(word.text for word in words)


@dataclass(slots=True, kw_only=True)
class _Case:
    """One command under judgement: what was found, and where it would stand by now."""

    workspace: str
    deny: tuple[tuple[str, Callable[[str], bool]], ...]
    findings: dict[str, Verdict] = field(default_factory=dict[str, Verdict])
    # The folder it went to; empty is where it began.
    cwd: str = ""
    effort_chars: int = 0
    # What it may have written by then, and could run unseen.
    written: set[str] = field(default_factory=set[str])
    # Only the worst is looked for, and nothing is followed any further.
    glancing: bool = False

    def ask(self, reason: str) -> None:
        self.findings.setdefault(reason, Verdict.DANGEROUS)

    def forbid(self, reason: str) -> None:
        self.findings[reason] = Verdict.FORBIDDEN

    def check_denied(self, text: str) -> None:
        for pattern, finds in self.deny:
            if finds(text):
                self.forbid(f"the operator denies {pattern}")

    def script(self, text: str, depth: int) -> None:
        """Judge everything that a text would run."""
        self.effort_chars += len(text)
        if depth > WRAPPED_MAX or self.effort_chars > EFFORT_MAX_CHARS:
            self.ask("it is nested too deep to be followed")
            self._glance(text)
            return
        script = parse(text)
        for doubt in script.doubts:
            self.ask(doubt)
        if script.doubts:
            self._glance(text)
        for command in script.commands:
            self._check_bomb(command, script.functions)
            self.simple(command, depth)

    def _check_bomb(self, command: Simple, functions: set[str]) -> None:
        if not command.words or command.words[0].text not in functions:
            return
        feeds = command.source is not None and command.source.words and command.source.words[0].text in functions
        if feeds or command.background:
            self.forbid("it starts itself over and over")

    def _glance(self, text: str) -> None:
        """Look for the worst in what could not be read: better a false alarm than none."""
        if self.glancing:
            return
        bare = re.sub(r"['\"\\]", "", text)
        for found in _TO_DEVICE.finditer(bare):
            self.writes(Word(text=found[1]))
        glances = 0
        for piece in _SEPARATORS.split(bare):
            words = piece.split()
            for at, word in enumerate(words):
                name = word.rpartition("/")[2]
                if name in _WORST or name in programs.NEVER or name.startswith("mkfs"):
                    glances += 1
                    if glances > _GLANCES_MAX:
                        return
                    self._worst([Word(text=each) for each in words[at : at + _GLANCE_MAX_WORDS]])

    def _worst(self, words: list[Word]) -> None:
        alone = _Case(workspace=self.workspace, deny=self.deny, cwd=self.cwd, glancing=True)
        alone.argv(words, Simple(), WRAPPED_MAX)
        self.findings |= {reason: verdict for reason, verdict in alone.findings.items() if verdict is Verdict.FORBIDDEN}

    def simple(self, command: Simple, depth: int) -> None:
        for name, value in command.assignments:
            self.sets(name, value)
        for redirect in command.redirects:
            target = redirect.target
            if redirect.operator in (">&", "<&") and re.fullmatch(r"\d+-?|-", target.text):
                continue
            if target.text.startswith(("/dev/tcp/", "/dev/udp/")):
                self.ask("it talks to other machines")
            elif redirect.operator in (">", ">>", ">|", ">&", "<>"):
                self.writes(target)
            elif redirect.operator == "<":
                self.reads(target)
        if command.words:
            self.argv(command.words, command, depth)

    def argv(self, words: Sequence[Word], command: Simple, depth: int) -> None:
        """Judge one program with its arguments; `command` is what it stands in."""
        first, arguments = words[0], words[1:]
        folder, slash, name = first.text.rpartition("/")
        self.check_denied(_joined(words))
        if slash:
            self.check_denied(_joined((Word(text=name), *arguments)))
        self.effort_chars += len(words) * _WORD_EFFORT_CHARS
        if depth > WRAPPED_MAX or self.effort_chars > EFFORT_MAX_CHARS:
            self.ask("it is nested too deep to be followed")
            self._glance(_joined(words[:_GLANCES_MAX]))
            return
        if first.varies or first.listed or (first.glob and first.text != "["):
            self.ask("which program it runs is only known when it runs")
        own = bool(slash) and folder not in programs.BIN_FOLDERS
        if own:
            self.run_file(first)
        if found := _VERSIONED.fullmatch(name):
            name = found[1]
        if name in programs.NEVER or name.startswith("mkfs"):
            self.forbid(f"{name}: {programs.NEVER.get(name, 'it erases a disk')}")
        elif len(arguments) == 1 and arguments[0].text in _SHOWS_VERSION and name not in programs.SHELLS:
            return
        else:
            self._program(name, arguments, command, depth, own=own)

    def _program(self, name: str, words: Sequence[Word], command: Simple, depth: int, *, own: bool) -> None:
        if name in _FOLLOWED:
            _FOLLOWED[name](self, name, words, command, depth)
        elif name in programs.SHELLS:
            self._shell(name, words, command, depth)
        elif name in programs.WRAPPERS:
            self._wrapper(name, words, command, depth)
        elif name in _RULES:
            _RULES[name](self, name, words)
        elif name in programs.INTERPRETERS:
            self._interpreter(name, words)
        elif name in programs.WORDS_ONLY:
            return
        elif name in programs.READERS:
            self._reader(name, words)
        elif name in programs.WRITERS:
            self._writer(words)
        elif name in programs.DEVELOPMENT or own:
            self._development(name, words)
        elif name in programs.SUBCOMMANDS:
            self._subcommand(name, words)
        elif name in programs.ALWAYS_ASKED:
            self.ask(f"{name}: {programs.ALWAYS_ASKED[name]}")
            if name in programs.UNFOLLOWED:
                self._glance(_joined(words))
        else:
            self.ask(f"{_shown(Word(text=name))} is not a command that is known to be harmless")

    def place(self, word: Word) -> Place:
        return locate(word, self.cwd, self.workspace)

    def reads(self, word: Word) -> None:
        if word.varies:
            self.ask("what it reads is only known when it runs")
        if self.place(word).is_device:
            self.ask(f"it reads a whole device, {_shown(word)}")
        if self.place(word).is_secret:
            self.ask(f"it reads {_shown(word)}, which may hold secrets")

    def writes(self, word: Word) -> None:
        place = self.place(word)
        if place.is_device:
            self.forbid(f"it overwrites a device, {_shown(word)}")
        elif place.is_sink:
            return
        elif word.varies:
            self.ask("what it changes is only known when it runs")
        elif not place.inside:
            self.ask(f"it changes {_shown(word)}, outside of the workspace")
        elif place.is_guarded:
            self.ask(f"it changes {_shown(word)}, which others rely on")
        self.written.add(place.path)

    def sets(self, name: str, value: Word) -> None:
        if name in programs.STEERING_NAMES or name.startswith(programs.STEERING):
            self.ask(f"it sets {name}, which decides what other programs do")
        if value.text.startswith("() {"):
            self.ask("it defines a function in a variable")

    def _writer(self, words: Sequence[Word]) -> None:
        given = _given(words)
        for word in (*given.rest, *given.values):
            self.writes(word)
        if given.has("--to-command", "--checkpoint-action", "--use-compress-program", "-I", "--rsh-command"):
            self.ask("it runs another program")
        for word in words:
            # An option and its value in one word, such as -C/etc.
            if re.match(r"-[A-Za-z]+[/~]", word.text):
                self.writes(Word(text=re.sub(r"^-[A-Za-z]+", "", word.text)))

    def _reader(self, name: str, words: Sequence[Word]) -> None:
        given = _given(words)
        for option, what in programs.READER_RISKS.get(name, {}).items():
            if given.has(option):
                self.ask(f"{name} {option}: it {what}")
        rest = given.rest
        if name in _PATTERN_FIRST and not given.has("-e", "-f", "--regexp", "--file", "--files"):
            rest = rest[1:]
        recursive = name in programs.RECURSIVE_READERS or given.has("-r", "-R", "--recursive", "--dereference-recursive")
        for word in (*rest, *given.values):
            self.reads(word)
            if recursive and name != "ls" and self.place(word).holds_secrets:
                self.ask(f"it reads everything below {_shown(word)}, where secrets are kept")
        if recursive and name != "ls" and self.cwd and Place(path=self.cwd, inside=False).holds_secrets:
            self.ask("it reads everything in a folder where secrets are kept")
        if name in programs.WRITES_SECOND:
            for word in rest[1:]:
                self.writes(word)
        self._peculiar(name, words, rest)

    def _peculiar(self, name: str, words: Sequence[Word], rest: Sequence[Word]) -> None:
        if name == "ps" and any("e" in word.text for word in words if not word.text.startswith("-")):
            self.ask("it shows the environment of processes, which may hold secrets")
        elif name == "jq" and any(re.search(r"\benv\b|\$ENV", word.text) for word in words):
            self.ask("it shows the environment, which may hold secrets")
        elif name in ("less", "more") and any(word.text.startswith("+") for word in words):
            self.ask(f"{name} may run another program")
        elif name == "hostname" and rest:
            self.ask("it names the machine anew")
        elif name == "date" and any(re.fullmatch(r"\d{8,12}(\.\d\d)?", word.text) for word in rest):
            self.ask("it sets the clock")

    def _development(self, name: str, words: Sequence[Word]) -> None:
        given = _given(words)
        if self.cwd:
            self.ask(f"{name} would work outside of the workspace")
        settings = [Word(text=word.text.partition("=")[2]) for word in given.rest if "=" in word.text]
        for word in (*given.rest, *given.values, *settings):
            if word.varies:
                self.ask(f"what {name} works on is only known when it runs")
            elif not self.place(word).inside:
                self.ask(f"{name} would work on {_shown(word)}, outside of the workspace")
        self._outward(name, given.rest)
        for word in words:
            if re.match(r"-[oC][/~.]", word.text):
                self.writes(Word(text=word.text[2:], varies=word.varies))

    def _outward(self, name: str, words: Sequence[Word]) -> None:
        for word in (Word(text=name), *words):
            if any(each in word.text.lower() for each in programs.OUTWARD_TARGETS):
                self.ask(f"{_shown(word)} may put something into the machine, or send it out")

    def _subcommand(self, name: str, words: Sequence[Word]) -> None:
        given = _given(words)
        chosen = given.rest[0].text if given.rest else ""
        if name == "systemctl" and chosen in programs.MACHINE_STOPS:
            self.forbid("it stops the machine")
        elif chosen not in programs.SUBCOMMANDS[name] or given.rest[0].varies or given.has("-w", "-g", "--global", "--fix"):
            self.ask(
                f"{name} {chosen}: {programs.ALWAYS_ASKED[name]}" if chosen else f"{name}: {programs.ALWAYS_ASKED[name]}"
            )
        elif chosen == "audit" and len(given.rest) > 1:
            self.ask(f"{name}: {programs.ALWAYS_ASKED[name]}")
        else:
            self._development(name, words)

    def _interpreter(self, name: str, words: Sequence[Word]) -> None:
        if self.cwd:
            self.ask(f"{name} would work outside of the workspace")
        rest = [*words]
        while rest and rest[0].text.startswith("-") and len(rest[0].text) > 1:
            option = rest.pop(0).text
            if name in ("python", "pypy") and re.fullmatch(r"-[bBdEIOqsSuvx]*m", option) and rest:
                self._module(rest[0].text, rest[1:])
                return
            if name in ("python", "pypy") and re.fullmatch(r"-[WX]", option) and rest:
                rest.pop(0)
            elif not re.fullmatch(r"-[bBdEIOqsSuvx]+|--(test|watch|check|no-warnings|trace-warnings)", option):
                self.ask(f"{name} {option[:2]} runs code that is given on the command line, or behaves unusually")
                return
        if not rest or rest[0].text == "-":
            self.ask(f"{name} runs whatever it is given as input")
        elif "://" in rest[0].text:
            self.ask(f"{name} runs {_shown(rest[0])}, from another machine")
        else:
            self.run_file(rest[0])
        if rest and name in ("deno", "bun") and rest[0].text in programs.BUN_INSTALLS:
            self.ask(f"{name} {rest[0].text}: it installs packages, or runs what is not part of the workspace")

    def _module(self, module: str, words: Sequence[Word]) -> None:
        if module == "pip":
            self._subcommand("pip", words)
        elif module in programs.MODULES:
            self._development(module, words)
        else:
            self.ask(f"the Python module {_shown(Word(text=module))} is not known to be harmless")

    def _shell(self, name: str, words: Sequence[Word], command: Simple, depth: int) -> None:
        rest = [*words]
        runs_text = False
        while rest and rest[0].text[:1] in ("-", "+") and len(rest[0].text) > 1:
            option = rest.pop(0).text
            runs_text |= not option.startswith("--") and "c" in option
            if option in ("-o", "+o", "-O", "+O") and rest:
                rest.pop(0)
            elif option.startswith(("--rcfile", "--init-file")) or "s" in option[1:2]:
                self.ask(f"{name} runs whatever it is given as input")
        if runs_text and rest:
            if rest[0].varies or rest[0].listed:
                self.ask("what it runs is only known when it runs")
            self.script(rest[0].text, depth + 1)
        elif rest:
            self.run_file(rest[0])
        else:
            self._run_input(name, command, depth)

    def run_file(self, word: Word) -> None:
        if word.varies or not self.place(word).inside:
            self.ask(f"it runs {_shown(word)}, from outside of the workspace")
        elif self.place(word).path in self.written:
            self.ask(f"it runs {_shown(word)}, which it has written itself")

    def _run_input(self, name: str, command: Simple, depth: int) -> None:
        """Judge a shell that runs what it reads."""
        bodies = [redirect.body for redirect in command.redirects if redirect.body is not None]
        for redirect in command.redirects:
            if redirect.operator == "<":
                self.run_file(redirect.target)
        for body in bodies:
            self.script(body, depth + 1)
        if not bodies and not any(redirect.operator == "<" for redirect in command.redirects):
            self.ask(f"{name} runs whatever it is given as input")
        if (source := command.source) is not None:
            for redirect in source.redirects:
                self.script(redirect.body or "", depth + 1)
            if source.words and source.words[0].text in ("echo", "printf"):
                self.script(_joined(word for word in source.words[1:] if not word.text.startswith("-")), depth + 1)

    def _wrapper(self, name: str, words: Sequence[Word], command: Simple, depth: int) -> None:
        """Judge a program that runs another."""
        valued, before = programs.WRAPPERS[name]
        if name in programs.ALWAYS_ASKED:
            self.ask(f"{name}: {programs.ALWAYS_ASKED[name]}")
        rest = [*words]
        while rest and rest[0].text.startswith("-"):
            option = rest.pop(0).text
            if option == "--":
                break
            if name == "command" and option in ("-v", "-V"):
                return
            if option in valued and rest:
                rest.pop(0)
        for word in rest[:before]:
            if name in ("chroot", "flock"):
                self.writes(word)
        inner = rest[before:]
        if name in ("watch", "parallel"):
            self.ask(f"{name} runs something over and over")
            self.script(_joined(inner), depth + 1)
        elif inner:
            self.argv(inner, command, depth + 1)

    def xargs(self, name: str, words: Sequence[Word], command: Simple, depth: int) -> None:
        valued, _ = programs.WRAPPERS[name]
        rest = [*words]
        place = "{}"
        while rest and rest[0].text.startswith("-"):
            option = rest.pop(0).text
            if option in valued and rest:
                value = rest.pop(0).text
                place = value if option == "-I" else place
        listed = _is_listing(command.source)
        item = Word(text=f"./{UNKNOWN}", listed=True) if listed else Word(text=UNKNOWN, varies=True)
        if rest:
            self.argv([*_filled(rest, place, item), item], Simple(), depth + 1)

    def env(self, _name: str, words: Sequence[Word], command: Simple, depth: int) -> None:
        valued, _ = programs.WRAPPERS["env"]
        rest = [*words]
        while rest and (rest[0].text.startswith("-") or "=" in rest[0].text):
            word = rest.pop(0)
            if word.text.startswith(("-S", "--split-string")):
                self.script(f"{word.text.removeprefix('-S').partition('=')[2] or word.text[2:]} {_joined(rest)}", depth + 1)
                return
            if word.text.startswith("--chdir="):
                self.cd("cd", [Word(text=word.text.partition("=")[2], varies=word.varies)])
            elif word.text in valued and rest:
                value = rest.pop(0)
                if word.text in ("-C", "--chdir"):
                    self.cd("cd", [value])
            elif "=" in word.text and not word.text.startswith("-"):
                name, _, value = word.text.partition("=")
                self.sets(name, Word(text=value))
        if rest:
            self.argv(rest, command, depth + 1)
        else:
            self.ask("it shows the environment, which may hold secrets")

    def eval(self, _name: str, words: Sequence[Word], _command: Simple, depth: int) -> None:
        if any(word.varies or word.listed for word in words):
            self.ask("what it runs is only known when it runs")
        self.script(_joined(words), depth + 1)

    def source(self, _name: str, words: Sequence[Word], _command: Simple, _depth: int) -> None:
        if words:
            self.run_file(words[0])

    def ssh(self, name: str, words: Sequence[Word], _command: Simple, depth: int) -> None:
        self.ask(f"{name}: {programs.ALWAYS_ASKED[name]}")
        for start in range(1, min(len(words), REASONS_MAX)):
            # Which word is the host depends on options; the worst is looked for after each.
            alone = _Case(workspace="", deny=self.deny, effort_chars=self.effort_chars, glancing=self.glancing)
            alone.script(_joined(words[start:]), depth + 1)
            self.effort_chars = alone.effort_chars
            self.findings |= {reason: each for reason, each in alone.findings.items() if each is Verdict.FORBIDDEN}

    def su(self, name: str, words: Sequence[Word], _command: Simple, depth: int) -> None:
        self.ask(f"{name}: {programs.ALWAYS_ASKED[name]}")
        for at, word in enumerate(words[:-1]):
            if word.text in ("-c", "--command"):
                self.script(words[at + 1].text, depth + 1)

    def run(self, name: str, words: Sequence[Word], command: Simple, depth: int) -> None:
        """Judge a project tool that runs another program of the project."""
        rest = [*words]
        if rest and rest[0].text == "run":
            inner = rest[1:]
            while inner and inner[0].text.startswith("-"):
                option = inner.pop(0).text
                if option in ("--with", "--python", "-p", "--extra", "--group", "--directory", "--project", "--env-file"):
                    self.ask(f"{name} run {option}: it changes what the program works with")
            if inner:
                self.argv(inner, command, depth + 1)
        elif name != "uv" and rest and rest[0].text in programs.SUBCOMMANDS.get(name, ()):
            return
        elif [word.text for word in rest[:2]] not in (["pip", "list"], ["pip", "show"], ["pip", "freeze"], ["pip", "tree"]):
            self.ask(f"{name}: it installs or publishes packages, or runs what is not part of the workspace")

    def find(self, _name: str, words: Sequence[Word], _command: Simple, depth: int) -> None:
        starts: list[Word] = []
        for word in words:
            if word.text.startswith(("-", "(", "!")):
                break
            starts.append(word)
        starts = starts or [Word(text=".")]
        for word in words:
            self.reads(word)
        tests = [*words[len(starts) if words and starts[0] is words[0] else 0 :]]
        while tests:
            option = tests.pop(0).text
            if option == "-delete":
                self._delete(starts, "it deletes what it finds")
            elif option in ("-fprint", "-fprint0", "-fls", "-fprintf") and tests:
                self.writes(tests[0])
            elif option in ("-exec", "-execdir", "-ok", "-okdir"):
                stop = next((at for at, word in enumerate(tests) if word.text in (";", "+")), len(tests))
                self._each(starts, tests[:stop], depth)
                tests = tests[stop:]

    def _each(self, starts: Sequence[Word], inner: Sequence[Word], depth: int) -> None:
        """Judge what is done to each file found, once for each folder in which it may be."""
        for start in starts[:REASONS_MAX]:
            inside = self.place(start).inside and not start.varies
            item = Word(text=f"./{UNKNOWN}", listed=True) if inside else Word(text=start.text, varies=True)
            if inner:
                self.argv(_filled(inner, "{}", item), Simple(), depth + 1)

    def _delete(self, targets: Sequence[Word], what: str) -> None:
        for word in targets:
            if self.place(word).is_vital:
                self.forbid(f"it deletes {_shown(word)}, which the system or its user needs")
        self.ask(what)

    def rm(self, _name: str, words: Sequence[Word]) -> None:
        given = _given(words)
        recursive = given.has("-r", "-R", "--recursive")
        if given.has("--no-preserve-root"):
            self.forbid("it deletes the whole system")
        if recursive:
            self._delete(given.rest, "it deletes folders with everything in them")
        for word in given.rest:
            if word.glob and self.place(word).is_vital:
                self.forbid(f"it deletes {_shown(word)}, which the system or its user needs")
            self.writes(word)
            if word.listed:
                self.ask("it deletes every file that is found")
            if word.glob and not re.sub(r"[*?.\[\]]", "", word.text.rpartition("/")[2]):
                self.ask("it deletes every file of a folder")

    def mv(self, name: str, words: Sequence[Word]) -> None:
        given = _given(words)
        for word in given.rest[:-1]:
            if name == "mv":
                self.writes(word)
                if self.place(word).is_vital:
                    self.forbid(f"it moves {_shown(word)} away, which the system or its user needs")
            else:
                self.reads(word)
                if given.has("-r", "-R", "-a", "--recursive", "--archive") and self.place(word).holds_secrets:
                    self.ask(f"it copies everything below {_shown(word)}, where secrets are kept")
        self._writer([*given.values, *given.rest[-1:]] if not given.has("-t") else words)

    def chmod(self, name: str, words: Sequence[Word]) -> None:
        given = _given(words)
        recursive = given.has("-R", "--recursive")
        if name != "chmod":
            self.ask(f"{name}: {programs.ALWAYS_ASKED[name]}")
        elif recursive:
            self.ask("it changes who may use whole folders")
        for word in given.rest:
            if recursive and self.place(word).is_vital:
                self.forbid(f"it changes who may use {_shown(word)}, which the system or its user needs")
            if name == "chmod" and _MODE.fullmatch(word.text):
                if "s" in word.text or re.fullmatch(r"[2-7]\d{3}", word.text):
                    self.ask("it lets a program run with the rights of its owner")
            else:
                self.writes(word)

    def dd(self, name: str, words: Sequence[Word]) -> None:
        self.ask(f"{name}: {programs.ALWAYS_ASKED[name]}")
        for word in words:
            if name != "dd":
                self.writes(word)
            elif word.text.startswith("of="):
                self.writes(Word(text=word.text[3:], varies=word.varies))
            elif word.text.startswith("if="):
                self.reads(Word(text=word.text[3:], varies=word.varies))

    def init(self, name: str, words: Sequence[Word]) -> None:
        if any(word.text in ("0", "6") for word in words):
            self.forbid("it stops the machine")
        self.ask(f"{name} is not a command that is known to be harmless")

    def cd(self, name: str, words: Sequence[Word]) -> None:
        rest = [word for word in words if not word.text.startswith("-") or word.text == "-"]
        if name == "popd" or (rest and rest[0].text == "-"):
            self.cwd = ANYWHERE
            return
        word = rest[0] if rest else Word(text="~")
        place = self.place(word)
        if not place.inside:
            self.cwd = ANYWHERE if word.varies or not place.path.startswith(("/", "~")) else place.path

    def export(self, name: str, words: Sequence[Word]) -> None:
        settings = [word for word in words if "=" in word.text]
        for word in settings:
            variable, _, value = word.text.partition("=")
            self.sets(variable, Word(text=value))
        if not words or (name != "set" and any(word.text.startswith("-") and "p" in word.text for word in words)):
            self.ask("it shows the environment, which may hold secrets")

    def printenv(self, name: str, words: Sequence[Word]) -> None:
        if not words or any(word.text not in ("PATH", "HOME", "USER", "SHELL", "LANG", "PWD", "TERM") for word in words):
            self.ask(f"{name}: {programs.ALWAYS_ASKED[name]}")

    def test(self, _name: str, words: Sequence[Word]) -> None:
        """Judge a condition, which runs what stands in the index of an array."""
        if any(re.search(r"\[.*(\$\(|`)", word.text) for word in words):
            self.ask("its condition may run another program")

    def printf(self, name: str, words: Sequence[Word]) -> None:
        if name == "printf" and words and words[0].text.startswith("-v"):
            self.ask("it sets a variable in an unusual way")

    def sed(self, name: str, words: Sequence[Word]) -> None:
        rest: list[Word] = []
        scripts: list[Word] = []
        in_place = False
        waiting = [*words]
        while waiting:
            word = waiting.pop(0)
            if re.fullmatch(r"-[nEruszl]*e|--expression", word.text) and waiting:
                scripts.append(waiting.pop(0))
            elif re.fullmatch(r"-[nEruszl]*i[\w.~]*|--in-place(=.*)?", word.text):
                in_place = True
            elif re.fullmatch(r"-[nEruszl]+|--(quiet|silent|regexp-extended|posix|debug|separate|null-data)", word.text):
                continue
            elif word.text.startswith("-"):
                self.ask(f"{name} {_shown(word)} is not known to be harmless")
            else:
                rest.append(word)
        if not scripts:
            scripts, rest = rest[:1], rest[1:]
        for script in scripts:
            if script.varies or not _is_plain_sed(script.text):
                self.ask("its sed script may write files or run programs")
        for word in rest:
            (self.writes if in_place else self.reads)(word)

    def awk(self, name: str, words: Sequence[Word]) -> None:
        rest: list[Word] = []
        waiting = [*words]
        while waiting:
            word = waiting.pop(0)
            if word.text in ("-F", "-v") and waiting:
                waiting.pop(0)
            elif not re.match(r"-[Fv].", word.text):
                rest.append(word)
        if any(word.text.startswith("-") for word in rest) or not rest:
            self.ask(f"{name} is used in an unusual way")
        elif rest[0].varies or _AWK_RISKS.search(rest[0].text):
            self.ask("its awk program may write files or run programs")
        for word in rest[1:]:
            self.reads(word)

    def git(self, _name: str, words: Sequence[Word]) -> None:
        rest = [*words]
        while rest and rest[0].text.startswith("-"):
            option = rest.pop(0).text
            if option == "-C" and rest:
                folder = rest.pop(0)
                if folder.varies or not self.place(folder).inside:
                    self.ask("git would work outside of the workspace")
            elif option not in ("--no-pager", "-P", "--no-optional-locks", "--version", "--help"):
                self.ask(f"git {option} decides how git works")
                return
        if not rest:
            return
        chosen, arguments = rest[0].text, rest[1:]
        given = _given(arguments)
        if self.cwd and chosen not in programs.GIT_LOOKS:
            self.ask("git would work outside of the workspace")
        if given.has(*programs.GIT_RISKS) or (chosen == "grep" and given.has("-O")):
            self.ask("git would write a file or run another program")
        if not self._is_usual_git(chosen, arguments, given):
            self.ask(_GIT_REASONS.get(chosen, f"git {chosen}: it changes the repository in a way that may lose something"))
        for word in given.rest:
            if not word.varies:
                # A file of another commit is named after it: HEAD:file.
                self.reads(Word(text=word.text.rpartition(":")[2], glob=word.glob))
            if chosen in ("apply", "am", "init", "mv") and not self.place(word).inside:
                self.ask(f"git {chosen} would work with {_shown(word)}, outside of the workspace")

    def _is_usual_git(self, chosen: str, arguments: Sequence[Word], given: _Given) -> bool:
        if chosen in programs.GIT_PARTS:
            return (arguments[0].text if arguments else "") in programs.GIT_PARTS[chosen]
        if chosen in programs.GIT_LOOKS or chosen in programs.GIT_WORKS:
            return not (chosen == "symbolic-ref" and len(given.rest) > 1)
        if chosen in ("branch", "tag"):
            return not given.has("-d", "-D", "-f", "-m", "-M", "-C", "--delete", "--force", "--move")
        if chosen == "switch":
            return not given.has("-f", "-C", "--force", "--discard-changes", "--force-create")
        if chosen == "checkout":
            named = (
                len(given.rest) == 1 and not re.search(r"[.*?~]|^:", given.rest[0].text) and "--" not in _joined(arguments)
            )
            created = given.has("-b") and len(given.rest) in (1, 2)
            return (named or created) and not given.has("-f", "-B", "--force", "-p")
        if chosen == "restore":
            return given.has("-S", "--staged") and not given.has("-W", "--worktree")
        return False


def _is_plain_sed(script: str) -> bool:
    """Return whether a sed script only shows, deletes or replaces."""
    # Where a divider is part of an expression, the pieces are no commands, and it is asked about.
    return _SEDS.fullmatch(script) is not None or all(_SEDS.fullmatch(piece) for piece in re.split(r"[;\n]", script))


def _filled(words: Sequence[Word], place: str, item: Word) -> list[Word]:
    """Return words with an item put in its place."""
    return [
        Word(text=word.text.replace(place, item.text), varies=item.varies, listed=item.listed)
        if place in word.text
        else word
        for word in words
    ]


def _is_listing(source: Simple | None) -> bool:
    """Return whether names that come through a pipe were found in the workspace."""
    if source is None:
        return False
    while source is not None:
        if not source.words or source.words[0].text not in _LISTING:
            return False
        if source.words[0].text in ("echo", "printf", "cat") or any(
            word.varies or word.text.startswith(("/", "~")) or ".." in word.text for word in source.words
        ):
            return False
        source = source.source
    return True


_LISTING = frozenset({"find", "fd", "rg", "grep", "ls", "git", "sort", "uniq", "head", "tail"})
_PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "jq", "pgrep", "fd", "look"})
_WORST = frozenset({"rm", "mv", "chmod", "chown", "chgrp", "find", "dd", "shred", "init", "systemctl"})
_GIT_REASONS: Mapping[str, str] = {
    "push": "git push: it sends commits to another machine",
    **{name: f"git {name}: it talks to another machine" for name in ("fetch", "pull", "clone", "ls-remote", "archive")},
    "reset": "git reset: it may throw away work that is not committed",
    "clean": "git clean: it deletes files that git does not know",
    "checkout": "git checkout: it may throw away work that is not committed",
    "restore": "git restore: it throws away work that is not committed",
}

_Rule = Callable[[_Case, str, Sequence[Word]], None]
_Follow = Callable[[_Case, str, Sequence[Word], Simple, int], None]
_RULES: Mapping[str, _Rule] = {
    "rm": _Case.rm,
    **dict.fromkeys(("mv", "cp", "install"), _Case.mv),
    **dict.fromkeys(("chmod", "chown", "chgrp"), _Case.chmod),
    **dict.fromkeys(("dd", "shred", "srm", "wipe"), _Case.dd),
    "init": _Case.init,
    **dict.fromkeys(("cd", "pushd", "popd"), _Case.cd),
    **dict.fromkeys(("export", "declare", "readonly", "typeset", "set", "unset"), _Case.export),
    "printenv": _Case.printenv,
    "printf": _Case.printf,
    **dict.fromkeys(("test", "[", "[["), _Case.test),
    "sed": _Case.sed,
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _Case.awk),
    "git": _Case.git,
}
_FOLLOWED: Mapping[str, _Follow] = {
    "xargs": _Case.xargs,
    "env": _Case.env,
    "eval": _Case.eval,
    **dict.fromkeys(("source", "."), _Case.source),
    "ssh": _Case.ssh,
    "su": _Case.su,
    "runuser": _Case.su,
    "find": _Case.find,
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch", "rye"), _Case.run),
}
