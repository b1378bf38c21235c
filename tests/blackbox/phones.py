"""Judges what the phones show, from outside: it knows what people wrote and what a chat looks like, and nothing of Holdfast.

Each message of a person has a nonce, which its answer repeats.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.drill.telegram.chats import Chat, Shown

LABEL = "[possible repeat]"
_STATUS = re.compile(r"Waiting behind another message…|Waiting for the model…|Working(: \w+)?…|Waiting for you\.|Done\.")
# The operator reads what a stranger wrote.
_REQUEST = "asks to be let in"
_NONCE = re.compile(r"\bn\d{5}\b")


@dataclass(frozen=True)
class Written:
    """A message of a person that is to be answered once, in its chat and its topic."""

    nonce: str
    message: Shown
    # The answer where it is not the message itself.
    whole: str = ""

    @property
    def chat(self) -> Chat:
        return self.message.chat


def is_status(message: Shown) -> bool:
    """Return whether a message only shows a turn at work."""
    return is_status_text(message.text)


def is_status_text(text: str) -> bool:
    return bool(_STATUS.fullmatch(text))


def answers(written: Written) -> list[Shown]:
    """Return what a phone shows as answers to a message, in order."""
    return [each for each in written.chat.of_bot() if written.nonce in each.text and not is_status(each)]


def is_answered(written: Written) -> bool:
    return any(_is_whole(each, written) for each in answers(written))


def _is_whole(answer: Shown, written: Written) -> bool:
    return answer.text.removeprefix(LABEL).strip() == written.whole if written.whole else True


def status_lines(chats: Sequence[Chat]) -> list[Shown]:
    """Return the status lines that are still to be seen."""
    return [each for chat in chats for each in chat.of_bot() if is_status(each)]


def wrong(chats: Sequence[Chat], written: Sequence[Written], *, status_lines_lost: int = 0) -> list[str]:
    """Return every violation.  Of as many status lines it is unknown whether they were sent."""
    return [*_misplaced(chats, written), *_miscounted(written), *_disordered(written), *_left(chats, status_lines_lost)]


def _misplaced(chats: Sequence[Chat], written: Sequence[Written]) -> Iterator[str]:
    home = {each.nonce: (each.chat.id, each.message.thread) for each in written}
    for chat in chats:
        for message in chat.messages.values():
            if not message.sender.is_bot or _REQUEST in message.text:
                continue
            for nonce in set(_NONCE.findall(message.text)):
                if nonce in home and (chat.id, message.thread) != home[nonce]:
                    yield f"{nonce} of {home[nonce]} was answered in chat {chat.id}, topic {message.thread}"


def _miscounted(written: Sequence[Written]) -> Iterator[str]:
    for each in written:
        found = answers(each)
        labelled = [answer for answer in found if answer.text.startswith(LABEL)]
        if not any(_is_whole(answer, each) for answer in found):
            yield f"{each.nonce} has no whole answer"
        if len(found) - len(labelled) > 1:
            yield f"{each.nonce} was answered {len(found) - len(labelled)} times without a label"
        if len(labelled) > 1:
            yield f"{each.nonce} was repeated {len(labelled)} times"


def _disordered(written: Sequence[Written]) -> Iterator[str]:
    for chat_id, thread in {(each.chat.id, each.message.thread) for each in written}:
        here = [each for each in written if (each.chat.id, each.message.thread) == (chat_id, thread)]
        firsts = [answers(each)[0].id for each in here if answers(each)]
        if firsts != sorted(firsts):
            yield f"chat {chat_id} was answered in another order: {[each.nonce for each in here]}: {firsts}"


def _left(chats: Sequence[Chat], lost: int) -> Iterator[str]:
    left = status_lines(chats)
    if len(left) > lost:
        yield f"status lines were left: {[(each.chat.id, each.id, each.text) for each in left]}"
