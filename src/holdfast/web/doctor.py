"""The doctor: how everything is that the gateway lives on."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.core.keys import ADMIN
from holdfast.desk.doctor import Report
from holdfast.web.answers import answer
from holdfast.web.endpoints import Call, Endpoint


class Doctor:
    """Looks at the gateway that it runs in."""

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/doctor",
                handle=self.report,
                summary="Look at everything that the gateway lives on",
                scope=ADMIN,
                gives=Report,
            )
        ]

    async def report(self, call: Call) -> Response:
        return answer(await call.desk.upkeep.doctor.report())
