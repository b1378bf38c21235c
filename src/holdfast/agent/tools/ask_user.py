"""The `ask_user` tool: the turn is parked until the person answers, and the answer is the result."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.agent.tools.port import CallContext, StructTool
from holdfast.core.effects import Effect
from holdfast.core.questions import About, Question
from holdfast.core.turns import Mode
from holdfast.errors import Rejected

QUESTION_MAX_CHARS = 2_000
CHOICES_MAX = 10


class AskUserArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    question: Annotated[
        str, msgspec.Meta(description="The question, with all that is needed to answer it.", min_length=1,
                          max_length=QUESTION_MAX_CHARS)
    ]  # fmt: skip
    choices: Annotated[
        list[Annotated[str, msgspec.Meta(min_length=1, max_length=200)]],
        msgspec.Meta(description="Answers to choose from; the person may still say something else.", max_length=CHOICES_MAX),
    ] = []


def ask_user_tool() -> StructTool[AskUserArgs]:
    """Return the tool that asks."""
    return StructTool(
        name="ask_user",
        description=(
            "Ask the person a question and wait for the answer, however long it takes. Ask only what you cannot find out "
            "and what changes the work."
        ),
        args=AskUserArgs,
        effect=Effect.PURE,
        action=_unanswered,
        asks=_question,
        reads_private=False,
    )


def is_answerable(context: CallContext) -> bool:
    """Return whether a person can answer after this turn has been parked."""
    turn = context.turn
    if turn.mode is Mode.SYNCHRONOUS or context.session.one_shot:
        return False
    return turn.mode is Mode.CONVERSATION or turn.delivers_later


async def _question(args: AskUserArgs, context: CallContext) -> Question:
    if not is_answerable(context):
        raise Rejected(
            "nobody can answer here: this turn has no conversation behind it; decide by yourself, and say in your answer "
            "what you assumed"
        )
    return Question(id=f"ask:{context.call_id}", text=args.question, about=About.ANSWER, choices=tuple(args.choices))


async def _unanswered(_args: AskUserArgs, _context: CallContext) -> str:
    raise Rejected("nobody answered; decide by yourself, and say in your answer what you assumed")
