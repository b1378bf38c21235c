"""Set-up: which model answers."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.core.keys import ADMIN
from holdfast.desk.settings import SettingsView
from holdfast.desk.setup import ModelPlan, ModelsView, SetupView, Trial
from holdfast.web.endpoints import Call, Endpoint
from holdfast.web.settings import told


class Setup:
    """The first thing that somebody does with a gateway, and may do again."""

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/setup",
                handle=self.show,
                summary="Say which model answers, and who could",
                scope=ADMIN,
                gives=SetupView,
                refuses=(422,),
            ),
            Endpoint(
                method="POST",
                path="/api/setup",
                handle=self.choose,
                summary="Let a model answer from the next start on",
                scope=ADMIN,
                takes=ModelPlan,
                gives=SettingsView,
            ),
            Endpoint(
                method="POST",
                path="/api/setup/models",
                handle=self.models,
                summary="Ask a provider which models it has",
                scope=ADMIN,
                takes=ModelPlan,
                gives=ModelsView,
            ),
            Endpoint(
                method="POST",
                path="/api/setup/test",
                handle=self.test,
                summary="Send one small request to a model, and keep nothing",
                scope=ADMIN,
                takes=ModelPlan,
                gives=Trial,
            ),
        ]

    async def show(self, call: Call) -> Response:
        return await told(call.desk.upkeep.setup.view())

    async def choose(self, call: Call) -> Response:
        return await told(call.desk.upkeep.setup.choose(await call.body(ModelPlan)))

    async def models(self, call: Call) -> Response:
        return await told(call.desk.upkeep.setup.models(await call.body(ModelPlan)))

    async def test(self, call: Call) -> Response:
        return await told(call.desk.upkeep.setup.test(await call.body(ModelPlan)))
