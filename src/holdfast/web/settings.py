"""Settings: what the operator chose, and other choices."""

from __future__ import annotations

from collections.abc import Awaitable

from starlette.responses import Response

from holdfast.core.keys import ADMIN
from holdfast.desk.settings import SettingsChange, SettingsView
from holdfast.errors import ConfigInvalid
from holdfast.web.answers import Refused, answer
from holdfast.web.endpoints import Call, Endpoint

_UNCHANGED = "correct it and send it again; nothing was changed"


class Settings:
    """The configuration file, key by key."""

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/settings",
                handle=self.list,
                summary="List every setting with its value, its source and what it means",
                scope=ADMIN,
                gives=SettingsView,
            ),
            Endpoint(
                method="PATCH",
                path="/api/settings",
                handle=self.change,
                summary="Change settings in the file, to be read at the next start",
                scope=ADMIN,
                takes=SettingsChange,
                gives=SettingsView,
            ),
        ]

    async def list(self, call: Call) -> Response:
        return answer(await call.desk.upkeep.settings.view())

    async def change(self, call: Call) -> Response:
        return await told(call.desk.upkeep.settings.change(await call.body(SettingsChange)))


async def told(asked: Awaitable[object]) -> Response:
    """Return an answer, or the refusal of a setting, which the error begins with."""
    try:
        return answer(await asked)
    except ConfigInvalid as error:
        key = str(error).partition(": ")[0]
        more = {"key": key} if "." in key and " " not in key else {}
        raise Refused(422, "bad_setting", str(error), _UNCHANGED, more=more) from error
