"""Routes of turns."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.core.questions import About
from holdfast.desk.port import Desk
from holdfast.ids import SessionId, TurnId
from holdfast.web.answers import Refused, answer
from holdfast.web.requests import body, name, number, principal, refuse_guests


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a person says to the question that a turn waits for."""

    text: str
    question_id: str | None = None


# No question has this id: an answer to it is refused with what the turn waits for, if it does.
_NO_QUESTION = "none"


class TurnRoutes:
    """Receipts, and what may be done about a turn."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def routes(self) -> list[Route]:
        return [
            Route("/api/turns", self.list, methods=["GET"]),
            Route("/api/turns/{id}", self.show, methods=["GET"]),
            Route("/api/turns/{id}/cancel", self.cancel, methods=["POST"]),
            Route("/api/turns/{id}/retry", self.retry, methods=["POST"]),
            Route("/api/turns/{id}/answer", self.answer, methods=["POST"]),
        ]

    async def list(self, request: Request) -> Response:
        session_id = request.query_params.get("session")
        if not session_id:
            raise Refused(400, "bad_parameter", "say which session with ?session=")
        page = await self._desk.turns(
            SessionId(session_id), cursor=request.query_params.get("cursor"), limit=number(request, "limit", 100)
        )
        return answer(page)

    async def show(self, request: Request) -> Response:
        return answer(await self._desk.turn(_turn_id(request)))

    async def cancel(self, request: Request) -> Response:
        return answer(await self._desk.cancel(_turn_id(request)))

    async def retry(self, request: Request) -> Response:
        return answer(await self._desk.retry(_turn_id(request)), 202)

    async def answer(self, request: Request) -> Response:
        said = await body(request, Answer)
        question_id = said.question_id
        if not principal(request).operator:
            question_id = await self._guests_question(request, question_id)
        return answer(await self._desk.answer(_turn_id(request), said.text, question_id))

    async def _guests_question(self, request: Request, question_id: str | None) -> str:
        """Return which question a guest answers: the one that is open now, and never one that asks for consent.

        A command of the agent's can reach a gateway that needs no key, and would else allow itself what it was asked about.
        """
        turn = await self._desk.turn(_turn_id(request))
        waiting = await self._desk.approvals.list(session_id=turn.session_id)
        for each in waiting.items:
            if each.turn_id == (turn.joined_to or turn.id):
                if each.about != About.ANSWER:
                    refuse_guests(request)
                return each.question_id if question_id in (None, each.question_id) else _NO_QUESTION
        # Whatever is asked meanwhile is not what they saw.
        return _NO_QUESTION


def _turn_id(request: Request) -> TurnId:
    return TurnId(name(request))
