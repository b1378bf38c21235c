"""Scheduled work."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.core.intake import Receipt
from holdfast.core.keys import ADMIN
from holdfast.core.schedule import LOG
from holdfast.desk.plans import Plan
from holdfast.desk.views import Forecast, JobView, Page, Removed
from holdfast.web.answers import answer
from holdfast.web.endpoints import Call, Endpoint, demand
from holdfast.web.principal import LOCAL


class Jobs:
    """Prompts that run by themselves."""

    def endpoints(self) -> list[Endpoint]:
        one = "/api/jobs/{id}"
        return [
            Endpoint(
                method="GET",
                path="/api/jobs",
                handle=self.list,
                summary="List jobs",
                gives=Page[JobView],
                query=("cursor", "limit"),
            ),
            Endpoint(
                method="POST",
                path="/api/jobs",
                handle=self.save,
                summary="Add a job, or change it",
                takes=Plan,
                gives=JobView,
                status=201,
            ),
            Endpoint(
                method="GET",
                path="/api/schedule",
                handle=self.forecast,
                summary="Say when a schedule is due",
                gives=Forecast,
                query=("schedule",),
            ),
            Endpoint(method="GET", path=one, handle=self.show, summary="Show a job and its last runs", gives=JobView),
            Endpoint(method="DELETE", path=one, handle=self.remove, summary="Remove a job", gives=Removed),
            Endpoint(method="POST", path=f"{one}/run", handle=self.run, summary="Run a job now", gives=Receipt, status=202),
            Endpoint(method="POST", path=f"{one}/pause", handle=self.pause, summary="Pause a job", gives=JobView),
            Endpoint(method="POST", path=f"{one}/resume", handle=self.resume, summary="Let a job go on", gives=JobView),
        ]

    async def list(self, call: Call) -> Response:
        return answer(await call.desk.jobs.list(cursor=call.word("cursor"), limit=call.number("limit", 50)))

    async def save(self, call: Call) -> Response:
        plan = await call.body(Plan)
        if plan.deliver not in (None, LOG) and call.principal.owner == LOCAL:
            # The agent has to ask before it sends elsewhere; a command of its own could else do so unasked.
            demand(call.principal, ADMIN)
        return answer(await call.desk.jobs.save(plan), 201)

    async def forecast(self, call: Call) -> Response:
        return answer(await call.desk.jobs.forecast(call.word("schedule") or ""))

    async def show(self, call: Call) -> Response:
        return answer(await call.desk.jobs.get(call.name()))

    async def remove(self, call: Call) -> Response:
        await call.desk.jobs.remove(call.name())
        return answer(Removed())

    async def run(self, call: Call) -> Response:
        return answer(await call.desk.jobs.run(call.name()), 202)

    async def pause(self, call: Call) -> Response:
        return answer(await call.desk.jobs.pause(call.name()))

    async def resume(self, call: Call) -> Response:
        return answer(await call.desk.jobs.resume(call.name()))
