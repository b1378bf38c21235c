"""Which messages take a question to the people who may decide it."""

from __future__ import annotations

from holdfast.channels.chat.account import Home, Split
from holdfast.core.delivery import Delivery, Extra, delivery_id
from holdfast.core.keys import LOCAL
from holdfast.core.questions import About, Question
from holdfast.core.showing import buttons_of
from holdfast.core.turns import Turn

WAITS = "This waits for the approval of the operator. I go on by myself as soon as it is decided."
_LATER = " They find it with `holdfast approvals list` and on the page."


def asking(turn: Turn, question: Question, target: str, home: Home | None, split: Split, now_ms: int) -> list[Delivery]:
    """Return the messages of a question.

    Everybody who may write in a chat answers what the agent asks there.  Only the operator decides what touches this machine
    or costs more: what other people want done is asked in the home chat, and their own chat is told that it waits.
    """
    if question.about is About.ANSWER or turn.owner == LOCAL:
        return _messages(turn, question, target, _text(turn, question, for_others=False), split, now_ms)
    asked = (
        _messages(turn, question, home.target, _text(turn, question, for_others=True), home.split, now_ms) if home else []
    )
    if home and home.target == target:
        return asked
    return [_message(turn, question, target, WAITS if home else WAITS + _LATER, 1, Extra(), now_ms), *asked]


def _messages(turn: Turn, question: Question, target: str, text: str, split: Split, now_ms: int) -> list[Delivery]:
    parts = split(text)
    extra = Extra(buttons=buttons_of(turn.id, question), question_id=question.id)
    return [
        _message(turn, question, target, part, number, extra if number == len(parts) else Extra(), now_ms)
        for number, part in enumerate(parts, 1)
    ]


def _message(turn: Turn, question: Question, target: str, text: str, number: int, extra: Extra, now_ms: int) -> Delivery:
    return Delivery(
        id=delivery_id(f"{turn.id}:{question.id}:{target}", number),
        turn_id=turn.id,
        session_id=turn.session_id,
        target=target,
        part=number,
        text=text,
        created_at=now_ms,
        due_at=now_ms,
        extra=extra,
    )


def _text(turn: Turn, question: Question, *, for_others: bool) -> str:
    text = f"{turn.owner} asks for this.\n\n{question.text}" if for_others else question.text
    command = question.detail.get("command")
    if isinstance(command, str) and command not in question.text:
        text = f"{text}\n\n```\n{command}\n```"
    return text
