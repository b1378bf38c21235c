"""Runs: work that is handed in and looked after later, and how far one has come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.channels.openai.content import Said, TurnInput, Unfit, asked
from holdfast.channels.openai.events import question
from holdfast.channels.openai.responses import Fields, InputItem, said_in
from holdfast.core.intake import Prior, Speaker
from holdfast.core.progress import Progress
from holdfast.core.turns import TurnState
from holdfast.core.usage import Usage
from holdfast.ids import SessionId, TurnId

ENDPOINT = "runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Work to be done.  With a session it is the next message there; without one it has a session of its own."""

    input: str | tuple[InputItem, ...]
    session_key: str | None = None
    session_id: SessionId | None = None
    instructions: str | None = None
    metadata: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReceipt:
    """Proof that a run is durable."""

    run_id: TurnId
    session_id: SessionId
    status: TurnState


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUsage:
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    total_tokens: int = 0

    @classmethod
    def of(cls, used: Usage) -> RunUsage:
        return cls(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cached_tokens=used.cached_tokens,
            total_tokens=used.tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run as it stands.  While it waits for a person, `question` is what for."""

    run_id: TurnId
    session_id: SessionId
    status: TurnState
    output: str = ""
    usage: RunUsage = field(default_factory=RunUsage)
    error: str | None = None
    question: Mapping[str, object] | None = None
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    accepted_at: int = 0
    started_at: int | None = None
    answered_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a person says to the question of a run: in words, or as one of the decisions that it offers."""

    text: str | None = None
    decision: str | None = None
    question_id: str | None = None

    @property
    def words(self) -> str:
        """The answer.  Raises `Unfit` where there is none, or two."""
        said = [each for each in (self.text, self.decision) if each is not None]
        if len(said) != 1 or not said[0].strip():
            raise Unfit("an approval has either text or a decision", 'send {"decision": "once"}, session, always or deny')
        return said[0]


def wanted(request: RunRequest) -> TurnInput:
    """Return what a run is to answer.  Raises `Unfit`."""
    if request.session_key and request.session_id:
        raise Unfit("session_key and session_id name two sessions", "send one of them")
    given = request.input
    said: Sequence[Said] = [Said(speaker=Speaker.USER, text=given)] if isinstance(given, str) else said_in(given)
    found = asked(said)
    if not request.instructions:
        return found
    return TurnInput(
        text=found.text,
        images=found.images,
        prior=(Prior(speaker=Speaker.SYSTEM, text=request.instructions), *found.prior),
    )


def kept(request: RunRequest) -> Fields:
    """Return what is kept of a request with its turn."""
    facts: Fields = {"endpoint": ENDPOINT, "instructions": request.instructions, "metadata": dict(request.metadata or {})}
    return {name: value for name, value in facts.items() if value}


def waiting_for(progress: Progress) -> Fields | None:
    return question(progress.question) if progress.question is not None else None
