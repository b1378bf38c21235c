"""Which messages take a question to the people who may decide it."""

from __future__ import annotations

import json

from holdfast.channels.chat.account import Home, Split
from holdfast.core import verbatim
from holdfast.core.delivery import Delivery, Extra, delivery_id
from holdfast.core.keys import LOCAL
from holdfast.core.questions import About, Question
from holdfast.core.showing import LABEL_LONGEST, buttons_of, closed, numbered
from holdfast.core.turns import Mode, Turn

WAITS = "This waits for the approval of the operator. I go on by myself as soon as it is decided."
_WISH = "May I do this?"
# What a question need not say in its text.
_DETAILS = ("command", "arguments")
# What a question says at its end once it is settled.
_SETTLED = closed("", LABEL_LONGEST)
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
    # It says later how the question was settled, too.
    waits = Extra(question_id=question.id)
    return [_message(turn, question, target, WAITS if home else WAITS + _LATER, 1, waits, now_ms), *asked]


def asking_at_home(turn: Turn, question: Question, home: Home, now_ms: int) -> list[Delivery]:
    """Return the messages of a question that is asked in no chat; none where the person who waits sees it anyway."""
    if question.about is About.ANSWER or (question.about is About.APPROVAL and turn.mode is not Mode.DETACHED):
        return []
    text = _text(turn, question, for_others=turn.owner != LOCAL)
    return _messages(turn, question, home.target, f"{text}\n\nIt is asked by the turn {turn.id}.", home.split, now_ms)


def _messages(turn: Turn, question: Question, target: str, text: str, split: Split, now_ms: int) -> list[Delivery]:
    extra = Extra(buttons=buttons_of(turn.id, question), question_id=question.id)
    parts = split(text, numbered(extra.buttons) + _SETTLED)
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
    text = question.text if question.about is About.ANSWER else _exact(question)
    return f"{turn.owner} asks for this.\n\n{text}" if for_others else text


def _exact(question: Question) -> str:
    """Return what is to be allowed as it will be done.  Markdown would hide some lines of a command from the person."""
    wish, _, rest = question.text.partition("\n\n")
    if not verbatim.is_plain(wish):
        wish, rest = _WISH, question.text
    told = [rest, *(each for name in _DETAILS if (each := _spelled(question.detail.get(name))) not in question.text)]
    return "\n\n".join([wish, *(verbatim.block(each) for each in told if each.strip())])


def _spelled(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False) if value else ""
