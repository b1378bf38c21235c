"""Skills: folders with instructions in a SKILL.md, which the agent reads on demand."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from holdfast.agent.files import TextFiles, entries
from holdfast.errors import Rejected

FILE = "SKILL.md"
SKILLS_MAX = 100
FILES_MAX = 100
DESCRIPTION_MAX_CHARS = 500
SKILL_MAX_CHARS = 40_000

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"^(name|description):[ \t]*(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
_BLOCK_MARK = re.compile(r"\A[|>][+-]?[ \t]*\n?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """Instructions for a kind of task."""

    name: str
    description: str
    folder: Path


class Skills:
    """The skills of this gateway, read from disk at each call.  It blocks on the disk: call it from a thread."""

    def __init__(self, folder: Path, files: TextFiles) -> None:
        self._folder = folder
        self._files = files

    def list(self) -> list[Skill]:
        """Return every skill, by name."""
        folders = [path for path in entries(self._folder) if path.is_dir()][:SKILLS_MAX]
        found = [parse(text, folder) for folder in folders if (text := self._text(folder))]
        return sorted(found, key=lambda skill: skill.name)

    def read(self, name: str, file: str | None = None) -> str:
        """Return the text of a skill with the names of its other files, or the text of one of these.

        Raises `Rejected` if it does not exist.
        """
        skills = {skill.name: skill for skill in self.list()}
        if name not in skills:
            raise Rejected(f"there is no skill {name!r}; there are: {', '.join(skills) or 'none'}")
        folder = skills[name].folder
        files = _files(folder)
        if file is None:
            return f"{self._text(folder)}\n\n[Files beside it: {', '.join(files) or 'none'}.]"
        if file not in files or not (text := self._files.read(folder / file, SKILL_MAX_CHARS, inside=folder)):
            raise Rejected(f"there is nothing to read in {file!r} beside the skill {name!r}; there are: {', '.join(files)}")
        return text

    def _text(self, folder: Path) -> str:
        return self._files.read(folder / FILE, SKILL_MAX_CHARS)


def _files(folder: Path) -> list[str]:
    """Return the other files of a skill, by their paths in its folder."""
    found = (path for path in folder.rglob("*") if path.is_file() and path != folder / FILE)
    return sorted(str(path.relative_to(folder)) for path in itertools.islice(found, FILES_MAX))


def parse(text: str, folder: Path) -> Skill:
    """Read the name and the description from the front matter, or else from the folder and the first line."""
    matter = _FRONT_MATTER.match(text)
    fields = {key: _value(value) for key, value in _FIELD.findall(matter[1])} if matter else {}
    body = text[matter.end() :] if matter else text
    first = next((line.strip("# ").strip() for line in body.splitlines() if line.strip("# ").strip()), "")
    description = fields.get("description") or first
    return Skill(name=fields.get("name") or folder.name, description=description[:DESCRIPTION_MAX_CHARS], folder=folder)


def _value(raw: str) -> str:
    unfolded = " ".join(_BLOCK_MARK.sub("", raw).split())
    quoted = len(unfolded) > 1 and unfolded[0] == unfolded[-1] and unfolded[0] in "\"'"
    return unfolded[1:-1] if quoted else unfolded
