"""A shell command, read without running it: every simple command in it, however deep, and every doubt about it.

The grammar is that of sh with the parts of bash that people write every day.  Whatever else is met is a doubt: reading
ends there, and whoever judges must not call the command harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

# Stands in a word for whatever is only known when the command runs.
UNKNOWN = "\ufffc"
DEPTH_MAX = 16
WORDS_PER_BRACES_MAX = 256
VALUE_MAX_CHARS = 200
COMMANDS_MAX = 2_000

_PLAIN = re.compile(r"[^ \t\n;&|<>()\\'\"$`]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_REDIRECT = re.compile(r"(\d*)(<<<|<<-|<<|<>|<&|<|>>|>\||>&|>)")
_SUBSCRIPT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|.)", re.DOTALL)
_NUMBER = re.compile(r"-?\d+")
# ${name@P} runs what stands in a variable; so do an index and a part that are not plain numbers.
_ODD_EXPANSION = re.compile(r"(?<!\[)@|\[(?![@*\d]+\])|^\w+:(?![-=?+]|[ \d:-]*$)")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_SKIPPED = frozenset({"if", "then", "else", "elif", "fi", "while", "until", "do", "done", "!", "{", "}"})
_FOLLOWED = frozenset({"fi", "done", "}"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word without its quotes.  It `varies` where its text is only known when the command runs.

    `listed` is a name that a loop or a listing gives: which one is not known, but where it comes from is.
    """

    text: str
    varies: bool = False
    glob: bool = False
    listed: bool = False


class Redirect:
    """Where input comes from or output goes to; `body` is the text of a here-document, which comes after its line."""

    def __init__(self, operator: str, target: Word, body: str | None = None) -> None:
        self.operator = operator
        self.target = target
        self.body = body


@dataclass(frozen=True, slots=True, kw_only=True)
class Simple:
    """One simple command.  `source` is the one that feeds it through a pipe."""

    words: tuple[Word, ...] = ()
    assignments: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    source: Simple | None = None
    background: bool = False


class Script:
    """Everything that a command would run, in the order it is written, and what could not be understood."""

    def __init__(self) -> None:
        self.commands: list[Simple] = []
        self.doubts: list[str] = []
        self.functions: set[str] = set()
        # The shell calculates with the text of a variable, and runs a command that stands in it: a[$(command)].
        self.calculated: set[str] = set()
        self.not_numbers: set[str] = set()


class _Unsure(Exception):
    """The reader does not know for certain what comes here."""


def parse(text: str) -> Script:
    """Read a command.  Never raises: what is not understood is a doubt of the script."""
    script = Script()
    try:
        _Reader(text, script, {}, 0).all()
    except _Unsure as doubt:
        script.doubts.append(str(doubt))
    # Only at the end: in a loop a variable may be used before the place where it is set.
    if script.calculated & script.not_numbers:
        script.doubts.append("it calculates with what may be no number, and then the shell could run it")
    return script


class _Draft:
    """A simple command while it is read."""

    def __init__(self, source: Simple | None = None) -> None:
        self.words: list[Word] = []
        self.assignments: list[tuple[str, Word]] = []
        self.redirects: list[Redirect] = []
        self.source = source
        # A group has ended here: only redirections may follow.
        self.closed = False

    @property
    def is_new(self) -> bool:
        return not self.words and not self.assignments


# A character, whether it was quoted, and whether it is only known when the command runs.
_Cell = tuple[str, bool, bool]


