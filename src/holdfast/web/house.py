"""The gateway as a whole: is it well, is it ready, what is it doing, and its end."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.core.keys import ADMIN
from holdfast.desk.plans import Pruning
from holdfast.desk.views import Health, Pruned, Search, Status, Stop
from holdfast.web.answers import answer, refusal
from holdfast.web.endpoints import Call, Endpoint


class House:
    """The gateway itself."""

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/health",
                handle=self.health,
                summary="Say that the gateway is alive",
                scope=None,
                gives=Health,
            ),
            Endpoint(
                method="GET",
                path="/ready",
                handle=self.ready,
                summary="Say whether new work will be done",
                scope=None,
                gives=Health,
            ),
            Endpoint(
                method="GET", path="/api/status", handle=self.status, summary="Show what the gateway does", gives=Status
            ),
            Endpoint(
                method="GET",
                path="/api/search",
                handle=self.search,
                summary="Find messages, answers and titles",
                gives=Search,
                query=("q", "limit"),
            ),
            Endpoint(
                method="POST",
                path="/api/prune",
                handle=self.prune,
                summary="Delete ended sessions of a channel, for a second or two; with `more` in the answer, ask again",
                scope=ADMIN,
                takes=Pruning,
                gives=Pruned,
            ),
            Endpoint(
                method="POST",
                path="/api/stop",
                handle=self.stop,
                summary="End or restart the gateway",
                scope=ADMIN,
                takes=Stop,
                gives=Health,
                status=202,
            ),
        ]

    async def health(self, call: Call) -> Response:
        return answer(await call.desk.health())

    async def ready(self, call: Call) -> Response:
        health = await call.desk.ready()
        if health.ready:
            return answer(health)
        return refusal(503, "not_ready", health.problem or f"the gateway is {health.state}")

    async def status(self, call: Call) -> Response:
        return answer(await call.desk.status())

    async def search(self, call: Call) -> Response:
        return answer(await call.desk.search(call.word("q") or "", call.number("limit", 50)))

    async def prune(self, call: Call) -> Response:
        return answer(await call.desk.prune(await call.body(Pruning)))

    async def stop(self, call: Call) -> Response:
        await call.desk.stop(await call.body(Stop))
        return answer(await call.desk.health(), 202)
