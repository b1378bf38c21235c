"""Danger: how a shell command is judged before it runs.  What is not understood with certainty is never safe.

The command is read, not searched for words: quotes, pipes, substitutions and programs that run others are followed.
Reading is free, apart from known secrets; ordinary work inside the workspace is free; what destroys, leaves the machine,
or reaches outside of the workspace is asked about.  A few things are never done, whoever allows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from holdfast.core import programs, rules
from holdfast.core.evidence import Evidence, Judgement, Verdict, joined, shown
from holdfast.core.shell import UNKNOWN, Simple, Word, parse

# No system takes a longer word, and a command is one word to the shell that runs it.
COMMAND_MAX_BYTES = 131_072
WRAPPED_MAX = 10
# Commands within commands are read once for each level: so many characters in all.
EFFORT_MAX_CHARS = 300_000
_WORD_EFFORT_CHARS = 5
_GLANCES_MAX = 500
_STARTS_MAX = 8
_GLANCE_MAX_WORDS = 50

_SEPARATORS = re.compile(r"[;&|()`\n{}<>]|\$\(")
_TO_DEVICE = re.compile(r">[>|]?\s*(/dev/\S+)")
_VERSIONED = re.compile(r"(python|pypy|perl|ruby|php|node|lua|pip|clang|gcc|g\+\+)-?\d[\d.]*")
_SHOWS_VERSION = frozenset({"--version", "-V", "--help", "-version"})


def judge(
    command: str,
    deny: Sequence[str] = (),
    *,
    workspace: str = "",
    workdir: str = "",
    private: Sequence[str] = (),
    bounded: bool = True,
) -> Judgement:
    """Judge a command that would run in the workspace, or below it; never raises.

    `deny` are the operator's patterns, which nothing overrides: a glob that a whole command matches or begins with, or a
    regular expression between slashes.  `workspace` makes absolute paths below it known as part of it.
    `workdir` is where it begins, and `private` are folders that hold what nobody should read, such as the gateway's home.
    Where nothing has `bounded` what programs can do, code of the workspace is asked about as well.
    """
    if len(command.encode("utf-8", "surrogatepass")) > COMMAND_MAX_BYTES:
        return Judgement(verdict=Verdict.FORBIDDEN, reasons=("it is longer than a system can start; put it into a file",))
    case = _Case(
        workspace=workspace.rstrip("/"),
        bounded=bounded,
        start=workdir or workspace,
        private=tuple(private),
        deny=tuple(_denial(pattern) for pattern in deny),
    )
    case.check_denied(command)
    case.script(command, 0)
    return case.judgement


def _denial(pattern: str) -> tuple[str, Callable[[str], bool]]:
    """Return a pattern and what finds it.  One that is no pattern denies everything: it was meant to deny something."""
    if len(pattern) > 2 and pattern[0] == pattern[-1] == "/":
        try:
            found = re.compile(pattern[1:-1])
        except re.error:
            return f"{pattern} (which is not valid)", lambda _text: True
        return pattern, lambda text: found.search(text) is not None
    return pattern, lambda text: fnmatchcase(text, pattern) or fnmatchcase(text, f"{pattern} *")


class _Case(Evidence):
    """One command under judgement, which is followed into whatever it would run."""

    def __init__(
        self,
        *,
        deny: tuple[tuple[str, Callable[[str], bool]], ...],
        workspace: str,
        bounded: bool = True,
        start: str = "",
        private: tuple[str, ...] = (),
        cwd: str = "",
        effort_chars: int = 0,
        glancing: bool = False,
    ) -> None:
        super().__init__(workspace=workspace, bounded=bounded, start=start, private=private, cwd=cwd)
        self.deny = deny
        self.effort_chars = effort_chars
        # Only the worst is looked for, and nothing is followed any further.
        self.glancing = glancing

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
        self.check_denied(joined(words))
        if slash:
            self.check_denied(joined((Word(text=name), *arguments)))
        self.effort_chars += len(words) * _WORD_EFFORT_CHARS
        if depth > WRAPPED_MAX or self.effort_chars > EFFORT_MAX_CHARS:
            self.ask("it is nested too deep to be followed")
            self._glance(joined(words[:_GLANCES_MAX]))
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
        elif name in rules.RULES:
            rules.RULES[name](self, name, words)
        elif name in programs.INTERPRETERS:
            rules.interpreter(self, name, words)
        elif name in programs.WORDS_ONLY:
            return
        elif name in programs.READERS:
            rules.reader(self, name, words)
        elif name in programs.WRITERS:
            rules.writer(self, words)
        elif name in programs.DEVELOPMENT or own:
            rules.development(self, name, words)
        elif name in programs.SUBCOMMANDS:
            rules.subcommand(self, name, words)
        elif name in programs.ALWAYS_ASKED:
            self.ask(f"{name}: {programs.ALWAYS_ASKED[name]}")
            if name in programs.UNFOLLOWED:
                self._glance(joined(words))
        else:
            self.ask(f"{shown(Word(text=name))} is not a command that is known to be harmless")

    def _shell(self, name: str, words: Sequence[Word], command: Simple, depth: int) -> None:
        rest = [*words]
        runs_text = False
        while rest and rest[0].text[:1] in ("-", "+") and len(rest[0].text) > 1:
            option = rest.pop(0).text
            if option == "--":
                break
            if option.startswith("--"):
                self._check_plain(name, option)
                continue
            runs_text |= "c" in option
            if "s" in option or "C" in option:
                self.ask(f"{name} {option} runs more than it is given")
            # Each of them takes a word of its own, after all the letters.
            del rest[: option.count("o") + option.count("O")]
        if rest and rest[0].text == "-":
            del rest[0]
        if runs_text and rest:
            if rest[0].varies or rest[0].listed:
                self.ask("what it runs is only known when it runs")
            self.script(rest[0].text, depth + 1)
        elif rest:
            self.run_file(rest[0])
        else:
            self._run_input(name, command, depth)

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
                self.script(joined(word for word in source.words[1:] if not word.text.startswith("-")), depth + 1)

    def _wrapper(self, name: str, words: Sequence[Word], command: Simple, depth: int) -> None:
        """Judge a program that runs another."""
        valued, before = programs.WRAPPERS[name]
        if name in programs.ALWAYS_ASKED:
            self.ask(f"{name}: {programs.ALWAYS_ASKED[name]}")
        if name == "command" and words and words[0].text in ("-v", "-V"):
            return
        rest = self._after_options(name, words, valued)
        options = words[: len(words) - len(rest)]
        if name == "time" and any(re.match(r"-\w*o|--o", word.text) for word in options):
            self.ask("it writes a file")
        for word in rest[:before]:
            if name in ("chroot", "flock"):
                self.writes(word)
        inner = rest[before:]
        if name in ("watch", "parallel"):
            self.ask(f"{name} runs something over and over")
            self.script(joined(inner), depth + 1)
        elif inner:
            self.argv(inner, command, depth + 1)

    def _after_options(self, name: str, words: Sequence[Word], valued: Collection[str]) -> list[Word]:
        """Return the words that follow the options of a program; `valued` are those that take another word."""
        rest = [*words]
        while rest and rest[0].text.startswith("-") and rest[0].text != "-":
            option = rest.pop(0).text
            if option == "--":
                break
            if option in valued:
                del rest[:1]
            elif option.startswith("--"):
                self._check_plain(name, option)
            elif next((at for at in range(1, len(option)) if f"-{option[at]}" in valued), 0) == len(option) - 1:
                del rest[:1]
        return rest

    def _check_plain(self, name: str, option: str) -> None:
        """Ask about a long option that may take the next word, for then another program follows than it seems."""
        if "=" not in option and option not in programs.PLAIN_LONG_OPTIONS:
            self.ask(f"{name} {option} is not known to be harmless")

    def xargs(self, name: str, words: Sequence[Word], command: Simple, depth: int) -> None:
        valued, _ = programs.WRAPPERS[name]
        rest = self._after_options(name, words, valued)
        place = ""
        for option, following in pairwise([*words[: len(words) - len(rest)], Word(text="")]):
            if found := re.fullmatch(r"(?:-[0rtpx]*[Ii]|--replace=?)(.*)", option.text, re.DOTALL):
                place = found[1] or (following.text if option.text.endswith("I") else "{}")
        listed = _is_listing(command.source)
        item = Word(text=f"./{UNKNOWN}", listed=True) if listed else Word(text=UNKNOWN, varies=True)
        if rest:
            self.argv([*(_filled(rest, place, item) if place else rest), item], Simple(), depth + 1)

    def env(self, _name: str, words: Sequence[Word], command: Simple, depth: int) -> None:
        valued, _ = programs.WRAPPERS["env"]
        rest = [*words]
        while rest and (rest[0].text.startswith("-") or "=" in rest[0].text):
            word = rest.pop(0)
            if word.text.startswith(("-S", "--split-string")):
                self.script(f"{word.text.removeprefix('-S').partition('=')[2] or word.text[2:]} {joined(rest)}", depth + 1)
                return
            if word.text.startswith("--chdir="):
                rules.cd(self, "cd", [Word(text=word.text.partition("=")[2], varies=word.varies)])
            elif word.text in valued and rest:
                value = rest.pop(0)
                if word.text in ("-C", "--chdir"):
                    rules.cd(self, "cd", [value])
            elif word.text.startswith("-") and word.text not in ("-", "-i", "-0", "-v", "--ignore-environment", "--"):
                self.ask(f"env {shown(word)} is not known to be harmless")
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
        self.script(joined(words), depth + 1)

    def source(self, _name: str, words: Sequence[Word], _command: Simple, _depth: int) -> None:
        if words:
            self.run_file(words[0])

    def ssh(self, name: str, words: Sequence[Word], _command: Simple, depth: int) -> None:
        self.ask(f"{name}: {programs.ALWAYS_ASKED[name]}")
        for start in range(1, min(len(words), _STARTS_MAX)):
            # Which word is the host depends on options; the worst is looked for after each.
            alone = _Case(workspace="", deny=self.deny, effort_chars=self.effort_chars, glancing=self.glancing)
            alone.script(joined(words[start:]), depth + 1)
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
                if option == "--":
                    break
                if option not in (
                    "-q",
                    "-v",
                    "--quiet",
                    "--verbose",
                    "--frozen",
                    "--locked",
                    "--no-sync",
                    "--offline",
                    "--dev",
                ):
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
                self.deletes(starts, "it deletes what it finds")
            elif option in ("-fprint", "-fprint0", "-fls", "-fprintf") and tests:
                self.writes(tests[0])
            elif option in ("-exec", "-execdir", "-ok", "-okdir"):
                stop = next((at for at, word in enumerate(tests) if word.text in (";", "+")), len(tests))
                self._each(starts, tests[:stop], depth)
                tests = tests[stop:]

    def _each(self, starts: Sequence[Word], inner: Sequence[Word], depth: int) -> None:
        """Judge what is done to each file found, once for each folder in which it may be."""
        for start in starts[:_STARTS_MAX]:
            inside = self.place(start).inside and not start.varies
            item = Word(text=f"./{UNKNOWN}", listed=True) if inside else Word(text=start.text, varies=True)
            if inner:
                self.argv(_filled(inner, "{}", item), Simple(), depth + 1)
        if any("{}" in word.text and word.text != "{}" for word in inner):
            # Not every find puts a name into the middle of a word; some leave it as it stands.
            self.argv(inner, Simple(), depth + 1)


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
_WORST = frozenset({"rm", "mv", "chmod", "chown", "chgrp", "find", "dd", "shred", "init", "systemctl"})

_Follow = Callable[[_Case, str, Sequence[Word], Simple, int], None]
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