class _Reader:
    """Reads one text from its beginning to its end, once."""

    def __init__(self, text: str, script: Script, known: dict[str, Word], depth: int) -> None:
        self._text = text
        self._script = script
        # What variables were set to, as far as it can be seen; a loop's variable is a name from a list.
        self._known = known
        self._depth = depth
        self._at = 0
        self._documents: list[tuple[Redirect, str, bool, bool]] = []
        if "\0" in text:
            raise _Unsure("it contains a NUL character")

    def all(self) -> None:
        self._list("")

    def expansions(self) -> None:
        """Read text in which only expansions mean something, such as a here-document."""
        while self._at < len(self._text):
            match self._text[self._at]:
                case "\\":
                    self._at += 2
                case "$":
                    self._dollar(quoted=True)
                case "`":
                    self._backtick()
                case _:
                    self._at += 1

    def _list(self, close: str) -> None:
        """Read commands up to `close`, which is consumed, or to the end of the text."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise _Unsure("it is nested too deep to be followed")
        draft = _Draft()
        while True:
            self._blank()
            if self._at >= len(self._text):
                self._end(draft)
                if close or self._documents:
                    raise _Unsure("it ends before something in it does")
                break
            char = self._text[self._at]
            if char == ")":
                if close != ")" or self._documents:
                    raise _Unsure("a parenthesis closes nothing")
                self._at += 1
                self._end(draft)
                break
            draft = self._step(char, draft)
        self._depth -= 1

    def _step(self, char: str, draft: _Draft) -> _Draft:
        """Read one token and return the draft that goes on."""
        redirect = _REDIRECT.match(self._text, self._at)
        if char in "\n;&|" and not self._text.startswith("&>", self._at):
            return self._separator(char, draft)
        if self._text.startswith("&>", self._at):
            self._at += 1
            self._redirect(_REDIRECT.match(self._text, self._at), draft)
        elif char == "(":
            self._parenthesis(draft)
        elif self._text.startswith(("<(", ">("), self._at):
            self._at += 2
            self._list(")")
            draft.words.append(Word(text=UNKNOWN, varies=True))
        elif redirect:
            self._redirect(redirect, draft)
        else:
            self._add(draft)
        return draft

    def _separator(self, char: str, draft: _Draft) -> _Draft:
        two = self._text[self._at : self._at + 2]
        if two in (";;", ";&"):
            raise _Unsure("it has a case")
        self._at += 2 if two in ("&&", "||", "|&") else 1
        ended = self._end(draft, background=char == "&" and two != "&&")
        if char == "\n":
            self._bodies()
        pipes = char == "|" and two != "||"
        return _Draft(source=ended) if pipes else _Draft()

    def _end(self, draft: _Draft, *, background: bool = False) -> Simple | None:
        """Put a finished command into the script."""
        if draft.is_new and not draft.redirects:
            return None
        command = Simple(
            words=tuple(draft.words),
            assignments=tuple(draft.assignments),
            redirects=tuple(draft.redirects),
            source=draft.source,
            background=background,
        )
        self._script.commands.append(command)
        if len(self._script.commands) > COMMANDS_MAX:
            raise _Unsure(f"it has more than {COMMANDS_MAX} commands")
        settings = draft.assignments if not draft.words else _exported(draft.words)
        for name, value in settings:
            # A value made of itself would double without end.
            self._known[name] = Word(text=value.text if len(value.text) <= VALUE_MAX_CHARS else UNKNOWN, varies=True)
            self._check_number(name, [value])
        if draft.words and draft.words[0].text == "read":
            for word in draft.words[1:]:
                self._known.pop(word.text, None)
                self._script.not_numbers.add(word.text)
        return command

    def _check_number(self, name: str, values: Sequence[Word]) -> None:
        if not all(_NUMBER.fullmatch(value.text) for value in values):
            self._script.not_numbers.add(name)

    def _blank(self) -> None:
        text = self._text
        while self._at < len(text):
            if text[self._at] in " \t":
                self._at += 1
            elif text.startswith("\\\n", self._at):
                self._at += 2
            elif text[self._at] == "#":
                # A word that holds the sign does not come here.
                newline = text.find("\n", self._at)
                self._at = len(text) if newline < 0 else newline
            else:
                return

    def _parenthesis(self, draft: _Draft) -> None:
        if len(draft.words) == 1 and not draft.assignments and re.compile(r"\([ \t]*\)").match(self._text, self._at):
            self._script.functions.add(draft.words.pop().text)
            self._script.doubts.append("it defines a function")
            self._at = self._text.index(")", self._at) + 1
            return
        if not draft.is_new or draft.closed or self._text.startswith("((", self._at):
            raise _Unsure("it has a parenthesis where no command begins")
        self._at += 1
        self._list(")")
        draft.closed = True

    def _add(self, draft: _Draft) -> None:
        start = self._at
        words = self._word()
        bare = self._text[start : self._at]
        if draft.closed:
            raise _Unsure("a word follows a group")
        if not draft.words and (found := _ASSIGNMENT.match(bare)) and len(words) == 1:
            value = words[0]
            draft.assignments.append((found[1], Word(text=value.text.partition("=")[2], varies=value.varies)))
        elif not draft.words and _SUBSCRIPT.match(bare):
            raise _Unsure("it sets a part of an array")
        elif draft.is_new and bare in _SKIPPED:
            draft.closed = bare in _FOLLOWED
        elif draft.is_new and bare in ("for", "select"):
            self._loop()
        elif draft.is_new and bare in ("case", "function", "coproc"):
            raise _Unsure(f"it has a {bare}")
        elif draft.is_new and bare == "[[":
            self._condition(draft)
        else:
            draft.words += words

    def _loop(self) -> None:
        """Read what a loop goes through; what it does with it follows as commands."""
        self._blank()
        found = _NAME.match(self._text, self._at)
        if found is None:
            raise _Unsure("it has a loop over something unusual")
        self._at = found.end()
        draft = _Draft()
        self._blank()
        if self._text.startswith("in", self._at):
            self._at += 2
            while self._blank() or (self._at < len(self._text) and self._text[self._at] not in ";\n&|<>()"):
                draft.words += self._word()
        certain = draft.words and not any(word.varies or word.text.startswith(("-", "/", "~")) for word in draft.words)
        # Each of the names is looked at as if it were read; then any of them may stand where the variable does.
        self._script.commands.append(Simple(words=(Word(text="cat"), *draft.words)) if certain else Simple())
        self._check_number(found[0], draft.words or [Word(text=UNKNOWN)])
        inside = certain and not any(".." in word.text for word in draft.words)
        self._known[found[0]] = Word(text=f"./{UNKNOWN}", listed=True) if inside else Word(text=UNKNOWN, varies=True)

    def _condition(self, draft: _Draft) -> None:
        """Read [[ … ]], in which operators are words."""
        draft.words.append(Word(text="[["))
        while True:
            self._blank()
            if self._at >= len(self._text):
                raise _Unsure("it ends before something in it does")
            if self._text[self._at] in "\n;":
                raise _Unsure("a condition goes over its line")
            if self._text[self._at] in "&|<>()":
                self._at += 1
                continue
            words = self._word()
            draft.words += words
            if words and words[-1].text == "]]":
                return

    def _redirect(self, found: re.Match[str] | None, draft: _Draft) -> None:
        if found is None:
            raise _Unsure("it redirects something unusual")
        self._at = found.end()
        self._blank()
        start = self._at
        words = self._word()
        if len(words) != 1:
            raise _Unsure("it redirects to something unusual")
        operator = found[2]
        target = words[0]
        redirect = Redirect(operator=operator, target=target, body=target.text if operator == "<<<" else None)
        draft.redirects.append(redirect)
        if operator in ("<<", "<<-"):
            quoted = any(char in "'\"\\" for char in self._text[start : self._at])
            self._documents.append((redirect, target.text, quoted, operator == "<<-"))

    def _bodies(self) -> None:
        """Read the here-documents that begin on the line just ended."""
        waiting, self._documents = self._documents, []
        for redirect, delimiter, quoted, tabs in waiting:
            lines: list[str] = []
            while True:
                if self._at >= len(self._text):
                    # The shell takes all of it, and so it is judged.
                    self._script.doubts.append("a here-document has no end")
                    break
                newline = self._text.find("\n", self._at)
                stop = len(self._text) if newline < 0 else newline
                line = self._text[self._at : stop].lstrip("\t") if tabs else self._text[self._at : stop]
                self._at = min(stop + 1, len(self._text))
                if line == delimiter:
                    break
                lines.append(line)
            self._body(redirect, "\n".join(lines), quoted=quoted)

    def _body(self, redirect: Redirect, body: str, *, quoted: bool) -> None:
        if not quoted:
            _Reader(body, self._script, self._known, self._depth).expansions()
        redirect.body = body

    def _word(self) -> list[Word]:
        """Read one word, which is several after its braces and variables are expanded."""
        groups: list[list[_Cell]] = [[]]
        start = self._at
        while self._at < len(self._text):
            char = self._text[self._at]
            if plain := _PLAIN.match(self._text, self._at):
                groups[-1] += [(each, False, False) for each in plain[0]]
                self._at = plain.end()
            elif char == "\\":
                groups[-1] += self._escaped()
            elif char == "'":
                groups[-1] += [(each, True, False) for each in self._until_quote()]
            elif char == '"':
                groups[-1] += self._quoted()
            elif char == "$":
                first, *others = _split(self._dollar(quoted=False))
                groups[-1] += first
                groups += others
            elif char == "`":
                self._backtick()
                groups[-1].append((UNKNOWN, False, True))
            else:
                break
        if self._at == start:
            raise _Unsure("something stands where a word should")
        several = len(groups) > 1
        return [_made(cells) for group in groups if group or not several for cells in _braces(group)]

    def _escaped(self) -> list[_Cell]:
        following = self._text[self._at + 1 : self._at + 2]
        if not following:
            raise _Unsure("it ends with a backslash")
        self._at += 2
        return [] if following == "\n" else [(following, True, False)]

    def _until_quote(self) -> str:
        stop = self._text.find("'", self._at + 1)
        if stop < 0:
            raise _Unsure("a quote is not closed")
        inside = self._text[self._at + 1 : stop]
        self._at = stop + 1
        return inside

    def _quoted(self) -> list[_Cell]:
        """Read what stands in double quotes.  Nothing at all is still a word."""
        cells: list[_Cell] = []
        self._at += 1
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == '"':
                self._at += 1
                return cells
            if char == "\\":
                following = self._text[self._at + 1 : self._at + 2]
                if following in ("$", "`", '"', "\\", "\n"):
                    cells += self._escaped()
                else:
                    cells.append((char, True, False))
                    self._at += 1
            elif char == "$":
                cells += self._dollar(quoted=True)
            elif char == "`":
                self._backtick()
                cells.append((UNKNOWN, True, True))
            else:
                cells.append((char, True, False))
                self._at += 1
        raise _Unsure("a quote is not closed")

    def _dollar(self, *, quoted: bool) -> list[_Cell]:
        text, at = self._text, self._at
        if text.startswith("$((", at):
            self._arithmetic()
            self._script.calculated.update(_NAME.findall(text[at : self._at]))
            return [("0", quoted, True)]
        if text.startswith("$(", at):
            self._at += 2
            self._list(")")
        elif text.startswith("${", at):
            return self._braced(quoted=quoted)
        elif text.startswith("$'", at) and not quoted:
            return self._ansi()
        elif text.startswith('$"', at) and not quoted:
            self._at += 1
            return self._quoted()
        elif name := _NAME.match(text, at + 1):
            self._at = name.end()
            return self._variable(name[0], quoted=quoted)
        elif at + 1 < len(text) and text[at + 1] in "#?$!":
            self._at += 2
            return [("0", quoted, True)]
        elif at + 1 < len(text) and text[at + 1] in "@*-0123456789":
            self._at += 2
        else:
            self._at += 1
            return [("$", True, False)]
        return [(UNKNOWN, quoted, True)]

    def _arithmetic(self) -> None:
        depth = 0
        for at in range(self._at + 1, len(self._text)):
            char = self._text[at]
            if char in "$`'\"\\;&|{}[]<>\n" and not (char == "$" and _NAME.match(self._text, at + 1)):
                raise _Unsure("it calculates with something unusual")
            depth += (char == "(") - (char == ")")
            if depth == 0:
                self._at = at + 1
                return
        raise _Unsure("it ends before something in it does")

    def _braced(self, *, quoted: bool) -> list[_Cell]:
        stop = self._text.find("}", self._at)
        inside = self._text[self._at + 2 : stop]
        if stop < 0 or any(char in inside for char in "{\"'\\`$\n(") or _ODD_EXPANSION.search(inside):
            raise _Unsure("it expands a variable in an unusual way")
        self._at = stop + 1
        if _NAME.fullmatch(inside):
            return self._variable(inside, quoted=quoted)
        if _SECRET_NAME.search(inside) or inside.startswith("!"):
            self._script.doubts.append("it uses a variable that may hold a secret")
        if inside.partition(":")[0] == "HOME":
            return [("~", True, True)]
        return [(UNKNOWN, quoted, True)]

    def _variable(self, name: str, *, quoted: bool) -> list[_Cell]:
        if name == "HOME":
            return [("~", True, False)]
        if name == "IFS":
            return [(" ", quoted, False)]
        if name == "PWD":
            return [(".", True, False)]
        if _SECRET_NAME.search(name):
            self._script.doubts.append("it uses a variable that may hold a secret")
        known = self._known.get(name)
        if known is None or not known.text:
            return [(UNKNOWN, quoted, True)]
        return [(char, quoted or known.listed, known.varies) for char in known.text]

    def _ansi(self) -> list[_Cell]:
        found = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self._text, self._at)
        if found is None:
            raise _Unsure("a quote is not closed")
        self._at = found.end()
        return [(char, True, False) for char in _ANSI.sub(_ansi_char, found[1])]

    def _backtick(self) -> None:
        found = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL).match(self._text, self._at)
        if found is None:
            raise _Unsure("a quote is not closed")
        self._at = found.end()
        if self._depth >= DEPTH_MAX:
            raise _Unsure("it is nested too deep to be followed")
        _Reader(re.sub(r"\\([`$\\])", r"\1", found[1]), self._script, self._known, self._depth).all()


def _ansi_char(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xuU" and len(code) > 1:
        return chr(min(int(code[1:], 16), 0x10FFFF))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _LETTERS.get(code, code if code in "\\'\"?" else UNKNOWN)


def _exported(words: Sequence[Word]) -> Iterator[tuple[str, Word]]:
    """Yield what `export` and its like set."""
    if words[0].text in ("export", "declare", "local", "readonly", "typeset"):
        for word in words[1:]:
            if found := _ASSIGNMENT.match(word.text):
                yield found[1], Word(text=word.text[found.end() :])


def _split(cells: Sequence[_Cell]) -> list[list[_Cell]]:
    """Return what a variable without quotes becomes: a word for each piece between blanks."""
    groups: list[list[_Cell]] = [[]]
    for cell in cells:
        if cell[0] in " \t\n" and not cell[1]:
            groups.append([])
        else:
            groups[-1].append(cell)
    return groups


def _made(cells: Iterable[_Cell]) -> Word:
    whole = [*cells]
    text = "".join(char for char, _, _ in whole)
    return Word(
        text=text,
        varies=any(varies for _, _, varies in whole),
        glob=any(char in "*?[" and not quoted for char, quoted, _ in whole),
        listed=UNKNOWN in text and not any(varies for _, _, varies in whole),
    )


def _braces(cells: list[_Cell]) -> list[list[_Cell]]:
    """Return the words that a word with braces stands for, such as a{b,c}."""
    if ("{", False, False) not in cells:
        return [cells]
    done: list[list[_Cell]] = []
    waiting = [cells]
    while waiting:
        word = waiting.pop()
        found = _brace(word)
        if found is None:
            done.append(word)
        else:
            start, stop, pieces = found
            waiting += [[*word[:start], *piece, *word[stop:]] for piece in reversed(pieces)]
        if len(done) + len(waiting) > WORDS_PER_BRACES_MAX:
            raise _Unsure("its braces stand for too many words")
    return done


def _brace(cells: list[_Cell]) -> tuple[int, int, list[list[_Cell]]] | None:
    """Return where the first pair of braces stands that means several words, and these."""
    opened: list[int] = []
    commas: dict[int, list[int]] = {}
    for at, (char, quoted, _) in enumerate(cells):
        if quoted:
            continue
        if char == "{":
            opened.append(at)
        elif char == "," and opened:
            commas.setdefault(opened[-1], []).append(at)
        elif char == "}" and opened:
            start = opened.pop()
            if start in commas:
                edges = [start, *commas[start], at]
                return start, at + 1, [cells[a + 1 : b] for a, b in pairwise(edges)]
            if ".." in "".join(each for each, _, _ in cells[start:at]):
                return start, at + 1, [[(UNKNOWN, False, True)]]
    return None
