"""Questions that turns wait with, and what people have allowed in their answers."""

from __future__ import annotations

from holdfast.core import questions
from holdfast.core.events import ApprovalAnswered
from holdfast.core.questions import About, AskedQuestion, Decision, Grant, Question
from holdfast.core.turns import Turn
from holdfast.errors import IllegalMove, Rejected
from holdfast.ids import SessionId, TurnId
from holdfast.store import rows
from holdfast.store.database import Database, Params, Row, Run, Transaction

_QUESTION = (
    "turn_id, id, session_id, owner, about, text, choices, detail, fingerprint, asked_at, expires_at, answer, answered_at"
)
_ASK = """
    INSERT INTO questions
        (turn_id, id, session_id, owner, about, text, choices, detail, fingerprint, asked_at, expires_at)
    SELECT CAST(:turn_id AS TEXT), CAST(:id AS TEXT), s.id, s.owner, CAST(:about AS TEXT), CAST(:text AS TEXT),
           CAST(:choices AS TEXT), CAST(:detail AS TEXT), CAST(:fingerprint AS TEXT), CAST(:asked_at AS BIGINT),
           CAST(:expires_at AS BIGINT)
      FROM sessions s WHERE s.id = :session_id
"""
_WAITING = f"SELECT {_QUESTION} FROM questions WHERE turn_id = :turn_id AND answer IS NULL"
_CLOSE = """
    UPDATE questions SET answer = :answer, answered_at = :now WHERE turn_id = :turn_id AND answer IS NULL RETURNING id
"""
_GRANT = """
    INSERT INTO grants (owner, fingerprint, session_id, text, granted_at)
    VALUES (:owner, :fingerprint, :session_id, :text, :now)
    ON CONFLICT DO NOTHING
"""
_OPEN = f"""
    SELECT {_QUESTION} FROM questions
     WHERE owner = :owner AND answer IS NULL AND (asked_at > :after_at OR (asked_at = :after_at AND turn_id > :after_id))
     ORDER BY asked_at, turn_id LIMIT :limit
"""
_OPEN_OF_SESSION = f"""
    SELECT {_QUESTION} FROM questions
     WHERE session_id = :session_id AND owner = :owner AND answer IS NULL
       AND (asked_at > :after_at OR (asked_at = :after_at AND turn_id > :after_id))
     ORDER BY asked_at, turn_id LIMIT :limit
"""
_OPEN_OF_ALL = f"SELECT {_QUESTION} FROM questions WHERE answer IS NULL ORDER BY asked_at, turn_id LIMIT :limit"
_OF_TURN = f"SELECT {_QUESTION} FROM questions WHERE turn_id = :turn_id ORDER BY asked_at, id"
_EXPIRED = f"""
    SELECT {_QUESTION} FROM questions
     WHERE answer IS NULL AND expires_at IS NOT NULL AND expires_at <= :now ORDER BY expires_at LIMIT :limit
"""
_IS_GRANTED = """
    SELECT 1 FROM grants
     WHERE owner = :owner AND fingerprint = :fingerprint AND COALESCE(session_id, '') IN ('', :session_id)
"""
_GRANTED = "owner, fingerprint, text, granted_at, session_id"
_GRANTS = f"""
    SELECT {_GRANTED} FROM grants
     WHERE owner = :owner ORDER BY granted_at, fingerprint, COALESCE(session_id, '')
"""
_REVOKE = "DELETE FROM grants WHERE owner = :owner AND fingerprint = :fingerprint RETURNING fingerprint"


