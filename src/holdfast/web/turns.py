"""Turns: receipts, and what may be done about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from starlette.responses import Response

from holdfast.core.images import IMAGES_MAX, MEDIA_TYPES
from holdfast.core.keys import ADMIN
from holdfast.core.questions import About
from holdfast.desk.views import TurnView
from holdfast.errors import NotFound
from holdfast.ids import SessionId, TurnId
from holdfast.operations.pages import Page
from holdfast.web.answers import Refused, answer
from holdfast.web.endpoints import Call, Endpoint, demand


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a person says to the question that a turn waits for."""

    text: str
    question_id: str | None = None


# A picture never changes, and is not a page: whatever else it holds, none of it runs.  A browser keeps it for whoever may
# see it, and that is no longer so when somebody has signed out.
PICTURE_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Cache-Control": "private, max-age=31536000, immutable",
        "Vary": "Authorization, X-Holdfast-Proof",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
)
_PLACES = tuple(str(place) for place in range(IMAGES_MAX))
# No question has this id: an answer to it is refused with what the turn waits for, if it does.
_NO_QUESTION = "none"


class Turns:
    """Receipts, and what may be done about a turn."""

    def endpoints(self) -> list[Endpoint]:
        one = "/api/turns/{id}"
        return [
            Endpoint(
                method="GET",
                path="/api/turns",
                handle=self.list,
                summary="List the turns of a session",
                gives=Page[TurnView],
                query=("session", "cursor", "limit"),
            ),
            Endpoint(method="GET", path=one, handle=self.show, summary="Show what became of a message", gives=TurnView),
            Endpoint(
                method="GET",
                path=f"{one}/images/{{number}}",
                handle=self.image,
                summary="Show a picture that came with a message, counted from 0",
                gives=bytes,
                media=MEDIA_TYPES,
            ),
            Endpoint(
                method="POST",
                path=f"{one}/cancel",
                handle=self.cancel,
                summary="Cancel a turn; what it has said stays",
                gives=TurnView,
            ),
            Endpoint(
                method="POST",
                path=f"{one}/retry",
                handle=self.retry,
                summary="Let a turn go on, or ask the same again",
                gives=TurnView,
                status=202,
            ),
            Endpoint(
                method="POST",
                path=f"{one}/answer",
                handle=self.answer,
                summary="Answer the question that a turn waits for",
                takes=Answer,
                gives=TurnView,
            ),
        ]

    async def list(self, call: Call) -> Response:
        session_id = call.word("session")
        if not session_id:
            raise Refused(400, "bad_parameter", "say which session with ?session=")
        page = await call.desk.turns(
            SessionId(session_id), cursor=call.word("cursor"), limit=call.number("limit", 100)
        )  # fmt: skip
        return answer(page)

    async def show(self, call: Call) -> Response:
        return answer(await call.desk.turn(_turn_id(call)))

    async def image(self, call: Call) -> Response:
        number = call.name("number")
        if number not in _PLACES:
            raise NotFound(f"a message has {IMAGES_MAX} images at most, and none is called {number!r}")
        image = await call.desk.image(_turn_id(call), _PLACES.index(number))
        return Response(image.data, headers=PICTURE_HEADERS, media_type=image.media_type)

    async def cancel(self, call: Call) -> Response:
        return answer(await call.desk.cancel(_turn_id(call)))

    async def retry(self, call: Call) -> Response:
        return answer(await call.desk.retry(_turn_id(call)), 202)

    async def answer(self, call: Call) -> Response:
        said = await call.body(Answer)
        question_id = said.question_id
        if not call.principal.operator:
            question_id = await harmless_question(call, _turn_id(call), question_id)
        return answer(await call.desk.answer(_turn_id(call), said.text, question_id))


async def harmless_question(call: Call, turn_id: TurnId, question_id: str | None) -> str:
    """Return which question somebody answers who is not the operator: the open one, and never one that asks for consent.

    A command of the agent's can reach a gateway that needs no key, and would else allow itself what it was asked about.
    """
    turn = await call.desk.turn(turn_id)
    waiting = await call.desk.approvals.list(session_id=turn.session_id)
    for each in waiting.items:
        if each.turn_id == (turn.joined_to or turn.id):
            if each.about != About.ANSWER:
                demand(call.principal, ADMIN)
            return each.question_id if question_id in (None, each.question_id) else _NO_QUESTION
    # Whatever is asked meanwhile is not what they saw.
    return _NO_QUESTION


def _turn_id(call: Call) -> TurnId:
    return TurnId(call.name())
