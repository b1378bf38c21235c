"""The commands /approve and /deny: a person decides what the agent asked permission for."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.clock import Clock
from holdfast.core import questions
from holdfast.core.chats import ChatType
from holdfast.core.commands import ChatCommand, CommandName
from holdfast.core.events import ApprovalAnswered
from holdfast.core.intake import Inbound
from holdfast.core.questions import About, AskedQuestion, Decision, short_id
from holdfast.core.redaction import Redaction
from holdfast.core.sessions import Session
from holdfast.errors import IllegalMove, Rejected
from holdfast.store.store import Store

SEARCHED_MAX = 200
SHOWN_MAX = 10
_TEXT_MAX = 200
_LENGTHS = frozenset({Decision.ONCE.value, Decision.SESSION.value, Decision.ALWAYS.value})
_SAID = {
    Decision.ONCE: "Allowed this once",
    Decision.SESSION: "Allowed in its conversation",
    Decision.ALWAYS: "Allowed from now on",
    Decision.DENY: "Denied",
}


class Consent:
    """Answers open questions that ask for permission."""

    def __init__(self, store: Store, clock: Clock, redaction: Redaction) -> None:
        self._store = store
        self._clock = clock
        self._redaction = redaction

    async def run(self, session: Session | None, message: Inbound, command: ChatCommand) -> str:
        """Decide the question that is meant, and return what to tell.  Raises `Rejected` where nothing can be decided."""
        waiting = await self._waiting(message)
        # What others ask is not for everybody who reads along.
        tells_others = message.source.chat_type != ChatType.GROUP
        asked, rest = self._meant(waiting, session, command.argument, tells_others=tells_others)
        if asked.question.about is About.ANSWER:
            raise Rejected(f"this asks for an answer, not for permission; write it: {_line(asked)}")
        if not message.is_operator:
            raise Rejected("only the operator can decide this")
        decision = Decision.DENY if command.name is CommandName.DENY else _length(rest)
        reason = rest if decision is Decision.DENY else ""
        await self._answer(message, asked, decision, reason)
        return f"{_SAID[decision]}: {_line(asked)}"

    async def _waiting(self, message: Inbound) -> Sequence[AskedQuestion]:
        # The operator decides for all people who use this gateway.
        if message.is_operator:
            return await self._store.questions.of_everybody(SEARCHED_MAX)
        return await self._store.questions.open(message.owner, limit=SEARCHED_MAX)

    def _meant(
        self, waiting: Sequence[AskedQuestion], session: Session | None, argument: str, *, tells_others: bool
    ) -> tuple[AskedQuestion, str]:
        """Return the question that is named, else that of this conversation, and the words that do not name it."""
        word, _, rest = argument.partition(" ")
        named = [each for each in waiting if word and (_id(each).startswith(word) or each.turn_id == word)]
        if len(named) == 1 and len(word) > 3:
            return named[0], rest.strip()
        here = [each for each in waiting if session is not None and each.session_id == session.id]
        if here:
            return here[0], argument
        if not waiting:
            raise Rejected("nothing waits for permission")
        if not tells_others:
            raise Rejected("nothing waits in this conversation; name what you mean by its id")
        lines = "\n".join(f"- {_id(each)}: {_line(each)}" for each in waiting[:SHOWN_MAX])
        raise Rejected(f"nothing waits in this conversation, so name one of these:\n{lines}")

    async def _answer(self, message: Inbound, asked: AskedQuestion, decision: Decision, reason: str) -> None:
        text = questions.answer(asked.question.about, asked.question.choices, decision)
        if reason and asked.question.about is About.APPROVAL:
            text = questions.denied(reason)
        given = ApprovalAnswered(question_id=asked.question.id, text=self._redaction.text(text))
        try:
            await self._store.turns.answer(asked.turn_id, given, self._clock.now_ms(), message.once())
        except IllegalMove as error:
            raise Rejected("that is settled already") from error


def _length(words: str) -> Decision:
    word = words.strip().lower() or Decision.ONCE.value
    if word not in _LENGTHS:
        raise Rejected(f"{words[:80]!r} is not the id of an open question; say /approve [ID] once, session or always")
    return Decision(word)


def _id(asked: AskedQuestion) -> str:
    return short_id(asked.turn_id, asked.question.id)


def _line(asked: AskedQuestion) -> str:
    line = " ".join(asked.question.text.split())
    return line if len(line) <= _TEXT_MAX else f"{line[: _TEXT_MAX - 1]}…"