class QuestionStore:
    """All questions and grants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(
        self, owner: str, session_id: SessionId | None = None, after: tuple[int, str] | None = None, limit: int = 50
    ) -> list[AskedQuestion]:
        """Return what waits for an answer, the oldest first; `after` is the (asked_at, turn id) of the last one seen."""
        at, id_ = after or (-1, "")
        params: Params = {"owner": owner, "after_at": at, "after_id": id_, "limit": limit}
        if session_id is not None:
            return await self._database.read(lambda: _list(_OPEN_OF_SESSION, {**params, "session_id": session_id}))
        return await self._database.read(lambda: _list(_OPEN, params))

    async def of_everybody(self, limit: int = 50) -> list[AskedQuestion]:
        """Return what waits for an answer, of all owners, the oldest first."""
        return await self._database.read(lambda: _list(_OPEN_OF_ALL, {"limit": limit}))

    async def of_turn(self, turn_id: TurnId) -> list[AskedQuestion]:
        """Return what a turn has asked, the oldest first."""
        return await self._database.read(lambda: _list(_OF_TURN, {"turn_id": turn_id}))

    async def expired(self, now_ms: int, limit: int = 100) -> list[AskedQuestion]:
        """Return open questions whose time to answer is over."""
        return await self._database.read(lambda: _list(_EXPIRED, {"now": now_ms, "limit": limit}))

    async def is_granted(self, owner: str, session_id: SessionId, fingerprint: str) -> bool:
        """Return whether exactly this was allowed before, for the session or for ever."""
        params = {"owner": owner, "session_id": session_id, "fingerprint": fingerprint}
        return bool(await self._database.read(lambda: _run(_IS_GRANTED, params)))

    async def grants(self, owner: str) -> list[Grant]:
        """Return all that a person has allowed for longer than once, the oldest first."""
        return [_grant(row) for row in await self._database.read(lambda: _run(_GRANTS, {"owner": owner}))]

    async def revoke(self, owner: str, fingerprint: str) -> bool:
        """Take back a grant, in every session; False when there is none."""
        params = {"owner": owner, "fingerprint": fingerprint}
        return bool(await self._database.write(lambda: _run(_REVOKE, params)))


def ask(turn: Turn, question: Question, now_ms: int) -> Transaction[None]:
    """Open the question with which a turn is parked."""
    yield Run(
        _ASK,
        {
            "turn_id": turn.id,
            "id": question.id,
            "session_id": turn.session_id,
            "about": question.about.value,
            "text": question.text,
            "choices": rows.encode(list(question.choices)),
            "detail": rows.encode(question.detail),
            "fingerprint": question.fingerprint,
            "asked_at": now_ms,
            "expires_at": question.expires_at,
        },
    )


def answer(turn: Turn, given: ApprovalAnswered, at: int) -> Transaction[None]:
    """Close the question a turn waits with, and grant what the answer grants.

    Raises `IllegalMove` for any other question, and for one that has expired unless that is the answer; `Rejected` for an
    answer that would allow more than was offered.
    """
    question_id, text = given.question_id, given.text
    (asked,) = yield from _list(_WAITING, {"turn_id": turn.id})
    question = asked.question
    if question.id != question_id:
        raise IllegalMove(turn.id, f"waiting for an answer to {question.id!r}", f"take one to {question_id!r}")
    expires_at = question.expires_at
    if text != questions.EXPIRED and expires_at is not None and at >= expires_at:
        raise IllegalMove(question.id, "expired", "be answered; ask again if it is still wanted")
    decision = questions.decide(text)
    if question.about is About.APPROVAL and not questions.is_offered(question, decision):
        offered = ", ".join(question.choices)
        raise Rejected(
            f"{decision.value!r} is not offered here, because what was approved could change; say one of {offered}"
        )
    yield Run(_CLOSE, {"turn_id": turn.id, "answer": text, "now": at})
    yield from _grant_for_longer(asked, decision, at)


def withdraw(turn_id: TurnId, now_ms: int) -> Transaction[None]:
    """Close the question of a turn that does not wait any longer."""
    yield Run(_CLOSE, {"turn_id": turn_id, "answer": questions.CANCELLED, "now": now_ms})


def _grant_for_longer(asked: AskedQuestion, decision: Decision, now_ms: int) -> Transaction[None]:
    question = asked.question
    if question.about is not About.APPROVAL or not question.fingerprint:
        return
    if decision not in (Decision.SESSION, Decision.ALWAYS):
        return
    for each in question.fingerprint.split():
        yield Run(
            _GRANT,
            {
                "owner": asked.owner,
                "fingerprint": each,
                "session_id": asked.session_id if decision is Decision.SESSION else None,
                "text": question.text,
                "now": now_ms,
            },
        )


def _list(sql: str, params: Params) -> Transaction[list[AskedQuestion]]:
    found = yield Run(sql, params)
    return [_asked(row) for row in found]


def _run(sql: str, params: Params) -> Transaction[list[Row]]:
    return (yield Run(sql, params))


def _asked(row: Row) -> AskedQuestion:
    turn_id, id_, session_id, owner, about, text, choices, detail, fingerprint, asked_at, expires_at, said, answered_at = row
    question = Question(
        id=id_,
        text=text,
        about=About(about),
        choices=rows.texts(choices),
        fingerprint=fingerprint,
        expires_at=expires_at,
        detail=rows.data(detail),
    )
    return AskedQuestion(
        question=question,
        turn_id=turn_id,
        session_id=session_id,
        owner=owner,
        asked_at=asked_at,
        answer=said,
        answered_at=answered_at,
    )


_grant = rows.reader(Grant, _GRANTED)
