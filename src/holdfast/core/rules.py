"""Rules: what is known of single programs, and of kinds of them; each notes what it finds against their arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from holdfast.core import programs
from holdfast.core.arguments import Given
from holdfast.core.evidence import Evidence, joined, shown
from holdfast.core.places import ANYWHERE, Place
from holdfast.core.shell import Word

_MODE = re.compile(r"[0-7]{3,4}|[ugoa]*([+=-][rwxXstugo]*)+(,[ugoa]*([+=-][rwxXstugo]*)+)*")
_SEDS = re.compile(
    r"\s*(?:(?:\d+|\$|/[^/\n]*/)(?:,\s*[+~]?(?:\d+|\$|/[^/\n]*/))?\s*!?\s*)?"
    r"(?:[pdqDPnNgGhHx=]|s([/|#,:!@])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gpiI0-9]*)?\s*"
)
_AWK_RISKS = re.compile(r"system|getline|[|>]|close|@|fflush|ENVIRON|PROCINFO")
# A name with an index runs what stands in the index; so does one that is only known when the command runs.
_INDEXED = re.compile(r"\w*\[")
_COMPARES_NUMBERS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_PLAIN_OPTIONS = r"-[bBdEIOqsSuvx]+"
_PLAIN_OPTIONS_ELSEWHERE = r"-w|--(test|watch|check|no-warnings|trace-warnings)"
_PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "jq", "pgrep", "fd", "look"})
_GIT_REASONS: Mapping[str, str] = {
    "push": "git push: it sends commits to another machine",
    **{name: f"git {name}: it talks to another machine" for name in ("fetch", "pull", "clone", "ls-remote", "archive")},
    "reset": "git reset: it may throw away work that is not committed",
    "clean": "git clean: it deletes files that git does not know",
    "checkout": "git checkout: it may throw away work that is not committed",
    "restore": "git restore: it throws away work that is not committed",
}

# Notes what it finds: the evidence so far, the program's name, its arguments.
Rule = Callable[[Evidence, str, Sequence[Word]], None]


def writer(on: Evidence, words: Sequence[Word]) -> None:
    given = Given.of(words)
    for word in (*given.rest, *given.values):
        on.writes(word)
    if given.has(*programs.WRITER_RUNS) or any(word.text.startswith("-TT") for word in words):
        on.ask("it runs another program")
    if given.has("-P", "--absolute-names"):
        on.ask("it may write outside of the workspace")
    for word in words:
        # An option and its value in one word, such as -C/etc.
        if re.match(r"-[A-Za-z]+[/~]", word.text):
            on.writes(Word(text=re.sub(r"^-[A-Za-z]+", "", word.text)))


def reader(on: Evidence, name: str, words: Sequence[Word]) -> None:
    given = Given.of(words)
    for option, what in programs.READER_RISKS.get(name, {}).items():
        if given.has(option):
            on.ask(f"{name} {option}: it {what}")
    rest = given.rest
    if name in _PATTERN_FIRST and not given.has("-e", "-f", "--regexp", "--file", "--files"):
        rest = rest[1:]
    recursive = name in programs.RECURSIVE_READERS or given.has("-r", "-R", "--recursive", "--dereference-recursive")
    for word in (*rest, *given.values):
        on.reads(word)
        if recursive and name != "ls" and on.holds_secrets(word):
            on.ask(f"it reads everything below {shown(word)}, where secrets are kept")
    if recursive and name != "ls" and on.cwd and Place(path=on.cwd, inside=False).holds_secrets:
        on.ask("it reads everything in a folder where secrets are kept")
    if name in programs.WRITES_SECOND:
        for word in rest[1:]:
            on.writes(word)
    _peculiar(on, name, words, rest)


def _peculiar(on: Evidence, name: str, words: Sequence[Word], rest: Sequence[Word]) -> None:
    if name == "ps" and any("e" in word.text for word in words if not word.text.startswith("-")):
        on.ask("it shows the environment of processes, which may hold secrets")
    elif name == "jq" and any(re.search(r"\benv\b|\$ENV", word.text) for word in words):
        on.ask("it shows the environment, which may hold secrets")
    elif name in ("less", "more") and any(word.text.startswith("+") for word in words):
        on.ask(f"{name} may run another program")
    elif name == "hostname" and rest:
        on.ask("it names the machine anew")
    elif name == "date" and any(re.fullmatch(r"\d{8,12}(\.\d\d)?", word.text) for word in rest):
        on.ask("it sets the clock")


def development(on: Evidence, name: str, words: Sequence[Word], *, runs: bool = True) -> None:
    given = Given.of(words)
    if runs:
        on.runs_code(name)
    if on.cwd:
        on.ask(f"{name} would work outside of the workspace")
    settings = [Word(text=word.text.partition("=")[2]) for word in given.rest if "=" in word.text]
    for word in (*given.rest, *given.values, *settings):
        if word.varies:
            on.ask(f"what {name} works on is only known when it runs")
        elif not on.place(word).inside:
            on.ask(f"{name} would work on {shown(word)}, outside of the workspace")
    _outward(on, name, given.rest)
    for word in words:
        if re.match(r"-[oC][/~.]", word.text):
            on.writes(Word(text=word.text[2:], varies=word.varies))
        elif re.match(r"@|-[BL][/~.]", word.text) and not on.place(Word(text=word.text.lstrip("@-BL"))).inside:
            on.ask(f"{name} would work on {shown(word)}, outside of the workspace")
        _check_given_code(on, name, word)


def _check_given_code(on: Evidence, name: str, word: Word) -> None:
    """Ask about code that stands in an argument, or comes from elsewhere: nobody has seen it before."""
    option, _, value = word.text.partition("=")
    if option.lstrip("-") in programs.CODE_OPTIONS.get(name, ()) and option.startswith("-"):
        on.ask(f"{name} {option} runs code that is given on the command line, or behaves unusually")
    elif name == "pandoc" and "://" in word.text:
        on.ask(f"{name} works with {shown(word)}, from another machine")
    elif name in ("make", "gmake") and (option == "SHELL" or re.search(r"\$[({]|`|^[^-\s]+\s", value)):
        on.ask(f"{name} {option}= may run a program that is given on the command line")
    elif name == "go" and re.search(r"@|^[\w-]+\.[\w.-]+/", word.text):
        on.ask(f"{name} works with {shown(word)}, from another machine")


def _outward(on: Evidence, name: str, words: Sequence[Word]) -> None:
    for word in (Word(text=name), *words):
        if any(each in word.text.lower() for each in programs.OUTWARD_TARGETS):
            on.ask(f"{shown(word)} may put something into the machine, or send it out")


def subcommand(on: Evidence, name: str, words: Sequence[Word]) -> None:
    given = Given.of(words)
    chosen = given.rest[0].text if given.rest else ""
    if name == "systemctl" and chosen in programs.MACHINE_STOPS:
        on.forbid("it stops the machine")
    elif chosen not in programs.SUBCOMMANDS[name] or given.rest[0].varies or given.has("-w", "-g", "--global", "--fix"):
        on.ask(f"{name} {chosen}: {programs.ALWAYS_ASKED[name]}" if chosen else f"{name}: {programs.ALWAYS_ASKED[name]}")
    elif chosen == "audit" and len(given.rest) > 1:
        on.ask(f"{name}: {programs.ALWAYS_ASKED[name]}")
    else:
        development(on, name, words, runs=name in programs.CODE_RUNNERS)


def interpreter(on: Evidence, name: str, words: Sequence[Word]) -> None:
    if on.cwd:
        on.ask(f"{name} would work outside of the workspace")
    rest = [*words]
    while rest and rest[0].text.startswith("-") and len(rest[0].text) > 1:
        option = rest.pop(0).text
        if name in ("python", "pypy") and re.fullmatch(r"-[bBdEIOqsSuvx]*m", option) and rest:
            _module(on, rest[0].text, rest[1:])
            return
        if name in ("python", "pypy") and re.fullmatch(r"-[WX]", option) and rest:
            rest.pop(0)
        elif not re.fullmatch(_PLAIN_OPTIONS if name in ("python", "pypy") else _PLAIN_OPTIONS_ELSEWHERE, option):
            on.ask(f"{name} {option[:2]} runs code that is given on the command line, or behaves unusually")
            return
    if not rest or rest[0].text == "-":
        on.ask(f"{name} runs whatever it is given as input")
    elif found := [word for word in rest[: 2 if name in ("deno", "bun") else 1] if "://" in word.text]:
        on.ask(f"{name} runs {shown(found[0])}, from another machine")
    else:
        on.run_file(rest[0])
    if rest and name in ("deno", "bun") and rest[0].text in programs.BUN_INSTALLS:
        on.ask(f"{name} {rest[0].text}: it installs packages, or runs what is not part of the workspace")


def _module(on: Evidence, module: str, words: Sequence[Word]) -> None:
    if module == "pip":
        subcommand(on, "pip", words)
    elif module in programs.MODULES:
        development(on, module, words)
    else:
        on.ask(f"the Python module {shown(Word(text=module))} is not known to be harmless")


def rm(on: Evidence, _name: str, words: Sequence[Word]) -> None:
    given = Given.of(words)
    recursive = given.has("-r", "-R", "--recursive")
    if given.has("--no-preserve-root"):
        on.forbid("it deletes the whole system")
    if recursive:
        on.deletes(given.rest, "it deletes folders with everything in them")
    for word in given.rest:
        if word.glob and on.place(word).is_vital:
            on.forbid(f"it deletes {shown(word)}, which the system or its user needs")
        on.writes(word)
        if word.listed:
            on.ask("it deletes every file that is found")
        if word.glob and not re.sub(r"[*?.\[\]]", "", word.text.rpartition("/")[2]):
            on.ask("it deletes every file of a folder")


def mv(on: Evidence, name: str, words: Sequence[Word]) -> None:
    given = Given.of(words)
    for word in given.rest[:-1]:
        if name == "mv":
            on.writes(word)
            if on.place(word).is_vital:
                on.forbid(f"it moves {shown(word)} away, which the system or its user needs")
        else:
            on.reads(word)
            if given.has("-r", "-R", "-a", "--recursive", "--archive") and on.holds_secrets(word):
                on.ask(f"it copies everything below {shown(word)}, where secrets are kept")
    writer(on, [*given.values, *given.rest[-1:]] if not given.has("-t") else words)


def chmod(on: Evidence, name: str, words: Sequence[Word]) -> None:
    given = Given.of(words)
    recursive = given.has("-R", "--recursive")
    if name != "chmod":
        on.ask(f"{name}: {programs.ALWAYS_ASKED[name]}")
    elif recursive:
        on.ask("it changes who may use whole folders")
    for word in given.rest:
        if recursive and on.place(word).is_vital:
            on.forbid(f"it changes who may use {shown(word)}, which the system or its user needs")
        if name == "chmod" and _MODE.fullmatch(word.text):
            if "s" in word.text or re.fullmatch(r"[2-7]\d{3}", word.text):
                on.ask("it lets a program run with the rights of its owner")
        else:
            on.writes(word)


def dd(on: Evidence, name: str, words: Sequence[Word]) -> None:
    on.ask(f"{name}: {programs.ALWAYS_ASKED[name]}")
    for word in words:
        if name != "dd":
            on.writes(word)
        elif word.text.startswith("of="):
            on.writes(Word(text=word.text[3:], varies=word.varies))
        elif word.text.startswith("if="):
            on.reads(Word(text=word.text[3:], varies=word.varies))


def init(on: Evidence, name: str, words: Sequence[Word]) -> None:
    if any(word.text in ("0", "6") for word in words):
        on.forbid("it stops the machine")
    on.ask(f"{name} is not a command that is known to be harmless")


def cd(on: Evidence, name: str, words: Sequence[Word]) -> None:
    rest = [word for word in words if not word.text.startswith("-") or word.text == "-"]
    if name == "popd" or (rest and rest[0].text == "-"):
        on.cwd = on.start = ANYWHERE
        return
    word = rest[0] if rest else Word(text="~")
    on.start = ANYWHERE if word.varies else on.path(word)
    place = on.place(word)
    if not place.inside:
        on.cwd = ANYWHERE if word.varies or not place.path.startswith(("/", "~")) else place.path


def export(on: Evidence, name: str, words: Sequence[Word]) -> None:
    settings = [word for word in words if "=" in word.text]
    for word in settings:
        variable, _, value = word.text.partition("=")
        on.sets(variable, Word(text=value))
    if any(re.match(r"[-+][a-zA-Z]*[in]", word.text) for word in words) and name in ("declare", "typeset", "local"):
        on.ask("it sets a variable in an unusual way")
    names(on, name, words)
    if not words or (name != "set" and any(word.text.startswith("-") and "p" in word.text for word in words)):
        on.ask("it shows the environment, which may hold secrets")


def names(on: Evidence, name: str, words: Sequence[Word]) -> None:
    """Judge what takes the names of variables."""
    told = [Word(text=word.text.partition("=")[0], varies=word.varies and "=" not in word.text) for word in words]
    if name != "set" and any(word.varies or _INDEXED.match(word.text) for word in told):
        on.ask("it sets a variable in an unusual way")


def printenv(on: Evidence, name: str, words: Sequence[Word]) -> None:
    if not words or any(word.text not in ("PATH", "HOME", "USER", "SHELL", "LANG", "PWD", "TERM") for word in words):
        on.ask(f"{name}: {programs.ALWAYS_ASKED[name]}")


def test(on: Evidence, name: str, words: Sequence[Word]) -> None:
    """Judge a condition, which runs what stands in the index of an array."""
    calculates = name == "[[" and any(word.text in _COMPARES_NUMBERS for word in words)
    unknown = any(word.varies and not word.text.lstrip("-").isdecimal() for word in words)
    looks_up = any(word.text in ("-v", "-R") for word in words)
    if any(re.search(r"\[.*(\$\(|`)", word.text) for word in words) or (unknown and (calculates or looks_up)):
        on.ask("its condition may run another program")


def printf(on: Evidence, name: str, words: Sequence[Word]) -> None:
    if name == "printf" and words and words[0].text.startswith("-v"):
        on.ask("it sets a variable in an unusual way")


def sed(on: Evidence, name: str, words: Sequence[Word]) -> None:
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
            on.ask(f"{name} {shown(word)} is not known to be harmless")
        else:
            rest.append(word)
    if not scripts:
        scripts, rest = rest[:1], rest[1:]
    for script in scripts:
        if script.varies or not _is_plain_sed(script.text):
            on.ask("its sed script may write files or run programs")
    for word in rest:
        (on.writes if in_place else on.reads)(word)


def awk(on: Evidence, name: str, words: Sequence[Word]) -> None:
    rest: list[Word] = []
    waiting = [*words]
    while waiting:
        word = waiting.pop(0)
        if word.text in ("-F", "-v") and waiting:
            waiting.pop(0)
        elif not re.match(r"-[Fv].", word.text):
            rest.append(word)
    if any(word.text.startswith("-") for word in rest) or not rest:
        on.ask(f"{name} is used in an unusual way")
    elif rest[0].varies or _AWK_RISKS.search(rest[0].text):
        on.ask("its awk program may write files or run programs")
    for word in rest[1:]:
        on.reads(word)


def git(on: Evidence, _name: str, words: Sequence[Word]) -> None:
    rest = [*words]
    while rest and rest[0].text.startswith("-"):
        option = rest.pop(0).text
        if option == "-C" and rest:
            folder = rest.pop(0)
            if folder.varies or not on.place(folder).inside:
                on.ask("git would work outside of the workspace")
        elif option not in ("--no-pager", "-P", "--no-optional-locks", "--version", "--help"):
            on.ask(f"git {option} decides how git works")
            return
    if not rest:
        return
    chosen, arguments = rest[0].text, rest[1:]
    given = Given.of(arguments)
    if on.cwd and chosen not in programs.GIT_LOOKS:
        on.ask("git would work outside of the workspace")
    if given.has(*programs.GIT_RISKS) or (chosen == "grep" and given.has("-O")):
        on.ask("git would write a file or run another program")
    if not _is_usual_git(chosen, arguments, given):
        on.ask(_GIT_REASONS.get(chosen, f"git {chosen}: it changes the repository in a way that may lose something"))
    for word in given.rest:
        if not word.varies:
            # A file of another commit is named after it: HEAD:file.
            on.reads(Word(text=word.text.rpartition(":")[2], glob=word.glob))
    for word in (*given.rest, *given.values):
        if chosen in ("apply", "am", "init", "mv", "format-patch", "notes") and not on.place(word).inside:
            on.ask(f"git {chosen} would work with {shown(word)}, outside of the workspace")


def _is_usual_git(chosen: str, arguments: Sequence[Word], given: Given) -> bool:
    if chosen in programs.GIT_PARTS:
        return (arguments[0].text if arguments else "") in programs.GIT_PARTS[chosen]
    if chosen in programs.GIT_LOOKS or chosen in programs.GIT_WORKS:
        return not (chosen == "symbolic-ref" and len(given.rest) > 1)
    if chosen in ("branch", "tag"):
        return not given.has("-d", "-D", "-f", "-m", "-M", "-C", "--delete", "--force", "--move")
    if chosen == "switch":
        return not given.has("-f", "-C", "--force", "--discard-changes", "--force-create")
    if chosen == "checkout":
        named = len(given.rest) == 1 and not re.search(r"[.*?~]|^:", given.rest[0].text) and "--" not in joined(arguments)
        created = given.has("-b") and len(given.rest) in (1, 2)
        return (named or created) and not given.has("-f", "-B", "--force", "-p")
    if chosen == "restore":
        return given.has("-S", "--staged") and not given.has("-W", "--worktree")
    return False


def _is_plain_sed(script: str) -> bool:
    """Return whether a sed script only shows, deletes or replaces."""
    # Where a divider is part of an expression, the pieces are no commands, and it is asked about.
    return _SEDS.fullmatch(script) is not None or all(_SEDS.fullmatch(piece) for piece in re.split(r"[;\n]", script))


RULES: Mapping[str, Rule] = {
    "rm": rm,
    **dict.fromkeys(("mv", "cp", "install"), mv),
    **dict.fromkeys(("chmod", "chown", "chgrp"), chmod),
    **dict.fromkeys(("dd", "shred", "srm", "wipe"), dd),
    "init": init,
    **dict.fromkeys(("cd", "pushd", "popd"), cd),
    **dict.fromkeys(("export", "declare", "readonly", "typeset", "local", "set", "unset"), export),
    **dict.fromkeys(("read", "getopts", "wait"), names),
    "printenv": printenv,
    "printf": printf,
    **dict.fromkeys(("test", "[", "[["), test),
    "sed": sed,
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), awk),
    "git": git,
}
