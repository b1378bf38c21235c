"""Context files: files of the workspace whose instructions the agent follows, once a person has approved them.

The agent and its commands can write these files, and the model reads them like instructions of the operator.  So an approval
is for the exact text: after a change, the person is asked again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from holdfast.core.questions import APPROVAL_CHOICES, About, Decision, Question, decide, fingerprint
from holdfast.core.turns import Mode
from holdfast.ids import SessionId
from holdfast.ports import Assignment, Stage

IsGranted = Callable[[str, SessionId, str], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFile:
    """A file of the workspace, and the part of it that a model reads."""

    name: str
    text: str

    @property
    def fingerprint(self) -> str:
        return fingerprint(context_file=self.name, text=self.text)


async def nothing_granted(_owner: str, _session_id: SessionId, _fingerprint: str) -> bool:
    """Return that nothing is granted."""
    return False


async def is_approved(file: ContextFile, work: Assignment, stage: Stage, is_granted: IsGranted) -> bool:
    """Return whether a person has approved what a file says.  In a conversation they are asked, and the turn is parked."""
    if await is_granted(work.session.owner, work.session.id, file.fingerprint):
        return True
    if work.turn.mode is not Mode.CONVERSATION:
        # No person can be asked; a job or a client does without the file.
        return False
    return decide(await stage.ask(question(file))) is not Decision.DENY


def question(file: ContextFile) -> Question:
    """Return the question whether the agent may follow a file."""
    shown = "\n".join(f"    {line}" for line in file.text.splitlines())
    return Question(
        id=f"context:{file.fingerprint[:16]}",
        text=f"The file {file.name} of the workspace is new, or has changed. May I follow what it says?\n\n{shown}",
        about=About.APPROVAL,
        choices=APPROVAL_CHOICES,
        fingerprint=file.fingerprint,
        detail={"file": file.name},
    )
