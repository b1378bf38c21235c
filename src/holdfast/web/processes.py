"""Background commands."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.core.processes import ProcessState
from holdfast.desk.port import OUTPUT_MAX
from holdfast.desk.views import Page, ProcessView
from holdfast.ids import ProcessId, SessionId
from holdfast.ports import Output
from holdfast.web.answers import answer
from holdfast.web.endpoints import Call, Endpoint

POSITION_MAX = 2**53


class Processes:
    """What runs beside the conversations."""

    def endpoints(self) -> list[Endpoint]:
        one = "/api/processes/{id}"
        return [
            Endpoint(
                method="GET",
                path="/api/processes",
                handle=self.list,
                summary="List background commands",
                gives=Page[ProcessView],
                query=("session", "state", "cursor", "limit"),
            ),
            Endpoint(method="GET", path=one, handle=self.show, summary="Show a background command", gives=ProcessView),
            Endpoint(
                method="GET",
                path=f"{one}/log",
                handle=self.log,
                summary="Read what a background command has written",
                gives=Output,
                query=("after", "limit", "colours"),
            ),
            Endpoint(
                method="POST", path=f"{one}/kill", handle=self.kill, summary="End a background command", gives=ProcessView
            ),
        ]

    async def list(self, call: Call) -> Response:
        session_id = call.word("session")
        page = await call.desk.processes.list(
            session_id=SessionId(session_id) if session_id else None,
            state=call.choice("state", ProcessState),
            cursor=call.word("cursor"),
            limit=call.number("limit", 50),
        )
        return answer(page)

    async def show(self, call: Call) -> Response:
        return answer(await call.desk.processes.get(ProcessId(call.name())))

    async def log(self, call: Call) -> Response:
        after = call.number("after", 0, most=POSITION_MAX, least=0)
        limit = call.number("limit", OUTPUT_MAX, most=OUTPUT_MAX)
        colours = call.flag("colours") or False
        return answer(await call.desk.processes.output(ProcessId(call.name()), after, limit, colours=colours))

    async def kill(self, call: Call) -> Response:
        return answer(await call.desk.processes.kill(ProcessId(call.name())))
